r"""Find the answer in a reply, and compare answers.

| form | example |
|---|---|
| `#### n` | 3 + 4 = 7 `#### 7`; a heading such as `#### Step 2` is none |
| `\boxed{n}` | `\boxed{\frac{1}{2}}`, `$\boxed{7}$` |
| a tag | `<answer>7</answer>` |
| JSON | `{"answer": 7}` |
| a label | Answer: 7 / Final answer: **7** / The answer is 7. / a heading `## Answer` above 7 |
| a weaker label | Result: 7 / The solution is 7. |
| the last line with a number | So **7** pens are left. / 3 + 4 = 7 |

The first form of the table that occurs in a reply is used; if it occurs several times, the last one. Text up to
`</think>`, and after a `<think>` that is not closed, is ignored.

An answer may be more than a number. These rules find the number in it:

| answer | number |
|---|---|
| an equation: `16 + 2 = 18 pens` | the last side that is a number |
| a number first: `12 pens (3 boxes of 4)`, `12, since 3 x 4 = 12` | the first |
| a sentence: Tom has 3 boxes, so 12 pens. | the last |
| a choice or an unfinished calculation: `3 or 4`, `2 to 3`, `16 + 2`, `2^5`, `not 18` | none |

Numbers are compared as exact fractions: `1,200`, `$1200.00`, `1.2e3`, `1.2 thousand` and `2400/2` are equal, and so are
`50%`, `50 pens` and `50`, and also `2.5`, `2 1/2`, `2½` and `2\frac{1}{2}`. `minus 7` is `-7`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?!\d)|\d{1,2}(?:,\d{2}){1,5},\d{3}(?!\d)|\d+)"
_REAL = re.compile(
    rf"(?<!\w)(?<!\d\.)(?:(?:(?<=[=(:])|(?<=[=(:] )|^)[-+] |[-+])?(?P<currency>[$€£¥₹] ?[-+]?)?"
    rf"(?:\d+ (?:and )?\d{{1,2}} ?/ ?\d{{1,3}}(?![\d.,])"
    rf"|(?:{_WHOLE}(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?: ?/ ?\d+(?:\.\d+)?)?)",
    re.A,
)
_MIXED = re.compile(r"(\d+) (?:and )?(\d+) ?/ ?(\d+)", re.A)
_SCALE = re.compile(r" ?(hundred|thousand|million|billion|trillion)(?![\w-])", re.I)
_SHORT_SCALE = re.compile(r" ?(k|m|mn|b|bn)(?![\w-])", re.I)
"""Only after a currency: 5K may be a run, and 1.5m a length."""
_SCALES = {
    **{"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12},
    **{"k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9},
}
"""The power of ten that a word stands for."""
_POWER = re.compile(r"[eE]([-+]?\d+)$")
LARGEST = 400
"""The largest exponent that is evaluated: `1e999999999` would exhaust the memory."""

_VULGAR = re.compile("(?<=\\d)(?=[¼-¾⅐-⅞])")
_RAISED = re.compile("(?<=\\d)(?=[⁰¹²³⁴-⁹⁻])")
_DRESS = str.maketrans({"*": None, "`": None, "_": " ", "−": "-", "–": "-", "⁄": "/", "°": None, "~": " "})
_STARS = re.compile(r"(?<=\d) ?\*{1,2} ?(?=\d)")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}|\\[dt]?frac ?(\d) ?(\d)")
_MIXED_FRACTION = re.compile(r"(?<=\d)(?=\\[dt]?frac)")
_SPELT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\(?:left|right|displaystyle|degree)(?![a-z])|\\[,!()\[\]]|\^\{?\\circ\}?")
_SYMBOLS = {"\\times": "×", "\\cdot": "×", "\\div": "÷", "\\approx": "≈", "\\;": " ", "\\:": " ", "\\ ": " "}
_PAIRS = {('"', '"'), ("'", "'"), ("(", ")"), ("[", "]"), ("{", "}"), ("$", "$"), ("“", "”")}
_LAYERS = 4
"""The number of brackets and quotes around an answer that are removed."""

_THOUGHT = re.compile(r"<(/?)think(?:ing)?>", re.I)
_HASHES = re.compile(r"#{4,}([^\n]*)")
_HEADING = re.compile(
    r"(?:step|part|solution|explanation|calculations?|conclusion|reasoning|summary|verification|check|analysis|given"
    r"|working|note)\b|\d+[.):] +[A-Za-z]",
    re.I,
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_TAG = re.compile(r"<(?:final[_ -]?)?answer>", re.I)
_FIELD = re.compile(r'"(?:final[_ ]?)?(?:answer|result|value)"\s*:\s*("(?:[^"\\]|\\.)*"|[^,}\s]+)', re.I)
_UNESCAPED = re.compile(r"(?<!\\)\\(?:t?frac|text|times|boxed|right)")
"""LaTeX in a JSON string that a model did not escape: JSON would read `\\f` and `\\t` as control characters."""
_ENDS = (
    r"(?: ?\([^()\n]{1,40}\))?(?:\W{0,4}?(?P<colon>[:=→]|(?<=[\s*])[-–—]+>?(?= ))"
    r"|(?:,? (?:to|of|for|in|here|then|therefore|thus)\b[^\n.:=?!,]{0,80}?,?)?"
    r"(?:\W{0,4}?\b(?:is|was|equals|comes to|(?:would|will|must|should) be)\b(?!n't):?)|(?P<alone>[*_ \t]*$))"
)
_ANSWER = re.compile(
    r"(?<!this )(?<!your )(?<!to )(?<!'s )(?<!can )(?<!will )(?<!'ll )"
    rf"\b(?:answer|ans|(?:correct|right|best) (?:option|choice))\b{_ENDS}",
    re.I | re.M,
)
_RESULT = re.compile(rf"(?<!this )\b(?:result|solution)\b{_ENDS}", re.I | re.M)
_BEFORE_HEADING = re.compile(r"(?:^|\n)[#>*_ \t]{0,12}(?:the |final |my |correct )*\Z", re.I)
_BELOW = re.compile(r"(?:given |shown |stated )?(?:below|as follows|the following)\W*", re.I)
_AFTERWARDS = re.compile(r"\W*(?:explanation|reason|reasoning|note|check|verification|working|steps?|why)\b", re.I)
_CONCLUDES = re.compile(r"=|\b(?:so|therefore|thus|hence|finally|total|altogether|left|in all)\b", re.I)
_UNKNOWN = re.compile(
    r"(?:can ?not|can't|could not|unable to|impossible to) (?:be )?(?:determine|say|tell|answer|know)"
    r"|not enough information|(?:do not|don't) know",
    re.I,
)
_BULLET = re.compile(r"^(?:[-+•]|\*(?!\*)) +")
_BOLD = re.compile(r"\*\*([^*\n]{1,60})\*\*")
_LISTED = re.compile(r"\d+[.)]$")

_OR = re.compile(r"((?:[-+×÷*]|times|plus|minus|divided by) ?[$€£¥₹]?[\d.]{1,20}),? or (?=[-$€£¥₹.\d])")
"""A calculation and what it comes to: 13 + 47, or 60."""
_WORDED = re.compile(
    r"(?:about |exactly )?(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b",
    re.I,
)
"""A number in words."""
_SIGN_WORD = re.compile(r"(?<![\d)%] )\b(?:minus|negative) (?=[$€£¥₹.\d])", re.I)
_SCIENTIFIC = re.compile(r"(?<=\d) ?[×x·] ?10 ?\^ ?\{?([-+]?\d{1,9})\}?")
_EQUALS = re.compile(r"≈|→|[-=]>|\b(?:equals|makes|(?<!to )make|gives|yields)\b:?|(?<=\d) is (?=[-$€£¥₹.\d])", re.I)
_SENTENCE = re.compile(r"[.!?;](?= \W{0,3}[A-Z])|\n(?! ?=)")
_REMARK = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_BECAUSE = re.compile(r",? because |,? due to ", re.I)
_SINCE = re.compile(r",? (?:because|since|given|due to) |, as ", re.I)
_NOT = re.compile(r"(?:\bnot|n't|\bthan|\binstead of|≠)(?: be| equal(?: to)?| \w+ly| just)? ?$", re.I)
_OPERATOR = re.compile(r" ?(?:[-+×÷^*/]|x(?= ?\d)|times|plus|minus|divided by) ?[($€£¥₹]{0,2}[-+]?\d")
_AFTER_OPERATOR = re.compile(r"(?:[-+×÷*/^]|\b(?:x|times|plus|minus|divided by)) ?\(?$")
_EXPONENT = re.compile(r"\^ ?\{?$")
_ROOT = re.compile(r"(?:√|sqrt) ?[({]?$")
_FACTOR = re.compile(r" ?(?:\^|√|π|\\|pi\b)")
_JOINED = re.compile(r"[-,&]|,? ?(?:and|or|to|through)|,? ?(?:\w+ ){1,2}or", re.I)
_JOINED_WITH_UNIT = re.compile(r"(?:\w+ ){1,2}(?:and|or|to)", re.I)
_WORD = re.compile(r"\w+")
_LEADS = frozenset(
    (
        *("a", "about", "approx", "approximately", "around", "equal", "exactly", "indeed", "is", "it", "just", "of"),
        *("only", "precisely", "roughly", "rs", "so", "still", "that", "the", "therefore", "to", "total", "us", "usd"),
        *("x", "y"),
    )
)
"""Words that may stand before a number at the beginning of an answer."""

_CHOICE = re.compile(
    r"\W*(?i:(?:most )?(?:likely |probably )?(?:to be )?\W?)"
    r"(?i:(?:the )?(?:correct |right |best )?(?:option|choice|letter|answer)\W{1,3})?"
    r"([A-Za-z])(?:\W*$|[).:,\]\n](?!\W{0,2}(?:(?:and|or|nor) )?\W?[A-Z]\b\W)| ?[-–—(] ?| (?:is|because|since|as)\b)"
)
_CORRECT = re.compile(r"(?<!\w)\(?([A-Z])\)?\*{0,2} (?:is|would be) (?:the )?(?:\w+ )?(?:correct|right|answer|best)\b")
_MARKER = re.compile(r"[^\w\n]{0,4}([A-Za-z])(?:[).:]|\*\*)(?=\s|$)")
_LETTERED = re.compile(r"\(([A-Za-z])\)")
_MARKED_TEXT = re.compile(r"\(?[A-Za-z][).:] +(?=\S)")
_ASIDE = re.compile(r"[,;:] (?:the|a|an|because|since|as|which|who|not|so|it|this|that|but|in|on)\b|[.!?](?: |$)", re.I)

_LAST = 20
"""The number of occurrences of a form that are tried, last ones first."""
_NEAR = 2_000
"""The number of characters after a label in which an answer is looked for."""


@lru_cache(maxsize=64)
def extracted(reply: str) -> str | None:
    """The answer as written in a reply; None if there is none."""
    text = after_thinking(_composed(reply))
    marked = (answer for each in _marked(text) if (answer := _plain(each)) and not _WORDED.match(answer))
    return next(marked, None) or _last_number(text.splitlines()) or stated(reply)


def stated(reply: str) -> str | None:
    """The marked answer in a reply, even if it is a number in words; None if there is none."""
    return next((answer for each in _marked(after_thinking(_composed(reply))) if (answer := _plain(each))), None)


def after_thinking(reply: str) -> str:
    """A reply without the thoughts of a reasoning model."""
    text = reply
    for found in reversed(list(_THOUGHT.finditer(reply)) if "<" in reply else ()):
        if found[1]:
            return text[found.end() :].strip()
        text = text[: found.start()]
    return text.strip()


def _marked(text: str) -> Iterator[str]:
    """Answers that are marked as such, in the order of the table."""
    if "####" in text:
        for found in reversed(list(_HASHES.finditer(text))[-_LAST:]):
            yield _of_hashes(found[1].strip(" #"), text[found.end() : found.end() + _NEAR])
    if "boxed" in text or "fbox" in text:
        yield from reversed(_BOXED.findall(text)[-_LAST:])
    if "<" in text:
        yield from (each.partition("</")[0] for each in reversed(_TAG.split(text)[1:][-_LAST:]))
    if '"' in text:
        yield from map(_unquoted, reversed(_FIELD.findall(text)[-_LAST:]))
    for label in (_ANSWER, _RESULT):
        for found in reversed(list(label.finditer(text))[-_LAST:]):
            if found["alone"] is None or _BEFORE_HEADING.search(text, max(0, found.start() - 40), found.start()):
                rest = text[found.end() : found.end() + _NEAR]
                sentence = found["colon"] is None and found["alone"] is None and rest.partition("\n")[0].strip()
                yield _after_label(rest, sentence=bool(sentence))


def _of_hashes(line: str, rest: str) -> str:
    """The answer after `####`, which may also begin a heading."""
    label = _ANSWER.search(line)
    if label is not None:
        return _after_label(line[label.end() :] + rest, sentence=True)
    if not line:
        return next((each for each in rest.splitlines() if each.strip()), "")
    more = any(char.isdigit() for char in rest)
    return "" if _HEADING.match(_plain(line)) and (more or not line[0].isdigit()) else line


def _unquoted(field: str) -> str:
    try:
        return field.strip('"') if _UNESCAPED.search(field) else str(json.loads(field))
    except ValueError:
        return field.strip('"')


def _after_label(rest: str, *, sentence: bool) -> str:
    """The answer after a label. `sentence`: the label is `The answer is`, so the sentence has the answer."""
    first, *others = rest.split("\n")
    lines = [
        plain for each in (first, *(_BULLET.sub("", other, count=1) for other in others)) if (plain := _plain(each))
    ]
    if lines and _BELOW.fullmatch(lines[0]):
        lines = lines[1:]
    for at, line in enumerate(lines[1:], 1):
        if _AFTERWARDS.match(line):
            lines = lines[:at]
            break
    if not lines:
        return ""
    if lines[0].endswith("=") and len(lines) > 1:
        return f"{lines[0]} {lines[1]}"
    if sentence:
        with_number = [each for each in _SENTENCE.split(lines[0]) if _numbers(each)]
        return with_number[0] if len(with_number) > 1 else lines[0]
    steps = any(_is_step(*pair) for pair in pairwise(lines))
    worked = steps or (_is_worked(lines[0]) and _CONCLUDES.search(lines[-1]))
    return (len(lines) > 1 and worked and _last_number(lines)) or lines[0]


def _is_step(line: str, following: str) -> bool:
    """Whether two lines are steps of a calculation, or of a numbered list."""
    return ("=" in line and "=" in following) or (line.startswith("1") and following.startswith("2"))


def _is_worked(line: str) -> bool:
    """Whether a line is a sentence with a number, such as the first one of a worked solution."""
    numbers = _numbers(_numeric(line))
    return bool(numbers) and len(line.split()) > 3 and not _leads(line[: numbers[0].start])


def _last_number(lines: Sequence[str]) -> str | None:
    """The number of the last line that has one, as written. Bold numbers come first."""
    if lines and _UNKNOWN.search(lines[-1]):
        return None
    for line in reversed(lines):
        line = _BULLET.sub("", line.lstrip(), count=1)
        for bold in reversed(list(_BOLD.finditer(line))):
            numbers = _numbers(_numeric(_plain(bold[1])))
            marks_item = bold.start() == 0 and _LISTED.match(bold[1])
            if numbers and not numbers[0].start and not marks_item and number_in(bold[1]) is not None:
                return _plain(bold[1])
        plain = _plain(line)
        if _numbers(_numeric(plain)):
            found = _read(plain, first=False)
            return found.written if found else None
    return None


def _composed(text: str) -> str:
    """Normalise Unicode characters (NFKC), without joining digits: 2½ is not 21/2, and 10² not 102."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _RAISED.sub("^", _VULGAR.sub(" ", text)))


