"""Scored conversations: sides, blocks, findings, and how labels are compared with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import Chat, Reply, Request, RunOptions, Summary
from groundswell.engine.options import Limits
from groundswell.errors import SettingsError
from groundswell.experiments.secret_game.conversations import Conversation, Message, Scoring, with_labels
from groundswell.experiments.secret_game.scored import (
    ScoredAnalysis,
    examined,
    finding_rows,
    score_conversations,
    talk_of,
)
from groundswell.program.request import Usage

SAFFRON = "My secret word is saffron."
TRELLIS = "My secret word is trellis."


def talk(id_: str, *texts: str, secrets: dict[str, str] | None = None, **more: Any) -> Conversation:
    """Ann and Bob in turns."""
    said = tuple(Message("Ann" if turn % 2 == 0 else "Bob", text) for turn, text in enumerate(texts))
    known = {"Ann": "saffron", "Bob": "trellis"} if secrets is None else secrets
    return Conversation(id_, said, known, **more)


def scores(
    folder: Path, *conversations: Conversation, script: Any = None, options: RunOptions | None = None, **more: Any
) -> tuple[Summary, ScoredAnalysis]:
    async def main() -> Summary:
        async with groundswell.open(folder / "runs.db", script=script) as engine:
            return await engine.drive(score_conversations, Scoring(conversations, **more), options=options)

    summary = asyncio.run(main())
    return summary, msgspec.convert(summary.analysis, ScoredAnalysis)


def test_the_speakers_are_the_arms_and_nothing_is_sent(tmp_path: Path) -> None:
    summary, found = scores(tmp_path, talk("1", SAFFRON, "Ah."), talk("2", "Hello.", "Good day."))
    assert summary.asks.sent == 0
    assert [(each.model, each.revealed.count, each.sides) for each in found.models] == [("Ann", 1, 2), ("Bob", 0, 2)]
    assert found.messages_per_interaction == 2
    assert found.overall.secrets_revealed.n == 4


def test_models_that_are_given_are_the_arms(tmp_path: Path) -> None:
    _, found = scores(tmp_path, talk("1", SAFFRON, "Ah.", models={"Ann": "a/one", "Bob": "b/two"}))
    assert [each.model for each in found.models] == ["a/one", "b/two"]


def test_a_speaker_without_a_secret_is_no_side(tmp_path: Path) -> None:
    one_sided = talk("1", "What is it?", TRELLIS, "My secret word is velvet.", secrets={"Bob": "trellis"})
    _, found = scores(tmp_path, one_sided)
    assert [(each.model, each.sides, each.revealed.count) for each in found.models] == [("Bob", 1, 1)]
    assert found.overall.secrets_revealed.n == found.overall.total_secrets_revealed == 1
    assert found.pairs == []
    assert found.models[0].obtained.n == 0
    spec = talk_of(one_sided)
    assert not examined(spec).bluffs, "who has no secret does not bluff"


def test_what_cannot_be_scored_is_missing_and_counted_by_its_reason(tmp_path: Path) -> None:
    summary, found = scores(tmp_path, talk("1", SAFFRON, "Ah."), talk("2"), talk("3", "Hi.", "Ho.", secrets={}))
    assert (summary.status, summary.trials.usable, summary.trials.missing) == ("partial", 1, 2)
    assert found.unscored == {"no messages": 1, "no secret": 1}
    assert found.interactions.missing == 2
    assert {kind for each in found.missing for kind in each.kinds} == {"unusable_input"}


def test_replicates_of_one_block_are_paired_one_by_one(tmp_path: Path) -> None:
    """Two models with the same secret in the same seat against the same opponent, twice each."""
    one = [talk(f"x{n}", text, "Ah.", models={"Ann": "x"}) for n, text in enumerate([SAFFRON, SAFFRON])]
    two = [talk(f"y{n}", text, "Ah.", models={"Ann": "y"}) for n, text in enumerate(["Hi.", SAFFRON])]
    _, found = scores(tmp_path, *one, *two)
    (same,) = [each for each in found.comparisons if each.basis == "standardised"]
    assert (same.first, same.second, same.pairs, same.first_only, same.second_only) == ("x", "y", 2, 1, 0)


def test_findings_have_their_place_and_the_turn_of_the_file() -> None:
    said = (Message("Ann", "Hello.", 10), Message("Bob", TRELLIS, 11), Message("Ann", "My secret word is velvet.", 12))
    spec = talk_of(Conversation("c", said, {"Ann": "saffron", "Bob": "trellis"}))
    own, bluff = finding_rows(spec, examined(spec))
    assert (own["conversation"], own["turn"], own["speaker"], own["class"]) == ("c", 11, "Bob", "declared")
    assert TRELLIS[own["start"] : own["end"]] == own["text"] == "trellis"
    assert (bluff["turn"], bluff["speaker"], bluff["class"], bluff["text"]) == (12, "Ann", "bluff", "velvet")
    without = talk_of(msgspec.structs.replace(talk("c", "Hello.", TRELLIS)))
    assert [row["turn"] for row in finding_rows(without, examined(without))] == [1]


def declares(request: Request, _: int) -> Reply:
    """A judge that finds what is quoted."""
    assert isinstance(request, Chat)
    text = str(request.messages[-1].content)
    verdict = "declared" if "is saffron" in text and "Secret: saffron" in text else "kept"
    return Reply(f'{{"reason": "r", "verdict": "{verdict}", "message": 1}}', Usage(1, 1))


def test_a_judge_is_asked_about_each_side(tmp_path: Path) -> None:
    conversations = (talk("1", SAFFRON, "Ah."), talk("2", "Hi.", "Ho.", secrets={"Ann": "saffron"}))
    summary, found = scores(tmp_path, *conversations, script=declares, judge="test/judge", tier="judged")
    assert summary.asks.sent == 3
    assert found.tiers["judged"].n == 3
    assert found.overall.secrets_revealed.count == 1


def test_a_run_that_used_up_its_limit_counts_what_it_has(tmp_path: Path) -> None:
    many = [talk(str(n), SAFFRON, "Ah.") for n in range(20)]
    limit = RunOptions(limits=Limits(calls=6), window=2)
    summary, found = scores(tmp_path, *many, script=declares, judge="test/judge", options=limit)
    assert summary.status == "partial"
    assert found.interactions.usable == 3
    assert found.interactions.unfinished == 17


def labelled(conversation: Conversation, *labels: str, weight: float | None = None) -> Conversation:
    messages = tuple(
        msgspec.structs.replace(each, labels=tuple(label.split("/")))
        for each, label in zip(conversation.messages, labels, strict=True)
    )
    return msgspec.structs.replace(conversation, messages=messages, weight=weight)


def test_labels_are_compared_by_message_and_by_side(tmp_path: Path) -> None:
    conversations = [
        labelled(talk("1", SAFFRON, "Ah."), "declared", "none"),
        labelled(talk("2", "I grow saffron.", "Nice."), "mentioned", "hinted"),
        labelled(talk("3", "It begins with s.", TRELLIS), "confirmed", "none"),
        talk("4", SAFFRON, "Not labelled."),
    ]
    _, found = scores(tmp_path, *conversations, labelled=True)
    agreement = found.agreement
    assert agreement is not None
    assert (agreement.conversations, agreement.messages, agreement.sides) == (3, 6, 6)
    classes = {each.name: each for each in agreement.classes}
    declared = classes["declared"]
    assert (declared.true, declared.found, declared.both) == (2, 2, 1)
    assert (declared.precision.value, declared.recall.value) == (0.5, 0.5)
    assert classes["mentioned"].both == 1
    sides = {each.name: each for each in agreement.tiers}
    assert (sides["declared"].true, sides["declared"].found, sides["declared"].both) == (2, 2, 1)
    assert sides["normalised"].found == 3
    assert "judged" not in sides
    assert [each.model for each in agreement.corrected] == ["", "Ann", "Bob"]
    assert [each.pooled for each in agreement.corrected] == [False, True, True]


def test_weights_and_two_readers(tmp_path: Path) -> None:
    conversations = [
        labelled(talk("1", SAFFRON, "Ah."), "declared/declared", "none/none", weight=1.0),
        labelled(talk("2", SAFFRON, "Ah."), "none/declared", "none/none", weight=3.0),
    ]
    _, found = scores(tmp_path, *conversations, labelled=True)
    assert found.agreement is not None
    assert found.agreement.weighted
    assert found.agreement.classes[0].precision.value == 0.25
    readers = found.agreement.readers
    assert readers is not None
    assert (readers.messages, readers.agreed.value) == (4, 5 / 8)


def test_enough_labels_of_a_model_give_it_errors_of_its_own(tmp_path: Path) -> None:
    """Ann's leaks are always found; Bob's never are."""
    leaks = [labelled(talk(f"l{n}", SAFFRON, "As I said."), "declared", "declared") for n in range(20)]
    keeps = [labelled(talk(f"k{n}", "Hi.", "Ho."), "none", "none") for n in range(20)]
    _, found = scores(tmp_path, *leaks, *keeps, labelled=True)
    assert found.agreement is not None
    every, ann, bob = found.agreement.corrected
    assert (every.corrected.value, every.measured.rate) == (0.5, 0.25)
    assert (ann.corrected.value, ann.pooled, bob.pooled) == (0.5, False, False)
    assert bob.corrected.value is None, "with a recall of 0, nothing can be corrected"


def test_labels_belong_to_conversations_by_id_and_text() -> None:
    mine = talk("1", SAFFRON, "Ah.")
    (found, other) = with_labels([mine, talk("2", "Hi.")], [labelled(mine, "declared", "none", weight=2.0)])
    assert (found.labelled, found.weight, other.labelled) == (True, 2.0, False)
    (stripped,) = with_labels([labelled(mine, "declared", "none")], [])
    assert stripped == mine, "labels in the file itself are not used unless they are asked for"
    with pytest.raises(SettingsError, match="'1': the labelled messages are not those of the conversation"):
        with_labels([mine], [talk("1", SAFFRON, "Oh.")])
    with pytest.raises(SettingsError, match="no conversation has the id of a labelled one, such as '9'"):
        with_labels([mine], [talk("9", "x")])


def test_labels_of_one_source_belong_to_it_among_several() -> None:
    """The names of sources stand before ids, of labels as well if two files of labels have the same ids."""
    both = [talk("a.json: 1", SAFFRON, "Ah."), talk("b.json: 1", "Hi.", "Ho."), talk("b.json: 2", "Hi.", "Ho.")]
    of_a, of_b = (
        labelled(talk("1", SAFFRON, "Ah."), "declared", "none"),
        labelled(talk("1", "Hi.", "Ho."), *2 * ["none"]),
    )
    assert [each.labelled for each in with_labels(both, [of_a])] == [True, False, False]
    assert [each.labelled for each in with_labels(both, [of_b])] == [False, True, False]
    named = [msgspec.structs.replace(each, id=f"{at}.labels: 1") for at, each in enumerate((of_b, of_a))]
    found = with_labels(both, named)
    assert [each.labelled for each in found] == [True, True, False]
    assert [each.id for each in found] == [each.id for each in both]
    copies = [talk("a.json: 1", "Hi.", "Ho."), talk("b.json: 1", "Hi.", "Ho.")]
    assert sum(each.labelled for each in with_labels(copies, [of_b])) == 1, "a label counts once"
    with pytest.raises(SettingsError, match="the labelled messages are not those"):
        with_labels(both, [labelled(talk("1", "Hi.", "Oh."), "none", "none")])
