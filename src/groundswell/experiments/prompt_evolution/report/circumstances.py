"""The sections about the run itself: how it was made, how to make it again, and what to beware of."""

from __future__ import annotations

from groundswell.experiments.prompt_evolution.report import saying
from groundswell.experiments.prompt_evolution.report.told import Told
from groundswell.experiments.reporting import numbers
from groundswell.experiments.reporting.markup import Html, Number, Section, joined, paragraph, table, tag
from groundswell.reporting.words import cost, duration

AGAIN = """\
import groundswell, msgspec
from groundswell.experiments.prompt_evolution.evolving import evolve
from groundswell.experiments.prompt_evolution.settings import Evolution

settings = msgspec.json.decode(open("settings.json").read(), type=Evolution)
async with groundswell.open("runs.db") as engine:
    await engine.drive(evolve, settings, name="again", seed={seed})"""


def beware(told: Told) -> Section:
    """What to know before one believes the figures."""
    return Section("beware", "What to beware of", tag("ul", *(tag("li", each) for each in warnings(told))))


def warnings(told: Told) -> list[str]:
    """What figures of an evolution cannot say."""
    settings, search = told.settings, told.analysis.evolution
    winner, test = search.winner, told.evolved.accuracy
    fall = f"{saying.fitness(winner.train, settings)} in training, {numbers.percent(winner.validation)} on validation, "
    found = [
        f"Fitness in training is too high for whoever is chosen by it: the luckiest of {len(search.members):,} births "
        f"looks the best (the winner's curse). Of the winner here: {fall}{numbers.percent(test)} on the sealed test. "
        "Only the last of these is an estimate of how it will do.",
        "The sealed test was opened once, after every prompt was chosen. Whoever changes prompts after having read "
        "this page needs fresh problems to judge them by.",
        "Intervals are about problems: how the same prompts would do on others of the same kind. They do not cover the "
        "luck of the search: another seed would lead to another prompt, and whether evolution as a method beats random "
        "search takes several runs to say.",
        f"All of this is about {_listed(settings.models)} and problems of one source. Elsewhere a prompt may do worse.",
    ]
    if all(model.startswith("emulated/") for model in settings.models):
        found.append("The models are emulated: they make up their replies by rule, and say nothing about real models.")
    if settings.rules.racing:
        found.append("Races end on little evidence, in order to save asks: who fell behind may have been unlucky.")
    if settings.temperature != 0:
        found.append("Replies were drawn at random: asked again, the same prompt may score otherwise.")
    return found


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def run(told: Told) -> Section:
    """How it was made."""
    parts = [_settings(told), _models(told), _again(told), _operators(told)]
    return Section("run", "How it was made", joined(parts))


def _settings(told: Told) -> Html:
    settings, record, summary = told.settings, told.record, told.summary
    problems = settings.problems
    sizes = [len(each) for each in (problems.train, problems.validation, problems.test)]
    rows = [
        ("run", f"{record.title} ({record.id})" if record.name else record.id),
        ("status", summary.status),
        ("seed", str(record.seed)),
        ("why it ended", told.analysis.evolution.why),
        ("models", _listed(settings.models)),
        ("prompts written by", settings.by),
        ("problems", problems.source or "given"),
        ("sizes", "{:,} for training, {:,} for validation, {:,} in the sealed test".format(*sizes)),
        ("metric", settings.metric),
        ("fitness", _fitness(told)),
        ("seed prompts", numbers.plural(len(settings.seeds), "prompt")),
        ("population", f"{settings.population_size:,}, of whom {settings.elite:,} cannot be displaced"),
        ("births", f"at most {settings.births:,}: {settings.max_generations:,} generations"),
        ("on their way at a time", numbers.plural(settings.genome_batch_size, "genome")),
        ("parents by", _selection(told)),
        ("races", _races(told)),
        ("ends early", _stops(told)),
        ("finalists", f"{settings.finalists:,} of each search"),
        ("compared with", ", ".join(map(saying.name_of, settings.baselines)) or "the seed prompt alone"),
        ("temperature", "the provider's" if settings.temperature is None else f"{settings.temperature:g}"),
        ("reply tokens", f"at most {settings.max_tokens:,}"),
        ("requests", f"{summary.asks.sent:,} sent"),
        ("cost", summary.cost.words),
        ("time", duration(summary.seconds)),
        *told.about,
    ]
    return table("The same seed and settings give the same genomes again, at temperature 0.", ("", ""), rows)


def _fitness(told: Told) -> str:
    parts = told.settings.fitness
    if saying.is_accuracy(told.settings):
        return "accuracy"
    weights = {name: getattr(parts, name) for name in parts.__struct_fields__}
    return ", ".join(f"{name} {weight:g}" for name, weight in weights.items() if weight)


def _selection(told: Told) -> str:
    settings = told.settings
    return f"tournament of {settings.tournament}" if settings.selection == "tournament" else settings.selection


def _races(told: Told) -> str:
    rules = told.settings.rules
    if not rules.racing:
        return "none: every genome met all problems"
    blocks = f"a first block of {rules.block:,} problems, each {rules.growth:g} times the one before"
    return f"{blocks}; doubt {rules.doubt:g}"


def _stops(told: Told) -> str:
    stops = told.settings.stops
    found = {
        "at a fitness of": stops.target,
        "after so many generations without a better one:": stops.plateau,
        "at a spread of": stops.least_spread,
        "after so many asks:": stops.asks,
        "after so many dollars:": stops.usd,
    }
    return "; ".join(f"{what} {value:,g}" for what, value in found.items() if value is not None) or "never"


def _models(told: Told) -> Html:
    rows = [
        (
            model,
            *(Number(f"{n:,}") for n in (paid.replies, paid.input_tokens, paid.output_tokens)),
            Number(cost(paid.cost.usd, paid.cost.unknown_asks)),
        )
        for model, paid in told.summary.models.items()
    ]
    if not rows:
        return Html("")
    caption = "What each model was asked for; replies that were there already cost nothing, and are not counted."
    return table(caption, ("model", ">replies", ">input tokens", ">output tokens", ">cost"), rows)


def _again(told: Told) -> Html:
    about = paragraph("To do it again, with settings.json, which lies beside this page and has all problems in it:")
    return joined([about, tag("pre", AGAIN.format(seed=told.record.seed))])


def _operators(told: Told) -> Html:
    whole = sum(told.settings.operators.values())
    rows = [
        (name, Number(f"{weight:g}"), Number(numbers.percent(weight / whole)))
        for name, weight in told.settings.operators.items()
        if weight
    ]
    shown = table("How often each operator was drawn.", ("operator", ">weight", ">share"), rows)
    seeds = [tag("pre", each.text, dir="auto") for each in told.settings.seeds]
    return joined(
        [
            tag("details", tag("summary", "Operators"), shown),
            tag("details", tag("summary", "Seed prompts"), *seeds),
        ]
    )
