"""Keys of trials and numbers of replicates and samples. They are the same in every session."""

from __future__ import annotations

from array import array
from hashlib import blake2b


def spec_key(program: str, spec: bytes) -> str:
    """The default key of a trial: a hash of its program and spec."""
    return blake2b(spec, digest_size=10, person=_person(program)).hexdigest()


def sample_number(seed: int, salt: str, program: str, trial: str, path: str) -> int:
    """A number that differs between equal requests of different trials, and is the same in every session."""
    digest = blake2b(f"{seed}\0{salt}\0{program}\0{trial}\0{path}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


_persons: dict[str, bytes] = {}


def _person(program: str) -> bytes:
    known = _persons.get(program)
    if known is None:
        known = _persons[program] = blake2b(program.encode(), digest_size=16).digest()
    return known


class Seen:
    """Counts how often keys were seen, in 16 to 32 bytes each: open addressing over 64-bit hashes.

    A dictionary would take several times that, and a run may have millions of trials.
    """

    def __init__(self) -> None:
        self._mask = 1023
        self._slots = array("Q", bytes(8 * 1024))
        self._used = 0
        self._again: dict[int, int] = {}

    def add(self, key: str) -> int:
        """How often the key was seen before."""
        number = hash(key) & 0xFFFF_FFFF_FFFF_FFFF or 1
        slots, mask = self._slots, self._mask
        at = number & mask
        while held := slots[at]:
            if held == number:
                before = self._again.get(number, 0) + 1
                self._again[number] = before
                return before
            at = (at + 1) & mask
        slots[at] = number
        self._used += 1
        if self._used * 2 > mask:
            self._grow()
        return 0

    def _grow(self) -> None:
        old, mask = self._slots, self._mask * 2 + 1
        slots = array("Q", bytes(8 * (mask + 1)))
        for number in old:
            if number:
                at = number & mask
                while slots[at]:
                    at = (at + 1) & mask
                slots[at] = number
        self._slots, self._mask = slots, mask
