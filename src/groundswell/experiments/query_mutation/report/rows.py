"""One row per episode and one per update, the same in JSON, CSV and Parquet; and what their columns mean."""

from __future__ import annotations

from collections.abc import Iterator

from groundswell.experiments.query_mutation.report.told import Told
from groundswell.experiments.reporting.markup import Section, joined, paragraph, table, tag
from groundswell.store.tables import Columns, Row

EPISODES: Columns = {
    "run": "text",
    "key": "text",
    "method": "text",
    "learner": "int",
    "episode": "int",
    "guard": "text",
    "held_out": "bool",
    "secret": "text",
    "goal": "text",
    "status": "text",
    "end": "text",
    "leaked": "bool",
    "best": "float",
    "queries": "int",
    "total": "float",
    "fault": "text",
    "mutators": "list",
    "steps": "json",
}
OF_EPISODES = {
    "run": "the id of the run",
    "key": "what the keys of its trials begin with: groundswell runs show RUN --trial KEY/0 shows the first one whole",
    "method": "who chose the mutators",
    "learner": "which learner of that method, from 0; of several runs, numbered on",
    "episode": "the same number is the same guard, secret and first query, whoever met it",
    "guard": "the guard round the secret",
    "held_out": "whether no training met this guard",
    "secret": "the planted word",
    "goal": "the query that the episode began with",
    "status": "usable, or missing: a fault broke it off. Take the usable ones to get the figures of this page",
    "end": "leak, steps (it reached the last one) or fault",
    "leaked": "whether the secret came out; empty where that is missing",
    "best": "the largest share of it that a response gave away",
    "queries": "how many steps worked",
    "total": "the rewards of the episode; empty where it is missing",
    "fault": "what failed, and why",
    "mutators": "what was chosen, in order",
    "steps": "every step: mutator, query, response, score, refused, gained, drift, reward, usable, failed",
}
UPDATES: Columns = {
    "learner": "text",
    "number": "int",
    "steps": "int",
    "usable": "int",
    "masked": "int",
    "reward": "float",
    "episodes": "int",
    "leaks": "int",
    "policy_loss": "float",
    "value_loss": "float",
    "entropy": "float",
    "clipped": "float",
}
OF_UPDATES = {
    "learner": "what learns",
    "number": "which of its kind, from 0; of several runs, numbered on",
    "steps": "its steps up to this update",
    "usable": "steps of the update that worked",
    "masked": "steps that failed, and were not learnt from",
    "reward": "of a usable step, on average",
    "episodes": "that ended within the update, other than by a fault",
    "leaks": "of these, with a leak",
    "policy_loss": "as PPO saw it; empty for others",
    "value_loss": "the same",
    "entropy": "of its choices",
    "clipped": "the share of steps whose probability had moved as far as it may",
}


def episodes(told: Told) -> Iterator[Row]:
    """Every episode of the evaluation."""
    met = {guard.name for guard in told.settings.task.guards}
    for each in told.attempts:
        missing = each.end == "fault"
        failed = {part: why for made in each.steps for part, why in made.failed.items()}
        yield {
            "run": each.run,
            "key": each.key,
            "method": each.method,
            "learner": each.learner,
            "episode": each.number,
            "guard": each.guard,
            "held_out": each.guard not in met,
            "secret": each.secret,
            "goal": each.goal,
            "status": "missing" if missing else "usable",
            "end": each.end,
            "leaked": None if missing else each.end == "leak",
            "best": each.best,
            "queries": each.ended.steps,
            "total": None if missing else each.total,
            "fault": "; ".join(f"{part}: {why}" for part, why in failed.items()) or None,
            "mutators": [made.mutator for made in each.steps],
            "steps": [made._asdict() for made in each.steps],
        }


def updates(told: Told) -> Iterator[Row]:
    """Every update of every learner."""
    for curve in told.analysis.curves:
        for each in curve.points:
            losses = each.losses
            yield {
                "learner": curve.learner,
                "number": curve.number,
                **{name: getattr(each, name) for name in ("steps", "usable", "masked", "reward", "episodes", "leaks")},
                "policy_loss": losses and losses.policy,
                "value_loss": losses and losses.value,
                "entropy": losses and losses.entropy,
                "clipped": losses and losses.clipped,
            }


def files() -> Section:
    """The files beside the page, and what their columns mean."""
    about = (
        "analysis.json has all figures of this page. episodes.json, .csv and .parquet have one row per episode of the "
        "evaluation and learner, with every query and response; updates.json, .csv and .parquet one per update. "
        "figures/ has the drawings for papers."
    )
    parts = [paragraph(about)]
    for name, columns, meaning in (("episodes", EPISODES, OF_EPISODES), ("updates", UPDATES, OF_UPDATES)):
        rows = [(column, kind, meaning[column]) for column, kind in columns.items()]
        caption = f"Columns of {name}. A cell is empty where there is nothing to say."
        shown = table(caption, ("column", "type", "meaning"), rows)
        parts.append(tag("details", tag("summary", f"{name}: {len(columns)} columns and their meaning"), shown))
    return Section("files", "The files beside this page", joined(parts))
