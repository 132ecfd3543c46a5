"""How word problems put things: the patterns that the account of a problem is read by."""

from __future__ import annotations

import re

from groundswell.emulator.skills.reading import pattern

_N = r"(?<!\d)(\d{1,15}+(?:\.\d{1,9}+)?)"
_MEANWHILE = r".{0,200}"
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
GROUPS = pattern(
    rf"{_N}\s+{_THING}(?:with|of|containing|holding|that (?:each )?(?:hold|have|contain)|full of|has|have"
    rf"|each with|each (?:holding|containing))"
    rf"\s+{_N}\s*{_THING}(?:each)?\s*[.!]?",
    re.I,
)
PRICES = pattern(
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
    rf"{_N}\s+(?:{_THING})(?:an?|per|each|every)\s+(second|minute|hour|day|week|month|year)\b{_MEANWHILE}?\bfor\s+{_N}\s+\2s?\b"
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
    rf"\b(?:shares?|shared|splits?|split|divides?|divided|distributes?|distributed|packs?|packed|puts?)\b{_MEANWHILE}?"
    rf"\b(?:among|amongst|between|into|by|in|to)\s+(?:(?:her|his|their|the)\s+)?{_N}",
    re.I,
)
PACKS = re.compile(rf"\b(?:into|in)\s+{_THING}of\s+{_N}", re.I)
TIMES = re.compile(rf"\b(?:(twice|doubles?|doubled)|(triples?|tripled|thrice)|{_N}\s+times)\b", re.I)
PART = re.compile(r"\b(?:(half)|(?:a|one|1)\s+(third|quarter|fourth|fifth))\b", re.I)
PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5}
_DEGREE = r"(more|older|taller|heavier|longer|fewer|less|younger|shorter|lighter)"
THAN = re.compile(rf"{_N}\s+(?!times\b)(?:[a-z]+\s+){{0,2}}?{_DEGREE}\b(?:{_MEANWHILE}?\bthan\s+([A-Z]\w*))?")
AS_MANY = re.compile(rf"\bas\s+(?:many|much|old|tall|far|long|heavy)\b(?:{_MEANWHILE}?\bas\s+([A-Z]\w*))?")
MORE_IN_DEGREE = frozenset({"more", "older", "taller", "heavier", "longer"})
HAS = re.compile(r"\A(?:And\s+|But\s+)?[A-Z]\w*\s+(?:has|have|had|is|was)\b")
COMPARED = re.compile(r"\bthan\b|\bas\s+(?:many|much|old|tall|far|long|heavy)\b", re.I)
DOUBLES = re.compile(r"\b(?:doubles?|doubled|triples?|tripled)\b", re.I)
KEEPS = re.compile(r"\b(?:keeps?|kept)\b", re.I)
SUBSET = re.compile(
    r"\b(?:of\s+(?:them|the\s+\w+)\s+)?(?:are|is|were|was)\s+(?!on\b|sold\b|off\b)(\w+)\s*[.!]?\Z", re.I
)
EVERY = re.compile(r"\b(?:each|every|per|apiece)\b", re.I)
TRAPS = re.compile(
    r"\b(?:not|never|no|without|neither|nor|except|instead|some|several|few|another|at least|at most|about|only"
    r"|until|unless|would|could|wants?|needs?|all but|half an?|and a half"
    r"|times (?:a|per|an|each|every)|twice (?:a|per|an))\b"
    r"|n['’]t\b|\b\d+ of (?:them|these|those|the \w+) (?:is|are|was|were)\b"
    r"|\b(?:is|are|was|were|has|have|had)\b.{0,200}\bleft\b"
    r"|\bfrom \d+ .{0,200}\bto \d|\b(?:fell|falls|rose|rises|drops|dropped|grows|grew) to \d",
    re.I,
)
"""Words that turn a clause into something that the grammar does not have."""
VAGUE = re.compile(r"\b(?:some|all|rest|several|few|many|most|an?|others?|everything|nothing|remaining)\b", re.I)
STRANGER = re.compile(r"(?:and\s+)?(?:an?|the|her|his|their|my|our|another|some\w*|both|every\w*)\s", re.I)
PRONOUN = re.compile(r"(?:and\s+|then\s+)*(?:he|she|it|they|we|i)\b", re.I)
FROM = re.compile(r"\bfrom\s+([A-Z]\w*)")
MAKES = re.compile(r"\b(?:bakes?|baked|makes?|made|cooks?|cooked|builds?|built)\b", re.I)
SPENT_ON = re.compile(r"\b(?:buys?|bought|gets?|got)\b", re.I)
STATE = re.compile(
    r"\b(?:has|have|had|there (?:are|is|were|was)|starts?(?: out)? with|started(?: out)? with|begins? with|costs?"
    r"|cost|weighs?|holds?"
    r"|contains?|owns?|keeps?|is|are|was|were|seats?|sits?|with|at first)\b",
    re.I,
)
NAME = re.compile(
    r"(?:\A|\b)(?:(?:If|Then|Later|Now|After|When|Meanwhile|Today|Yesterday|And|But|So)\s+)?([A-Z][a-z]+)\b"
)
TO = re.compile(r"\b(?:to|gives?|gave)\s+([A-Z]\w*)")
ELLIPTIC = re.compile(r"(?:and\s+)?\d")
_NO_NAMES = (
    "He She They It There The A An Her His Each Every In On At If I We Then Later Now After When Meanwhile"
    " Today Yesterday And But So First Next Finally Afterwards Both Some My Their Our This That These Those"
    " Another During Before Last One How What"
)
PRONOUNS = frozenset(_NO_NAMES.split())
"""Words that begin a clause with a capital and are nobody's name."""
INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}
HELD = re.compile(r"\b(?:has|have)\b", re.I)
COUNTS_MORE = re.compile(r"\b(?:more|fewer|less)\b", re.I)
