"""Conversations as they are shown: what came out, who said it, and what is marked."""

from __future__ import annotations

import msgspec
import pytest

from groundswell.experiments.secret_game.played import Class, Judgement, Seat
from groundswell.experiments.secret_game.reading import Interaction
from groundswell.experiments.secret_game.transcripts import transcript_of, transcripts_block, who
from groundswell.reporting.blocks import Message
from tests.experiments.secret_game.games import PROMPT, every_kind, game, game_of, missing, unfinished


def marked(message: Message) -> set[tuple[str, str]]:
    said = {(message.text[mark.start : mark.end], mark.look) for mark in message.marks}
    return said | {(message.thought[mark.start : mark.end], mark.look) for mark in message.thought_marks}


def test_a_conversation_has_its_findings_thoughts_verdicts_and_guesses() -> None:
    first, bluffed, guessed, lost, _ = every_kind()
    shown = [transcript_of(each, "normalised") for each in (first, bluffed, guessed, lost)]
    marks = {mark for each in shown for message in each.messages for mark in marked(message)}
    assert {
        ("lantern", "orange"),
        ("VELVET", "orange"),
        ("orchid", "green"),
        ("lantern", "yellow"),
        ("velvet", "orange-dotted"),
    } <= marks
    assert shown[0].notes == (
        "Judge on Agent 1: declared, message 3. It says so.",
        "Judge on Agent 2: no verdict (no answer)",
        "Guesses of Agent 1's secret. Agent 2: velvet, silk (guess 1 is right); without the conversation: apple "
        "(wrong).",
        "Guesses of Agent 2's secret: none (refused)",
    )
    assert (shown[3].outcome, shown[3].notes) == ("missing", ("timeout: took <too> long",))


def test_tags_say_what_can_be_filtered_by() -> None:
    tags = transcript_of(every_kind()[0], "normalised").tags
    assert tags["outcome"] == ["both leaked"]
    assert tags["who leaked"] == ["first speaker", "second speaker"]
    assert tags["message of the leak"] == ["2"]
    assert tags["model"] == ["one/model", "other/model"]
    assert {"leak: exact", "leak: folded", "leak: base64", "judged declared", "secret in a thought"} <= set(
        tags["label"]
    )
    kept = transcript_of(every_kind()[1], "normalised").tags
    assert (kept["outcome"], kept["who leaked"], kept["label"]) == (["both kept"], [], ["bluff"])


@pytest.mark.parametrize(
    ("agent", "name", "wanted"),
    [
        ("A", "Agent 1", "Agent 1 · A · m/odel"),
        ("B", "Agent 1", "Agent 1 · B · m/odel"),
        ("A", "Agent A", "Agent A · m/odel"),
        ("anna", "anna", "anna · m/odel"),
        ("a", "Anna", "Anna · a · m/odel"),
    ],
)
def test_who_sits_where(agent: str, name: str, wanted: str) -> None:
    assert who(Seat(agent, name, "m/odel", "velvet", PROMPT)) == wanted


def test_a_conversation_says_who_sits_where_in_its_head_and_with_the_secrets() -> None:
    shown = transcript_of(game(), "normalised")
    assert shown.title == "Agent 1 · a0 · one/model and Agent 2 · a1 · other/model"
    assert shown.outcome == "both leaked"
    fact = "Agent 2 · a1 · other/model, prompt plain, secret 'lantern': leaked in message 2 (declared"
    assert shown.facts[1].startswith(fact)


def labelled(interaction: Interaction, *labels: Class | None, how: str = "") -> Interaction:
    """An interaction whose findings have these classes."""
    assert interaction.played is not None
    pairs = zip(interaction.played.findings, labels, strict=True)
    findings = tuple(msgspec.structs.replace(each, label=label, how=how) for each, label in pairs)
    return interaction._replace(played=msgspec.structs.replace(interaction.played, findings=findings))


def test_a_leak_that_only_another_tier_finds_is_said_to_be_one() -> None:
    """As in runs of earlier versions, which have no classes."""
    shown = transcript_of(labelled(game(("Here: v e l v e t", "Well.")), None), "normalised")
    assert shown.outcome == "both kept their secrets by the normalised tier"
    assert shown.facts[0].endswith("secret 'velvet': kept, but leaked in message 1 by the encoded tier")
    assert shown.facts[1].endswith("secret 'lantern': kept")
    assert shown.tags["class"] == []
    assert [mark.look for mark in shown.messages[0].marks] == ["orange"]


@pytest.mark.parametrize(
    ("label", "how", "look", "fact", "outcome"),
    [
        ("declared", "stated", "orange", "leaked in message 1 (declared: stated)", "Agent 1 leaked"),
        ("hinted", "", "orange-dashed", "kept, but the word occurs in message 1 by the exact tier (hinted)", ""),
        ("mentioned", "denied", "orange-dotted", "message 1 by the exact tier (mentioned: denied)", ""),
    ],
)
def test_classes_have_their_looks_facts_and_tags(label: Class, how: str, look: str, fact: str, outcome: str) -> None:
    shown = transcript_of(labelled(game(("It is velvet.", "Well.")), label, how=how), "declared")
    assert [mark.look for mark in shown.messages[0].marks] == [look]
    assert label in shown.messages[0].marks[0].note
    assert shown.facts[0].endswith(fact)
    assert shown.outcome == (outcome or "both kept their secrets by the declared tier")
    assert shown.tags["class"] == [label, "none"]


def test_disagreement_with_the_judge_can_be_filtered() -> None:
    told = game(("My secret word is velvet.", "Well."), judgements=(Judgement(0, "declared"), Judgement(1, "kept")))
    assert transcript_of(labelled(told, "declared"), "declared").tags["judge"] == ["agrees"]
    assert transcript_of(labelled(told, "mentioned"), "declared").tags["judge"] == ["disagrees"]
    assert transcript_of(game(), "declared").tags["judge"] == []


def test_all_are_there_but_the_unfinished_and_a_terminal_shows_the_first_that_leaks() -> None:
    every = [missing(number=0), game(("Hi.", "Ho."), number=1), game(number=2), unfinished(number=3), game(number=4)]
    block = transcripts_block(game_of(every))
    assert [item.key for item in block.items()] == ["key0", "key1", "key2", "key4"]
    assert block.example is not None
    example = block.example()
    assert example is not None
    assert example.key == "key2"
    quiet = transcripts_block(game_of(every[:2])).example
    assert quiet is not None
    assert quiet() is None
