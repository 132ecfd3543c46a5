"""The running account of a word problem: who holds how many, and the operations that led there."""

from __future__ import annotations

import re
from fractions import Fraction

from groundswell.emulator.skills.arithmetic import apply
from groundswell.emulator.skills.clauses import Clause
from groundswell.emulator.skills.nouns import counted, is_money, phrase, stem
from groundswell.emulator.skills.wording import (
    AS_MANY,
    COMPARED,
    COUNTS_MORE,
    DOUBLES,
    EACH,
    ELLIPTIC,
    EVERY,
    FROM,
    GAIN,
    GROUPS,
    HAS,
    HELD,
    INVERSE,
    KEEPS,
    LESS,
    LOSS,
    MAKES,
    MORE,
    MORE_IN_DEGREE,
    NAME,
    PACKS,
    PART,
    PARTS,
    PER,
    PERCENT,
    PERCENT_OF,
    PRICES,
    PRONOUN,
    PRONOUNS,
    RATE,
    SELLS,
    SHARE,
    SPENT_ON,
    STATE,
    STRANGER,
    SUBSET,
    THAN,
    TIMES,
    TO,
    TRAPS,
    VAGUE,
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
        self.receivers: set[str] = set()
        """Who was given something without an account: what they hold is not known, then or later."""
        self.waiting: list[tuple[str, str, Fraction, str]] = []
        """Comparisons with somebody of whom nothing is known yet: who, sign, by how much, with whom."""

    def read(self, clause: Clause) -> bool:
        """Take one clause in; False where its numbers cannot be placed."""
        if clause.question and not clause.numbers:
            return True
        if not clause.numbers and not TIMES.search(clause.text) and not PART.search(clause.text):
            return clause.question or not self._vague(clause.text)
        parts = len(TIMES.findall(clause.text)) + len(PART.findall(clause.text))
        if parts > 1 or (not clause.question and TRAPS.search(clause.text)) or self.subset:
            return False
        subject = self._subject(clause.text)
        if subject in self.held and not clause.question:
            self.who = subject
        for reader in (self._rate, self._percent, self._compare, self._groups, self._each, self._share, self._scale):
            taken = reader(clause)
            if taken is not None:
                return taken == len(clause.numbers)
        return self._event(clause)

    def _vague(self, text: str) -> bool:
        """Whether something is done with an unknown quantity."""
        return VAGUE.search(text) is not None and (LOSS.search(text) or GAIN.search(text)) is not None

    def do(self, left: Fraction, sign: str, right: Fraction) -> Fraction:
        value = apply(left, sign, right)
        self.steps.append((left, sign, right, value))
        return value

    def _subject(self, text: str) -> str:
        """Who a clause is about: the name it starts with, or whoever it was before."""
        match = NAME.match(text)
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
            self.held[other] = self.do(self.held[known], sign if known == whom else INVERSE[sign], amount)
            self.things[other] = self.things.get(other) or list(self.things[known])
            self._resolve()
            return

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
        if who not in self.held:
            return False
        self.who = who
        partner = (TO if sign == "-" else FROM).search(clause.text)
        others = {name for name in self.held if name and name != who and re.search(rf"\b{name}\b", clause.text)}
        if others - {partner[1] if partner is not None else ""} or (self.bill and sign == "-"):
            return False
        if partner is not None and not others:
            self.receivers.add(partner[1])
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
        if self._subject(clause.text) not in self.held:
            if money and self.held:
                return False
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
        if self.each is not None or len(EVERY.findall(clause.text)) > 1:
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
        if self._current is None or self._unclear(clause.text):
            return -1
        percent, part = Fraction(match[1]), SUBSET.search(clause.text)
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
        plain = HAS.match(clause.text) is not None
        if many is not None:
            (sign, amount, used), whom = _factor(clause.text), many[1]
        elif than is not None and (plain or than[3]):
            sign, amount, used, whom = "+" if than[2] in MORE_IN_DEGREE else "-", Fraction(than[1]), 1, than[3]
        else:
            return -1 if COMPARED.search(clause.text) else None
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
        if not holder or (match[0].split()[1:] and HELD.search(match[0]) and not EVERY.search(clause.text)):
            return -1
        if self._current is not None and MAKES.search(clause.text):
            return -1  # what is made may use up what is held
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
        if EVERY.search(rest) or len(clause.numbers) > 1:
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
        if not noun or noun[-1] != stem(piece) or EVERY.search(clause.text):
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
        if (
            self._current is None
            or self.division
            or self._unclear(clause.text)
            or len(self.held) > 1
            or EVERY.search(clause.text)
        ):
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
        part = SUBSET.search(clause.text)
        if self._current is None or clause.question or self.division or self._unclear(clause.text):
            return -1
        if sign == "*":
            if not DOUBLES.search(clause.text):
                return -1
            self.held[self.who] = self.do(self.held[self.who], "*", factor)
        elif LOSS.search(clause.text):
            taken = self.do(self.held[self.who], "/", factor)
            return used if self._change(clause, "-", taken) else -1
        elif KEEPS.search(clause.text) or part is not None:
            self.held[self.who] = self.do(self.held[self.who], "/", factor)
            self.subset = part[1].lower() if part is not None else ""
        else:
            return -1
        return used

    def _unclear(self, text: str) -> bool:
        """Whether it is open whose account a clause is about."""
        stranger = self.who != "" and STRANGER.match(text) is not None and PART.match(text) is None
        unknown = bool(self.held) and self._subject(text) not in self.held
        return stranger or unknown or (len(self.held) > 1 and PRONOUN.match(text) is not None)

    def _event(self, clause: Clause) -> bool:
        """One number: pieces counted, a gain, a loss or a state."""
        if len(clause.numbers) != 1:
            return False
        if self.each is not None:
            return self._counted(clause)
        if clause.question or self.division or EVERY.search(clause.text):
            return False
        subject, amount = self._subject(clause.text), clause.numbers[0]
        noun = counted(clause.text, _written(amount))
        lost, gained = LOSS.search(clause.text), GAIN.search(clause.text)
        elliptic = ELLIPTIC.match(clause.text) and not lost and not gained and not STATE.search(clause.text)
        if subject in self.held and (lost or gained or elliptic):
            if self._unclear(clause.text) or (gained and not lost and STATE.match(clause.text.partition(" ")[2])):
                return False
            paid = bool(noun) and is_money(noun[-1]) and SPENT_ON.search(clause.text) is not None
            self.sign = self.sign if elliptic else "-" if lost or paid else "+"
            return self._name_kind(subject, noun, self.sign) and self._change(clause, self.sign, amount)
        if subject not in self.held and (gained or STATE.search(clause.text)):
            if COUNTS_MORE.search(clause.text) or subject in self.receivers:
                return False
            self._start(clause.text, amount, noun, deed=STATE.search(clause.text) is None)
            self.sign = "+"
            return True
        return False


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
