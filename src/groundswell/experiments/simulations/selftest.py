"""The self-test of simulations: small studies of emulated persons in whom effects are planted, or none.

Each study is repeated many times with people of its own. Its trials are those of every study: the conditions come from
factors, people are assigned at random, `talk` sends the requests, `Tally` analyses the answers. The test counts how
often a contrast finds what is planted, or what is not, and how often an interval contains the planted truth.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import sqrt
from random import Random
from typing import NamedTuple

import msgspec

from groundswell.engine.run import Run
from groundswell.experiments.checks import LEVEL, Check, Size, Verdict, all_of, most_misses, none_of, percent, planted
from groundswell.experiments.simulations.analysis import Analysis, Tally
from groundswell.experiments.simulations.batch import MOST_ENTITIES, Batch, Schedule
from groundswell.experiments.simulations.contrasting import Taken, contrast
from groundswell.experiments.simulations.entities import Dimension, Entity, EntityType
from groundswell.experiments.simulations.grouping import DimensionFigures
from groundswell.experiments.simulations.options import Study
from groundswell.experiments.simulations.planned import PlannedContrast
from groundswell.experiments.simulations.questions import Question, Questionnaire
from groundswell.experiments.simulations.reading import SaidAnswer, SimulationShown
from groundswell.experiments.simulations.sampling import sample
from groundswell.experiments.simulations.simulation import Rules, Simulation, Talked
from groundswell.experiments.simulations.study import applied, check_contrasts, conditions_of
from groundswell.experiments.simulations.tabulation import QuestionFigures
from groundswell.experiments.simulations.talk import talk
from groundswell.stats.clusters import Figure
from groundswell.stats.rates import Rate

RARE = 0.0001
"""How often correct code fails one of the many checks of false alarms and intervals."""
ALPHA = 1 - LEVEL

PRICE, MEMBER, NOISE, SWAYS = 0.25, 0.2, 0.3, 0.5
"""What is planted: two effects, the noise of answers within subjects, and how far others change an opinion."""
TALK = 0.3
"""The effect of a conversation."""
SHIFT = 0.3
"""The most by which all opinions of a repetition are moved. How often the interval of a share contains it depends on
the share, because counts are whole numbers. Moving it at random averages over many shares of few answers."""
LOW, HIGH = 1, 7
DECLINES, REFUSES, CONFORMS = 0.2, 0.5, 0.8
CONTEXT = "The town council wants to build a new bridge over the river."
PRICES = {"high": "comes at a high price", "low": "costs little"}
TONES = {"calm": "Take your time.", "brisk": "Answer without delay."}
SUPPORT = Question("support", "The bridge {price}. Do you support it? {tone}", "choice", ("yes", "no"))
LIKE = Question("like", "The bridge {price}. How much do you like it? {tone}", "scale", low=LOW, high=HIGH)
BEFORE_AND_AFTER = (
    Question("support", "Do you support the bridge?", "choice", ("yes", "no")),
    Question("like", "How much do you like the bridge?", "scale", low=LOW, high=HIGH),
)
LONG = " ".join(["with many conditions that are listed here in full and at length"] * 6)
"""An option that no reply has room for."""


class Design(NamedTuple):
    """A study that is repeated: its options, the people in it, how often, and what is planted.

    effect    of the price, or of a conversation
    member    of the attribute `member`
    batches   whether its first two conditions are also compared as two batches
    shift     the most by which opinions are moved
    expected  the contrasts with what is expected of the answers, by the shift of the repetition; for the power
    """

    name: str
    options: Study
    people: int
    repetitions: int
    effect: float = 0.0
    member: float = 0.0
    batches: bool = False
    shift: float = 0.0
    expected: Callable[[float], tuple[PlannedContrast, ...]] | None = None

    def options_of(self, shift: float) -> Study:
        """The options of a repetition."""
        if not self.shift:
            return self.options
        model = self.options.model[0]
        moved = f"{model}{'+' if ':' in model else ':'}hears=bridge:{shift}"
        contrasts = self.options.contrasts if self.expected is None else self.expected(shift)
        return msgspec.structs.replace(self.options, model=(moved,), contrasts=contrasts)


class Found(NamedTuple):
    """What the repetitions showed, each by the name of the check.

    alarms     whether an effect that is not there had a p-value below 5%
    effects    whether a planted effect had a p-value below that of the announced power
    announced  the announced powers
    intervals  whether an interval contains the planted truth
    """

    alarms: dict[str, list[bool]]
    effects: dict[str, list[bool]]
    announced: dict[str, list[float]]
    intervals: dict[str, list[bool]]

    def interval(self, name: str, figure: Figure | None, truth: float) -> None:
        """Note whether an interval contains the truth. Figures without an interval do not count."""
        if figure is not None and figure.low is not None and figure.high is not None:
            self.intervals[name].append(figure.low - 1e-12 <= truth <= figure.high + 1e-12)

    def alarm(self, name: str, p: float | None) -> None:
        """Note whether the p-value of an effect that is not there is below 5%."""
        if p is not None:
            self.alarms[name].append(p < ALPHA)


Ended = list[tuple[Simulation, Talked]]
"""The simulations of one repetition."""


class Part(NamedTuple):
    """One batch of the test, and what to do with its simulations."""

    batch: Batch
    specs: Iterable[Simulation]
    trials: int
    read: Callable[[Batch, Analysis, Ended], Iterable[Check]]


async def selftest(run: Run, settings: Size) -> Verdict:
    """Run all studies, and check what they found."""
    checks: list[Check] = []
    found = Found(defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list))
    listed = list(parts(found, run.record.seed, settings.size))
    waiting = iter(listed)
    part: Part | None = None
    tally, ended, left, usable = None, Ended(), 0, 0
    async for outcome in run.map(talk, (spec for each in listed for spec in each.specs)):
        if part is None or tally is None or not left:
            part = next(waiting)
            tally, ended, left = Tally(part.batch), Ended(), part.trials
        tally.add(outcome.spec, outcome.result, outcome.fault)
        left -= 1
        if outcome.result is not None:
            usable += 1
            ended.append((outcome.spec, outcome.result))
        if not left:
            analysis = await asyncio.to_thread(tally.analysis, planned=part.trials)
            checks += await asyncio.to_thread(part.read, part.batch, analysis, ended)
    completed = Rate(usable, sum(each.trials for each in listed))
    return Verdict.of(
        [all_of("studies", "simulations completed", completed), *checks_of(found), *checks], settings.size
    )


def parts(found: Found, seed: int, size: float) -> Iterator[Part]:
    """All batches of the test, each repetition with people of its own."""
    for number, design in enumerate(DESIGNS):
        for repetition in range(times(design.repetitions, size)):
            own = Random(f"{seed}/{number}/{repetition}").getrandbits(40)
            batch = study_of(design, own)
            yield Part(batch, Schedule(batch, own), batch.num_simulations, partial(read_study, found, design, own))
    own = Random(f"{seed}/others").getrandbits(40)
    many = min(times(400, size, 100), MOST_ENTITIES)
    yield whole(of_missing(many, own), own, check_missing)
    yield whole(of_malformed(many, own), own, check_malformed)
    yield among_others(min(times(200, size, 60), MOST_ENTITIES // 3), own)


def times(many: int, size: float, least: int = 6) -> int:
    """The number of repetitions in a test of this size."""
    return max(least, round(many * size))


def people(count: int, seed: int) -> tuple[Entity, ...]:
    """Sampled people, whose names nobody else has. A name determines an emulated person's opinion."""
    dimensions = tuple(Dimension(name, "boolean", true_percentage=0.5) for name in ("member", "urban"))
    return tuple(sample(EntityType("person", f"Person {seed}", dimensions=dimensions), count, seed))


