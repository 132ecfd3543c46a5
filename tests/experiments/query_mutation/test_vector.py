"""Environments that step at once: as Gymnasium's own vector environments do it, and as single ones would go."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from groundswell.errors import SettingsError
from groundswell.experiments.query_mutation.documented import BatchedQueryMutationEnv, QueryMutationEnv
from groundswell.experiments.query_mutation.sessions import Session
from groundswell.experiments.query_mutation.task import Task
from groundswell.program.request import Request
from tests.experiments.query_mutation.models import Answer, Emulated, is_target, some_queries_fail

SHORT = Task(max_steps=3)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as opened:
        yield opened


def played_both(one: Any, other: Any, steps: int) -> None:
    """Give two vector environments the same seeds and actions, and compare all that they say."""
    assert data_equivalence(one.reset(seed=3), other.reset(seed=3), exact=True)
    one.action_space.seed(4)
    for _ in range(steps):
        actions = one.action_space.sample()
        found = one.step(actions)
        assert data_equivalence(found, other.step(actions), exact=True)
        ended = found[2] | found[3]
        if one.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            begun = one.reset(options={"reset_mask": ended})
            assert data_equivalence(begun, other.reset(options={"reset_mask": ended}), exact=True)


@pytest.mark.sampled
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_it_does_what_gymnasium_does_with_single_environments(mode: AutoresetMode) -> None:
    with Session(script=Emulated(some_queries_fail)) as one, Session(script=Emulated(some_queries_fail)) as other:
        vector = BatchedQueryMutationEnv(num_envs=3, task=SHORT, session=one, autoreset_mode=mode)
        single = SyncVectorEnv([lambda: QueryMutationEnv(SHORT, session=other)] * 3, autoreset_mode=mode)
        played_both(vector, single, 12)


def test_trajectories_are_those_of_single_environments(session: Session) -> None:
    seeds, actions = [11, 7, 11, 2**40], [[at % 7, 3, 5, (at * 2) % 7] for at in range(8)]
    vector = BatchedQueryMutationEnv(num_envs=4, task=SHORT, session=session, autoreset_mode="SameStep")
    begun, _ = vector.batch_reset(seed=seeds)
    rounds = [vector.batch_step(each) for each in actions]
    ends = 0
    with Session() as elsewhere:
        for at, seed in enumerate(seeds):
            env = QueryMutationEnv(SHORT, session=elsewhere)
            assert np.array_equal(env.reset(seed=seed)[0], begun[at])
            for each, (seen, rewards, terminated, truncated, infos) in zip(actions, rounds, strict=True):
                alone = env.step(each[at])
                assert alone[1:4] == (rewards[at], terminated[at], truncated[at])
                if alone[2] or alone[3]:
                    ends += 1
                    assert np.array_equal(infos[at]["final_obs"], alone[0])
                    assert infos[at]["final_info"] == alone[4]
                    assert np.array_equal(env.reset()[0], seen[at])
                else:
                    assert np.array_equal(alone[0], seen[at])
                    assert infos[at] == alone[4]
    assert ends > 6


def test_with_nothing_given() -> None:
    vector = BatchedQueryMutationEnv()
    try:
        seen, infos = vector.reset(seed=1)
        assert (vector.num_envs, seen.shape, seen.dtype.name) == (16, (16, 89), "float32")
        assert seen in vector.observation_space
        assert len(set(infos["goal"])) > 1
        assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        found = vector.step(vector.action_space.sample())
        assert [each.shape for each in found[:4]] == [(16, 89), (16,), (16,), (16,)]
        assert [each.dtype.name for each in found[1:4]] == ["float64", "bool", "bool"]
    finally:
        vector.close()


def test_gymnasium_makes_it() -> None:
    made = gymnasium.make_vec(
        "groundswell.experiments.query_mutation.documented:QueryMutation-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        task=SHORT,
    )
    assert isinstance(made, BatchedQueryMutationEnv)
    assert (made.num_envs, made.envs[0].task) == (2, SHORT)
    made.close()


def test_wrappers_of_gymnasium_go_round_it(session: Session) -> None:
    counted = RecordEpisodeStatistics(BatchedQueryMutationEnv(num_envs=2, task=Task(max_steps=2), session=session))
    counted.reset(seed=3)
    for _ in range(6):
        counted.step(np.zeros(2, np.int64))
    assert counted.episode_count >= 4
    assert set(counted.length_queue) <= {1, 2}


def test_queries_are_encoded_in_one_call() -> None:
    models = Emulated()
    with Session(script=models) as session:
        vector = BatchedQueryMutationEnv(num_envs=5, session=session)
        vector.reset(seed=1)
        vector.reset()
    assert [request.texts for request in models.embeds] == [tuple(Task().queries)]


def test_all_step_at_once() -> None:
    models, everybody = Emulated(), asyncio.Barrier(6)

    async def together(request: Request, sample: int) -> Answer:
        if is_target(request):
            async with asyncio.timeout(10):
                await everybody.wait()
        return models(request, sample)

    with Session(script=together) as session:
        vector = BatchedQueryMutationEnv(num_envs=6, session=session)
        vector.reset(seed=1)
        infos = vector.batch_step([0] * 6)[4]
    assert not any(info["masked"] for info in infos)


def test_nobody_waits_for_the_target_of_another() -> None:
    """The target of one answers only when the other's response is being judged."""
    models, judged = Emulated(), asyncio.Event()

    async def late(request: Request, sample: int) -> Answer:
        if request.model == "emulated/judge":
            judged.set()
        elif is_target(request) and "marzipan" in str(request):
            async with asyncio.timeout(10):
                await judged.wait()
        return models(request, sample)

    with Session(script=late) as session:
        envs = [QueryMutationEnv(Task(reward="judge", secrets=(secret,))) for secret in ("marzipan", "nutmeg")]
        vector = BatchedQueryMutationEnv(envs, session=session)
        vector.reset(seed=1)
        infos = vector.batch_step([0, 0])[4]
    assert [info["failed"] for info in infos] == [{}, {}]


