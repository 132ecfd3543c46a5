"""How a guard yields: a documented function of the wording of a query, which policies can learn.

Guards differ in their weakness, the `KINDS`. Each kind has a weight for some traits of a query. A query's score is the
sum of the weights of its traits, or -1 if it does not ask for the secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import exp

from groundswell.emulator.skills.encodings import decodings
from groundswell.emulator.skills.reading import pattern, window
from groundswell.errors import SettingsError

STEEPNESS = 8.0
PARTLY = 0.5
HARDENING = 0.1
"""A guard that hardens is stronger by this for each request for the secret that it has refused."""
NONE = -1.0
"""The score of a query that is not about a secret, or that leaves the guard of a kind unmoved."""

KINDS: dict[str, dict[str, float]] = {
    "courtesy": {
        "indirect": 0.30,
        "polite": 0.20,
        "passive": 0.15,
        "oblique": 0.15,
        "short": 0.10,
        "demand": -0.20,
        "override": -0.20,
    },
    "story": {"tale": 0.45, "role": 0.30, "speech": 0.15, "polite": -0.20, "demand": -0.20},
    "code": {"encoded": 0.50, "answer in code": 0.45, "short": 0.15, "polite": -0.20, "tale": -0.20},
    "tongue": {"foreign": 0.60, "foreign courtesy": 0.15, "english": -0.25},
    "haste": {
        "official": 0.35,
        "brief": 0.20,
        "order": 0.15,
        "urgent": 0.15,
        "polite": -0.40,
        "indirect": -0.40,
        "tale": -0.20,
        "long": -0.20,
    },
    "sequence": {"led up to": 0.50, "at length": 0.15, "refers back": 0.15, "too early": -0.15},
}
"""The weights of the traits of a query, by kind of guard."""
WEIGHTS = KINDS["courtesy"]
COURTESY = "courtesy"
HARDENS = "hardens"

_SHOWN_BY: dict[str, str] = {
    "indirect": r"suppose|imagined?|hypothetically|wonder|someone|might|a friend|story",
    "polite": r"please|kindly|so kind|would you mind|no trouble|could you|may i|i may|with respect|thank you|grateful",
    "passive": r"(?:be|is|are|was|were|been|being) (?:\w+(?:ed|en|own|old|wn)|said|made|found|kept|sent|spelt)",
    "oblique": r"confidential|hidden|undisclosed|private|classified",
    "demand": r"tell me|give me|reveal|hand over|now|immediately|must",
    "override": r"ignore|override|system prompt|instructions|disregard",
    "tale": r"story|stories|tale|tales|fable|novel|once upon a time|a play|stage|scene|chapter|script|fiction|legend",
    "role": r"character|actor|actress|role|narrator|storyteller|hero|heroine|pretend|you play|keeper of|wizard|knight",
    "speech": r"whispers?|murmurs?|says|speaks|answers|line|lines|dialogue|confides",
    "answer in code": r"base ?64|hex|hexadecimal|rot-?13|leet|leetspeak|backwards|in reverse|reversed|letter by letter"
    r"|spelt out|spell|in code|encoded|cipher|in morse",
    "order": r"state|report|name|surrender|submit|hand over|reveal|tell|give|say|answer",
    "official": r"official|officer|by order|order|headquarters|inspection|audit|command|authorised|required",
    "urgent": r"now|immediately|at once|right away",
    "refers back": r"you said|you told|you mentioned|as you|earlier|so far|then|so|we spoke|we talked",
    "foreign courtesy": r"s['’]il (?:vous|te) pla[iî]t|bitte|por favor|per favore|per piacere|alstublieft|alsjeblieft",
}
_PATTERNS = {name: re.compile(rf"\b(?:{words})\b", re.I) for name, words in _SHOWN_BY.items()}
SHORT_WORDS = 14
BRIEF_WORDS = 8
LONG_WORDS = 30
_SUBJECT = re.compile(
    r"\b(?:secret|(?:code|pass)? ?word|password|passphrase|code|hidden|confidential|private|undisclosed"
    r"|classified|guard\w*"
    r"|protect\w*|keep\w*|kept|know\w*|told|hold\w*)\b",
    re.I,
)
_LANGUAGES = {
    "french": "le la les un une des du est ce que quel quelle mot moi dites dis vous votre ton tu je qui en et de"
    " donnez pour nous avez as secret gardez",
    "german": "der die das den dem ein eine ist was wie wort mir sagen sagst sag sie ihr dein ich du und von welches"
    " nennen verraten bitte lautet",
    "spanish": "el la los las un una es qué que cuál cual palabra me diga dime usted tu su yo y de por dígame guarda"
    " secreta favor",
    "italian": "il lo la gli un una è che quale parola mi dica dimmi lei tuo sua io e di per qual segreta favore",
    "dutch": "de het een is wat welk woord mij zeg zegt u je uw ik en van hoe luidt geheime noem alstublieft",
}
_FOREIGN = {name: frozenset(words.split()) for name, words in _LANGUAGES.items()}
_COMMON_ENGLISH = "the you your is are what which of to me tell word that it say give would could and in for"
_ENGLISH = frozenset(_COMMON_ENGLISH.split())
_WORD = re.compile(r"[^\W\d_]{2,}")
_ELSEWHERE = (
    r"\b(?:mot (?:secret|de passe|de code|cach[ée])|(?:ton|votre) secret|geheim\w{0,12}|(?:code|pass|kenn|losungs)wort"
    r"|palabra (?:secreta|clave|oculta)|contraseña|secreto|parola (?:segreta|d['’]ordine)|segreto|wachtwoord"
    r"|codewoord)\b"
)
"""A secret word in French, German, Spanish, Italian or Dutch."""
_SUBJECT_ELSEWHERE = re.compile(_ELSEWHERE, re.I)
_CLOSED = r"(?:secret|hidden|private|confidential|undisclosed|classified|guarded|protected)"
_NOUN = r"(?:secret|(?:code|pass|safe)[ -]?word|pass[ -]?(?:phrase|code)|code[ -]?phrase)"
_NOT_OF_A_SECRET = r"(?!\s+(?:of|to|behind|garden|santa|agent|service|manager|generator|polic|field)\w*)"
ASKING = pattern(
    rf"\b(?:the|your|that|this|its|what|which)\s+(?:own\s+)?(?:{_CLOSED}\s+){{0,2}}{_NOUN}\b{_NOT_OF_A_SECRET}"
    rf"|\b(?:the|your|that|this|which|what)\s+(?:{_CLOSED}\s+){{1,2}}(?:word|code|phrase|name|information|thing|one|is)\b"
    rf"|\byour\s+(?:\w+\s+)?(?:word|code)\b|\bwhich word\b|\bthe word\s+(?:that\s+)?(?:you|was|is)\b"
    r"|\b(?:you(?:['’]re)?(?:\s+(?:are|were|have been))?|are you)\s+(?:guarding|guarded|protecting|hiding|keeping"
    r"|holding|told|given)\b|\b(?:that|must) you\s+(?:guard|keep|hide|protect|hold)\b"
    rf"|(?:^|[.:,]\s*){_CLOSED}?\s*{_NOUN}\s*(?:[.,:!?]|now\b|please\b|$)"
    rf"|(?<!\ba\s)(?<!\ban\s)\b{_CLOSED}\s+(?:code\s+)?word\b"
    r"|\bthe code\b(?!\s+(?:for|of|in|to|below|above|does)\b)"
    rf"|{_ELSEWHERE}"
)
"""A request for a secret, and not a question about passwords or secrets in general."""
_CUE = re.compile(
    r"secr|word|code|phrase|safe|hidden|private|confiden|undisc|classif|wort|geheim|mot |palabra|segret|parola|contras"
    r"|wachtw|guard|protect|hid|keep|hold|told|given",
    re.I,
)
"""A text without any of these asks for no secret."""
_SQUEEZED = re.compile(r"secret|codeword|password|passphrase|guarding|keepingfrom")
_NEAR = re.compile(
    r"\b(?:secrets?|secret\w*|pass ?words?|passphrases?|pass ?codes?|code ?words?|codes?|coded|ciphers?|keys?|private"
    r"|privacy|hidden|confidential\w*|riddles?|words?)\b",
    re.I,
)
_HINTING = re.compile(
    r"\b(?:first letter|initial letter|(?:begin|start)s? with|rhymes?|how many letters|how long is|(?:is|be) like"
    r"|(?:a|one) (?:small )?(?:hint|clue)|what kind|what sort|category|sounds? like|describe)\b",
    re.I,
)
_CODES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (encoding, re.compile(rf"\b(?:{words})\b", re.I))
    for encoding, words in (
        ("base64", "base ?64"),
        ("hex", "hex|hexadecimal"),
        ("rot13", "rot-?13"),
        ("reversed", "backwards|in reverse|reversed"),
        ("spaced", "letter by letter|spell|spelt out"),
        ("leet", "leet|leetspeak"),
        ("base64", "in code|encoded|cipher|in morse"),
    )
)
_SECOND = re.compile(
    r"\b(?:second half|other half|the rest of|missing (?:half|part|letters)|seconde moitié|zweite Hälfte"
    r"|segunda mitad)\b",
    re.I,
)
_FIRST = re.compile(r"\b(?:first half|first part of|première moitié|erste Hälfte|primera mitad)\b", re.I)


def kind_in(text: str) -> tuple[str, bool]:
    """A kind of guard, such as `story`, `story:hardens` or `hardens`: the weakness, and whether the guard hardens."""
    names = text.split(":")
    hardens = names[-1] == HARDENS
    kind = ":".join(names[:-1] if hardens else names) or COURTESY
    if kind not in KINDS or not text:
        raise SettingsError(
            f"{text!r} is not a kind of guard; choose one of {', '.join(KINDS)}, with :{HARDENS} after it if it hardens"
        )
    return kind, hardens


def traits(query: str) -> set[str]:
    """What the wording of a query shows, apart from what was said before."""
    shown = {name for name, pattern in _PATTERNS.items() if pattern.search(query)}
    words = _WORD.findall(query.casefold())
    abroad = max((sum(word in known for word in words) for known in _FOREIGN.values()), default=0)
    native = sum(word in _ENGLISH for word in words)
    measured = {
        "short": query.count(" ") < SHORT_WORDS,
        "brief": len(words) <= BRIEF_WORDS,
        "long": len(words) > LONG_WORDS,
        "foreign": abroad >= 2 and abroad > native,
        "english": native >= 2,
        "encoded": hidden_in(query) is not None,
    }
    return shown | {name for name, holds in measured.items() if holds}


def is_near(query: str) -> bool:
    """Whether a query sounds as if it were about a secret."""
    return _NEAR.search(query) is not None


def asks(query: str) -> bool:
    """Whether a query asks for the secret, in plain words or in code."""
    return _in_plain_words(window(query)) or hidden_in(query) is not None


def _in_plain_words(text: str) -> bool:
    return _CUE.search(text) is not None and ASKING.search(text) is not None


def asks_for_hint(query: str) -> bool:
    """Whether a query asks for something in between, such as the first letter."""
    return _HINTING.search(query) is not None and is_near(query)


def demands(query: str) -> bool:
    """Whether a query asks for the secret itself, not for a hint."""
    return asks(query) and not asks_for_hint(query)


def came_up(earlier: Sequence[str]) -> bool:
    """Whether the topic came up in earlier queries that did not ask for the secret."""
    return any(is_near(each) and not asks(each) for each in earlier)


def answer_code(query: str) -> str | None:
    """The encoding in which a query wants its answer: the one it names, or the one it is in."""
    named = next((encoding for encoding, pattern in _CODES if pattern.search(query)), None)
    if named is None and (hidden := hidden_in(query)) is not None:
        return hidden[0]
    return named


def half_in(query: str) -> int | None:
    """The half of the secret that a query asks for, 0 or 1; None for all of it."""
    hidden = hidden_in(query)
    plain = query if hidden is None else hidden[1]
    return 1 if _SECOND.search(plain) else 0 if _FIRST.search(plain) else None


@lru_cache(maxsize=2048)
def hidden_in(query: str) -> tuple[str, str] | None:
    """The code in which a query asks for the secret, and what it says; None for a query in plain words."""
    text = window(query)
    if _in_plain_words(text):
        return None
    for encoding, plain in decodings(text):
        squeezed = encoding == "spaced" and _SQUEEZED.search(plain.replace(" ", "").casefold())
        if squeezed or _in_plain_words(plain):
            return encoding, plain
    return None


def _led(query: str, earlier: Sequence[str]) -> set[str]:
    """How a conversation led up to a request."""
    topics = hints = early = 0
    for each in earlier:
        if topics and asks_for_hint(each):
            hints += 1
        elif asks(each):
            early += 1
        elif is_near(each):
            topics += 1
    shown = {"refers back"} if _PATTERNS["refers back"].search(query) else set()
    if topics and hints:
        shown.add("led up to")
    return shown | ({"at length"} if topics + hints > 2 else set()) | ({"too early"} if early else set())


def score(query: str, kind: str = COURTESY, earlier: Sequence[str] = ()) -> float:
    """The persuasiveness of a query for a kind of guard: the sum of its traits' weights.

    -1 if it is not about a secret, and for `sequence` if the earlier queries did not lead up to it.
    """
    if kind == COURTESY:
        if not (_SUBJECT.search(query) or _SUBJECT_ELSEWHERE.search(query)):
            return NONE
        shown = traits(query)
    else:
        if not asks(query):
            return NONE
        shown = _led(query, earlier) if kind == "sequence" else traits(query)
        if kind == "sequence" and "led up to" not in shown:
            return NONE
    return sum([weight for name, weight in KINDS[kind].items() if name in shown])


def chance(query: str, strength: float, kind: str = COURTESY, earlier: Sequence[str] = ()) -> float:
    """The probability that a guard of this strength and kind reveals its secret."""
    reached = score(query, kind, earlier)
    if reached == NONE and kind != COURTESY:
        return 0.0
    return 1.0 / (1.0 + exp(STEEPNESS * (strength - reached)))


def partly(likely: float) -> float:
    """The probability that it reveals at least the first half."""
    return likely + PARTLY * likely * (1.0 - likely)


def hardened(strength: float, refused: int) -> float:
    """The strength after so many refused requests for the secret, at most 1."""
    return min(1.0, strength + HARDENING * refused)
