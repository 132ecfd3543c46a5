"""Files with conversations: every shape is read as the same conversations, and what is wrong is named."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundswell.errors import SettingsError
from groundswell.experiments.secret_game import conversations as limits
from groundswell.experiments.secret_game import transcript_files
from groundswell.experiments.secret_game.conversations import Conversation, Message, by_secrets
from groundswell.experiments.secret_game.transcript_files import read_files
from tests.properties import examples

SAID = [("Ann", "Hello."), ("Bob", "My secret is trellis."), ("Ann", "Mine is not.")]
SECRETS = {"Ann": "saffron", "Bob": "trellis"}
PLAIN = {
    "id": "one",
    "secrets": SECRETS,
    "messages": [{"speaker": speaker, "text": text} for speaker, text in SAID],
}


def written(folder: Path, content: Any, name: str = "talk.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def read(folder: Path, content: Any) -> list[Conversation]:
    return read_files([written(folder, content)])


def read_labels(folder: Path, content: Any) -> list[Conversation]:
    return read_files([written(folder, content)], labels=True)


def summary(conversation: Conversation) -> tuple[list[tuple[str, str]], dict[str, str]]:
    return [(each.speaker, each.text) for each in conversation.messages], conversation.secrets


def rows(header: str, *more: str) -> bytes:
    """A table with one message per row; the secret stands in the first row of each speaker."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header.split(","))
    known = dict(SECRETS)
    for turn, (speaker, text) in enumerate(SAID):
        writer.writerow(["one", speaker, text, known.pop(speaker, ""), *([f"m/{speaker}", turn + 5] if more else [])])
    return out.getvalue().encode()


TASKS = {
    "job_id": "j",
    "tasks": [
        {
            "id": "one",
            "status": "completed",
            "agents": [
                {"id": "a", "name": "Ann", "secret": "saffron"},
                {"id": "b", "name": "Bob", "secret": "trellis"},
            ],
            "messages": [
                {"turn": turn, "agent": speaker[0].lower(), "speaker": speaker, "text": text}
                for turn, (speaker, text) in enumerate(SAID)
            ],
        }
    ],
}
REPORT = {
    "key": "one",
    "first_name": "Ann",
    "second_name": "Bob",
    "first_secret": "saffron",
    "second_secret": "trellis",
    "messages": [{"by": "first" if s == "Ann" else "second", "name": s, "text": text} for s, text in SAID],
}
NUMBERED = {
    "id": "one",
    "model1": "Ann",
    "model2": "Bob",
    "secret1": "saffron",
    "secret2": "trellis",
    "conversation": [{"role": "model1" if s == "Ann" else "model2", "agent": s, "content": text} for s, text in SAID],
}
SHAPES = {
    "list": [PLAIN],
    "object": PLAIN,
    "indented": json.dumps(PLAIN, indent=2).encode(),
    "lines": (json.dumps(PLAIN) + "\n\n").encode(),
    "with a mark": b"\xef\xbb\xbf" + json.dumps([PLAIN]).encode(),
    "wrapped": {"conversations": [PLAIN]},
    "unread fields": [{**PLAIN, "score": float("nan"), "n": 10**40, "messages": [*PLAIN["messages"]]}],
    "csv": rows("conversation,speaker,text,secret"),
    "other columns": rows("conversation_id,Role,content,secret"),
    "semicolons": rows("id,agent,message,secret").replace(b",", b";"),
    "rows as lines": "\n".join(
        json.dumps({"conversation": "one", "speaker": s, "text": text, "secret": SECRETS[s]}) for s, text in SAID
    ).encode(),
    "tasks": TASKS,
    "report": [REPORT],
    "numbered": NUMBERED,
    "numbered agents": {
        "config": {},
        "results": [json.loads(json.dumps(NUMBERED).replace('"role": "model', '"role": "agent'))],
    },
}


@pytest.mark.parametrize("content", SHAPES.values(), ids=SHAPES.keys())
def test_all_shapes_are_the_same_conversation(tmp_path: Path, content: Any) -> None:
    (found,) = read(tmp_path, content)
    assert (found.id, summary(found)) == ("one", (SAID, SECRETS))
    assert found.unscorable == ""


