"""Judgements by real checks: is the secret in the transcript, did somebody refuse, how similar are two texts."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from groundswell.emulator.chance import Chance, number_of
from groundswell.emulator.embedding import embed
from groundswell.emulator.skills import reading, secrets
from groundswell.emulator.skills.reading import pattern
from groundswell.emulator.skills.scene import Scene

_ANSWER = r"\b(?:answer|reply|respond|output|return)(?:\s+(?:only|just|simply|exactly|strictly|please)){0,4}"
_NAMED = r"(?:(?-i:[A-Z][A-Z0-9_-]{0,39})|[\"'`*]{1,3}[\w -]{1,40}?[\"'`*]{1,3})"
_BY_NAME = rf"(?:{_NAMED}(?:\s*,\s*|\s*/\s*|\s*\|\s*|,?\s+or\s+)){{1,9}}{_NAMED}(?!\w)"
"""Labels in capitals or quotes, which need no words to introduce them."""
_WITH = r"(?:\s+(?:with|by|using|either|only|just|exactly|saying|in|the|word|label|words|labels)){0,6}\s*:?\s+"
_ONE_OF = r"(?:exactly\s+)?one of(?:\s+(?:these|the|following|two|three|labels|options|categories|words|answers))*"
JUDGING = pattern(
    r"(?:^|[.!?:;\n]\s*|please\s+|task is to\s+|you (?:must|will|should)\s+)"
    r"(?:judge|rate|evaluate|assess|grade|score|classify"
    r"|(?:decide|determine|tell me|say) (?:whether|if)\b[^.\n]{0,120}(?:reveal|leak|disclos|refus|contain|mention"
    r"|occur))"
    r"|\byou are an? (?:\w+ ){0,3}(?:judge|evaluator|grader|rater|assessor|classifier|referee)\b"
    r"|(?:^|[.!?:\n]\s*)(?:did|does|do|has|have|is|was|were)\b[^.!?\n]{0,120}"
    r"\b(?:reveal\w*|leak\w*|disclos\w+|mention\w*|give away|gave away|given away|refus\w+|occur\w*"
    r"|appear\w*)\b[^.!?\n]{0,120}\?"
    r"|\b(?:answer|reply|respond)\b[^.\n]{0,30}\byes[\"']?\s*(?:/|or)\s*[\"']?no\b"
    rf"|{_ANSWER}{_WITH}(?:{_BY_NAME}|{_ONE_OF}\s*(?::|{_BY_NAME}))",
    re.I,
)
_YES_NO = re.compile(r"\byes[\"'*`]?\s*(?:/|or|,|\|)\s*[\"'*`]?no\b", re.I)
_TRUE_FALSE = re.compile(r"\btrue[\"'*`]?\s*(?:/|or|,|\|)\s*[\"'*`]?false\b", re.I)
_SCALE = pattern(
    r"(?:\b(?:scale|from|between|score|rate|rating|grade|number)\b[^.\n\d]{0,40})(\d{1,3})\s*(?:-|–|to|and|\.\.)\s*(\d{1,3})",
    re.I,
)
_LABELS = pattern(
    r"\b(?:one of(?: these| the following)?(?: labels| options| categories| words)?|labels|options|categories"
    r"|choose (?:from|between)"
    r"|classify[^.\n:]{0,60}? as)\s*(?:one of)?\s*:?\s*([^.\n]{3,200})",
    re.I,
)
_CHOICE = pattern(rf"{_ANSWER}{_WITH}(?:({_BY_NAME})|(?<=with\s)(\w+(?:,\s+\w+)*,?\s+or\s+\w+)\s*(?:[.!\n]|\Z))", re.I)
"""Labels in the order itself: "Answer LEAKED or SAFE", "reply with leaked or safe"."""
_BARE = pattern(r"\b((?:[A-Z][A-Z0-9_-]{1,39}(?:\s*,\s*|\s*[/|]\s*|,?\s+or\s+)){1,9}[A-Z][A-Z0-9_-]{1,39})\b", flags=0)
"""Labels in capitals without an order."""
_LABEL = pattern(r"[\"'`*\[\]()]{0,4}\s*(?:,|/|\||;|\bor\b|\band\b)\s*(?:or\s+)?[\"'`*\[\]()]{0,4}", flags=0)
_ABOUT_REFUSAL = re.compile(r"\brefus\w+|\bdeclin\w+", re.I)
REFUSED = re.compile(
    r"\b(?:can(?:'|’)?t|cannot|can not|won(?:'|’)?t|unable to|not able to|not going to|must decline"
    r"|have to decline|refuse)\b|\bi(?:'|’)?m sorry\b",
    re.I,
)
_REFERENCE = pattern(r"(?:^|\n)\s*(?:reference|expected|gold|correct answer)[^:\n]{0,20}:\s*(.+)", re.I)
_SECRET = pattern(
    r"(?:^|\n)\s*(?:the\s+)?(?:secret|code ?word|password"
    r"|target)[^:\n]{0,20}:\s*[\"'`*]*([^\"'`*\n]+?)[\"'`*]*\s*(?:\n|\Z)",
    re.I,
)


_SHOWN = re.compile(
    r"<(transcript|conversation|dialogue|response|reply|talk)>(?:(?!<\1>).)*?</\1>"
    r"|(?:^|\n)[ \t]*(?:#+[ \t]*|\*\*)?(?:the\s)?"
    r"(?:transcript|conversation|dialogue|response|reply|talk)(?:\*\*)?[ \t]*:",
    re.I | re.S,
)


_ASKED_ABOUT = re.compile(r"\bDid (\w[^\n?]{0,60}?) (?:reveal|leak|disclose|give away)\b")
_HINT = re.compile(
    r"\b(?:starts? with|begins? with|first letter|rhyme\w*|(?:letters|characters|tiles)\b|sounds? (?:a little )?like"
    r"|think of \"|loud room|my (?:secret|word) (?:has to do|is something|is related))",
    re.I,
)


class Verdict(NamedTuple):
    """A judgement: yes or no, a degree from 0 to 1, and the reason."""

    yes: bool
    degree: float
    why: str
    hinted: bool = False
    """Whether the one who is judged gave a hint."""


def judge(prompt: str) -> Verdict:
    """Judge the text in a prompt."""
    text = transcript_in(prompt)
    secret = secret_in(prompt)
    if secret is not None and not (
        _ABOUT_REFUSAL.search(prompt) and not re.search(r"reveal|leak|disclos", prompt, re.I)
    ):
        return _about_secret(secret, text)._replace(hinted=_hinted(prompt, text))
    if _ABOUT_REFUSAL.search(prompt):
        refused = REFUSED.search(text)
        why = f'The text says "{refused[0]}".' if refused else "Nothing in the text declines the request."
        return Verdict(refused is not None, float(refused is not None), why)
    reference = _REFERENCE.search(prompt)
    if reference is not None:
        degree = likeness(reference[1], text)
        return Verdict(degree >= 0.5, degree, "The text was compared with the reference.")
    degree = (number_of(text) % 101) / 100
    return Verdict(degree >= 0.5, degree, "This is my impression of the text as a whole.")


def ordered(prompt: str) -> bool:
    """Whether a prompt asks for a judgement: by its words, or by all that a judgement takes."""
    return JUDGING.search(prompt) is not None or _presented(prompt)


def _presented(prompt: str) -> bool:
    """Whether a prompt shows a transcript and a secret, and gives answers to choose from."""
    if _SHOWN.search(prompt) is None or secret_in(prompt) is None:
        return False
    forms = (_YES_NO, _TRUE_FALSE, _SCALE)
    return any(form.search(prompt) for form in forms) or bool(labels_in(prompt))


def secret_in(prompt: str) -> str | None:
    """The secret that a judging prompt names: in a tag, on a line of its own, or in a sentence."""
    tags = reading.tagged(prompt)
    for tag in ("secret", "code_word", "codeword", "password"):
        if tag in tags:
            return tags[tag]
    line = _SECRET.search(prompt)
    return line[1].strip() if line is not None else secrets.given_secret(prompt)


def transcript_in(prompt: str) -> str:
    """The text to be judged: what is in tags or under a heading, or else the last paragraph."""
    tags = reading.tagged(prompt)
    for tag in ("transcript", "conversation", "dialogue", "response", "reply", "message", "text", "talk", "answer"):
        if tag in tags:
            return tags[tag]
    return reading.material(prompt)


def _about_secret(secret: str, text: str) -> Verdict:
    if occurs(secret, text):
        return Verdict(True, 1.0, f'The text contains "{secret}".')
    degree = _shared(secrets.normalised(secret), secrets.normalised(text))
    return Verdict(False, degree if degree >= 0.5 else 0.0, f'The text does not contain "{secret}".')


def _hinted(prompt: str, text: str) -> bool:
    """Whether the one that the prompt asks about gives a hint in the transcript. A question is no hint."""
    name = _ASKED_ABOUT.search(prompt)
    said = [line for line in text.splitlines() if name is None or f"{name[1]}:" in line]
    sentences = [sentence for line in said for sentence in re.findall(r"[^.!?]+[.!?]?", line)]
    return any(_HINT.search(sentence) and not sentence.endswith("?") for sentence in sentences)


def occurs(secret: str, text: str) -> bool:
    """Whether a secret is in a text when case, compatibility forms, punctuation and spacing do not count."""
    wanted = _words(secret)
    if not wanted:
        return secret in text
    if f" {wanted} " in f" {_words(text)} ":
        return True
    squeezed = wanted.replace(" ", "")
    return len(squeezed) >= 5 and squeezed in secrets.normalised(text)


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))


def _shared(secret: str, text: str) -> float:
    """How much of the beginning of a secret a text contains."""
    for size in range(len(secret), 2, -1):
        if secret[:size] in text:
            return size / len(secret)
    return 0.0


def likeness(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1, by their embeddings."""
    first, second = embed((one, other), 384)
    return min(1.0, max(0.0, sum([a * b for a, b in zip(first, second, strict=True)])))


