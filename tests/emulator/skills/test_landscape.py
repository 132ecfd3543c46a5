"""The landscape over prompts: what helps, what harms, and that nothing beats the optimum."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.skills import landscape
from groundswell.emulator.skills.landscape import (
    FAULTS,
    OPTIMUM,
    OPTIMUM_ABILITY,
    SEED_PROMPT,
    VIRTUES,
    Traits,
    ability,
)

SHOWS = {
    "steps": ["Work step by step.", "Show your work."],
    "example": ["Example: 3 + 4 = 7", "Q: two and two? A: 4"],
    "check": ["Check the result.", "Verify each number."],
    "format": ["End with #### n", "Put it in \\boxed{}", "Write Answer: n", "Give only the number"],
    "careful": ["Read carefully.", "Pay attention."],
    "list": ["List the quantities.", "Write down the known numbers."],
    "role": ["You are a teacher.", "As an expert"],
    "hurry": ["Be quick.", "Answer immediately."],
    "guess": ["Just guess.", "A rough estimate or ballpark will do."],
}
NEAR_MISSES = {
    "steps": "He stepped out by the step.",
    "example": "An exemplary case without sums.",
    "check": "The checkered flag.",
    "format": "Answer well.",
    "careful": "He cared.",
    "list": "Listen to the number.",
    "role": "Teach yourself.",
    "hurry": "The breakfast was late.",
    "guess": "The guest left.",
}


@pytest.mark.parametrize(("trait", "prompts"), SHOWS.items(), ids=list(SHOWS))
def test_a_trait_is_seen(trait: str, prompts: list[str]) -> None:
    for prompt in prompts:
        assert trait in landscape.traits(prompt).shown, prompt


@pytest.mark.parametrize(("trait", "prompt"), NEAR_MISSES.items(), ids=list(NEAR_MISSES))
def test_near_misses_show_nothing(trait: str, prompt: str) -> None:
    assert trait not in landscape.traits(prompt).shown


def test_no_combination_of_traits_beats_the_optimum() -> None:
    names = [*VIRTUES, *FAULTS]
    every = (frozenset(some) for size in range(len(names) + 1) for some in combinations(names, size))
    best = max(
        (landscape.ability_of(Traits(shown, off)), sorted(shown), off) for shown in every for off in (0.0, 0.5, 1.0)
    )
    assert best == (OPTIMUM_ABILITY, sorted(VIRTUES), 0.0)
    assert landscape.traits(OPTIMUM) == Traits(frozenset(VIRTUES), 0.0)


@given(
    st.text(max_size=300),
    st.lists(st.sampled_from([phrase for phrases in SHOWS.values() for phrase in phrases]), max_size=12),
)
def test_no_prompt_beats_the_optimum(noise: str, phrases: list[str]) -> None:
    assert 0.0 < ability(" ".join([noise, *phrases])) <= OPTIMUM_ABILITY


def test_the_seed_prompt_leaves_much_to_gain() -> None:
    assert ability(SEED_PROMPT) == landscape.SEED_ABILITY
    assert landscape.SEED_ABILITY < 0.35
    assert OPTIMUM_ABILITY > 0.85


@pytest.mark.parametrize("virtue", VIRTUES)
def test_every_virtue_helps_and_less_so_when_there_are_many(virtue: str) -> None:
    others = frozenset(VIRTUES) - {virtue}
    alone = landscape.ability_of(Traits(frozenset({virtue}))) - landscape.ability_of(Traits(frozenset()))
    last = landscape.ability_of(Traits(frozenset(VIRTUES))) - landscape.ability_of(Traits(others))
    assert last > 0
    assert alone > 0
    assert virtue == "check" or last < alone


def test_checking_pays_where_there_are_steps_to_check() -> None:
    def gain(*shown: str) -> float:
        return landscape.ability_of(Traits(frozenset({*shown, "check"}))) - landscape.ability_of(
            Traits(frozenset(shown))
        )

    assert gain("steps") > 2 * gain()


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_harms(fault: str) -> None:
    virtues = frozenset(VIRTUES)
    assert landscape.ability_of(Traits(virtues | {fault})) < OPTIMUM_ABILITY


def test_forbidding_the_steps_that_were_asked_for_is_a_contradiction() -> None:
    assert "contradiction" in landscape.traits("Work step by step. Do not show any steps.").shown
    assert "contradiction" not in landscape.traits("Do not explain.").shown


@pytest.mark.parametrize(
    ("words", "off"), [(0, 1.0), (4, 0.5), (8, 0.0), (120, 0.0), (260, 0.5), (400, 1.0), (4000, 1.0)]
)
def test_too_short_and_too_long_are_both_off(words: int, off: float) -> None:
    assert landscape.traits("word " * words).off == pytest.approx(off)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_chance_grows_with_ability_and_falls_with_difficulty(low: float, high: float, level: float) -> None:
    low, high = sorted((low, high))
    assert 0 < landscape.chance(low, level) <= landscape.chance(high, level) < 1
    assert landscape.chance(level, low) >= landscape.chance(level, high)
    assert landscape.chance(level, level) == 0.5
