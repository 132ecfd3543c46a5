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

    Every such sequence is equally likely. If the lists overlap so much that few random choices are possible, the rest
    are filled seat by seat, which is faster, but only about equally likely. Ends early if there are fewer choices.
    """
    each = [comb(len(members), size) for members, size in zip(eligible, sizes, strict=True)]
    seen: set[Chosen] = set()
    ranks = _shuffled(prod(each), seed)
    for rank in islice(ranks, 20 * count + 2_000):
        if len(seen) == count:
            return
        parts: list[tuple[int, ...]] = []
        for members, size, many in zip(eligible, sizes, each, strict=True):
            rank, own = divmod(rank, many)
            parts.append(tuple(members[at] for at in combination(len(members), size, own)))
        if sum(sizes) == len({one for part in parts for one in part}):
            seen.add(tuple(parts))
            yield tuple(parts)
    random, left = Random(f"{seed}/seats"), 20 * count + 2_000
    while len(seen) < count and left and next(ranks, None) is not None:
        left -= 1
        found = _filled(eligible, sizes, random)
        if found is None:
            return
        if found not in seen:
            seen.add(found)
            yield found


def _filled(eligible: Sequence[Sequence[int]], sizes: Sequence[int], random: Random) -> Chosen | None:
    """A random choice, seat by seat. Whoever has a seat moves to another one if somebody else fits nowhere else."""
    seats = [at for at, size in enumerate(sizes) for _ in range(size)]
    random.shuffle(seats)
    orders = [random.sample(eligible[at], len(eligible[at])) for at in seats]
    holder: dict[int, int] = {}

    def seat(number: int, tried: set[int]) -> bool:
        for one in orders[number]:
            if one not in tried:
                tried.add(one)
                if one not in holder or seat(holder[one], tried):
                    holder[one] = number
                    return True
        return False

    if not all(seat(number, set()) for number in range(len(seats))):
        return None
    chosen: list[list[int]] = [[] for _ in sizes]
    for one, number in holder.items():
        chosen[seats[number]].append(one)
    return tuple(tuple(sorted(part)) for part in chosen)


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