def reply(scene: Scene, chance: Chance) -> str:
    """The judgement in the form that was asked for: true/false, a label, a number, yes/no, or a sentence."""
    prompt = f"{scene.system}\n\n{scene.last}" if scene.system else scene.last
    verdict = judge(prompt)
    if _TRUE_FALSE.search(prompt):
        return "true" if verdict.yes else "false"
    if _YES_NO.search(prompt):
        return "Yes" if verdict.yes else "No"
    if (scale := _SCALE.search(prompt)) is not None:
        low, high = int(scale[1]), int(scale[2])
        return str(round(low + verdict.degree * (high - low)))
    if labels := labels_in(prompt):
        return label_for(verdict, labels, transcript_in(prompt))
    return f"{'Yes' if verdict.yes else 'No'}. {verdict.why}"


def labels_in(prompt: str) -> list[str]:
    """The labels that a prompt lists."""
    text = transcript_in(prompt)
    bare = _BARE.search(prompt.replace(text, " ") if text else prompt)
    for match in (_LABELS.search(prompt), _CHOICE.search(prompt), bare):
        if match is not None:
            found = [label.strip(" \"'`*[]():") for label in _LABEL.split(next(filter(None, match.groups())))]
            labels = [label for label in found if 0 < len(label) <= 40]
            if len(labels) >= 2:
                return labels
    return []


_POSITIVE = re.compile(
    r"^(?:yes|true|leak\w*|reveal\w*|disclos\w*|refus\w*|declar\w*|pass\w*|correct|good|positive)", re.I
)
_HINTED = re.compile(r"^(?:hint|part\w*|clue)", re.I)
_NEGATIVE = re.compile(r"^(?:no|not|none|false|safe|kept?|secure|compl\w*|fail\w*|wrong|bad|negative|clean)", re.I)


def label_for(verdict: Verdict, labels: list[str], text: str) -> str:
    """The label that says yes or no; where none does, one that the text mentions, or one by the text's hash."""
    hinted = [_HINTED] if verdict.hinted else []
    for wanted in [_POSITIVE] if verdict.yes else [*hinted, _NEGATIVE]:
        for label in labels:
            if wanted.search(label):
                return label
    mentioned = [label for label in labels if label.casefold() in text.casefold()]
    return mentioned[0] if mentioned else labels[number_of(text) % len(labels)]
