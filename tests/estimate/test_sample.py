"""Many trials from some."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from groundswell import Trial, program, rehearse, user
from groundswell.engine.spending import Range
from groundswell.estimate.sample import FEWEST, SAMPLE, reservoir
from tests.estimate.stage import M, chat


@program("estimate/once")
async def once(trial: Trial, spec: int) -> int:
    """One ask or three, with a prompt of some length."""
    for _ in range(1 + 2 * (spec % 3 == 0)):
        await trial.ask(M, "x" * (spec % 50), max_tokens=1)
    return spec


def test_few_specs_are_all_rehearsed() -> None:
    found = rehearse(chat, [1, 2, 3], replies=(5, 5), replicates=10)
    assert found.trials == Range(30, 30)
    assert (found.loads[0].calls, found.loads[0].output_tokens) == (Range(60, 60), Range(300, 3000))
    assert found.turns == Range(3, 3)
    assert not any("were rehearsed" in sentence for sentence in found.assumptions)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_range_of_a_sample_holds_the_whole(seed: int) -> None:
    count = 30_000
    found = rehearse(once, iter(range(count)), seed=seed)
    assert found.trials == Range(count, count)
    assert 50_000 in found.loads[0].calls
    assert found.loads[0].calls.high - found.loads[0].calls.low < 5000
    assert f"{SAMPLE:,} of 30,000 specs of estimate/once were rehearsed" in found.assumptions


@program("estimate/one_of_two")
async def one_of_two(trial: Trial, spec: int) -> None:
    """Models take turns from trial to trial, as those of a tournament do."""
    await trial.ask(("first/x", "second/x")[spec % 2], "x", max_tokens=1)


def test_a_thousand_specs_are_rehearsed_whole_and_models_come_in_their_order() -> None:
    found = rehearse(one_of_two, range(1000))
    assert [(load.model, load.calls) for load in found.loads] == [
        ("first/x", Range(500, 500)),
        ("second/x", Range(500, 500)),
    ]
    assert not any("were rehearsed" in sentence for sentence in found.assumptions)


@program("estimate/calm")
async def calm(trial: Trial, spec: int) -> None:
    """Asks what others ask too, at a temperature of 0, and then something of its own."""
    await trial.ask(M, "x" * 600, temperature=0, max_tokens=10)
    await trial.embed("e/x", ["the same"])
    await trial.ask(M, f"{spec} " * 10, temperature=0, max_tokens=10)


def test_replies_that_equal_requests_share_may_be_paid_for_once() -> None:
    chats, embedded = rehearse(calm, range(100), replies=(5, 5), replicates=3).loads
    assert chats.calls == Range(101, 600)
    assert chats.output_tokens == Range(505, 6000), "at the most max_tokens each"
    assert 100 < chats.input_tokens.low < 100 + 100 * 20
    assert embedded.calls == Range(1, 300)


@program("estimate/long_talk")
async def long_talk(trial: Trial, spec: int) -> None:
    talk = [user("x")]
    for _ in range(100 + spec % 2):
        await trial.ask(M, talk, max_tokens=1)
        talk.append(user("x"))


def test_long_conversations_are_rehearsed_until_it_is_too_much_work() -> None:
    """The first ones are not like the others: it must not be these alone that are rehearsed."""
    found = rehearse(long_talk, sorted(range(400), key=lambda spec: spec % 2))
    (sentence,) = [sentence for sentence in found.assumptions if "were rehearsed" in sentence]
    assert FEWEST <= int(sentence.split()[0]) < 100
    assert 400 * 100 + 200 in found.loads[0].calls
    assert found.loads[0].calls.low > 400 * 100


def test_there_may_be_many_specs_and_none_is_kept() -> None:
    kept = 0

    def many() -> Iterator[int]:
        nonlocal kept
        for number in range(100_000):
            kept += 1
            yield number

    sample, count = reservoir(many(), 10, Random(1))
    assert (count, kept, len(sample), len(set(sample))) == (100_000, 100_000, 10, 10)
    assert max(sample) > 50_000 > min(sample)


def test_every_spec_is_as_likely_as_another() -> None:
    drawn = [0] * 30
    for seed in range(3000):
        for number in reservoir(range(30), 10, Random(seed))[0]:
            drawn[number] += 1
    assert all(900 < times < 1100 for times in drawn)


def test_nothing_to_do() -> None:
    found = rehearse(once, [])
    assert (found.trials, found.loads, found.turns) == (Range(0, 0), (), Range(0, 0))


def test_the_default_is_said() -> None:
    assert "replies in estimate/once have at least 1 token and at most max_tokens" in rehearse(once, [1]).assumptions


@program("estimate/certain")
async def certain(trial: Trial, spec: int) -> None:
    """An ask whose reply all others share who ask the same, and one that has its own."""
    await trial.ask(M, "x" * 60 * spec, temperature=0, max_tokens=1)
    await trial.ask(M, "y", max_tokens=1)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("specs", "replicates", "calls", "read"),
    [
        ([1, 2, 3], 1, (6, 6), 60),
        ([1, 1, 1], 1, (4, 6), 10),
        ([1, 1, 2], 3, (9 + 2, 18), 30),
        ([1] * 1000, 1, (1001, 2000), 10),
        (list(range(1, 1001)), 1, (2000, 2000), None),
    ],
    ids=["all differ", "all alike", "replicates", "a sample, alike", "a sample, different"],
)
def test_those_who_ask_the_same_for_certain_may_share_a_reply(
    specs: list[int], replicates: int, calls: tuple[int, int], read: int | None
) -> None:
    [load] = rehearse(certain, specs, replicates=replicates).loads
    assert load.calls == Range(*calls)
    if read is not None:
        assert load.input_tokens.low == read