def _plain(text: str) -> str:
    """Remove formatting around an answer."""
    if "\\" in text:
        text = _FRACTION.sub(r"\1\3/\2\4", _MIXED_FRACTION.sub(" ", text)).replace("\\$", "$").replace("\\%", "%")
        text = _COMMAND.sub("", _SPELT.sub(r" \1", text))
        for command, symbol in _SYMBOLS.items():
            text = text.replace(command, symbol)
    text = _STARS.sub("×", text).translate(_DRESS).replace("{,}", ",")
    text = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
    for _ in range(_LAYERS):
        text = text.removeprefix("$$").removesuffix("$$").strip().rstrip(".;,!").strip()
        if len(text) > 1 and (text[0], text[-1]) in _PAIRS:
            text = text[1:-1].strip()
    return "" if text in ("$", '"', "'") else text


class _Number(NamedTuple):
    written: str
    digits: str
    power: int
    start: int
    end: int

    @property
    def value(self) -> Fraction | None:
        found = _fraction(self.digits)
        return None if found is None else found * 10**self.power


@lru_cache(maxsize=8192)
def number_in(text: str) -> Fraction | None:
    """The number that an answer gives, ignoring unit and remarks; None if there is none, or no single one."""
    found = _read(_plain(_composed(text)), first=True)
    return None if found is None else found.value


