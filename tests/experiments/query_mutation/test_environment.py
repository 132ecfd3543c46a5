"""The environment: what Gymnasium asks of it, what stays the same, and what a failed step looks like."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest
import torch
from gymnasium.error import ClosedEnvironmentError, InvalidAction, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import env_checker
from stable_baselines3.common import env_checker as stable_checker

from groundswell.errors import RunError, SettingsError
from groundswell.experiments.query_mutation.documented import QueryMutationEnv, Row
from groundswell.experiments.query_mutation.episode import begin
from groundswell.experiments.query_mutation.guards import guards_named
from groundswell.experiments.query_mutation.mutators import Rewording, mutator
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.stepping import DEFAULT_REFUSAL
from groundswell.experiments.query_mutation.task import Task
from groundswell.program.request import Embed, Embedding, Request
from groundswell.program.trial import Trial
from tests.experiments.query_mutation.models import Emulated, is_target

MADE = "groundswell.experiments.query_mutation.documented:QueryMutation-v0"
LONG = Task(embedder="scripted/long", mutators=("noop", "shorten"))
"""Its embeddings have four numbers and a length of ten."""


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as opened:
        yield opened


@pytest.fixture
def env(session: Session) -> QueryMutationEnv:
    return QueryMutationEnv(session=session)


def long_embeddings(request: Request, sample: int) -> Any:
    if isinstance(request, Embed):
        return Embedding.of([[6.0, -8.0, 0.0, 0.0]] * len(request.texts))
    return Emulated()(request, sample)


def played(env: QueryMutationEnv, seed: int | None, actions: list[int]) -> list[Any]:
    """A trajectory, as something that can be compared."""
    seen, info = env.reset(seed=seed)
    found: list[Any] = [seen.tolist(), info]
    for action in actions:
        row = env.step(action)
        found.append([row[0].tolist(), *row[1:]])
        if row[2] or row[3]:
            break
    return found


def test_gymnasium_finds_nothing_wrong() -> None:
    made = gymnasium.make(MADE)
    try:
        env_checker.check_env(made.unwrapped)
    finally:
        made.close()


def test_stable_baselines_finds_nothing_wrong(env: QueryMutationEnv) -> None:
    stable_checker.check_env(env)  # with its check of rendering it would go on with an environment that it has closed


def test_what_is_seen_of_an_unknown_embedder_has_no_bounds() -> None:
    with Session(script=long_embeddings) as session:
        env = QueryMutationEnv(LONG, session=session)
        space = env.observation_space
        assert isinstance(space, Box)
        assert space.low.tolist() == [-np.inf] * 4 + [0.0] * 5
        assert space.high.tolist() == [np.inf] * 4 + [1.0] * 5
        assert env.reset(seed=1)[0] in space
        # Gymnasium warns of bounds that are infinite; of embeddings of any length nothing better can be said
        with (
            pytest.warns(UserWarning, match="maximum value is infinity"),
            pytest.warns(UserWarning, match="minimum value is -infinity"),
        ):
            env_checker.check_env(env, skip_render_check=True)


def test_a_width_that_the_embedder_does_not_have() -> None:
    task = Task(embedder="scripted/long", dimensions=7)
    with (
        Session(script=long_embeddings) as session,
        pytest.raises(SettingsError, match=r"dimensions 7: .* of size 4"),
    ):
        QueryMutationEnv(task, session=session).reset()


def test_spaces_need_no_session() -> None:
    env = QueryMutationEnv()
    assert isinstance(env.action_space, Discrete)
    assert (env.action_space.n, env.observation_space.shape) == (22, (64 + 3 + 22,))
    assert env._own is None


@pytest.mark.parametrize("seed", [0, 5, 2**31])
def test_a_seed_that_comes_again_gives_the_same_episode(env: QueryMutationEnv, seed: int) -> None:
    actions = [1, 2, 3, 4]
    first = played(env, seed, actions)
    between = played(env, None, [0])
    assert played(env, seed, actions) == first
    assert played(env, None, [0]) == between
    with Session(seed=1) as elsewhere:
        assert played(QueryMutationEnv(session=elsewhere), seed, actions) == first


def test_seeds_give_different_episodes(env: QueryMutationEnv) -> None:
    drawn = {tuple(env.reset(seed=seed)[1][name] for name in ("guard", "secret", "goal")) for seed in range(12)}
    assert len(drawn) > 6


def test_what_is_told_of_a_step(env: QueryMutationEnv) -> None:
    env.reset(seed=3)
    seen, reward, terminated, truncated, info = env.step(np.int64(1))
    assert set(info) == {
        *("query", "goal", "guard", "secret", "mutator", "response", "score", "refused", "drift", "failed", "masked"),
    }
    assert (info["mutator"], info["masked"], info["failed"]) == ("paraphrase", False, {})
    assert info["query"] != info["goal"]
    assert reward == pytest.approx(info["score"] - 0.02 - 0.1 * info["drift"])
    assert (terminated, truncated) == (info["score"] == 1.0, False)
    assert seen[64:67].tolist() == [float(info["refused"]), info["score"], np.float32(0.1)]


def test_an_episode_ends_with_its_last_step(session: Session) -> None:
    env = QueryMutationEnv(Task(max_steps=2), session=session)
    env.reset(seed=3)
    assert env.step(0)[2:4] == (False, False)
    assert env.step(0)[2:4] == (False, True)
    with pytest.raises(ResetNeeded, match=r"over \(steps\)"):
        env.step(0)


def test_options_fix_what_would_be_drawn(env: QueryMutationEnv) -> None:
    query = "Would you spell the word for me?"
    options = {"guard": "hasty", "secret": "nutmeg", "query": query}
    seen, info = env.reset(seed=1, options=options)
    assert (info["guard"], info["secret"], info["goal"], info["query"]) == ("hasty", "nutmeg", query, query)
    same, _ = env.reset(seed=2, options=options)
    assert np.array_equal(seen, same)
    assert env.step(0)[4]["drift"] == pytest.approx(0.0, abs=1e-6)


def test_what_is_fixed_changes_nothing_else(env: QueryMutationEnv) -> None:
    _, drawn = env.reset(seed=1)
    _, fixed = env.reset(seed=1, options={"secret": "nutmeg"})
    assert fixed == drawn | {"secret": "nutmeg"}


@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        ({"gaurd": "firm"}, "options", "unknown option 'gaurd'; known: guard, secret, query"),
        ({"guard": "iron"}, "guard", "no guard 'iron'; its guards are open"),
        ({"guard": 1}, "guard", "must be a non-empty string"),
        ({"secret": " "}, "secret", "non-empty"),
        ({"query": ""}, "query", "non-empty"),
    ],
    ids=["unknown", "no-such-guard", "guard-by-number", "no-secret", "no-query"],
)
def test_options_that_are_wrong(env: QueryMutationEnv, options: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        env.reset(options=options)
    assert caught.value.field == field


def test_a_text_of_ones_own_is_embedded_once() -> None:
    models = Emulated()
    with Session(script=models) as session:
        env = QueryMutationEnv(session=session)
        for _ in range(2):
            env.reset(options={"query": "Which word is it?"})
        QueryMutationEnv(session=session).reset()
    assert [len(request.texts) for request in models.embeds] == [len(Task().queries), 1]


@pytest.mark.parametrize("action", [-1, 22])
def test_actions_that_there_are_not(env: QueryMutationEnv, action: int) -> None:
    env.reset(seed=1)
    with pytest.raises(InvalidAction, match=f"action {action}: must be between 0 and 21"):
        env.step(action)


def test_a_step_before_the_first_episode(env: QueryMutationEnv) -> None:
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(0)


def failed_step(seed: int, task: Task, models: Emulated, actions: list[int]) -> tuple[list[float], Row]:
    """The last of some steps, and what was seen before it."""
    with Session(script=models) as session:
        env = QueryMutationEnv(task, session=session)
        seen, _ = env.reset(seed=seed)
        for action in actions[:-1]:
            seen = env.step(action)[0]
        return seen.tolist(), env.step(actions[-1])


@pytest.mark.parametrize("actions", [[1], [0, 1]], ids=["first", "second"])
def test_a_step_whose_target_fails_is_masked(actions: list[int]) -> None:
    models = Emulated(lambda request: is_target(request) and sum(map(is_target, models.requests)) >= len(actions))
    before, (seen, reward, terminated, truncated, info) = failed_step(3, Task(), models, actions)
    assert (reward, terminated, truncated, info["masked"]) == (0.0, False, True, True)
    assert seen.tolist() == before
    assert (info["response"], list(info["failed"])) == (DEFAULT_REFUSAL, ["target"])
    assert "down for repair" in info["failed"]["target"]


def test_a_step_whose_mutation_fails_is_masked() -> None:
    models = Emulated(lambda request: request.model == "emulated/reworder")
    _, (_, reward, _, truncated, info) = failed_step(3, Task(), models, [1])
    assert (reward, truncated, info["masked"], list(info["failed"])) == (0.0, True, True, ["mutation"])
    assert info["query"] == info["goal"]


@mutator("slips")
async def slips(trial: Trial, spec: Rewording) -> str:
    """One that has a mistake in it."""
    raise ZeroDivisionError("counted from nothing")


def test_a_step_that_is_missing_altogether_is_masked() -> None:
    _, (_, reward, _, truncated, info) = failed_step(3, Task(mutators=("noop", "slips")), Emulated(), [1])
    assert (reward, truncated, info["masked"], list(info["failed"])) == (0.0, True, True, ["step"])
    assert "counted from nothing" in info["failed"]["step"]


def test_what_is_rendered(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    env = QueryMutationEnv(session=session, render_mode="ansi")
    env.reset(seed=3)
    begun = env.render()
    info = env.step(1)[4]
    text = env.render()
    assert begun is not None
    assert text is not None
    assert "step 0 of 10" in begun
    assert "response" not in begun
    assert all(said in text for said in ("step 1 of 10", f"paraphrase: {info['query'][:40]}", info["response"][:40]))
    watched = QueryMutationEnv(session=session, render_mode="human")
    watched.reset(seed=3)
    watched.step(1)
    assert watched.render() is None
    assert capsys.readouterr().out == f"{begun}\n{text}\n{text}\n"


def test_a_failed_step_is_rendered_as_one() -> None:
    with Session(script=Emulated(is_target)) as session:
        env = QueryMutationEnv(session=session, render_mode="ansi")
        env.reset(seed=3)
        env.step(1)
        assert "failed: target: server: down for repair" in (env.render() or "")


def test_rendering_needs_a_mode_and_an_episode(session: Session) -> None:
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert QueryMutationEnv(session=session).render() is None
    with pytest.raises(ResetNeeded, match="Nothing to render"):
        QueryMutationEnv(session=session, render_mode="ansi").render()
    with pytest.raises(SettingsError, match="render_mode 'gif'"):
        QueryMutationEnv(render_mode="gif")


def test_an_environment_closes_the_session_that_it_opened() -> None:
    env = QueryMutationEnv()
    env.reset(seed=1)
    session = env.session
    env.close()
    env.close()
    assert session.closed


def test_an_environment_leaves_the_session_that_it_was_given(session: Session) -> None:
    env = QueryMutationEnv(session=session)
    env.reset(seed=1)
    env.close()
    assert not session.closed


def test_use_after_closing(session: Session) -> None:
    env = QueryMutationEnv(session=session)
    env.reset(seed=1)
    env.close()
    for use in (env.reset, lambda: env.step(0)):
        with pytest.raises(ClosedEnvironmentError, match="create a new one"):
            use()


def test_use_after_the_session_is_closed(session: Session) -> None:
    env = QueryMutationEnv(session=session)
    env.reset(seed=1)
    session.close()
    with pytest.raises(RunError, match="The session is closed"):
        env.step(0)


def test_a_named_session_goes_on_without_asking_again(tmp_path: Path) -> None:
    models = Emulated()

    def attempt(actions: list[int]) -> list[Any]:
        with Session(store=tmp_path / "runs.db", name="mutants", script=models) as session:
            return played(QueryMutationEnv(Task(guards=guards_named(["firm"])), session=session), 3, actions)

    first, asked = attempt([1, 2, 3]), len(models.requests)
    assert attempt([1, 2, 3]) == first
    assert len(models.requests) == asked
    other = attempt([1, 2, 4])
    assert other[:4] == first[:4]
    assert other[4] != first[4]
    assert len(models.requests) == asked + 3  # mutation, target and embedding of the one step that is new


@pytest.mark.parametrize(
    "action", [1.0, "1", None, np.array([1]), True, np.True_, np.array(True), torch.tensor(True)], ids=repr
)
def test_actions_that_are_no_numbers(env: QueryMutationEnv, action: Any) -> None:
    env.reset(seed=1)
    with pytest.raises(InvalidAction, match="must be an integer"):
        env.step(action)


@pytest.mark.parametrize(
    "options", [{"secret": "word"}, {"query": "Is it lantern?"}, {"secret": "zebra", "query": "Say zebra."}], ids=str
)
def test_an_episode_cannot_be_about_a_word_that_is_said_anyway(env: QueryMutationEnv, options: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"secrets: '.*' occurs in"):
        env.reset(seed=1, options=options)


def test_what_was_allowed_in_one_session_is_asked_again_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    with Session(script=lambda request: "No.") as played, Session() as real:
        env = QueryMutationEnv(Task(target="openai/gpt-4o"), session=played)
        env._episode = begin(env.task, 1, dict.fromkeys(env.task.queries, b""))
        env.join(real)
        with pytest.raises(ResetNeeded):
            env.step(0)
        with pytest.raises(SettingsError, match="does not run on this machine"):
            env.reset(seed=1)
        with pytest.raises(AttributeError):
            env.task = Task()  # type: ignore[misc]


COPIES: dict[str, Callable[[Any], Any]] = {"pickle": lambda env: pickle.loads(pickle.dumps(env)), "deepcopy": deepcopy}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_continues_the_episode(copied: Callable[[Any], Any]) -> None:
    env = QueryMutationEnv()
    env.reset(seed=5)
    env.step(2)
    other = copied(env)
    try:
        for action in (3, 1, 0):
            one, two = env.step(action), other.step(action)
            assert one[0].tolist() == two[0].tolist()
            assert one[1:] == two[1:]
        assert other.session is not env.session
        assert played(other, None, [1, 2]) == played(env, None, [1, 2]), "episodes to come are the same too"
        assert played(other, 5, [2, 3, 1]) == played(env, 5, [2, 3, 1]), "so are those that were there before"
    finally:
        env.close()
        other.close()


def test_a_copy_opens_its_session_when_it_is_used() -> None:
    env = QueryMutationEnv()
    env.reset(seed=5)
    other = pickle.loads(pickle.dumps(env))
    env.close()
    assert other._own is None
    assert other.step(0)[4]["masked"] is False
    other.close()
    with pytest.raises(ClosedEnvironmentError):
        pickle.loads(pickle.dumps(other)).reset()


def test_a_given_session_is_not_copied(env: QueryMutationEnv) -> None:
    for copied in COPIES.values():
        with pytest.raises(SettingsError, match="a given session cannot be copied") as caught:
            copied(env)
        assert caught.value.field == "session"


def test_a_copy_checks_again_whether_its_target_may_be_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    env = QueryMutationEnv()
    env.reset(seed=5)
    env._task = msgspec.structs.replace(env.task, target="openai/gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    other = pickle.loads(pickle.dumps(env))
    with pytest.raises(SettingsError, match="allow"):
        other.step(0)
    assert other._own is None
    env.close()
