"""What goes wrong with batches: at create, while they are polled and listed, and in their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.desks.bad_lines import BadLines
from groundswell.emulator.faults import Rule
from groundswell.emulator.http import Answer, Silence
from tests.emulator.desk_scene import Scene, anthropic_request, openai_line

Json = dict[str, Any]


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


class Provider(NamedTuple):
    """One provider's batches of short requests, as a test drives them."""

    path: str
    submit: Callable[[Scene, int], str]
    results_path: Callable[[Scene, str], str]


def submit_openai(scene: Scene, count: int) -> str:
    return scene.submit([openai_line(number) for number in range(count)])


def submit_anthropic(scene: Scene, count: int) -> str:
    id: str = scene.submit_messages([anthropic_request(number) for number in range(count)])["id"]
    return id


def openai_results(scene: Scene, id: str) -> str:
    batch = scene.batch(id)
    return f"/v1/files/{batch['output_file_id'] or batch['error_file_id']}/content"


PROVIDERS = {
    "openai": Provider("/v1/batches", submit_openai, openai_results),
    "anthropic": Provider(
        "/v1/messages/batches", submit_anthropic, lambda scene, id: f"/v1/messages/batches/{id}/results"
    ),
}
both = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)


def strike(scene: Scene, *rules: Rule) -> None:
    scene.app.set_faults(rules)


def ids(scene: Scene, path: str) -> list[str]:
    return [batch["id"] for batch in scene.ask("GET", path)["data"]]


def done(scene: Scene, provider: Provider, count: int) -> tuple[str, bytes]:
    """A batch that has ended, and its results as they arrive."""
    id = provider.submit(scene, count)
    scene.advance(1_000)
    answer = scene.call("GET", provider.results_path(scene, id))
    assert isinstance(answer, Answer)
    assert answer.status == 200
    return id, answer.body


