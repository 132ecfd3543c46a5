"""The running account of a word problem: who holds how many, and the operations that led there."""

from __future__ import annotations

import re
from fractions import Fraction

from groundswell.emulator.skills.arithmetic import apply
from groundswell.emulator.skills.clauses import Clause
from groundswell.emulator.skills.nouns import counted, is_money, phrase, stem

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
    rf"\b(?:shares?|shared|splits?|split|divides?|divided|distributes?|distributed|packs?|packed|puts?)\b.*?"
    rf"\b(?:among|amongst|between|into|by|in|to)\s+(?:(?:her|his|their|the)\s+)?{_N}",
    re.I,
)
PACKS = re.compile(rf"\b(?:into|in)\s+{_THING}of\s+{_N}", re.I)
TIMES = re.compile(rf"\b(?:(twice|doubles?|doubled)|(triples?|tripled|thrice)|{_N}\s+times)\b", re.I)
PART = re.compile(r"\b(?:(half)|(?:a|one|1)\s+(third|quarter|fourth|fifth))\b", re.I)
PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5}
_DEGREE = r"(more|older|taller|heavier|longer|fewer|less|younger|shorter|lighter)"
THAN = re.compile(rf"{_N}\s+(?!times\b)(?:[a-z]+\s+){{0,2}}?{_DEGREE}\b(?:.*?\bthan\s+([A-Z]\w*))?")
AS_MANY = re.compile(r"\bas\s+(?:many|much|old|tall|far|long|heavy)\b(?:.*?\bas\s+([A-Z]\w*))?")
_MORE = frozenset({"more", "older", "taller", "heavier", "longer"})
_HAS = re.compile(r"\A(?:And\s+|But\s+)?[A-Z]\w*\s+(?:has|have|had|is|was)\b")
_COMPARED = re.compile(r"\bthan\b|\bas\s+(?:many|much|old|tall|far|long|heavy)\b", re.I)
_DOUBLES = re.compile(r"\b(?:doubles?|doubled|triples?|tripled)\b", re.I)
_KEEPS = re.compile(r"\b(?:keeps?|kept)\b", re.I)
_SUBSET = re.compile(
    r"\b(?:of\s+(?:them|the\s+\w+)\s+)?(?:are|is|were|was)\s+(?!on\b|sold\b|off\b)(\w+)\s*[.!]?\Z", re.I
)
_EVERY = re.compile(r"\b(?:each|every|per|apiece)\b", re.I)
_TRAPS = re.compile(
    r"\b(?:not|never|no|without|neither|nor|except|instead|some|several|few|another|at least|at most|about|only"
    r"|until|unless|would|could|wants?|needs?|all but|half an?|and a half|times (?:a|per|an|each|every)|twice (?:a|per|an))\b"
    r"|n['’]t\b|\b\d+ of (?:them|these|those|the \w+) (?:is|are|was|were)\b|\b(?:is|are|was|were|has|have|had)\b.*\bleft\b"
    r"|\bfrom \d+ .*\bto \d|\b(?:fell|falls|rose|rises|drops|dropped|grows|grew) to \d",
    re.I,
)
"""Words that turn a clause into something that the grammar does not have."""
_VAGUE = re.compile(r"\b(?:some|all|rest|several|few|many|most|an?|others?|everything|nothing|remaining)\b", re.I)
_STRANGER = re.compile(r"(?:and\s+)?(?:an?|the|her|his|their|my|our|another|some\w*|both|every\w*)\s", re.I)
_PRONOUN = re.compile(r"(?:and\s+|then\s+)*(?:he|she|it|they|we|i)\b", re.I)
_FROM = re.compile(r"\bfrom\s+([A-Z]\w*)")
_SPENT_ON = re.compile(r"\b(?:buys?|bought|gets?|got)\b", re.I)
STATE = re.compile(
    r"\b(?:has|have|had|there (?:are|is|were|was)|starts?(?: out)? with|started(?: out)? with|begins? with|costs?"
    r"|cost|weighs?|holds?"
    r"|contains?|owns?|keeps?|is|are|was|were|seats?|sits?|with|at first)\b",
    re.I,
)
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
        *(
            "Then Later Now After When Meanwhile Today Yesterday And But So First Next Finally Afterwards Both Some My".split()
        ),
        *("Their Our This That These Those Another During Before Last One".split()),
    }
)