def study_of(design: Design, seed: int) -> Batch:
    """A study, as `groundswell study` makes it from the same options."""
    options = design.options_of(shift_of(design, seed))
    entities, base = people(design.people, seed), applied(options, {})
    conditions = conditions_of(options, design.people, rules_of) if options.factors else ()
    batch = Batch(
        design.name,
        CONTEXT,
        entities,
        base.interaction_size or 1,
        sum(each.num_simulations for each in conditions) or options.num_simulations or 1,
        rules_of(base),
        by=options.by,
        conditions=conditions,
        within=options.within,
        contrasts=options.contrasts,
    )
    check_contrasts(batch)
    return batch


def rules_of(options: Study) -> Rules:
    """The rules of a condition."""
    asked = options.questions
    sheet = Questionnaire(asked) if isinstance(asked, tuple) else asked
    return Rules(options.model[0], n_turns=options.n_turns or 0, thoughts=False, questionnaire=sheet)


def shift_of(design: Design, seed: int) -> float:
    """The random shift of a repetition: opinions move by half of it, because every request names the bridge."""
    return round(Random(f"{seed}/shift").uniform(-design.shift, design.shift), 3)


def middle(design: Design, seed: int, levels: Mapping[str, str]) -> float:
    """The mean opinion in a condition: the share that says yes, and the place of the mean on the scale."""
    return (
        0.5 + shift_of(design, seed) / 2 + {"high": 0.5, "low": -0.5}.get(levels.get("price", ""), 0.0) * design.effect
    )