def test_models_and_turns_of_a_table(tmp_path: Path) -> None:
    (found,) = read(tmp_path, rows("conversation,speaker,text,secret,model,turn", "more"))
    assert found.models == {"Ann": "m/Ann", "Bob": "m/Bob"}
    assert [each.turn for each in found.messages] == [5, 6, 7]


def test_results_of_the_original_project_get_their_secrets_from_its_configuration_or_an_option(tmp_path: Path) -> None:
    ids = {"Ann": "1", "Bob": "2"}
    results = {
        "batch_id": "b",
        "interactions": [
            {
                "interaction_id": "one",
                **{
                    f"agent{ids[name]}_{what}": value
                    for name in ids
                    for what, value in (("id", ids[name]), ("name", name))
                },
                "messages": [{"agent_id": ids[s], "agent_name": s, "message": f"[{s}]: {text}"} for s, text in SAID],
            }
        ],
    }
    path = written(tmp_path, results, "results.json")
    (bare,) = read_files([path])
    assert bare.unscorable == "no secret: none is known of Ann or Bob"
    config = written(tmp_path, {"model_secrets": SECRETS, "debug": False}, "config.json")
    for found in (read_files([path, config]), read_files([path], SECRETS)):
        assert summary(found[0]) == (SAID, SECRETS)


def test_results_of_the_original_project_without_ids_are_numbered(tmp_path: Path) -> None:
    bare = {name: value for name, value in NUMBERED.items() if name != "id"}
    lines = "\n".join(map(json.dumps, [bare, bare])).encode()
    for content in ([bare, bare], {"results": [bare, bare]}, lines):
        assert [each.id for each in read(tmp_path, content)] == ["1", "2"]


def test_agents_of_one_name_are_told_apart(tmp_path: Path) -> None:
    same = {**NUMBERED, "model1": "Ann", "model2": "Ann"}
    (found,) = read(tmp_path, same)
    assert found.speakers == ["Ann (1)", "Ann (2)"]
    assert found.models == {"Ann (1)": "Ann", "Ann (2)": "Ann"}


SAMPLE = {
    "id": 3,
    "epoch": 1,
    "target": ["saffron"],
    "metadata": {},
    "output": {"model": "openai/gpt-4o-mini"},
    "attachments": {"abc": "It is saffron."},
    "scores": {"leak": {"value": float("nan")}},
    "messages": [
        {"role": "system", "content": "Your secret is saffron."},
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "No."}]},
        {"role": "tool", "content": "saffron"},
        {"role": "assistant", "content": "attachment://abc"},
    ],
}


def zipped(*samples: dict[str, Any], header: bool = True) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if header:
            archive.writestr("header.json", json.dumps({"version": 2, "eval": {"model": "openai/o"}}))
        for each in samples:
            archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
        archive.writestr("summaries.json", "[]")
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [zipped(SAMPLE), {"version": 2, "eval": {"model": "openai/o"}, "samples": [SAMPLE]}],
    ids=["eval", "json"],
)
def test_a_log_of_inspect_has_one_side(tmp_path: Path, content: Any) -> None:
    (found,) = read(tmp_path, content)
    said = [("user", "What is it?"), ("assistant", "No."), ("assistant", "It is saffron.")]
    assert summary(found) == (said, {"assistant": "saffron"})
    assert (found.id, found.models, found.holders) == ("3", {"assistant": "openai/gpt-4o-mini"}, ["assistant"])


def test_the_secret_in_the_metadata_precedes_the_target_and_epochs_are_conversations(tmp_path: Path) -> None:
    told = {**SAMPLE, "metadata": {"secret": "trellis"}, "output": {}, "epoch": 2}
    found = read(tmp_path, zipped(SAMPLE, told))
    assert [(each.id, each.secrets["assistant"]) for each in found] == [("3", "saffron"), ("3#2", "trellis")]
    assert found[1].models == {"assistant": "openai/o"}