def test_as_many_workers_as_were_asked_for() -> None:
    going, most = 0, 0

    async def counted(request: Request, sample: int) -> Answer:
        nonlocal going, most
        going += 1
        most = max(most, going)
        for _ in range(5):
            await asyncio.sleep(0)
        going -= 1
        return Emulated()(request, sample)

    with Session(script=counted, max_workers=3) as session:
        vector = BatchedQueryMutationEnv(num_envs=8, session=session)
        vector.reset(seed=1)
        vector.step([1] * 8)
    assert most == 3


def test_failed_steps_are_masked_and_the_others_are_not() -> None:
    with Session(script=Emulated(some_queries_fail)) as session:
        vector = BatchedQueryMutationEnv(num_envs=8, session=session)
        vector.reset(seed=1)
        _, rewards, terminated, truncated, infos = vector.step([0] * 8)
    masked = infos["masked"]
    assert 0 < masked.sum() < 8
    assert truncated.tolist() == masked.tolist()
    assert not (terminated & masked).any()
    assert not rewards[masked].any()
    assert rewards[~masked].all()
    assert all("down for repair" in why for why in infos["failed"]["target"][masked])


def test_given_environments_share_the_session_that_one_of_them_has(session: Session) -> None:
    envs = [QueryMutationEnv(), QueryMutationEnv(session=session), QueryMutationEnv(Task(secrets=("nutmeg",)))]
    envs[0].reset(seed=1)
    own = envs[0].session
    vector = BatchedQueryMutationEnv(envs)
    assert own.closed
    assert vector.session is session
    assert {env.session for env in envs} == {session}
    vector.reset(seed=1)
    assert vector.step([0, 0, 0])[4]["secret"][2] == "nutmeg"
    vector.close()
    assert not session.closed


def test_given_environments_without_a_session_get_one() -> None:
    envs = [QueryMutationEnv(), QueryMutationEnv()]
    vector = BatchedQueryMutationEnv(envs, max_workers=8)
    assert envs[0].session is envs[1].session is vector.session
    vector.close()
    assert vector.session.closed
    with pytest.raises(ClosedEnvironmentError):
        envs[0].reset()


def two() -> list[QueryMutationEnv]:
    return [QueryMutationEnv(), QueryMutationEnv()]