def read_study(
    found: Found, design: Design, seed: int, batch: Batch, analysis: Analysis, ended: Ended
) -> Iterable[Check]:
    """Compare every figure of one repetition with what is planted. The checks come when all are read."""
    truths = {each.name: middle(design, seed, each.levels) for each in batch.conditions}
    for condition in analysis.conditions[: 1 if design.options.within else None]:  # the same people are in the others
        for question in condition.questions:
            note_level(found, design, question, truths[condition.name])
    for figures, power in zip(analysis.contrasts, analysis.power, strict=True):
        name = f"{design.name}: {figures.name}"
        span = 1 if figures.option is not None else HIGH - LOW
        truth = sum(weight * truths[each] for each, weight in figures.weights.items()) * span
        found.interval(name, figures.difference, truth)
        if not truth:
            found.alarm(name, figures.p)
        elif figures.p is not None and power.power is not None:
            found.announced[name].append(power.power)
            found.effects[name].append(figures.p <= power.alpha)
    for question in analysis.questions:
        if question.before is not None:
            note_change(found, design, seed, question)
        for dimension in question.dimensions:
            note_dimension(found, design, question, dimension)
    if design.batches:
        note_batches(found, design, seed, batch, ended)
    return ()


def note_level(found: Found, design: Design, question: QuestionFigures, truth: float) -> None:
    """The share or the mean of one condition."""
    if question.scale is None:
        found.interval(f"{design.name}: a share", question.options[0].share, truth)
    else:
        found.interval(f"{design.name}: a mean", question.scale.mean, LOW + truth * (HIGH - LOW))


def note_change(found: Found, design: Design, seed: int, question: QuestionFigures) -> None:
    """The answers before and after a conversation that has an effect, and their change."""
    truth, span = middle(design, seed, {}) - design.effect / 2, HIGH - LOW
    note_level(found, design, question, truth + design.effect)
    if question.scale is None:
        option = question.options[0]
        found.interval(f"{design.name}: a share before", option.before, truth)
        found.interval(f"{design.name}: change of a share", option.change, design.effect)
    else:
        found.interval(f"{design.name}: a mean before", question.scale.before, LOW + truth * span)
        found.interval(f"{design.name}: change of a mean", question.scale.change, design.effect * span)


def note_dimension(found: Found, design: Design, question: QuestionFigures, dimension: DimensionFigures) -> None:
    """The difference between those with and without an attribute."""
    what, span = ("shares", 1) if question.scale is None else ("means", HIGH - LOW)
    truth = design.member * span if dimension.name == "member" else 0.0
    name = f"{design.name}: {what} by attribute"
    if dimension.groups:
        group = dimension.groups[0]
        found.interval(name, group.difference if group.options == [] else group.options[0].difference, truth)
    if not truth:
        found.alarm(name, dimension.p)
    if question.before is not None:
        found.alarm(f"{design.name}: change of {what} by attribute", dimension.change_p)