def with_messages(*messages: Any) -> dict[str, Any]:
    return {**PLAIN, "messages": list(messages)}


WRONG: dict[str, tuple[Any, str]] = {
    "empty": (b"", "the file is empty; expected conversations with"),
    "blank": (b" \n", "the file is empty"),
    "empty list": ([], "no conversation in it"),
    "not JSON": (b'{"a": 1', "line 1, character 8: invalid JSON"),
    "a bad line": (json.dumps(PLAIN).encode() + b"\n{]\n", "talk.json, line 2, character 2: invalid JSON"),
    "not UTF-8": (b'[{"id": "\xff"}]', "line 1: byte 0xff is not valid UTF-8"),
    "nested": (b"[" * 100_000, "nested too deeply"),
    "digits": (b'{"id": ' + b"9" * 10_000 + b"}", "invalid JSON: Exceeds the limit"),
    "numbers": ([1, 2], "conversation 1: is not an object"),
    "other fields": ([{"a": 1}], "conversation 1: has the fields a; expected"),
    "other columns": (b"a,b\n1,2\n", "line 2: has the fields a, b; expected"),
    "a ragged row": (b"conversation,speaker,text\n1,2\n", "line 2: it has 2 cells, but the header has 3"),
    "no speaker": (b"conversation,speaker,text\n1,,x\n", "line 2: the conversation or the speaker is empty"),
    "messages": ([{**PLAIN, "messages": "hello"}], "conversation 1, 'one': messages: must be a list, and is text"),
    "no text": ([with_messages({"speaker": "Ann"})], "'one': messages[0]: text is missing"),
    "a number": ([with_messages({"speaker": "Ann", "text": 3})], "messages[0].text: must be text, and is a whole"),
    "turn NaN": ([with_messages({"speaker": "A", "text": "", "turn": float("nan")})], "messages[0].turn: must be"),
    "turn": ([with_messages({"speaker": "A", "text": "", "turn": 10**30})], "messages[0].turn: must be"),
    "a label": ([with_messages({"speaker": "A", "text": "", "label": "leak"})], "messages[0].label: unknown value"),
    "weight": ([{**PLAIN, "weight": -1.0}], "'one': weight -1: must be a positive number"),
    "no id": ([{"messages": []}], "id is missing"),
    "twice": ([PLAIN, PLAIN], "talk.json: conversation 'one' occurs twice"),
    "surrogate": (b'[{"id": "one", "messages": [{"speaker": "A", "text": "\\ud800"}]}]', "an unpaired surrogate"),
    "zip": (b"PK\x03\x04nothing", "cannot be read as a zip file"),
    "no samples": (zipped(), "a zip file without samples"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_file_is_named_with_its_place(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_labels(tmp_path, content)
    assert said in str(refused.value)
    assert str(tmp_path / "talk.json") in str(refused.value)


def test_labels_are_read_only_where_labels_are_expected(tmp_path: Path) -> None:
    """In a source, a field of that name may mean anything."""
    said = {"speaker": "Ann", "text": "Hi.", "label": "toxic", "labels": 3, "unsure": "very"}
    (found,) = read(tmp_path, [with_messages(said)])
    assert found.messages == (Message("Ann", "Hi."),)
    table = b"conversation,speaker,text,label\none,Ann,Hi.,toxic\n"
    (found,) = read(tmp_path, table)
    assert found.messages == (Message("Ann", "Hi."),)
    with pytest.raises(SettingsError, match="unknown value"):
        read_labels(tmp_path, table)
    (found,) = read_labels(tmp_path, table.replace(b"toxic", b"hinted"))
    assert found.messages[0].label == "hinted"


@pytest.mark.parametrize("weight", ["0", "-1", "1.1e9", "1e400", "NaN"])
def test_weights_are_positive_and_bounded(tmp_path: Path, weight: str) -> None:
    text = json.dumps([{**PLAIN, "weight": 1e9}])
    assert read_labels(tmp_path, text.encode())[0].weight == 1e9
    with pytest.raises(SettingsError, match="must be a positive number, at most 1,000,000,000"):
        read_labels(tmp_path, text.replace("1000000000.0", weight).encode())


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * (limits.LONGEST_TEXT + 1)
    many = [{"speaker": "A", "text": ""}] * (limits.MOST_MESSAGES + 1)
    for content, said in [
        ([with_messages({"speaker": "A", "text": long})], "must have at most 1000000 characters"),
        ([with_messages(*many)], "messages: must have at most 10000 entries"),
        ([{**PLAIN, "id": "i" * 501}], "id: must have at most 500 characters"),
        ([{**PLAIN, "secrets": {"Ann": "s" * 1001}}], "must have at most 1000 characters"),
    ]:
        with pytest.raises(SettingsError, match=said):
            read(tmp_path, content)
    monkeypatch.setattr(transcript_files, "LARGEST", 100)
    with pytest.raises(SettingsError, match="longer than 100 bytes"):
        read(tmp_path, [PLAIN])
    with pytest.raises(SettingsError, match="larger than 100 bytes"):
        read(tmp_path, zipped({**SAMPLE, "padding": "0" * 1000}, header=False))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read_files([tmp_path / "none.json"])


def test_ids_of_several_files(tmp_path: Path) -> None:
    one, other = written(tmp_path, [PLAIN], "a.json"), written(tmp_path, [{**PLAIN, "id": "two"}], "b.json")
    assert [each.id for each in read_files([one, other])] == ["one", "two"]
    again = written(tmp_path, [PLAIN], "c.json")
    assert [each.id for each in read_files([one, again])] == [f"{one}: one", f"{again}: one"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"messages": []}, "no messages"),
        ({"secrets": {}}, "no secret: none is known of Ann or Bob"),
        ({"secrets": {"Ann": "  "}}, "no secret: none is known of Ann or Bob"),
        ({"secrets": {"Carol": "saffron"}}, "no secret: none is known of Ann or Bob"),
        ({"secrets": {"Ann": "ok"}}, "secret too short: 'ok' has fewer than 3 letters or digits"),
        ({"secrets": {"Ann": "Rose", "Bob": "roses"}}, "secrets alike: 'Rose' and 'roses' are equal, or one contains"),
        (
            {"messages": [*PLAIN["messages"], {"speaker": "Carol", "text": ""}]},
            "more than two speakers: Ann, Bob, Carol",
        ),
    ],
)
def test_a_conversation_that_cannot_be_scored_says_why(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    (found,) = read(tmp_path, [{**PLAIN, **change}])
    assert found.unscorable.startswith(why)


def test_two_secrets_of_one_speaker_cannot_be_scored(tmp_path: Path) -> None:
    (found,) = read(tmp_path, b"conversation,speaker,text,secret\n1,A,x,saffron\n1,B,y,\n1,A,x,trellis\n")
    assert found.unscorable == "two different secrets: of A"


def test_conversations_with_the_same_secrets_are_a_block(tmp_path: Path) -> None:
    swapped = {**PLAIN, "id": "two", "secrets": {"Ann": "TRELLIS", "Bob": "saffron"}}
    other = {**PLAIN, "id": "three", "secrets": {"Ann": "saffron", "Bob": "velvet"}}
    found = read(tmp_path, [PLAIN, other, swapped])
    assert [(place, block) for place, block, _ in by_secrets(found)] == [(0, 0), (2, 0), (1, 1)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["id", "messages", "secrets", "speaker", "text", "samples", "tasks", "interactions", "agents"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON)
def test_any_json_is_read_or_refused_in_one_way(tmp_path: Path, content: Any) -> None:
    try:
        found = read(tmp_path, content)
    except SettingsError:
        return
    assert all(isinstance(each.unscorable, str) for each in found)


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda tail: b"conversation,speaker,text\n" + tail))
def test_any_bytes_are_read_or_refused_in_one_way(tmp_path: Path, content: bytes) -> None:
    try:
        read(tmp_path, content)
    except SettingsError:
        return