class Quantities:
    """Reads clauses one by one. Every number must find its place, or the problem is not understood."""

    def __init__(self) -> None:
        self.steps: list[tuple[Fraction, str, Fraction, Fraction]] = []
        self.held: dict[str, Fraction] = {}
        self.who = ""
        self.each: tuple[Fraction, str] | None = None
        self.each_noun: tuple[str, ...] = ()
        """A quantity per piece, and the name of a piece, that waits for the number of pieces."""
        self.bill = False
        """Whether the account is what has to be paid, so that further prices add to it."""
        self.sign = "+"
        """What the last verb did, for clauses that leave theirs out: "sells 4 pens and 3 books"."""
        self.each_sign = ""
        """What the verb of `each` did: "loses 2 a day"."""
        self.things: dict[str, list[tuple[str, ...]]] = {}
        """What somebody's numbers count, as noun phrases."""
        self.deeds: set[str] = set()
        """Whose account began with something done, not with something held."""
        self.lost = False
        """Whether something was taken from an account."""
        self.division = ""
        """How the account was last divided: shared among many, or packed into pieces of a size."""
        self.subset = ""
        """What the part that is left in the account was said to be: "40% are girls"."""
        self.waiting: list[tuple[str, str, Fraction, str]] = []
        """Comparisons with somebody of whom nothing is known yet: who, sign, by how much, with whom."""

    def read(self, clause: Clause) -> bool:
        """Take one clause in; False where its numbers cannot be placed."""
        if clause.question and not clause.numbers:
            return True
        if not clause.numbers and not TIMES.search(clause.text) and not PART.search(clause.text):
            return clause.question or not self._vague(clause.text)
        parts = len(TIMES.findall(clause.text)) + len(PART.findall(clause.text))
        if parts > 1 or (not clause.question and _TRAPS.search(clause.text)) or self.subset:
            return False
        for reader in (self._rate, self._percent, self._compare, self._groups, self._each, self._share, self._scale):
            taken = reader(clause)
            if taken is not None:
                return taken == len(clause.numbers)
        return self._event(clause)

    def _vague(self, text: str) -> bool:
        """Whether something is done with an unknown quantity."""
        return _VAGUE.search(text) is not None and (LOSS.search(text) or GAIN.search(text)) is not None

    def do(self, left: Fraction, sign: str, right: Fraction) -> Fraction:
        value = apply(left, sign, right)
        self.steps.append((left, sign, right, value))
        return value

    def _subject(self, text: str) -> str:
        """Who a clause is about: the name it starts with, or whoever it was before."""
        match = _NAME.match(text)
        return self.who if match is None or match[1] in PRONOUNS else match[1]

    def _start(self, text: str, value: Fraction, noun: tuple[str, ...] = (), *, deed: bool = False) -> None:
        self.who = self._subject(text)
        self.held[self.who] = value
        self.things[self.who] = [noun] if noun else []
        if deed:
            self.deeds.add(self.who)
        self._resolve()

    def _resolve(self) -> None:
        """Work out the comparisons that have waited for one of their sides."""
        for at, (who, sign, amount, whom) in enumerate(self.waiting):
            if (who in self.held) == (whom in self.held):
                continue
            del self.waiting[at]
            known, other = (whom, who) if whom in self.held else (who, whom)
            self.held[other] = self.do(self.held[known], sign if known == whom else _INVERSE[sign], amount)
            self.things[other] = self.things.get(other) or list(self.things[known])
            return self._resolve()

    def _name_kind(self, who: str, noun: tuple[str, ...], sign: str) -> bool:
        """Note what a change counts; False where it cannot belong to the account."""
        known = self.things.setdefault(who, [])
        if not noun or any(noun[-1] == other[-1] for other in known) or not known:
            if noun and noun not in known:
                known.append(noun)
            return True
        if sign == "-" or is_money(noun[-1]) or any(is_money(other[-1]) for other in known) or self.division:
            return False
        known.append(noun)
        return True

    def _change(self, clause: Clause, sign: str, amount: Fraction) -> bool:
        """Add to, or take from, what the subject holds; a named receiver gets what is given. False where unclear."""
        who = self._subject(clause.text)
        if who not in self.held and self.who in self.held:
            who = self.who
        self.who = who
        partner = (_TO if sign == "-" else _FROM).search(clause.text)
        others = {name for name in self.held if name and name != who and re.search(rf"\b{name}\b", clause.text)}
        if others - {partner[1] if partner is not None else ""} or (self.bill and sign == "-"):
            return False
        if others and partner is not None:
            self.held[partner[1]] = self.do(self.held[partner[1]], "+" if sign == "-" else "-", amount)
        self.held[who] = self.do(self.held[who], sign, amount)
        self.lost = self.lost or sign == "-"
        return True

    @property
    def _current(self) -> Fraction | None:
        return self.held.get(self.who)

    def _amount(self, clause: Clause, amount: Fraction, noun: tuple[str, ...], *, money: bool = False) -> bool:
        """A worked-out amount starts the account, or changes it as the verb says; money spent goes out."""
        if self._current is None:
            self._start(clause.text, amount, noun, deed=STATE.search(clause.text) is None or money)
            self.bill = money
            return True
        spent = money and not self.bill and not SELLS.search(clause.text)
        gained = self.bill or (
            not spent and (GAIN.search(clause.text) is not None or SELLS.search(clause.text) is not None)
        )
        sign = "+" if gained or not (spent or LOSS.search(clause.text)) else "-"
        return self._name_kind(self.who, noun, sign) and self._change(clause, sign, amount)

    def _rate(self, clause: Clause) -> int | None:
        match = RATE.search(clause.text)
        if match is None:
            return None
        pair = (match[1], match[3]) if match[1] else (match[4], match[6])
        noun = counted(clause.text, pair[0])
        if self.each is not None or len(_EVERY.findall(clause.text)) > 1:
            return -1
        return 2 if self._amount(clause, self.do(Fraction(pair[0]), "*", Fraction(pair[1])), noun) else -1

    def _percent(self, clause: Clause) -> int | None:
        of = PERCENT_OF.search(clause.text)
        if of is not None:
            self._start(clause.text, self.do(Fraction(of[2]), "*", Fraction(of[1]) / 100))
            return 2
        match = PERCENT.search(clause.text)
        if match is None:
            return None
        if self._current is None and self.each is not None:
            self._start("", self.each[0], ("dollar",))
            self.each = None
        rest = [number for number in clause.numbers if number != Fraction(match[1])]
        if len(rest) == 1 and self._current is None:
            self._start(clause.text, rest[0])
        if self._current is None:
            return -1
        percent, part = Fraction(match[1]), _SUBSET.search(clause.text)
        if LESS.search(clause.text) or LOSS.search(clause.text):
            percent = 100 - percent
        elif MORE.search(clause.text):
            percent = 100 + percent
        elif part is not None:
            self.subset = part[1].lower()
        else:
            return -1
        self.held[self.who] = self.do(self.held[self.who], "*", percent / 100)
        return 1 + len(rest)

    def _compare(self, clause: Clause) -> int | None:
        """ "Ben has 5 more than Ana", "Ben has twice as many apples as Ana"; the other side may stand elsewhere."""
        if clause.question:
            return None
        than, many = THAN.search(clause.text), AS_MANY.search(clause.text)
        plain = _HAS.match(clause.text) is not None
        if many is not None:
            (sign, amount, used), whom = _factor(clause.text), many[1]
        elif than is not None and (plain or than[3]):
            sign, amount, used, whom = "+" if than[2] in _MORE else "-", Fraction(than[1]), 1, than[3]
        else:
            return -1 if _COMPARED.search(clause.text) else None
        who = self._subject(clause.text)
        others = [name for name in self.held if name != who]
        whom = whom or (others[0] if len(others) == 1 and not self.waiting else None)
        if not sign or not plain or whom is None or whom in (who, "") or who in self.held or not who:
            return -1
        noun = phrase(clause.text, many.start() + 7) if many is not None else counted(clause.text, _written(amount))
        self.things[who] = [noun] if noun else []
        self.waiting.append((who, sign, amount, whom))
        self.who = who
        self._resolve()
        return used

    def _groups(self, clause: Clause) -> int | None:
        price = PRICES.search(clause.text)
        match = price or GROUPS.search(clause.text)
        if match is None:
            return None
        holder, noun = counted(clause.text, match[1]), counted(clause.text[match.start(2) :], match[2])
        if not holder or (match[0].split()[1:] and _HELD.search(match[0]) and not _EVERY.search(clause.text)):
            return -1
        product = self.do(Fraction(match[1]), "*", Fraction(match[2]))
        noun = ("dollar",) if price is not None else noun
        return 2 if self._amount(clause, product, noun, money=price is not None) else -1

    def _each(self, clause: Clause) -> int | None:
        """ "Each box holds 6 pens", "earns 15 dollars an hour": multiplied now, or when the pieces are counted."""
        match, per = EACH.search(clause.text), PER.search(clause.text)
        if self.each is not None or clause.question or (match is None and per is None):
            return None
        piece, number = _caught(match) if match is not None else _caught(per)[::-1]
        found = match or per
        rest = clause.text.replace(found[0], "") if found is not None else ""
        amount, noun = Fraction(number), counted(clause.text, number)
        if _EVERY.search(rest) or len(clause.numbers) > 1:
            return -1
        known = self.things.get(self.who, [])
        if self._current is not None and match is not None and [other[-1] for other in known] == [stem(piece)]:
            self.held[self.who] = self.do(self.held[self.who], "*", amount)
            self.things[self.who] = [noun] if noun else []
        else:
            self.each, self.each_noun = (amount, piece.lower()), noun
            self.each_sign = "-" if LOSS.search(clause.text) else "+" if GAIN.search(clause.text) else ""
            self.who = self._subject(clause.text) if match is None else self.who
        return 1

    def _counted(self, clause: Clause) -> bool:
        """The number of pieces that `each` has waited for."""
        assert self.each is not None
        (per, piece), noun = self.each, counted(clause.text, _written(clause.numbers[0]))
        if not noun or noun[-1] != stem(piece) or _EVERY.search(clause.text):
            return False
        self.each = None
        product = self.do(per, "*", clause.numbers[0])
        if self._current is None:
            self._start("" if clause.question else clause.text, product, self.each_noun, deed=True)
            return True
        if not clause.question:
            return self._amount(clause, product, self.each_noun, money=bool(is_money((self.each_noun or ("",))[-1])))
        known = self._name_kind(self.who, self.each_noun, self.each_sign)
        return known and bool(self.each_sign) and self._change(clause, self.each_sign, product)

    def _share(self, clause: Clause) -> int | None:
        match = SHARE.search(clause.text)
        pack = PACKS.search(clause.text) if match is None else None
        found = match or pack
        if found is None or Fraction(found[1]) == 0:
            return None
        used = 1
        if self._current is None and len(clause.numbers) == 2:
            self._start(clause.text, clause.numbers[0], counted(clause.text, _written(clause.numbers[0])))
            used = 2
        if self._current is None or self.division or len(self.held) > 1 or _EVERY.search(clause.text):
            return -1
        self.held[self.who] = self.do(self.held[self.who], "/", Fraction(found[1]))
        self.division = "shared" if pack is None else "packed"
        if pack is not None:
            self.things[self.who] = [(stem(pack[0].split()[1]),)]
        return used

    def _scale(self, clause: Clause) -> int | None:
        """ "Gives half of them", "doubles them", "half of them are red"."""
        sign, factor, used = _factor(clause.text)
        if not sign:
            return None
        part = _SUBSET.search(clause.text)
        if self._current is None or clause.question or self.division or self._unclear(clause.text):
            return -1
        if sign == "*":
            if not _DOUBLES.search(clause.text):
                return -1
            self.held[self.who] = self.do(self.held[self.who], "*", factor)
        elif LOSS.search(clause.text):
            taken = self.do(self.held[self.who], "/", factor)
            return used if self._change(clause, "-", taken) else -1
        elif _KEEPS.search(clause.text) or part is not None:
            self.held[self.who] = self.do(self.held[self.who], "/", factor)
            self.subset = part[1].lower() if part is not None else ""
        else:
            return -1
        return used

    def _unclear(self, text: str) -> bool:
        """Whether it is open whose account a clause is about."""
        stranger = self.who != "" and _STRANGER.match(text) is not None and PART.match(text) is None
        return stranger or (len(self.held) > 1 and _PRONOUN.match(text) is not None)

    def _event(self, clause: Clause) -> bool:
        """One number: pieces counted, a gain, a loss or a state."""
        if len(clause.numbers) != 1:
            return False
        if self.each is not None:
            return self._counted(clause)
        if clause.question or self.division or _EVERY.search(clause.text):
            return False
        subject, amount = self._subject(clause.text), clause.numbers[0]
        noun = counted(clause.text, _written(amount))
        lost, gained = LOSS.search(clause.text), GAIN.search(clause.text)
        elliptic = _ELLIPTIC.match(clause.text) and not lost and not gained
        if subject in self.held and (lost or gained or elliptic):
            if self._unclear(clause.text) or (gained and not lost and STATE.match(clause.text.partition(" ")[2])):
                return False
            paid = bool(noun) and is_money(noun[-1]) and _SPENT_ON.search(clause.text) is not None
            self.sign = self.sign if elliptic else "-" if lost or paid else "+"
            return self._name_kind(subject, noun, self.sign) and self._change(clause, self.sign, amount)
        if subject not in self.held and (gained or STATE.search(clause.text)):
            if _COUNTS_MORE.search(clause.text):
                return False
            self._start(clause.text, amount, noun, deed=STATE.search(clause.text) is None)
            self.sign = "+"
            return True
        return False


_INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}
_HELD = re.compile(r"\b(?:has|have)\b", re.I)
_COUNTS_MORE = re.compile(r"\b(?:more|fewer|less)\b", re.I)


def _written(number: Fraction) -> str:
    """A number as it stands in a clause, or nearly."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.9f}".rstrip("0")


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