def note_batches(found: Found, design: Design, seed: int, batch: Batch, ended: Ended) -> None:
    """The first two conditions as batches of their own, compared with each other."""
    names = [each.name for each in batch.conditions[:2]]
    taken = [
        Taken(part, [shown(spec, talked) for spec, talked in ended if spec.condition == name])
        for name, part in zip(names, batch.parts(seed), strict=False)
    ]
    truth = middle(design, seed, batch.conditions[0].levels) - middle(design, seed, batch.conditions[1].levels)
    compared = contrast(taken[0], taken[1], ("urban",))
    for question in compared.questions:
        what, span = ("shares", 1) if question.type == "choice" else ("means", HIGH - LOW)
        name, figure = f"{design.name}: {what} of two batches", question.gaps[0].difference
        found.interval(name, figure, truth * span)
        if not truth and figure.low is not None and figure.high is not None:
            found.alarms[name].append(figure.low > 0 or figure.high < 0)
        for dimension in question.dimensions:
            found.alarm(f"{name} by attribute", dimension.p)


def shown(spec: Simulation, talked: Talked) -> SimulationShown:
    """A simulation as the store returns it, without its lines."""
    ids, names = [each.id for each in spec.entities], spec.names
    answers = (
        SaidAnswer(ids[each.place], names[each.place], each.question, each.before, each.value, each.problem)
        for each in talked.answers
    )
    return SimulationShown(
        id=f"sim-{spec.number}",
        sequence_number=spec.number,
        timestamp="",
        status="completed",
        interaction_type=spec.interaction_type,
        entity_ids=tuple(ids),
        content="",
        metadata={"replicate": spec.replicate},
        lines=(),
        answers=tuple(answers),
    )


def checks_of(found: Found) -> Iterator[Check]:
    """The checks on all repetitions. With so few that a check could not fail, there is none."""
    for name, each in found.alarms.items():
        if (most := most_misses(len(each), RARE)) < len(each):
            said = f"5%, at most {percent(most / len(each))}"
            yield Check("false alarms", name, said, percent(sum(each) / len(each)), len(each), sum(each) <= most)
    for name, each in found.effects.items():
        announced = found.announced[name]
        yield planted("power", name, sum(announced) / len(announced), Rate(sum(each), len(each)))
    for name, each in found.intervals.items():
        if (least := len(each) - most_misses(len(each), RARE)) > 0:
            said = f"95%, at least {percent(least / len(each))}"
            yield Check("intervals", name, said, percent(sum(each) / len(each)), len(each), sum(each) >= least)


def whole(batch: Batch, seed: int, read: Callable[[Analysis], Iterable[Check]]) -> Part:
    """A batch that is run once."""
    return Part(batch, Schedule(batch, seed), batch.num_simulations, lambda _, analysis, __: read(analysis))


def of_missing(many: int, seed: int) -> Batch:
    """People who decline questions and refuse requests. Only those who say no are asked a second question."""
    questions = (
        Question("support", "Do you support the bridge?", "choice", ("yes", "no")),
        Question("cheaper", "Would you support a cheaper bridge?", "choice", ("yes", "no"), when={"support": "no"}),
    )
    model = f"emulated/person:declines:{DECLINES}+refuses:{REFUSES}"
    sheet = Questionnaire(questions, one_by_one=True, decline=True)
    rules = Rules(model, n_turns=0, thoughts=False, questionnaire=sheet)
    return Batch("missing", CONTEXT, people(many, seed), 1, many, rules)


def check_missing(analysis: Analysis) -> Iterator[Check]:
    """Refused requests are sent once more, so an answer is refused if both are."""
    first, second = analysis.questions
    asked = first.after.asked
    refused = REFUSES**2
    declined = DECLINES * (1 - refused)
    for kind, truth in (("refused", refused), ("declined", declined)):
        yield planted("missing", f"answers {kind}", truth, Rate(first.missing.get(kind, 0), asked))
    yield planted("missing", "answers given", 1 - refused - declined, Rate(first.after.answered, asked))
    yield planted("missing", "yes, of the answers given", 0.5, Rate(first.options[0].count, first.after.answered))
    no = first.options[1].count
    yield all_of("missing", "those who said no are asked more", Rate(second.after.asked, no))
    yield all_of("missing", "others skip the question", Rate(second.missing.get("skipped", 0), asked - no))


