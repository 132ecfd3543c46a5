"""The running account of a word problem: who holds how many, and the operations that led there."""

from __future__ import annotations

import re
from fractions import Fraction

from groundswell.emulator.skills.arithmetic import apply
from groundswell.emulator.skills.clauses import Clause

_N = r"(\d{1,15}(?:\.\d{1,9})?)"
_THING = r"(?:[A-Za-z'-]+\s+){0,4}?"

GAIN = re.compile(
    r"\b(?:buys?|bought|gets?|got|finds?|found|receives?|received|picks?|picked|collects?|collected|earns?|earned|wins?|won"
    r"|gains?|gained|adds?|added|bakes?|baked|makes?|made|(?:is|are|was|were) given|joins?|joined|arrives?"
    r"|arrived|come|came|saves?|saved"
    r"|harvests?|catch(?:es)?|caught|grows?|grew|more)\b",
    re.I,
)
LOSS = re.compile(
    r"\b(?:gives?|gave|eats?|ate|sells?|sold|loses?|lost|spends?|spent|uses?|used|donates?|donated|breaks?|broke|throws?|threw"
    r"|drops?|dropped|removes?|removed|leaves?|left|lends?|lent|pays?|paid|drinks?|drank|reads?|sends?|sent|hands?|handed|fewer"
    r"|(?:get|got) off|fly|flew|burn(?:s|ed)?)\b",
    re.I,
)
SELLS = re.compile(r"\b(?:sells?|sold|earns?|earned)\b", re.I)
GROUPS = re.compile(
    rf"{_N}\s+{_THING}(?:with|of|containing|holding|that (?:each )?(?:hold|have|contain)|full of|has|have"
    rf"|each with|each (?:holding|containing))"
    rf"\s+{_N}\s*{_THING}(?:each)?\s*[.!]?",
    re.I,
)
PRICES = re.compile(
    rf"{_N}\s+{_THING}(?:at|for|costing|that cost|which cost|priced at)\s+{_N}\s*(?:dollars?|cents?|euros?|pounds?"
    rf"|coins?)?\s*(?:each|apiece|a piece|per\s+\w+)",
    re.I,
)
EACH = re.compile(
    rf"\b(?:each|every)\s+(?:\w+\s+)?(\w+)\s+(?:has|holds?|contains?|costs?|weighs?|gets?|needs?)\s+{_N}"
    rf"|\ban?\s+(?:\w+\s+)?(\w+)\s+(?:holds?|contains?|costs?|weighs?|needs?)\s+{_N}",
    re.I,
)
PER = re.compile(rf"{_N}\s+{_THING}(?:an?|per|each|every)\s+(second|minute|hour|day|week|month|year)\b", re.I)
RATE = re.compile(
    rf"{_N}\s+(?:{_THING})(?:an?|per|each|every)\s+(second|minute|hour|day|week|month|year)\b.*?\bfor\s+{_N}\s+\2s?\b"
    rf"|(?:for\s+)?{_N}\s+(second|minute|hour|day|week|month|year)s?\s+at\s+{_N}\s+{_THING}(?:an?|per|each|every)\s+\5\b",
    re.I,
)
PERCENT_OF = re.compile(rf"{_N}\s?%\s+of\s+{_N}", re.I)
PERCENT = re.compile(rf"{_N}\s?%", re.I)
LESS = re.compile(
    r"\b(?:off|discount|less|reduc\w+|falls?|fell|drops?|dropped|decreas\w+|shrinks?|cheaper|sale)\b", re.I
)
MORE = re.compile(r"\b(?:increas\w+|rises?|rose|grows?|grew|more|tax|tip|interest|extra|raised?|adds?|added)\b", re.I)
SHARE = re.compile(
    rf"\b(?:shares?|shared|splits?|split|divides?|divided|distributes?|distributed|packs?|packed|puts?|deals?|dealt)\b.*?"
    rf"\b(?:among|amongst|between|into|by|in|to)\s+(?:(?:her|his|their|the)\s+)?{_N}",
    re.I,
)
PACKS = re.compile(rf"\b(?:into|in)\s+{_THING}of\s+{_N}", re.I)
TIMES = re.compile(rf"\b(?:(twice|doubles?|doubled)|(triples?|tripled|thrice)|{_N}\s+times)\b", re.I)
PART = re.compile(r"\b(?:(half)|(?:a|one|1)\s+(third|quarter|fourth|fifth))\b", re.I)
PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5}
THAN = re.compile(rf"{_N}\s+(more|fewer|less)\b.*?\bthan\s+([A-Z]\w*)")
AS_MANY = re.compile(r"\bas\s+(?:many|much|old|tall|far|long|heavy)\b.*?\bas\s+([A-Z]\w*)")
STATE = re.compile(
    r"\b(?:has|have|had|there (?:are|is|were|was)|starts?(?: out)? with|started(?: out)? with|begins? with|costs?"
    r"|cost|weighs?|holds?"
    r"|contains?|owns?|keeps?|is|are|was|were|seats?|sits?|with|at first)\b",
    re.I,
)
TOGETHER = re.compile(r"\b(?:together|in all|in total|altogether|combined|total|both)\b", re.I)
DIFFERENCE = re.compile(r"\bhow (?:many|much) (?:more|fewer|less)\b|\bdifference\b", re.I)
_NAME = re.compile(
    r"(?:\A|\b)(?:(?:If|Then|Later|Now|After|When|Meanwhile|Today|Yesterday|And|But|So)\s+)?([A-Z][a-z]+)\b"
)
_TO = re.compile(r"\b(?:to|gives?|gave)\s+([A-Z]\w*)")
_ELLIPTIC = re.compile(r"(?:and\s+)?\d")
PRONOUNS = frozenset(
    {
        "He",
        "She",
        "They",
        "It",
        "There",
        "The",
        "A",
        "An",
        "Her",
        "His",
        "Each",
        "Every",
        "In",
        "On",
        "At",
        "If",
        "I",
        "We",
    }
)