def readable(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


# At create, and when batches are looked for.


@both
def test_a_create_whose_answer_is_lost_makes_a_batch_that_can_be_listed(scene: Scene, provider: Provider) -> None:
    strike(scene, Rule(fault="drop-after", path=provider.path, method="POST", times=1))
    with pytest.raises(AssertionError, match="was not answered"):
        provider.submit(scene, 3)
    (lost,) = ids(scene, provider.path)
    assert [provider.submit(scene, 3), lost] == ids(scene, provider.path)


@both
@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_refused_create_makes_nothing_and_lists_are_answered(scene: Scene, provider: Provider, status: int) -> None:
    strike(scene, Rule(fault=str(status), path=provider.path, method="POST", retry_after=7))
    file = scene.upload([openai_line(1)])
    wanted = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = scene.call("POST", provider.path, {**wanted, "requests": [anthropic_request(1)]})
    assert isinstance(answer, Answer)
    assert answer.status == status
    assert dict(answer.headers).get(b"retry-after") == (b"7" if status == 429 else None)
    assert ids(scene, provider.path) == []
    scene.advance(1_000)
    assert scene.ask("GET", "/emulator/ledger")["totals"]["batch_requests"] == 0


@both
def test_listing_fails_as_often_as_a_rule_says(scene: Scene, provider: Provider) -> None:
    strike(scene, Rule(fault="503", path=provider.path, method="GET", times=2))
    made = provider.submit(scene, 1)
    for _ in range(2):
        scene.ask("GET", provider.path, status=503)
    assert ids(scene, provider.path) == [made]


@both
def test_polling_one_batch_fails_as_often_as_a_rule_says(scene: Scene, provider: Provider) -> None:
    one, other = provider.submit(scene, 1), provider.submit(scene, 1)
    strike(scene, Rule(fault="503", path=f"{provider.path}/{one}", method="GET", times=3))
    for _ in range(3):
        scene.ask("GET", f"{provider.path}/{one}", status=503)
        scene.ask("GET", f"{provider.path}/{other}")
    scene.ask("GET", f"{provider.path}/{one}")


@pytest.mark.parametrize("fault", ["500", "drop", "drop-after", "413"])
def test_an_upload_fails(scene: Scene, fault: str) -> None:
    strike(scene, Rule(fault=fault, path="/v1/files", method="POST", times=1))
    with pytest.raises(AssertionError):
        scene.upload([openai_line(1)])
    kept = scene.ask("GET", "/v1/files")["data"]
    assert len(kept) == (fault == "drop-after")
    scene.upload([openai_line(1)])


def test_a_rule_for_one_method_is_posted(scene: Scene) -> None:
    rule = {"fault": "drop", "path": "/v1/batches", "method": "POST"}
    assert scene.ask("POST", "/emulator/faults", {"rules": [rule]})["rules"] == [{**rule, "struck": 0}]
    assert scene.call("POST", "/v1/batches", {}) == Silence()
    assert ids(scene, "/v1/batches") == []


# In validation.


def named(scene: Scene, lines: list[Any]) -> list[int]:
    """The lines that validation names."""
    batch = scene.submit(lines)
    scene.advance(10)
    found = scene.batch(batch)
    if found["status"] != "failed":
        assert found["status"] == "in_progress"
        return []
    assert {error["param"] for error in found["errors"]["data"]} == {"body"}
    assert found["request_counts"]["total"] == 0
    return [error["line"] for error in found["errors"]["data"]]


@pytest.mark.parametrize("count", [1, 3, 60])
def test_bad_lines_are_bad_again_and_the_rest_passes_without_them(scene: Scene, count: int) -> None:
    strike(scene, Rule(fault="bad-lines"))
    lines = [openai_line(number) for number in range(count)]
    bad = named(scene, lines)
    assert 1 <= len(bad) <= max(1, count // 4)
    rest = [line for number, line in enumerate(lines, 1) if number not in bad]
    assert not rest or named(scene, rest) == []
    renamed = [{**line, "custom_id": f"again-{line['custom_id']}"} for line in lines[::-1]]
    assert named(scene, renamed) == [count + 1 - number for number in reversed(bad)]


def test_bad_lines_are_counted_as_they_stand_in_the_file(scene: Scene) -> None:
    strike(scene, Rule(fault="bad-lines"))
    assert named(scene, [b"\n", b"\n", openai_line(1)]) == [3]


def test_a_bad_line_is_forgotten_with_the_rule_or_a_reset(scene: Scene) -> None:
    strike(scene, Rule(fault="bad-lines", times=1))
    assert named(scene, [openai_line(1)]) == [1]
    assert named(scene, [openai_line(1)]) == []
    strike(scene, Rule(fault="bad-lines"))
    (bad,) = named(scene, [openai_line(number) for number in range(3)])
    scene.ask("POST", "/emulator/reset")
    assert named(scene, [openai_line(number) for number in range(3) if number != bad - 1]) != []


@given(st.lists(st.text(max_size=3), min_size=1), st.lists(st.text(max_size=3)), st.integers(0, 9))
def test_what_was_found_bad_stays_bad_and_what_was_found_right_stays_right(
    first: list[str], second: list[str], seed: int
) -> None:
    lines = BadLines(seed)
    places = lines.among(first)
    assert places
    bad = {first[place] for place in places}
    good = set(first) - bad
    found = lines.among([*first, *second])
    assert {first[place] for place in found if place < len(first)} == bad
    assert lines.among(sorted(good)) == []
    assert lines.among(sorted(bad)) == list(range(len(bad)))
    new = set(second) - set(first)
    assert not new or lines.among(sorted(new | bad))


def test_a_bad_line_may_be_anything(scene: Scene) -> None:
    strike(scene, Rule(fault="bad-lines"))
    deep = json.loads("[" * 900 + "]" * 900)
    assert named(scene, [{**openai_line(1), "body": deep}]) == [1]


# In the results.


@both
def test_results_that_are_short_end_within_a_line(scene: Scene, provider: Provider) -> None:
    strike(scene, Rule(fault="results-short", times=1))
    id, short = done(scene, provider, 9)
    whole = scene.call("GET", provider.results_path(scene, id))
    assert isinstance(whole, Answer)
    assert whole.cut is None
    assert whole.body.startswith(short)
    assert [readable(line) for line in short.splitlines()] == [True] * (len(short.splitlines()) - 1) + [False]
    assert 0 < len(short.splitlines()) < 9


@both
def test_a_line_of_the_results_is_not_json(scene: Scene, provider: Provider) -> None:
    strike(scene, Rule(fault="line-garbled", times=2))
    _, body = done(scene, provider, 9)
    assert sorted(map(readable, body.splitlines())) == [False] * 2 + [True] * 7
    assert scene.ask("GET", "/emulator/ledger")["totals"]["batch_requests"] == 9, "it is paid for all the same"


@both
def test_a_stranger_is_among_the_results(scene: Scene, provider: Provider) -> None:
    strike(scene, Rule(fault="line-stranger", times=1))
    _, body = done(scene, provider, 4)
    found = [json.loads(line)["custom_id"] for line in body.splitlines()]
    assert sorted(found)[:4] == ["r0", "r1", "r2", "r3"]
    assert sorted(found)[4].startswith("stranger-")
    assert scene.ask("GET", "/emulator/ledger")["totals"]["batch_requests"] == 4, "nobody pays for it"


def told_by_openai(line: Json) -> tuple[int, str]:
    response = line["response"]
    return response["status_code"], response["body"]["error"]["type"]


def told_by_anthropic(line: Json) -> str:
    assert line["result"]["type"] == "errored"
    kind: str = line["result"]["error"]["error"]["type"]
    return kind


FAILED: list[tuple[str, Provider, Callable[[Json], Any], Any]] = [
    ("line-500", PROVIDERS["openai"], told_by_openai, (500, "server_error")),
    ("line-529", PROVIDERS["openai"], told_by_openai, (529, "server_error")),
    ("line-500", PROVIDERS["anthropic"], told_by_anthropic, "api_error"),
    ("line-529", PROVIDERS["anthropic"], told_by_anthropic, "overloaded_error"),
    ("line-429", PROVIDERS["anthropic"], told_by_anthropic, "rate_limit_error"),
    ("low-balance", PROVIDERS["anthropic"], told_by_anthropic, "invalid_request_error"),
]


@pytest.mark.parametrize(("fault", "provider", "told", "what"), FAILED, ids=[f"{row[0]} {row[3]}" for row in FAILED])
def test_how_a_line_fails(
    scene: Scene, fault: str, provider: Provider, told: Callable[[Json], Any], what: object
) -> None:
    strike(scene, Rule(fault=fault))
    _, body = done(scene, provider, 1)
    assert told(json.loads(body)) == what
    assert scene.ask("GET", "/emulator/ledger")["totals"]["batch_requests"] == 0