def of_malformed(many: int, seed: int) -> Batch:
    """People half of whom choose an option that their reply has no room for."""
    question = Question("support", "Do you support the bridge?", "choice", ("yes", f"no {LONG}"))
    rules = Rules("emulated/person", n_turns=0, thoughts=False, questionnaire=Questionnaire((question,)))
    return Batch("malformed", CONTEXT, people(many, seed), 1, many, rules)


def check_malformed(analysis: Analysis) -> Iterator[Check]:
    """Malformed answers are missing, and those that remain all say yes."""
    [question] = analysis.questions
    malformed = Rate(question.missing.get("malformed", 0), question.after.asked)
    yield planted("missing", "answers malformed", 0.5, malformed)
    yes, no = question.options
    yield none_of("missing", "malformed answers that count", Rate(no.count, yes.count + no.count))


def among_others(many: int, seed: int) -> Part:
    """People who each talk with two others that name the same option. The others speak first."""
    subjects = [
        msgspec.structs.replace(each, attributes={"conforms": number % 2 == 0}, model=conforming(number % 2 == 0))
        for number, each in enumerate(people(many, seed))
    ]
    others = [
        Entity(f"other-{number}", f"Other {seed} {number}", 'Your secret word is "Beta".', model="emulated/leaker")
        for number in range(2 * many)
    ]
    question = Question("plan", "Which plan do you prefer?", "choice", ("Alpha", "Beta"))
    rules = Rules("emulated/person", thoughts=False, questionnaire=Questionnaire((question,)))
    batch = Batch("conformity", CONTEXT, (*subjects, *others), 3, many, rules, order="given", by=("conforms",))
    specs = [
        Simulation(number, CONTEXT, (*others[2 * number - 2 : 2 * number], subject), rules)
        for number, subject in enumerate(subjects, 1)
    ]
    return Part(batch, specs, many, lambda _, analysis, __: check_conformity(analysis))


def conforming(conforms: bool) -> str:
    """The model of people who follow unanimous others, or never do."""
    return f"emulated/person:conforms:{CONFORMS if conforms else 0}"


def check_conformity(analysis: Analysis) -> Iterator[Check]:
    """Those who conform name the option of the others, and half of the rest do so anyway."""
    [dimension] = [each for each in analysis.questions[0].dimensions if each.name == "conforms"]
    for group, truth in zip(dimension.groups[:2], (CONFORMS + (1 - CONFORMS) / 2, 0.5), strict=True):
        name = f"conforms with {CONFORMS:.0%}" if group.value == "true" else "never conforms"
        yield planted("conformity", name, truth, Rate(group.options[1].count, group.answered))


def sd_of(width: float, middles: Iterable[float]) -> float:
    """The standard deviation of answers on the scale, if opinions are evenly spread around each of these middles."""
    places, span = list(middles), HIGH - LOW
    mean = sum(places) / len(places)
    between = sum((each - mean) ** 2 for each in places) / len(places)
    rounding = [_rounding(span * (each - width / 2), span * (each + width / 2)) for each in places]
    return sqrt(span**2 * (between + width**2 / 12) + sum(rounding) / len(rounding))


def _rounding(low: float, high: float) -> float:
    """The variance that rounding at random adds, on average between two ends."""

    def total(at: float) -> float:
        part = at % 1
        return at // 1 / 6 + part**2 / 2 - part**3 / 3

    return (total(high) - total(low)) / (high - low)


def between_contrasts(shift: float) -> tuple[PlannedContrast, ...]:
    """The effect of the price in people of whom half have an attribute that matters too."""
    places, width = middles(shift), 1 - PRICE - MEMBER - abs(shift)
    squares = [sd_of(width, [place + part * MEMBER / 2 for part in (-1, 1)]) ** 2 for place in places]
    return expected(places[0], sqrt(sum(squares) / 2))


