"""Which asks travel in batches and which had better not; and whatever travels brings back what it would have live."""

from __future__ import annotations

from typing import Any

import pytest

from groundswell import Image, Limits, RunOptions, Text, Tool, Trial, program
from groundswell.emulator.faults import Rule
from groundswell.engine.events import RouteChosen
from groundswell.program.request import Usage, user
from groundswell.program.trial import Program
from groundswell.providers.anthropic import ANTHROPIC
from groundswell.providers.openai import OPENAI
from tests.transports.batch_scene import Scripted, said
from tests.transports.little import Got, serving
from tests.transports.scene import EMBEDDERS, MODELS, Texts, vectors
from tests.troubles.scene import BATCH, Ran, Scene, Topic, talk, topics
from tests.troubles.table import BOTH

MANY = 12
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {"mood": {"enum": ["calm", "cross"]}, "score": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["mood", "score"],
    "additionalProperties": False,
}
WEATHER = Tool("weather", "The weather of a place.", {"type": "object", "properties": {"place": {"type": "string"}}})


@program("tests/troubles/shaped")
async def shaped(trial: Trial, spec: Topic) -> str:
    """A reply in JSON."""
    return (await trial.ask(spec.model, f"How is {spec.about}?", schema=SHAPE, max_tokens=40, temperature=0.0)).text


@program("tests/troubles/tooled")
async def tooled(trial: Trial, spec: Topic) -> list[Any]:
    """A reply, and what it would have called."""
    reply = await trial.ask(
        spec.model, f"Use the tool: weather of {spec.about}", tools=(WEATHER,), max_tokens=40, temperature=0.0
    )
    return [reply.text, *[[call.name, call.arguments] for call in reply.tool_calls]]


@program("tests/troubles/seen")
async def seen(trial: Trial, spec: Topic) -> str:
    """A reply to an image."""
    message = user((Text(f"What is {spec.about} here?"), Image(data=DOT)))
    return (await trial.ask(spec.model, [message], max_tokens=30, temperature=0.0)).text


@program("tests/troubles/spoilt")
async def spoilt(trial: Trial, spec: Topic) -> str:
    """A request that is bad, if it is about nothing: OpenAI would fail a whole batch for it."""
    extra: dict[str, Any] | None = None if spec.about else {"messages": []}
    return (await trial.ask(spec.model, f"Tell me about {spec.about}", extra=extra, temperature=0.0)).text


@program("tests/troubles/pair")
async def pair(trial: Trial, spec: Topic) -> list[str]:
    """Two models speak in turn; the other one is at hand."""
    first = await trial.ask(spec.model, f"Tell me about {spec.about}.", max_tokens=30, temperature=0.0)
    other = await trial.ask("emulated/encoder", first.text, max_tokens=30, temperature=0.0)
    last = await trial.ask(spec.model, f"{spec.about}: {other.text}", max_tokens=30, temperature=0.0)
    return [first.text, other.text, last.text]


def _check(scene: Scene, ran: Ran, whole: list[Any], batched: int, live: int = 0) -> None:
    """As in a live run, each paid for once."""
    books = scene.books
    assert ran.texts == whole
    assert (books["batch_requests"], books["requests"], books["paid_again"]) == (batched, live, 0)
    assert ran.counters.usd == pytest.approx(books["dollars"])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("made", [shaped, tooled, seen], ids=lambda made: made.name)
def test_requests_of_all_kinds(scene: Scene, provider: str, made: Program[Any, Any]) -> None:
    specs = topics(provider, MANY)
    whole = scene.undisturbed(made, specs)
    _check(scene, scene.run(made, specs), whole, MANY)
    assert len(set(map(str, whole))) > 1


def test_embeddings(scene: Scene) -> None:
    specs = [Texts(EMBEDDERS["openai"], tuple(f"text {n}" for n in range(at + 1))) for at in range(MANY)]
    whole = scene.undisturbed(vectors, specs)
    ran = scene.run(vectors, specs)
    assert ran.sent == [MANY]
    _check(scene, ran, whole, MANY)