TWICE = QueryMutationEnv()
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "none": ({"envs": []}, "envs", "must not be empty"),
    "too-few": ({"num_envs": 0}, "num_envs", "num_envs 0: must be at least 1"),
    "number-beside": ({"envs": two(), "num_envs": 2}, "num_envs", "already have it"),
    "task-beside": ({"envs": two(), "task": SHORT}, "task", "already have it"),
    "twice": ({"envs": [TWICE, TWICE]}, "envs", "the same environment twice"),
    "wrapped": ({"envs": [gymnasium.Wrapper(QueryMutationEnv())]}, "envs", "pass `env.unwrapped`"),
    "mutators": ({"envs": [*two(), QueryMutationEnv(Task(mutators=("noop",)))]}, "envs", "same mutators"),
    "renamed": (
        {"envs": [QueryMutationEnv(Task(mutators=(name,))) for name in ("noop", "shorten")]},
        "envs",
        "same mutators",
    ),
    "widths": ({"envs": [*two(), QueryMutationEnv(Task(dimensions=8))]}, "envs", "same mutators"),
    "rendering": ({"envs": [*two(), QueryMutationEnv(render_mode="ansi")]}, "envs", "same render_mode"),
    "mode": ({"num_envs": 2, "autoreset_mode": "later"}, "autoreset_mode", "'later': must be one of NextStep"),
}


@pytest.mark.parametrize(("how", "field", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_made(how: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        BatchedQueryMutationEnv(**how)
    assert caught.value.field == field


def test_sessions_that_do_not_go_together(session: Session) -> None:
    with Session() as other:
        with pytest.raises(SettingsError, match=r"session: .* different sessions"):
            BatchedQueryMutationEnv([QueryMutationEnv(session=session), QueryMutationEnv(session=other)])
        with pytest.raises(SettingsError, match=r"max_workers: .* Session"):
            BatchedQueryMutationEnv(num_envs=2, session=session, max_workers=8)


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"seed": [1, 2]}, "seed"),
        ({"options": {"reset_mask": np.zeros(3, bool)}}, "reset_mask"),
        ({"options": {"reset_mask": np.ones(2, bool)}}, "reset_mask"),
        ({"options": {"reset_mask": [1, 0, 1]}}, "reset_mask"),
        ({"options": {"guard": "iron"}}, "guard"),
    ],
    ids=["seeds", "nobody", "too-few", "no-bools", "guard"],
)
def test_resets_that_are_wrong(session: Session, how: dict[str, Any], field: str) -> None:
    with pytest.raises(SettingsError) as caught:
        BatchedQueryMutationEnv(num_envs=3, session=session).reset(**how)
    assert caught.value.field == field


def test_options_are_for_all_and_stay_as_they_were(session: Session) -> None:
    vector = BatchedQueryMutationEnv(num_envs=3, session=session)
    vector.reset(seed=1)
    options = {"guard": "hasty", "reset_mask": np.array([True, False, True])}
    _, infos = vector.batch_reset(seed=5, options=options)
    assert [info.get("guard") for info in infos] == ["hasty", None, "hasty"]
    assert set(options) == {"guard", "reset_mask"}


def test_steps_that_are_wrong(session: Session) -> None:
    vector = BatchedQueryMutationEnv(num_envs=2, task=Task(max_steps=1), session=session, autoreset_mode="Disabled")
    with pytest.raises(ResetNeeded, match="call reset"):
        vector.step([0, 0])
    vector.reset(seed=1)
    with pytest.raises(InvalidAction, match="actions 1: must be a list of 2"):
        vector.step(1)  # type: ignore[arg-type]
    with pytest.raises(InvalidAction, match="actions: got 3 for 2 environments"):
        vector.step([0, 0, 0])
    with pytest.raises(InvalidAction, match="action 22"):
        vector.step([0, 22])
    assert vector.step([0, 0])[3].any()
    with pytest.raises(ResetNeeded, match="over"):
        vector.step([0, 0])


def test_what_is_returned_stays_as_it_was(session: Session) -> None:
    vector = BatchedQueryMutationEnv(num_envs=2, task=SHORT, session=session)
    kept = [vector.reset(seed=1)[0]]
    copies = [kept[0].copy()]
    for _ in range(4):
        kept.append(vector.step([1, 2])[0])
        copies.append(kept[-1].copy())
    vector.batch_reset(seed=9)
    assert all(np.array_equal(one, other) for one, other in zip(kept, copies, strict=True))


def test_what_each_renders(session: Session) -> None:
    vector = BatchedQueryMutationEnv(num_envs=2, session=session, render_mode="ansi")
    vector.reset(seed=1)
    assert vector.render_mode == "ansi"
    assert vector.render() == tuple(env.render() for env in vector.envs)


def test_closing() -> None:
    vector = BatchedQueryMutationEnv(num_envs=2)
    vector.reset(seed=1)
    vector.close()
    vector.close()
    assert vector.session.closed
    for use in (vector.reset, vector.batch_reset, lambda: vector.step([0, 0])):
        with pytest.raises(ClosedEnvironmentError, match="create a new one"):
            use()


