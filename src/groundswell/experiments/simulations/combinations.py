"""Draw combinations of entities at random without replacement, without enumerating all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import comb, prod
from random import Random


def possible(n: int, k: int) -> int:
    """Number of combinations of k out of n: C(n, k)."""
    return comb(n, k)


def combination(n: int, k: int, rank: int) -> tuple[int, ...]:
    """The combination with this rank in lexicographic order: k of the numbers 0 to n - 1, ascending."""
    if not 0 <= rank < comb(n, k):
        raise IndexError(f"there is no combination {rank} of {k} out of {n}")
    chosen: list[int] = []
    left, at = k, 0
    beginning = comb(n - 1, k - 1) if k else 0  # combinations of what is left that begin with `at`
    while left:
        rest = n - at - 1
        if rank < beginning:
            chosen.append(at)
            left -= 1
            beginning = beginning * left // rest if rest else 0
        else:
            rank -= beginning
            beginning = beginning * (rest - left + 1) // rest if rest else 0
        at += 1
    return tuple(chosen)


def draw_seated(
    eligible: Sequence[Sequence[int]], sizes: Sequence[int], count: int, seed: int | str
) -> Iterator[Chosen]:
    """`count` different choices of `sizes` members from several lists, in random order, without anybody twice.

    Every such sequence is equally likely. Ends early if there are fewer choices.
    """
    most = 1_000 * count + 100_000  # tries, so that lists that overlap much take bounded time
    each = [comb(len(members), size) for members, size in zip(eligible, sizes, strict=True)]
    found = 0
    for rank in islice(_shuffled(prod(each), seed), most):
        if found == count:
            return
        chosen: list[tuple[int, ...]] = []
        for members, size, many in zip(eligible, sizes, each, strict=True):
            rank, own = divmod(rank, many)
            chosen.append(tuple(members[at] for at in combination(len(members), size, own)))
        everybody = [one for part in chosen for one in part]
        if len(set(everybody)) == len(everybody):
            found += 1
            yield tuple(chosen)


Chosen = tuple[tuple[int, ...], ...]


def draw(n: int, k: int, count: int, seed: int | str) -> Iterator[tuple[int, ...]]:
    """`count` different combinations of k out of n, in random order; every such sequence is equally likely.

    This is a sparse Fisher-Yates shuffle of the ranks of all combinations: memory grows only with `count`.
    """
    every = comb(n, k)
    if count > every:
        raise ValueError(f"there are {every} combinations of {k} out of {n}, not {count}")
    for rank in islice(_shuffled(every, seed), count):
        yield combination(n, k, rank)


def _shuffled(every: int, seed: int | str) -> Iterator[int]:
    """The numbers below `every` in random order."""
    random = Random(f"{seed}/combinations")
    moved: dict[int, int] = {}
    for at in range(every):
        drawn = random.randrange(at, every)
        rank = moved.pop(drawn, drawn)
        mine = moved.pop(at, at) if drawn != at else rank
        if drawn != at:
            moved[drawn] = mine
        yield rank