@pytest.mark.parametrize("provider", BOTH)
def test_a_reply_that_is_filtered_is_what_it_would_be_live(scene: Scene, provider: str) -> None:
    scene.disturb(Rule(fault="filter"))
    live = scene.run(talk, topics(provider, MANY), RunOptions(cache=False), name="live")
    scene.disturb(Rule(fault="line-filter"))
    ran = scene.run(talk, topics(provider, MANY), RunOptions(via="batch", cache=False))
    assert (ran.texts, ran.faults) == (live.texts, live.faults)
    assert len(ran.outcomes) == scene.books["batch_requests"] == MANY


def test_a_request_that_would_spoil_its_batch_goes_live(scene: Scene) -> None:
    model = MODELS["openai"]
    specs = [Topic(model, "" if at == 5 else f"thing {at}") for at in range(MANY)]
    ran = scene.run(spoilt, specs)
    assert ran.sent == [MANY - 1]
    assert ran.faults == {"bad_request": 1}
    assert ran.outcomes[5].fault is not None
    assert [(size, "must not be empty" in why) for size, why in ran.lived] == [(1, True)]
    good = specs[:5] + specs[6:]
    assert ran.texts[:5] + ran.texts[6:] == scene.undisturbed(spoilt, good)


@pytest.mark.slow
def test_more_bad_lines_than_are_told_at_once(scene: Scene) -> None:
    number = 1250
    specs = topics("openai", number)
    scene.disturb(Rule(fault="bad-lines", times=2))
    ran = scene.run(talk, specs)
    books = scene.books
    missing = ran.faults["bad_request"]
    assert ran.faults == {"bad_request": missing}
    assert 100 < missing < 200, "so many are told only in two tries"
    assert ran.sent == [number, number - 100]
    assert [why for _, why in ran.lived] == ["they already failed in 2 batches"]
    assert (books["requests"] + books["batch_requests"], books["paid_again"]) == (number - missing, 0)
    assert (ran.counters.usable, ran.counters.missing) == (number - missing, missing)


@pytest.mark.parametrize("provider", BOTH)
def test_a_single_request_goes_live(scene: Scene, provider: str) -> None:
    specs = topics(provider, 1, 3)
    whole = scene.undisturbed(talk, specs)
    ran = scene.run(talk, specs)
    _check(scene, ran, whole, 0, 3)
    assert [(size, why.startswith("a single request")) for size, why in ran.lived] == [(1, True)] * 3


@pytest.mark.slow
@pytest.mark.parametrize("provider", BOTH)
def test_the_few_that_failed_do_not_hold_up_the_others(scene: Scene, provider: str) -> None:
    specs = topics(provider, 200, 2)
    whole = scene.undisturbed(talk, specs)
    scene.disturb(Rule(fault="line-500", times=3))
    ran = scene.run(talk, specs)
    _check(scene, ran, whole, 397, 3)
    assert ran.sent == [200, 200], "the others did not go on without them, nor wait for another batch"
    assert sum(size for size, why in ran.lived if "requests of a batch failed" in why) == 3


@pytest.mark.parametrize("provider", BOTH)
def test_more_asks_than_a_batch_holds(scene: Scene, provider: str) -> None:
    specs = topics(provider, MANY)
    whole = scene.undisturbed(talk, specs)
    ran = scene.run(talk, specs, RunOptions(via="batch", batch_size=5))
    _check(scene, ran, whole, MANY)
    assert ran.sent == [4, 4, 4]