def test_a_session_goes_on_where_it_was(tmp_path: Any) -> None:
    models = Emulated()

    def attempt() -> list[Any]:
        with Session(store=tmp_path / "runs.db", name="mutants", script=models) as session:
            vector = BatchedQueryMutationEnv(num_envs=3, task=SHORT, session=session)
            vector.reset(seed=1)
            return [[*map(np.ndarray.tolist, vector.step([1, 2, 3])[:4])] for _ in range(6)]

    first, asked = attempt(), len(models.requests)
    assert attempt() == first
    assert len(models.requests) == asked
    assert any(chain.from_iterable(each[2] for each in first)) or any(chain.from_iterable(each[3] for each in first))


@pytest.mark.parametrize("actions", [[True, False], np.array([True, False]), [0, np.True_]], ids=str)
def test_bools_are_no_actions(session: Session, actions: Any) -> None:
    vector = BatchedQueryMutationEnv(num_envs=2, task=SHORT, session=session)
    vector.reset(seed=1)
    with pytest.raises(InvalidAction, match="must be an integer"):
        vector.step(actions)
    assert vector.get_attr("_episode") == tuple(env._episode for env in vector.envs)
    assert all(env._episode.step == 0 for env in vector.envs if env._episode is not None)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_copy_continues_all_episodes(mode: AutoresetMode) -> None:
    vector = BatchedQueryMutationEnv(num_envs=3, task=SHORT, max_workers=4, autoreset_mode=mode)
    vector.reset(seed=3)
    vector.step([2, 3, 5])
    other = pickle.loads(pickle.dumps(vector))
    assert other._session is None
    again = pickle.loads(pickle.dumps(other))
    for actions in ([1, 2, 3], [5, 5, 5]):
        over = vector._over.copy()
        if mode is AutoresetMode.DISABLED and over.any():
            for each in (vector, other, again):
                each.reset(options={"reset_mask": over})
        found = vector.step(actions)
        assert data_equivalence(other.step(actions), found, exact=True)
        assert data_equivalence(again.step(actions), found, exact=True)
    assert len({id(env.session) for env in other.envs} | {id(other.session)}) == 1
    assert other.session is not vector.session
    assert data_equivalence(other.reset(seed=3), vector.reset(seed=3), exact=True)
    for each in (vector, other, again):
        each.close()
        assert each.session.closed


def test_an_environment_of_a_copy_uses_the_session_of_the_copy() -> None:
    vector = BatchedQueryMutationEnv(num_envs=2, task=SHORT)
    vector.reset(seed=3)
    other = pickle.loads(pickle.dumps(vector))
    assert other.envs[0].step(1)[1:] == vector.envs[0].step(1)[1:]
    assert other.envs[0].session is other.session
    vector.close()
    other.close()


def test_a_given_session_is_not_copied(session: Session) -> None:
    with pytest.raises(SettingsError, match="a given session cannot be copied"):
        pickle.dumps(BatchedQueryMutationEnv(num_envs=2, task=SHORT, session=session))


@pytest.mark.slow
def test_processes_of_gymnasium_find_what_one_process_does() -> None:
    makes = [partial(QueryMutationEnv, SHORT)] * 2
    apart, here = AsyncVectorEnv(makes, context="spawn"), SyncVectorEnv(makes)
    try:
        played_both(apart, here, 5)
    finally:
        apart.close()
        here.close()


def test_attributes_and_methods_are_those_of_each_environment(session: Session) -> None:
    vector = BatchedQueryMutationEnv(num_envs=3, task=SHORT, session=session, render_mode="ansi")
    single = SyncVectorEnv([lambda: QueryMutationEnv(SHORT, session=session, render_mode="ansi")] * 3)
    for each in (vector, single):
        each.reset(seed=3)
        each.set_attr("label", [1, 2, 3])
        each.set_attr("other", "same")
    assert vector.get_attr("label") == single.get_attr("label") == (1, 2, 3)
    assert vector.get_attr("other") == single.get_attr("other") == ("same",) * 3
    assert vector.get_attr("task") == single.get_attr("task") == (SHORT,) * 3
    assert vector.call("render") == single.call("render") == vector.render()
    assert data_equivalence(vector.call("reset", seed=4), single.call("reset", seed=4), exact=True)
    for each in (vector, single):
        with pytest.raises(AttributeError):
            each.get_attr("nothing")
        with pytest.raises((SettingsError, ValueError), match=r"[Vv]alues"):
            each.set_attr("label", (1, 2))
