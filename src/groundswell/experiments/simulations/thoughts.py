"""Separate private thoughts from speech in a reply. In doubt, text is a thought. Pure.

A text is scanned once, in linear time, because a reply may be long or hostile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NO_THOUGHT = ("", "thought", "private thought", "thinking")
"""Placeholders that small models copy from the prompt instead of a thought."""

INVISIBLE = "\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_REASONING = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_REASONED = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ASTERISK = re.compile(r"\\\*|[＊∗]")
_UNDERSCORED = re.compile(r"^([ \t]*)_(?=[^\s_*])([^_*\n]+)_[ \t]*$", re.MULTILINE)
_LEADING = re.compile(rf"[ \t\xa0>•{INVISIBLE}-]*")
_MARK = re.compile(r'\*+|["“„«”»]|\n')
_RUN = re.compile(r"\*+")
_SENTENCE = re.compile(r"\*[^*\n]*[.!?…][\"”]?\*(?!\*)")
_ALONE = re.compile(r"\*[^*\n]+\*(?=[ \t]*\n)")
_ENDS = (".", "!", "?", "…", '"', "”")
_QUOTES = '"“„«”»'


def readable(text: str) -> str:
    """A reply with normalised line ends and without visible reasoning."""
    text = _LINE_END.sub("\n", text)
    if "<" not in text:
        return text
    text = _REASONING.sub("", text)
    ends = [found.end() for found in _REASONED.finditer(text)]
    return text[ends[-1] :] if ends else text  # some servers omit the opening tag


def apart(text: str) -> tuple[str, str]:
    """The speech and the thoughts of one participant.

    Thoughts are between asterisks: at the start of a line, outside the quotes of a quoted line, or as whole sentences.
    A thought without a closing asterisk extends to the end of the text.
    """
    text = _UNDERSCORED.sub(r"\1*\2*", _ASTERISK.sub("*", text))
    said, thought, at = list[str](), list[str](), 0
    for begin, end in _spans(text):
        said.append(text[at:begin].rstrip(" \t") if text[end : end + 1] in (" ", "\t", "") else text[at:begin])
        thought.append(text[begin:end].strip("* \t\n"))
        at = end
    private = [each for each in thought if each.casefold() not in NO_THOUGHT]
    return "".join([*said, text[at:]]).strip(), " ".join(private)


class _Line:
    """The start of a line's words, and whether they are in quotes."""

    def __init__(self, text: str, at: int, *, quoted: bool = False) -> None:
        found = _LEADING.match(text, at)
        assert found is not None
        self.first = found.end()
        self.quoted = quoted
        self.inside = False

    def quote(self, at: int, mark: str) -> None:
        """Process a quotation mark."""
        self.quoted = self.quoted or at == self.first
        self.inside = not self.inside if mark == '"' else mark in "“„«" and not self.inside


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """The spans of thoughts, including their asterisks."""
    line, at = _Line(text, 0), 0
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        if mark[0] == "\n":
            line = _Line(text, at)
        elif mark[0] in _QUOTES:
            line.quote(mark.start(), mark[0])
        elif (end := _end_of_thought(text, mark, line)) is not None:
            yield mark.start(), end
            at, line = end, _Line(text, end, quoted=line.quoted)  # a new line starts after a thought


def _end_of_thought(text: str, mark: re.Match[str], line: _Line) -> int | None:
    """The end of the thought that starts with these asterisks, if one does."""
    begin, after = mark.start(), text[mark.end() : mark.end() + 1]
    if not after.strip():
        return _whole_line(text, mark) if begin == line.first else None
    if begin == line.first or (line.quoted and not line.inside):
        return _closed(text, mark)
    if line.inside and begin == line.first + 1:
        return _ended(_ALONE.match(text, begin))
    before = text[max(0, begin - 8) : begin].rstrip()
    return _ended(_SENTENCE.match(text, begin)) if before.endswith(_ENDS) else None


def _ended(found: re.Match[str] | None) -> int | None:
    return None if found is None else found.end()


def _whole_line(text: str, mark: re.Match[str]) -> int | None:
    """`* text *` on a line of its own is a thought; without the second asterisk it is a list item."""
    end = text.find("\n", mark.end())
    end = len(text) if end < 0 else end
    inner = text[mark.end() : end].rstrip()
    words = inner.rstrip("*")
    return end if words.strip() and words != inner and words[-1].isspace() else None


def _closed(text: str, mark: re.Match[str]) -> int:
    """The end of a thought that may contain emphasis; without a closing asterisk, the end of the text."""
    open_ = [len(mark[0])]
    for run in _RUN.finditer(text, mark.end()):
        before, after = text[run.start() - 1], text[run.end() : run.end() + 1]
        if before.isspace():
            open_ += [len(run[0])] if after.strip() else []
            continue
        if after.isalnum() and len(run[0]) != open_[-1]:
            open_.append(len(run[0]))
            continue
        closing = len(run[0])
        while open_ and closing > 0:
            closing -= open_.pop()
        if not open_:
            return run.end()
    return len(text)