@pytest.mark.parametrize("provider", BOTH)
def test_batches_are_no_larger_than_they_may_be(scene: Scene, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [*topics(provider, MANY), Topic(MODELS[provider], "this and that " * 200)]
    whole = scene.undisturbed(talk, specs)
    monkeypatch.setattr(OPENAI.batch, "max_bytes", 2000)
    monkeypatch.setattr(ANTHROPIC.batch, "max_bytes", 2000)
    ran = scene.run(talk, specs)
    _check(scene, ran, whole, MANY, 1)
    assert len(ran.sent) > 1
    assert [size for size, why in ran.lived if "the limit of a batch is 2,000" in why] == [1]


def _dear(model: str, usage: Usage, transport: str) -> float:
    return 1.0 if transport == "live" else 0.5


AUTO = {
    "no deadline, and worth it": (None, _dear, "batch", "saves about $6.0000, and there is no deadline"),
    "not worth it": (None, None, "live", "would save only"),
    "a deadline that is near": (600.0, _dear, "live", "a batch usually takes 3600 s, and the deadline is in"),
    "a deadline that is far": (86_400.0, _dear, "batch", "the deadline is in"),
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize("case", AUTO)
def test_the_way_that_is_better(scene: Scene, provider: str, case: str) -> None:
    seconds, prices, way, why = AUTO[case]
    specs = topics(provider, MANY)
    whole = scene.undisturbed(talk, specs)
    ran = scene.run(talk, specs, RunOptions(via="auto", limits=Limits(seconds=seconds)), prices=prices)
    assert ran.texts == whole
    paid = scene.books["requests" if way == "live" else "batch_requests"]
    assert (paid, scene.books["paid_again"]) == (MANY, 0)
    chosen = ran.told(RouteChosen)
    assert [(one.size, way in one.way, why in one.why) for one in chosen] == [(MANY, True, True)]


@pytest.mark.parametrize("provider", BOTH)
def test_a_partner_without_batches(scene: Scene, provider: str) -> None:
    specs = topics(provider, MANY)
    whole = scene.undisturbed(pair, specs)
    ran = scene.run(pair, specs)
    _check(scene, ran, whole, 2 * MANY)
    assert ran.sent == [MANY, MANY]
    assert [(one.size, one.way, one.why) for one in ran.told(RouteChosen) if one.account == "emulated"] == [
        (0, "emulated", "emulated has no batch API, or it is turned off")
    ]


def test_a_partner_who_is_live(scene: Scene) -> None:
    specs = [*topics("openai", MANY, 2), *topics("ollama", MANY, 2)]
    whole = scene.undisturbed(talk, specs)
    ran = scene.run(talk, specs)
    _check(scene, ran, whole, 2 * MANY, 2 * MANY)
    assert [why for size, why in ran.lived if not size] == ["ollama has no batch API, or it is turned off"]


NOT_FOR_BATCHES = "The model 'gpt-4o-mini' is not supported in the Batch API."


def _in_validation(got: Got) -> bytes:
    """A batch that has failed because of its model."""
    batch = {"id": "batch_1", "object": "batch", "endpoint": "/v1/chat/completions", "status": "failed"}
    errors = [{"code": "invalid_model", "message": NOT_FOR_BATCHES, "line": number} for number in (1, 2)]
    return said({**batch, "errors": {"object": "list", "data": errors}})


def _reply(got: Got) -> bytes:
    """Whatever it is asked, it says the same."""
    message = {"role": "assistant", "content": "Well."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return said({"object": "chat.completion", "model": "gpt-4o-mini", "choices": [choice], "usage": usage})


REFUSED = said({"error": {"message": NOT_FOR_BATCHES, "type": "invalid_request_error"}}, "400 Bad Request")


@pytest.mark.parametrize("order", [_in_validation, REFUSED], ids=["told in validation", "told at once"])
def test_a_model_that_is_not_for_batches(scene: Scene, order: object) -> None:
    answers: dict[str, Any] = {
        "POST /v1/files": said({"id": "file-1", "object": "file"}),
        "POST /v1/batches": order,
        "GET /v1/batches/batch_1": _in_validation,
        "POST /v1/chat/completions": _reply,
    }
    with serving(Scripted(answers)) as little:
        scene.url = little.url
        ran = scene.run(talk, topics("openai", MANY, 2))
        orders = [got for got in little.got if got.line.startswith("POST /v1/batches")]
        asked = [got for got in little.got if got.line.startswith("POST /v1/chat")]
    assert ran.texts == [["Well.", "Well."]] * MANY
    assert (len(orders), len(asked)) == (1, 2 * MANY), "it is not tried again"
    assert [(size, NOT_FOR_BATCHES in why) for size, why in ran.lived] == [(MANY, True)]
    assert (ran.counters.sent, ran.counters.retried) == (2 * MANY, 0)


def test_an_account_whose_batches_are_off(scene: Scene) -> None:
    scene.flags.append("openai.batch=false")
    specs = topics("openai", MANY)
    whole = scene.undisturbed(talk, specs)
    ran = scene.run(talk, specs, BATCH)
    _check(scene, ran, whole, 0, MANY)
    assert ran.lived == [(0, "openai has no batch API, or it is turned off")]