def within_contrasts(shift: float) -> tuple[PlannedContrast, ...]:
    """The same within people, whose answers are correlated.

    Unless an answer is noise, whoever says yes at a low opinion also does at a high one.
    """
    (low, high), width = middles(shift), 1 - PRICE - abs(shift)
    own = (1 - NOISE) ** 2  # the probability that neither answer is noise
    sd = sqrt(sum(sd_of(width, [place]) ** 2 for place in (low, high)) / 2)
    alike = own * (HIGH - LOW) ** 2 * width**2 / 12 / sd**2
    return expected(low, sd, own * sqrt(low * (1 - high) / (high * (1 - low))), alike)


def middles(shift: float) -> tuple[float, float]:
    """The mean opinions with a low and a high price."""
    return 0.5 + (shift - PRICE) / 2, 0.5 + (shift + PRICE) / 2


def expected(rate: float, sd: float, shares: float = 0.0, means: float = 0.0) -> tuple[PlannedContrast, ...]:
    """The effect of the price, with what is expected of the answers. `shares` and `means` are correlations."""
    compare, span = ("high", "low"), HIGH - LOW
    return (
        PlannedContrast("shares", "support", compare, effect=PRICE, rate=rate, correlation=shares),
        PlannedContrast("means", "like", compare, effect=PRICE * span, sd=sd, correlation=means),
    )


def design(
    name: str,
    planted: str,
    people: int,
    repetitions: int,
    contrasts: Iterable[PlannedContrast] = (),
    *,
    expected: Callable[[float], tuple[PlannedContrast, ...]] | None = None,
    within: bool = False,
    pairs: int = 0,
    tones: bool = False,
    by: tuple[str, ...] = ("urban",),
    effect: float = 0.0,
    member: float = 0.0,
    batches: bool = False,
) -> Design:
    """A study with the factor `price`. `pairs` is the number of conversations per condition; 0 is a survey."""
    same = ("high", "low")
    options = Study(
        context=CONTEXT,
        questions=(SUPPORT, LIKE),
        factors={"price": dict(PRICES), **({"tone": dict(TONES)} if tones else {})},
        within=("price",) if within else (),
        contrasts=tuple(contrasts)
        or (PlannedContrast("shares", "support", same), PlannedContrast("means", "like", same)),
        interaction_size=2 if pairs else 1,
        num_simulations=pairs or None,
        by=by,
        model=(f"emulated/person{planted}",),
    )
    shift = 0.0 if pairs else SHIFT  # conversations have more answers, which also differ more
    return Design(name, options, people, repetitions, effect, member, batches, shift, expected)


def crossed() -> tuple[PlannedContrast, ...]:
    """Contrasts of four conditions."""
    cells = {"high, calm": 1.0, "high, brisk": -1.0, "low, calm": -1.0, "low, brisk": 1.0}
    return tuple(
        PlannedContrast(f"{what}{kind}", question, compare, weights)
        for what, question in (("shares", "support"), ("means", "like"))
        for kind, compare, weights in (
            (", two of four", ("high, calm", "low, calm"), {}),
            (", main effect", ("high", "low"), {}),
            (", interaction", None, cells),
        )
    )


DESIGNS = (
    design(
        "two groups",
        f":hears=high price:{PRICE}+member:{MEMBER}",
        32,
        80,
        expected=between_contrasts,
        by=("member",),
        effect=PRICE,
        member=MEMBER,
        batches=True,
    ),
    design("2x2, no effect", "", 40, 80, crossed(), tones=True),
    design(
        "within people",
        f":hears=high price:{PRICE}+noise:{NOISE}",
        14,
        80,
        expected=within_contrasts,
        within=True,
        by=(),
        effect=PRICE,
    ),
    design("within people, no effect", f":noise:{NOISE}", 16, 80, within=True, batches=True),
    design("pairs, no effect", f":sways:{SWAYS}", 80, 40, pairs=15, batches=True),
    design("pairs within people, no effect", f":sways:{SWAYS}+noise:{NOISE}", 30, 40, within=True, pairs=10),
    Design(
        "conversations",
        Study(
            context=CONTEXT,
            questions=Questionnaire(BEFORE_AND_AFTER, before=True),
            interaction_size=2,
            num_simulations=10,
            n_turns=1,
            model=(f"emulated/person:hears=You talk with:{TALK}",),
        ),
        14,
        40,
        effect=TALK,
    ),
)
"""The studies. Each repetition has people of its own."""
