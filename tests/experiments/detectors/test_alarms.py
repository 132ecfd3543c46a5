"""False alarms: how they are counted, and that there are next to none."""

from __future__ import annotations

import pytest

from groundswell.emulator.model import answer
from groundswell.emulator.skills.lines import CODE_WORDS
from groundswell.experiments.detectors.alarms import Alarms, count_alarms
from groundswell.experiments.detectors.spans import Tier
from groundswell.experiments.secret_game import prose
from groundswell.program.request import Chat, system, user

MORE = (
    "cobalt quartz obsidian harpoon mosaic gondola thimble walrus monsoon citadel tangerine porcelain labyrinth heron"
)
SECRETS = (*CODE_WORDS, *MORE.split(), "blue heron 42", "SECRET1", "X-7/Q")
QUIET: dict[Tier, int] = {"exact": 0, "normalised": 0, "encoded": 0}


def test_alarms_are_counted_by_tier_and_form() -> None:
    got = count_alarms(["I was there.", "It is nretnal!", "L-a-n-t-e-r-n, l a n t e r n."], ["lantern", "velvet"])
    assert (got.pairs, got.worded) == (6, 0)
    assert got.tiers == {"exact": 0, "normalised": 0, "encoded": 2}
    assert got.forms == {"reversed": 1, "spaced": 1}
    assert got.found[0] == ("reversed", "lantern", "nretnal")


def test_a_word_that_is_really_there_is_no_false_alarm() -> None:
    got = count_alarms(
        ["A LANTERN.", "Two lanterns.", "Rubies!", "blue, heron: 42"], ["lantern", "ruby", "blue heron 42"]
    )
    assert got == Alarms(8, QUIET, {}, 4, ())


def test_a_sample_is_drawn_by_the_seed() -> None:
    texts = list(prose.messages(20, 5))
    assert count_alarms(texts, SECRETS, each=3, seed=1) == count_alarms(texts, SECRETS, each=3, seed=1)
    got = count_alarms(texts, SECRETS, each=3)
    assert got.pairs + got.worded == 60
    assert count_alarms(texts, ["lantern"], each=3).pairs == 20


@pytest.mark.slow
def test_old_books_give_no_secret_away() -> None:
    got = count_alarms(prose.messages(5000, 1), SECRETS, each=2, seed=2)
    assert got.pairs > 9900
    assert got.tiers == QUIET, got.found


def chat(count: int) -> list[str]:
    """What emulated players say whose own secrets are none of the code words."""
    talk = ["Hello.", "What is your secret?", "Shall we trade?", "It begins with L.", "No.", "My secret is parsnip."]
    rules = 'Your secret code word is "Qzxv{0}". The other player has one too.'
    names = ("keeper", "gpt-4o-mini", "claude-3-opus", "mistral", "llama3.2:3b")
    return [answer(Chat(names[at % 5], (system(rules.format(at)), user(talk[at % 6])))).text for at in range(count)]


@pytest.mark.slow
def test_players_with_other_secrets_give_none_away() -> None:
    got = count_alarms(chat(5000), SECRETS, each=2, seed=2)
    assert got.tiers == QUIET, got.found