def _read(plain: str, *, first: bool) -> _Number | None:
    """The number in an answer. `first`: if it begins with a number, that one counts."""
    text = _numeric(plain)
    numbers = _numbers(text)
    if not numbers:
        return None
    first = first and _leads(text[: numbers[0].start])
    sentences = [each for each in _SENTENCE.split(text) if _numbers(each)]
    text = sentences[0 if first else -1]
    brief = _REMARK.sub(" ", text)
    text = brief if _numbers(brief) else text
    answer, *reasons = (_SINCE if first else _BECAUSE).split(text, maxsplit=1)
    if _numbers(answer) and (first or not any(map(_CONCLUDES.search, reasons))):
        text = answer
    before, *after = text.split("=")
    sides = (*(_one_of(side.strip(), first=True) for side in reversed(after)), _one_of(before.strip(), first=first))
    return next((side for side in sides if side is not None), None)


def _numeric(plain: str) -> str:
    """Words and signs about numbers, each in one spelling."""
    text = _SIGN_WORD.sub("-", plain)
    return _EQUALS.sub("=", _OR.sub(r"\1=", _SCIENTIFIC.sub(r"e\1", text)))


def _numbers(text: str) -> list[_Number]:
    """The numbers in a text, without exponents and those that it denies."""
    found = []
    for each in _REAL.finditer(text):
        before = text[max(0, each.start() - 24) : each.start()]
        if _NOT.search(before) or _EXPONENT.search(before):
            continue
        scale = _SCALE.match(text, each.end()) or (each["currency"] and _SHORT_SCALE.match(text, each.end())) or None
        power, end = (0, each.end()) if scale is None else (_SCALES[scale[1].lower()], scale.end())
        found.append(_Number(text[each.start() : end].strip(), each[0], power, each.start(), end))
    return found


