"""Who may be tested: what stays on this machine; others only if they are named and confirmed, whatever the way in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import groundswell
from groundswell import Reply, Request, Run, SettingsError, scripted_model
from groundswell.engine.ports import Route
from groundswell.engine.records import Via
from groundswell.experiments.query_mutation.batching import batch_query_target_model
from groundswell.experiments.query_mutation.evaluating import Evaluation
from groundswell.experiments.query_mutation.guards import Guard
from groundswell.experiments.query_mutation.playing import World, opened_world
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.targets import authorise, authorised
from groundswell.experiments.query_mutation.task import Task
from groundswell.experiments.query_mutation.training import Training, train
from groundswell.transports.scripted import Scripted

REMOTE = "lab/guarded"
TOML = """
[accounts.lab]
dialect = "openai"
base_url = "http://lab.example.org:9000/v1"
[accounts.near]
dialect = "openai"
base_url = ["http://127.0.0.1:9000/v1", "http://localhost:9001/v1"]
[accounts.half]
dialect = "openai"
base_url = ["http://127.0.0.1:9000/v1", "http://lab.example.org:9000/v1"]
[accounts.proxied]
dialect = "openai"
base_url = "http://127.0.0.1:9000/v1"
proxy = "http://proxy.example.org:3128"
[models]
mine = "lab/guarded"
toy = "emulated/guard:0.5"
"""
CONFIRM = "confirm it with --confirm-target (in Python confirmed=True)"


@scripted_model("targets-test")
def _answer(request: Request) -> str:
    return "No."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with some accounts, and no others of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("OLLAMA_HOST", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "groundswell.toml").write_text(TOML)
    return tmp_path


def within(work: Callable[[Run], Any], **how: Any) -> Any:
    """Do something with a run; nobody is asked."""

    async def go() -> Any:
        async with groundswell.open("runs.db", **how) as engine, engine.run() as run:
            done = work(run)
            return await done if isinstance(done, Awaitable) else done

    return asyncio.run(go())


def refusal(work: Callable[[Run], Any], **how: Any) -> str:
    """Why something is refused."""
    with pytest.raises(SettingsError) as raised:
        within(work, **how)
    return str(raised.value)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "target", ["emulated/guard:0.5", "scripted/targets-test", "toy", "ollama/llama3.2:1b", "near/x", "vllm/x"]
)
def test_what_stays_on_this_machine_may_be_tested(target: str) -> None:
    within(lambda run: authorised(run, target))


@pytest.mark.sampled
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("target", [REMOTE, "mine", "half/guarded", "proxied/guarded"])
def test_others_must_be_named_and_confirmed(target: str) -> None:
    full = REMOTE if target == "mine" else target
    said = refusal(lambda run: authorised(run, target))
    assert said.startswith(f"target {target!r}")
    assert "If you own it or may test it" in said
    assert f'groundswell.toml [mutation] targets = ["{full}"]' in said
    assert f"--allow-target {full}" in said
    assert CONFIRM in said
    assert CONFIRM not in refusal(lambda run: authorised(run, target, confirmed=True))
    assert "--allow-target" not in refusal(lambda run: authorised(run, target, allowed=[full]))
    within(lambda run: authorised(run, target, allowed=[full], confirmed=True))


@pytest.mark.usefixtures("folder")
def test_whoever_lacks_a_key_is_told_of_the_rest_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = refusal(lambda run: authorised(run, "openai/gpt-4o-mini"))
    assert "set OPENAI_API_KEY" in said
    assert "a target on another machine also needs --allow-target and --confirm-target" in said
    done = refusal(lambda run: authorised(run, "openai/gpt-4o-mini", allowed=["openai/*"], confirmed=True))
    assert "set OPENAI_API_KEY" in done
    assert "--allow-target" not in done


@pytest.mark.sampled(every=3)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("listed", "fits"),
    [
        ("lab/guarded", True),
        ("mine", True),
        ("lab/*", True),
        ("lab/guard*", True),
        ("lab/other", False),
        ("toy", False),
        ("lab/guarded-7b", False),
        ("near/*", False),
        ("*/guarded", False),
        ("*/*", False),
        ("l*/guarded", False),
        ("lab/", False),
    ],
)
def test_what_an_entry_of_the_list_means(listed: str, fits: bool) -> None:
    if fits:
        within(lambda run: authorised(run, REMOTE, allowed=["emulated/x", listed], confirmed=True))
    else:
        assert "--allow-target" in refusal(lambda run: authorised(run, REMOTE, allowed=[listed], confirmed=True))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("target", [REMOTE, "mine"])
@pytest.mark.parametrize("listed", ["lab/guarded", "mine", "lab/*"])
def test_the_list_may_be_in_groundswell_toml(folder: Path, target: str, listed: str) -> None:
    (folder / "groundswell.toml").write_text(f'{TOML}[mutation]\ntargets = ["{listed}"]\n')
    assert CONFIRM in refusal(lambda run: authorised(run, target))
    within(lambda run: authorised(run, target, confirmed=True))


@pytest.mark.usefixtures("folder")
def test_a_list_that_is_one_text_is_no_list() -> None:
    assert "allowed_targets: must be a list" in refusal(lambda run: authorised(run, REMOTE, allowed=REMOTE))


@pytest.mark.usefixtures("folder")
def test_a_variable_or_a_flag_that_leads_elsewhere_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    target = "ollama/llama3.2:1b"
    flags = ["ollama.base_url=http://gpu1:11434"]
    assert "does not run on this machine" in refusal(lambda run: authorised(run, target), account=flags)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1,gpu1")
    assert "does not run on this machine" in refusal(lambda run: authorised(run, target))


def test_a_script_may_stand_for_anybody(folder: Path) -> None:
    within(lambda run: authorised(run, "openai/gpt-4o"), script=lambda request: "No.")


class Elsewhere:
    """A router of a user's own that says nothing of where it leads."""

    def route(self, request: Request, via: Via = "live") -> Route:
        return Route("away", Scripted(lambda request: Reply("No.")))

    def transport(self, name: str, account: str) -> None:
        return None

    def figures(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        return


@pytest.mark.usefixtures("folder")
def test_where_nobody_says_where_it_leads_it_leads_elsewhere() -> None:
    assert "does not run on this machine" in refusal(lambda run: authorised(run, "lab/x"), router=Elsewhere())
    within(lambda run: authorised(run, "emulated/guard:0.5"), router=Elsewhere())


STRONG = Guard("strong", "Keep {secret}.", 0.9)
WEAK = Guard("weak", "Keep {secret}.", 0.1)
BY_STRENGTH = Task(
    target="lab/guard-{strength}", guards=(WEAK, STRONG), allowed_targets=("lab/guard-0.1",), confirmed=True
)


@pytest.mark.usefixtures("folder")
def test_every_model_that_a_target_stands_for_is_looked_at() -> None:
    assert "'lab/guard-0.9'" in refusal(lambda run: authorise(run, BY_STRENGTH))
    weak = Task(target=BY_STRENGTH.target, guards=(WEAK,), allowed_targets=("lab/guard-0.1",), confirmed=True)
    within(lambda run: authorise(run, weak))
    assert "'lab/guard-0.9'" in refusal(lambda run: authorise(run, weak, [STRONG]))


@pytest.mark.usefixtures("folder")
def test_what_was_confirmed_under_a_name_is_not_confirmed_for_what_the_name_came_to_mean() -> None:
    def resumed(was: str) -> Callable[[Run], Any]:
        def work(run: Run) -> None:
            run.record.sources["model mine"] = was
            authorised(run, "mine", allowed=["mine", "lab/*"], confirmed=True)

        return work

    assert "was confirmed as lab/other, but now means lab/guarded" in refusal(resumed("lab/other"))
    within(resumed(REMOTE))


NAMED = Task(target=REMOTE, allowed_targets=(REMOTE,))
WAYS: dict[str, Callable[[Run], Any]] = {
    "a world": lambda run: World(run, NAMED, {}),
    "a world that is opened": lambda run: opened_world(run, NAMED),
    "a training": lambda run: train(run, Training(task=NAMED)),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_there_is_no_way_around_it(way: Callable[[Run], Any]) -> None:
    assert CONFIRM in refusal(way)


@pytest.mark.usefixtures("folder")
def test_a_training_looks_at_the_guards_of_its_evaluation_before_it_begins() -> None:
    weak = Task(target=BY_STRENGTH.target, guards=(WEAK,), allowed_targets=("lab/guard-0.1",), confirmed=True)
    settings = Training(task=weak, evaluation=Evaluation(guards=(STRONG,)))
    assert "'lab/guard-0.9'" in refusal(lambda run: train(run, settings))


@pytest.mark.usefixtures("folder")
def test_nor_by_the_batch_functions() -> None:
    with pytest.raises(SettingsError, match="does not run on this machine"):
        batch_query_target_model(["hello"], model=REMOTE)
    with pytest.raises(SettingsError, match="--confirm-target"):
        batch_query_target_model(["hello"], model="mine", allowed_targets=[REMOTE])
    with Session(script=lambda request: "Hi.") as session:
        assert batch_query_target_model(["hello"], model=REMOTE, session=session) == ["Hi."]
