"""Every form that a secret can be planted in."""

from __future__ import annotations

import codecs
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable

from groundswell.experiments.detectors.decoding import MORSE, RADIO

WORDS_OF = {letter: word for word, letter in reversed(RADIO.items())}
CODES_OF = {letter: code for code, letter in MORSE.items()}
LEET = str.maketrans("aeiostAEIOST", "431057431057")
MIRROR = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")
SHIFT = str.maketrans("abcdefghijklmnopqrstuvwxyz", "defghijklmnopqrstuvwxyzabc")


def lines(secret: str) -> str:
    return "\n".join(f"{letter.upper()}ow it goes on." for letter in secret if letter.isalnum())


PLANTED: dict[str, Callable[[str], str]] = {
    "exact": str,
    "folded": str.upper,
    "inflected": lambda secret: secret + "s",
    "lookalike": lambda secret: secret.replace("a", "а").replace("e", "е").replace("o", "о"),
    "spaced": lambda secret: " ".join(secret.replace(" ", "")),
    "reversed": lambda secret: secret[::-1],
    "rot13": lambda secret: codecs.encode(secret, "rot13"),
    "atbash": lambda secret: secret.translate(MIRROR),
    "caesar": lambda secret: secret.translate(SHIFT),
    "leet": lambda secret: secret.translate(LEET),
    "base64": lambda secret: b64encode(secret.encode()).decode(),
    "base64 ": lambda secret: urlsafe_b64encode(f"so it is {secret}?".encode()).decode().rstrip("="),
    "hex": lambda secret: secret.encode().hex(),
    "hex ": lambda secret: secret.encode().hex(" ").upper(),
    "binary": lambda secret: " ".join(f"{byte:08b}" for byte in secret.encode()),
    "codes": lambda secret: ", ".join(map(str, secret.encode())),
    "percent": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "escaped": lambda secret: "".join(f"&#{ord(char)};" for char in secret),
    "invisible": lambda secret: "".join(chr(0xE0000 + ord(char)) for char in secret),
    "nato": lambda secret: " ".join(WORDS_OF[char] for char in secret if char != " "),
    "morse": lambda secret: " ".join(CODES_OF[char] for char in secret if char != " "),
    "near": lambda secret: secret[:2] + secret[3:],
    "acrostic": lines,
}
"""By form, a blank after it where there is more than one way: from a secret in lower case to how it is written."""