class Quantities:
    """Reads clauses one by one. Every number must find its place, or the problem is not understood."""

    def __init__(self) -> None:
        self.steps: list[tuple[Fraction, str, Fraction, Fraction]] = []
        self.held: dict[str, Fraction] = {}
        self.who = ""
        self.each: tuple[Fraction, str] | None = None
        """A quantity per piece, and the name of a piece, that waits for the number of pieces."""
        self.bill = False
        """Whether the account is what has to be paid, so that further prices add to it."""
        self.sign = "+"
        """What the last verb did, for clauses that leave theirs out: "sells 4 pens and 3 books"."""

    def read(self, clause: Clause) -> bool:
        """Take one clause in; False where its numbers cannot be placed."""
        if clause.question and not clause.numbers:
            return True
        if not clause.numbers and not TIMES.search(clause.text) and not PART.search(clause.text):
            return True
        for reader in (self._rate, self._percent, self._compare, self._groups, self._each, self._share, self._scale):
            taken = reader(clause)
            if taken is not None:
                return taken == len(clause.numbers)
        return self._event(clause)

    def ask(self, question: Clause) -> bool:
        """Bring the account to what the question wants; False where nothing is held, or nothing was worked out."""
        if not self.held:
            return False
        values = list(self.held.values())
        named = [name for name in self.held if name and re.search(rf"\b{re.escape(name)}\b", question.text)]
        if DIFFERENCE.search(question.text) and len(values) == 2:
            self._do(max(values), "-", min(values))
        elif TOGETHER.search(question.text) and len(values) > 1:
            total = values[0]
            for value in values[1:]:
                total = self._do(total, "+", value)
        elif len(named) == 1 and self.steps and self.steps[-1][3] != self.held[named[0]]:
            self._settle(self.held[named[0]])
        return bool(self.steps)

    def _settle(self, value: Fraction) -> None:
        """Let the answer be what somebody holds who was not the last to act."""
        self._do(value, "+", Fraction(0))

    def _do(self, left: Fraction, sign: str, right: Fraction) -> Fraction:
        value = apply(left, sign, right)
        self.steps.append((left, sign, right, value))
        return value

    def _subject(self, text: str) -> str:
        """Who a clause is about: the name it starts with, or whoever it was before."""
        match = _NAME.match(text)
        return self.who if match is None or match[1] in PRONOUNS else match[1]

    def _start(self, text: str, value: Fraction) -> None:
        self.who = self._subject(text)
        self.held[self.who] = value

    def _change(self, clause: Clause, sign: str, amount: Fraction) -> None:
        """Add to, or take from, what the subject holds; a named receiver gets what is given."""
        who = self._subject(clause.text)
        if who not in self.held and self.who in self.held:
            who = self.who
        self.who = who
        receiver = _TO.search(clause.text) if sign == "-" else None
        if receiver is not None and receiver[1] in self.held:
            self.held[receiver[1]] = self._do(self.held[receiver[1]], "+", amount)
        self.held[who] = self._do(self.held[who], sign, amount)

    @property
    def _current(self) -> Fraction | None:
        return self.held.get(self.who)

    def _amount(self, clause: Clause, amount: Fraction, *, money: bool = False) -> None:
        """A worked-out amount starts the account, or changes it as the verb says; money spent goes out."""
        if self._current is None:
            self._start(clause.text, amount)
            self.bill = money
            return
        spent = money and not self.bill and not SELLS.search(clause.text)
        gained = self.bill or (
            not spent and (GAIN.search(clause.text) is not None or SELLS.search(clause.text) is not None)
        )
        self._change(clause, "+" if gained or not (spent or LOSS.search(clause.text)) else "-", amount)

    def _rate(self, clause: Clause) -> int | None:
        match = RATE.search(clause.text)
        if match is None:
            return None
        pair = (match[1], match[3]) if match[1] else (match[4], match[6])
        self._amount(clause, self._do(Fraction(pair[0]), "*", Fraction(pair[1])))
        return 2

    def _percent(self, clause: Clause) -> int | None:
        of = PERCENT_OF.search(clause.text)
        if of is not None:
            self._start(clause.text, self._do(Fraction(of[2]), "*", Fraction(of[1]) / 100))
            return 2
        match = PERCENT.search(clause.text)
        if match is None:
            return None
        if self._current is None and self.each is not None:
            self._start("", self.each[0])
            self.each = None
        rest = [number for number in clause.numbers if number != Fraction(match[1])]
        if len(rest) == 1 and self._current is None:
            self._start(clause.text, rest[0])
        if self._current is None:
            return -1
        percent = Fraction(match[1])
        if LESS.search(clause.text) or LOSS.search(clause.text):
            percent = 100 - percent
        elif MORE.search(clause.text):
            percent = 100 + percent
        self.held[self.who] = self._do(self.held[self.who], "*", percent / 100)
        return 1 + len(rest)

    def _compare(self, clause: Clause) -> int | None:
        """ "Ben has 5 more than Ana", "Ben has twice as many apples as Ana"."""
        than, many = THAN.search(clause.text), AS_MANY.search(clause.text)
        if than is not None and than[3] in self.held:
            sign = "+" if than[2] == "more" else "-"
            self._start(clause.text, self._do(self.held[than[3]], sign, Fraction(than[1])))
            return 1
        if many is None or many[1] not in self.held:
            return None
        sign, factor, used = _factor(clause.text)
        if sign:
            self._start(clause.text, self._do(self.held[many[1]], sign, factor))
        return used

    def _groups(self, clause: Clause) -> int | None:
        price = PRICES.search(clause.text)
        match = price or GROUPS.search(clause.text)
        if match is None:
            return None
        product = self._do(Fraction(match[1]), "*", Fraction(match[2]))
        self._amount(clause, product, money=price is not None)
        return 2

    def _each(self, clause: Clause) -> int | None:
        """ "Each box holds 6 pens", "earns 15 dollars an hour": multiplied now, or when the pieces are counted."""
        match, per = EACH.search(clause.text), PER.search(clause.text)
        if self.each is not None or clause.question or (match is None and per is None):
            return None
        piece, number = _caught(match) if match is not None else _caught(per)[::-1]
        amount = Fraction(number)
        if self._current is not None and match is not None:
            self.held[self.who] = self._do(self.held[self.who], "*", amount)
        else:
            self.each = (amount, piece.lower())
        return 1

    def _counted(self, clause: Clause) -> bool:
        """The number of pieces that `each` has waited for."""
        assert self.each is not None
        per, piece = self.each
        if re.search(rf"\b{re.escape(piece.rstrip('s'))}", clause.text, re.I) is None:
            return False
        self.each = None
        product = self._do(per, "*", clause.numbers[0])
        if self._current is None:
            self._start(clause.text, product)
        else:
            self._amount(clause, product)
        return True

    def _share(self, clause: Clause) -> int | None:
        match = SHARE.search(clause.text)
        pack = PACKS.search(clause.text) if match is None else None
        found = match or pack
        if found is None or Fraction(found[1]) == 0:
            return None
        if self._current is None and len(clause.numbers) == 2:
            self._start(clause.text, clause.numbers[0])
        if self._current is None:
            return None
        self.held[self.who] = self._do(self.held[self.who], "/", Fraction(found[1]))
        return len(clause.numbers)

    def _scale(self, clause: Clause) -> int | None:
        sign, factor, used = _factor(clause.text)
        if not sign or self._current is None:
            return None
        if sign == "/" and LOSS.search(clause.text) and factor != 2:
            taken = self._do(self.held[self.who], "/", factor)
            self.held[self.who] = self._do(self.held[self.who], "-", taken)
        else:
            self.held[self.who] = self._do(self.held[self.who], sign, factor)
        return used

    def _event(self, clause: Clause) -> bool:
        """One number: pieces counted, a gain, a loss or a state."""
        if len(clause.numbers) != 1:
            return False
        if self.each is not None:
            return self._counted(clause)
        if clause.question:
            return False
        subject, amount = self._subject(clause.text), clause.numbers[0]
        lost, gained = LOSS.search(clause.text), GAIN.search(clause.text)
        elliptic = _ELLIPTIC.match(clause.text) and not lost and not gained
        if subject in self.held and (lost or gained or elliptic):
            self.sign = self.sign if elliptic else "-" if lost else "+"
            self._change(clause, self.sign, amount)
            return True
        if subject not in self.held and (gained or STATE.search(clause.text)):
            self._start(clause.text, amount)
            self.sign = "+"
            return True
        return False


def _caught(match: re.Match[str] | None) -> list[str]:
    """What a pattern caught, left to right."""
    return [group for group in match.groups() if group] if match is not None else []


def _factor(text: str) -> tuple[str, Fraction, int]:
    """The factor that a clause names: its sign, its size, and how many digits-numbers it takes."""
    times = TIMES.search(text)
    if times is not None:
        if times[3]:
            return "*", Fraction(times[3]), 1
        return "*", Fraction(2 if times[1] else 3), 0
    part = PART.search(text)
    if part is not None:
        word = part[1] or part[2]
        return "/", Fraction(PARTS[word.lower()]), 1 if part[2] and re.search(r"\b1\s+" + part[2], text) else 0
    return "", Fraction(1), 0