def _leads(before: str) -> bool:
    """Whether an answer with this before its first number begins with the number."""
    return all(word in _LEADS for word in _WORD.findall(before.lower()))


def _one_of(side: str, *, first: bool) -> _Number | None:
    """The number that one side of an equation is, or a text without equation."""
    numbers = _numbers(side)
    if not numbers:
        return None
    at = 0 if _leads(side[: numbers[0].start]) and first else len(numbers) - 1
    chosen, near = numbers[at], numbers[1:2] if at == 0 else numbers[at - 1 : at]
    before, after = side[max(0, chosen.start - 16) : chosen.start], side[chosen.end : chosen.end + 40]
    if _ROOT.search(before) or _FACTOR.match(after) or _OPERATOR.match(after):
        return None
    if len(numbers) > 1 and _AFTER_OPERATOR.search(before):
        return None
    for other in near:
        between = side[min(chosen.end, other.end) : max(chosen.start, other.start)].strip()
        if chosen.value == other.value:
            continue
        if _JOINED.fullmatch(between) or (at == 0 and _JOINED_WITH_UNIT.fullmatch(between)):
            return None
    return chosen


def _fraction(text: str) -> Fraction | None:
    """The value of a number as written."""
    bare = re.sub(r"[,$€£¥₹]", "", text)
    sign = -1 if "-" in bare.partition("e")[0].partition("E")[0] else 1
    bare = bare.strip().lstrip("+- ")
    try:
        if (mixed := _MIXED.fullmatch(bare)) is not None:
            return sign * (int(mixed[1]) + Fraction(int(mixed[2]), int(mixed[3])))
        above, _, below = bare.replace(" ", "").partition("/")
        if (power := _POWER.search(above)) is not None and abs(int(power[1])) > LARGEST:
            return None
        return sign * Fraction(above) / Fraction(below or "1")
    except (ValueError, ZeroDivisionError):
        return None


