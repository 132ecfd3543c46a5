"""What a word problem asks for. A question that is not understood, or not about the account, has no answer."""

from __future__ import annotations

import re
from fractions import Fraction

from groundswell.emulator.skills.clauses import Clause
from groundswell.emulator.skills.nouns import is_length, is_money, phrase
from groundswell.emulator.skills.quantities import Quantities

TOGETHER = re.compile(r"\b(?:together|in all|in total|altogether|combined|total|both)\b", re.I)
DIFFERENCE = re.compile(r"\bhow (?:many|much) (?:more|fewer|less)\b|\bdifference\b", re.I)
_FORM = re.compile(r"\bhow (many|much|far|long|old|tall|heavy)\b|\bwhat\b", re.I)
_FOREIGN = re.compile(
    r"\b(?:at first|in the beginning|originally|initially|start(?:ed)?|began|begin|before|must|should|until|discount"
    r"|reduction|increase|tax|tip|interest|wants?|able|often|times|not|older|younger|same|percent\w*)\b|n['’]t\b|%",
    re.I,
)
"""Words of questions that the grammar does not have."""
_NEED = re.compile(r"\bneed(?:s|ed)?\b", re.I)
_DEED = re.compile(
    r"\b(?:give|gave|eat|sell|sold|lose|spend|use|donate|break|throw|drop|remove|lend|pay|drink|read|send|hand|buy|find|receive"
    r"|pick|collect|earn|win|gain|add|bake|join|arrive|saved?|harvest|catch|grow|travel|go|drive|run|walk|work)\b",
    re.I,
)
_NO_CHANGE = re.compile(r"\b(?:left|remain\w*|still|now|over)\b", re.I)
_ONE_OF_MANY = re.compile(r"\b(?:each|every|per|apiece|(?:in|on|for|to) (?:one|1|an?))\b", re.I)
_WHAT = re.compile(r"\b(?:price|costs?|total|sum|it|now|result|value|worth|amount|[\d.]+)\b", re.I)
_IS_LONG = re.compile(r"\bhow long (?:is|are|was|were)\b(?!.*\w(?:ing|s) to\b)", re.I)
_NAME = re.compile(r"(?<=\s)([A-Z][a-z]+)\b")
_DAYS = frozenset({"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"})
_PERCENT_ASKED = re.compile(r"\bwhat is [\d.]+\s?%", re.I)
_PLAIN = frozenset({"money", "change", "time", "distance"})


def ask(account: Quantities, question: Clause) -> bool:
    """Bring the account to what the question wants; False where the question is not about what the account has."""
    text = question.text
    if not account.held or account.waiting or account.each is not None:
        return False
    if not _PERCENT_ASKED.search(text) and (_FOREIGN.search(text) or not _about(account, text)):
        return False
    named = [name for name in dict.fromkeys(_NAME.findall(text)) if name not in _DAYS]
    if any(name not in account.held for name in named):
        return False
    return _brought(account, text, named) and bool(account.steps)


def _brought(account: Quantities, text: str, named: list[str]) -> bool:
    """Let the last step be the one that gives the answer."""
    if DIFFERENCE.search(text):
        return _differ(account, text, named)
    if TOGETHER.search(text) and len(account.held) > 1:
        wanted = named if len(named) > 1 else list(account.held)
        total = account.held[wanted[0]]
        for name in wanted[1:]:
            total = account.do(total, "+", account.held[name])
        return len(named) != 1
    if len(account.held) > 1 and len(named) != 1:
        return False
    value = account.held[named[0]] if named else account.held[next(iter(account.held))]
    if account.steps and account.steps[-1][3] != value:
        account.do(value, "+", Fraction(0))
    return True


def _differ(account: Quantities, text: str, named: list[str]) -> bool:
    """How many more one has than the other; they must be two, and it must be more."""
    if len(account.held) < 2 or _NEED.search(text):
        return False
    if re.search(r"\bdifference\b", text, re.I) or len(named) == 0:
        values = list(account.held.values())
        account.do(max(values), "-", min(values))
        return len(values) == 2
    others = [name for name in account.held if name != named[0]]
    other = named[1] if len(named) == 2 else others[0] if len(others) == 1 else None
    if other is None or len(named) > 2:
        return False
    pair = (named[0], other) if re.search(r"\bmore\b", text, re.I) else (other, named[0])
    return account.do(account.held[pair[0]], "-", account.held[pair[1]]) >= 0


def _about(account: Quantities, text: str) -> bool:
    """Whether the question is about what the account counts, and about what became of it."""
    form = _FORM.search(text)
    if form is None or (form[1] is None and not _WHAT.search(text) and not DIFFERENCE.search(text)):
        return False
    if (_ONE_OF_MANY.search(text) is not None) != (account.division == "shared"):
        return False
    if _NEED.search(text) and account.division != "packed":
        return False
    if account.subset:
        return re.search(rf"\b{re.escape(account.subset)}\b", text, re.I) is not None
    return _counts(account, text, form) and _deed_fits(account, text)


def _counts(account: Quantities, text: str, form: re.Match[str]) -> bool:
    """Whether the account counts what is asked for; several kinds together only under another name."""
    phrases = [noun for nouns in account.things.values() for noun in nouns]
    kinds = {noun[-1] for noun in phrases}
    word = (form[1] or "").lower()
    if word == "long" and not _IS_LONG.search(text):
        return False
    if word in ("far", "long", "tall"):
        return bool(kinds) and all(is_length(kind) for kind in kinds)
    if word in ("old", "heavy") or not word:
        return True
    wanted = phrase(text, form.end())
    if not wanted:
        return word == "many" or not kinds or len(kinds) == 1
    if not kinds:
        return True
    if wanted[-1] in _PLAIN:
        return all(is_money(kind) for kind in kinds)
    if len(kinds) > 1:
        return wanted[-1] not in kinds
    return wanted[-1] in kinds and all(set(wanted[:-1]) <= set(noun) for noun in phrases)


def _deed_fits(account: Quantities, text: str) -> bool:
    """What somebody did is in the account only if it began with that, and nothing was taken from it."""
    deed = _DEED.search(text) is not None and _NO_CHANGE.search(text) is None
    deed = deed and _ONE_OF_MANY.search(text) is None
    return not deed or (not account.lost and all(name in account.deeds for name in account.held))
