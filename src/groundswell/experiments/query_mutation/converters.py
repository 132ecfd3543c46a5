"""Converters: other forms of a query, without a model. Pure.

`mutators.toml` says what the target is told about the form. All but `leetspeak` can be undone.
"""

from __future__ import annotations

import codecs
from base64 import b64encode
from collections.abc import Callable, Mapping

_LEET = str.maketrans("aeiostAEIOST", "431057431057")


def base64(text: str) -> str:
    """The UTF-8 bytes in Base64."""
    return b64encode(text.encode(errors="replace")).decode()


def rot13(text: str) -> str:
    """Letters moved by 13 places."""
    return codecs.encode(text, "rot13")


def backwards(text: str) -> str:
    """From the last character to the first."""
    return text[::-1]


def leetspeak(text: str) -> str:
    """Digits in place of some letters."""
    return text.translate(_LEET)


def spaced(text: str) -> str:
    """A space between all characters."""
    return " ".join(text)


ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": base64,
    "rot13": rot13,
    "backwards": backwards,
    "leetspeak": leetspeak,
    "spaced": spaced,
}


def converted(name: str, template: str, goal: str) -> str:
    """The goal in the encoding of this name, if it is one, in a template."""
    encode = ENCODINGS.get(name)
    return template.replace("{text}", goal if encode is None else encode(goal))