def same_number(one: str, other: str) -> bool:
    """Whether two answers are the same number."""
    first, second = number_in(one), number_in(other)
    return first is not None and first == second


def same_text(one: str, other: str) -> bool:
    """Whether two answers have the same words, ignoring case, punctuation and articles."""
    first, second = _bare(one), _bare(other)
    return first == second if first or second else one.strip() == other.strip()


def says(reply: str, answer: str) -> bool:
    """Whether the final answer of a reply, or the whole reply, is this text. One letter is a choice: (C), C. Paris."""
    letter = _plain(_composed(answer)).strip("().: ")
    if len(letter) == 1 and letter.isalpha() and letter.isascii():
        return _chosen(reply) == letter.upper()
    found, whole = stated(reply), after_thinking(_composed(reply))
    return any(same_text(each, answer) for text in (found, whole) if text for each in _without_asides(_plain(text)))


def _without_asides(text: str) -> Iterator[str]:
    """An answer as it is, and without remarks, the sentences after it, and the letter of a choice."""
    for each in (text, _MARKED_TEXT.sub("", text, count=1)):
        yield each
        yield (plain := _REMARK.sub(" ", each))
        yield _ASIDE.split(plain, maxsplit=1)[0]
        yield _SINCE.split(plain, maxsplit=1)[0]


def _chosen(reply: str) -> str | None:
    """The letter that a reply chooses."""
    text = after_thinking(_composed(reply))
    for each in _marked(text):
        if plain := _plain(each):
            found = _CHOICE.match(plain)
            return found[1].upper() if found is not None else None
    if stated := _CORRECT.findall(text):
        return str(stated[-1])
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and (found := _CHOICE.match(_plain(lines[0]))) is not None:
        return found[1].upper()
    letters = {found[1].upper() for line in lines if (found := _MARKER.match(line)) is not None}
    letters = letters or {letter.upper() for letter in _LETTERED.findall(lines[-1] if lines else "")}
    return letters.pop() if len(letters) == 1 else None


def _bare(text: str) -> str:
    words = _WORD.findall(_composed(text).casefold())
    return " ".join([word for word in words if word not in ("a", "an", "the")] or words)
