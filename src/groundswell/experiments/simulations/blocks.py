"""The report of simulations as blocks: findings, figures, tables, transcripts and settings.

`contrast_blocks` shows the differences between two batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from groundswell.engine.stored import StoredRun
from groundswell.experiments.report import about_run, run_figures, whole_cost
from groundswell.experiments.simulations import drawings
from groundswell.experiments.simulations.analysis import Analysis, LineFigures
from groundswell.experiments.simulations.batch import Batch, Condition
from groundswell.experiments.simulations.contrasting import Contrast, QuestionGap
from groundswell.experiments.simulations.data import BatchData
from groundswell.experiments.simulations.driving import Conversation
from groundswell.experiments.simulations.gaps import DimensionGap, Gap
from groundswell.experiments.simulations.grouping import DimensionFigures, GroupFigures, GroupOption
from groundswell.experiments.simulations.planned import MOST_EXPLORATORY, ContrastFigures
from groundswell.experiments.simulations.questions import Question
from groundswell.experiments.simulations.seats import Event, Seat
from groundswell.experiments.simulations.simulation import distinct_names
from groundswell.experiments.simulations.tabulation import Asked, OptionFigures, QuestionFigures, ScaleFigures
from groundswell.experiments.simulations.transcripts import transcripts_block
from groundswell.program.request import Chat
from groundswell.reporting import numbers
from groundswell.reporting.blocks import (
    Block,
    Cell,
    Estimate,
    Figure,
    KeyFigure,
    KeyFigures,
    Kind,
    Passage,
    Table,
    Text,
)
from groundswell.reporting.figures import WIDTH, Group, Point, forest_height, name_of
from groundswell.reporting.words import clipped, cost, duration
from groundswell.stats.clusters import Figure as Value

FOUND = 0.05
MOST_QUESTIONS = 6
"""Number of questions in the findings of the terminal; the report has all of them."""
MOST_OPTIONS = 6
"""Number of options in a finding."""
MOST_DRAWN = 80
"""A figure with more points is left out; the table is clearer."""
MOST_TEXT, LONGEST_STATED = 200, 1_000
"""Maximum length of a question or an answer in the report."""
ALLOWS = "Intervals account for entities that answer in several simulations, and for the company they talk in."
CHANGES = " A change includes only entities that answered both times, so it can differ from that of the columns."


def blocks(study: BatchData) -> Iterator[Block]:
    """The report of a batch or of a single simulation."""
    analysis = study.analysis
    if isinstance(analysis, Conversation):
        yield Text(id="findings", lines=[_conversation(study, analysis)], brief=True)
        yield run_figures([study.summary])
    elif analysis.conditions:
        yield from study_blocks(study, analysis)
    else:
        yield from batch_blocks(study, analysis)
    yield transcripts_block(study)
    yield from run_blocks(study)


def batch_blocks(study: BatchData, analysis: Analysis) -> Iterator[Block]:
    """The results of a batch."""
    questions, level = analysis.questions if analysis.simulations.usable else [], analysis.level
    first, more = ([line for each in part for line in findings(each, level)] for part in _parted(questions))
    beyond = len(questions) - MOST_QUESTIONS
    note = [f"The report has {numbers.plural(beyond, 'more question')}."]
    yield Text(id="findings", lines=[*headlines(analysis), *first, *(note if more else [])], brief=True)
    if more:
        yield Text(id="more-findings", title="More questions", lines=more)
    yield key_figures(study, analysis)
    if choices := [each for each in questions if each.options]:
        yield choices_table(choices, level)
    if scales := [(each, each.scale) for each in questions if each.scale is not None]:
        yield scales_table(scales, level)
    for at, question in enumerate(questions):
        yield from question_blocks(question, level, brief=at < MOST_QUESTIONS)
    yield from score_blocks(analysis)
    yield from attribute_tables(questions, level)
    if analysis.simulations.usable:
        yield entities_table(analysis)


def study_blocks(study: BatchData, analysis: Analysis) -> Iterator[Block]:
    """The results of a study: contrasts, every condition, and breakdowns by pre-registered attributes."""
    level, questions = analysis.level, {each.id: each for each in analysis.questions}
    contrasts = [each for each in analysis.contrasts if each.difference.value is not None]
    shown = contrasts if analysis.contrasts and analysis.contrasts[0].planned else contrasts[:MOST_CONTRASTS]
    lines = [*study_headlines(analysis), *(contrast_finding(each, analysis) for each in shown)]
    yield Text(id="findings", lines=lines, brief=True)
    yield key_figures(study, analysis)
    for numeric in (False, True):
        some = [each for each in analysis.contrasts if (questions[each.question].scale is not None) == numeric]
        if some:
            yield contrasts_table(some, level, numeric=numeric)
    for each in analysis.questions:
        if each.scale is not None or each.options:
            yield conditions_table(each, analysis)
        if each.free is not None:
            yield from question_blocks(each, level, brief=False)
    for each in analysis.questions:
        for found in [one for one in each.dimensions if one.groups]:
            yield by_group(each, found, level, id_=f"{each.id}-by-{found.name}", brief=False)
    yield from score_blocks(analysis)
    if isinstance(study.settings, Batch):
        yield design_table(study.settings)
    if analysis.power:
        yield power_table(analysis)
    yield missing_table(analysis)


def design_table(batch: Batch) -> Table:
    """What differs between the conditions, in the words that they use."""
    conditions = [(each.name, dict(_stated(each))) for each in batch.conditions]
    names = dict.fromkeys(name for _, stated in conditions for name in stated)
    differing = [name for name in names if len({stated.get(name) for _, stated in conditions}) > 1]
    return Table(
        id="design",
        title="What differs between the conditions",
        columns={"condition": "text", "differs": "text", "value": "text"},
        rows=[
            (condition, name, clipped(stated.get(name) or "none", LONGEST_STATED))
            for condition, stated in conditions
            for name in differing
        ],
        caption="" if differing else "Nothing: all conditions are the same.",
    )


def _stated(condition: Condition) -> Iterator[tuple[str, str]]:
    """Everything that makes a condition, by name."""
    yield "context", condition.context
    yield "entities per simulation", f"{condition.interaction_size:,}"
    yield "seats", "; ".join(_seat(each) for each in condition.seats)
    sheet, rules = condition.rules.questionnaire, condition.rules
    for name in rules.__struct_fields__:
        if name == "events":
            yield name, _events(rules.events)
        elif name not in ("questionnaire", "scoring"):
            yield name.replace("_", " "), str(getattr(rules, name))
    for each in () if sheet is None else sheet.questions:
        yield f"question {each.id}", " ".join([each.text, *each.rows.values(), *map("[{}]".format, each.options)])


def _seat(seat: Seat) -> str:
    about = [f"{name} {value}" for name, value in seat.where.items()]
    parts = (*about, seat.description, seat.role, seat.goal, *seat.script, seat.model or "")
    return ": ".join([seat.name or "entity", *([", ".join(filter(None, parts))] if any(parts) else [])])


def _events(events: Sequence[Event]) -> str:
    return "; ".join(f"before turn {each.turn}: {each.text}" for each in events)


def study_headlines(analysis: Analysis) -> Iterator[str]:
    """How many simulations are usable, in how many conditions."""
    found = analysis.simulations
    entities = f"{len(analysis.entities):,} entities"
    yield (
        f"{found.usable:,} of {numbers.plural(found.planned, 'simulation')} "
        f"{'is' if found.usable == 1 else 'are'} usable: {entities} in {len(analysis.conditions)} conditions."
    )
    if found.usable < found.planned:
        least = min(analysis.conditions, key=lambda each: each.simulations.usable / each.simulations.planned)
        counts = least.simulations
        yield (f"Not usable: {_unusable(analysis)}. Fewest in {least.name}: {counts.usable:,} of {counts.planned:,}.")
    if analysis.lines.count:
        yield _lines(analysis.lines).replace("The conversations have", "The entities spoke", 1)


def contrast_finding(found: ContrastFigures, analysis: Analysis) -> str:
    """A contrast in one sentence."""
    shares, level = found.option is not None, analysis.level
    value = in_points(found.difference) if shares else found.difference
    shown = with_interval(value, level, "change.1" if shares else "change")
    unit = " percentage points" if shares else ""
    what = f"{found.question} ‘{found.option}’" if shares else f"mean {found.question}"
    what = f"change in {what}" if found.change else what
    worded = numbers.percent if shares and not found.change else numbers.number
    order = [each.name for each in analysis.conditions if each.name in found.values]
    parts = "; ".join(f"{worded(found.values[name])} in ‘{name}’" for name in order)
    if found.p is None or found.p_holm is None:
        tested = f"no test: {found.reason}"
    else:
        among = len([each for each in analysis.contrasts if each.planned == found.planned and each.p is not None])
        tests = numbers.plural(among, "test")
        tested = f"{numbers.p_equals(found.p)}; Holm-adjusted {numbers.p_equals(found.p_holm)}, {tests}"
    begin = f"{found.name}" if found.planned else f"Exploratory, {found.name}"
    verdict = "" if _differs(found.p_holm) else "no significant difference in "
    return f"{begin}: {verdict}{what}: {shown.replace(' (', f'{unit} (', 1)}; {parts} ({tested})."


def contrasts_table(found: Sequence[ContrastFigures], level: float, *, numeric: bool) -> Table:
    """The contrasts of questions of one kind, with a figure."""
    planned = found[0].planned
    which = "planned contrasts" if planned else f"exploratory contrasts (at most {MOST_EXPLORATORY})"
    kind: Kind = "change" if numeric else "share_change"
    table = Table(
        id="contrasts-numeric" if numeric else "contrasts",
        title=f"{'Planned' if planned else 'Exploratory'} contrasts{' of means' if numeric else ' of shares'}",
        part="findings",
        brief=True,
        columns={
            **{"contrast": "text", "question": "text"},
            **({} if numeric else {"option": "text"}),
            **{"difference": kind, "p": "p", "p, Holm": "p", "answers": "count", "entities": "count"},
        },
        rows=[
            (
                *(each.name, f"{each.question}{' (change)' if each.change else ''}"),
                *(() if numeric else (each.option,)),
                *(cell(each.difference), each.p, each.p_holm, each.difference.n, each.difference.entities),
            )
            for each in found
        ],
        caption=f"Differences between conditions, with {level:.0%} intervals. p-values are adjusted (Holm) for all "
        f"{which}. {ALLOWS}{_why_none(each.difference for each in found)}",
    )
    groups = [
        Group(name_of(each.name, 34), [drawings.mean_point(value)])
        for each in found
        if (value := each.difference if numeric else in_points(each.difference)).value is not None
    ]
    if not groups or len(groups) > MOST_DRAWN:
        return table
    height = forest_height(groups)
    label = f"difference{'' if numeric else ' in percentage points'}, with {level:.0%} intervals"
    return table.drawn((WIDTH, height), partial(drawings.differences, groups=groups, height=height, label=label))


def conditions_table(question: QuestionFigures, analysis: Analysis) -> Table:
    """The answers to a question in every condition."""
    level, scale = analysis.level, question.scale is not None
    contrasted = [each.option for each in analysis.contrasts if each.question == question.id and each.option]
    drawn = next(iter(contrasted), question.options[0].option if question.options else None)
    by_name = {each.name: {one.id: one for one in each.questions} for each in analysis.conditions}
    values: dict[str, Kind] = {"mean": "number", "sd": "number"} if scale else {"option": "text", "share": "share"}
    others: dict[str, Kind] = {"answers": "count", **values}
    factors = [f"factor {each}" if each in others else each for each in analysis.conditions[0].levels]
    rows: list[tuple[Cell, ...]] = []
    groups = []
    for condition in analysis.conditions:
        found, levels = by_name[condition.name][question.id], tuple(condition.levels.values())
        if found.scale is not None:
            rows.append((*levels, found.after.answered, cell(found.scale.mean), found.scale.sd))
            if found.scale.mean.value is not None:
                note = f"n {found.after.answered:,}"
                groups.append(Group(name_of(condition.name), [drawings.mean_point(found.scale.mean, note)]))
        for option in found.options:
            rows.append((*levels, found.after.answered, option.option, _share(option.share, option.count)))
        first = next((each for each in found.options if each.option == drawn), None)
        if first is not None and first.share.value is not None:
            note = f"{first.count:,}/{first.share.n:,}"
            groups.append(Group(name_of(condition.name), [drawings.share_point(first.share, note)]))
    table = Table(
        id=_block_id("conditions", question.id),
        title=f"{question.id} by condition",
        columns={**dict.fromkeys(factors, "text"), **others},
        rows=rows,
        caption=f"{clipped(question.text, MOST_TEXT)} Answers in each condition, with {level:.0%} intervals. {ALLOWS}"
        f"{'' if scale or not groups else f' The figure shows ‘{drawn}’.'}",
    )
    if not groups or len(groups) > MOST_DRAWN:
        return table
    height = forest_height(groups)
    if question.scale is not None:
        label, ends = (
            f"mean ({_ends(question.scale)}), with {level:.0%} intervals",
            (question.scale.low, question.scale.high),
        )
        draw = partial(drawings.means, groups=groups, height=height, label=label, ends=ends, twice=False)
        return table.drawn((WIDTH, height), draw)
    label = f"share of answers, with {level:.0%} intervals"
    return table.drawn(
        (WIDTH, height), partial(drawings.shares, groups=groups, height=height, label=label, twice=False)
    )


def score_blocks(analysis: Analysis) -> Iterator[Block]:
    """How far judges agree, and what they said of lines turn by turn."""
    if analysis.agreement:
        yield Table(
            id="agreement",
            title="Agreement of judges",
            columns={"measure": "text", "judges": "count", "units": "count", "alpha": "number"},
            rows=[
                (
                    each.measure if each.option is None else f"{each.measure}: {each.option}",
                    each.judges,
                    each.units,
                    None if each.alpha is None else Estimate(each.alpha, each.low, each.high),
                )
                for each in analysis.agreement
            ],
            caption=f"Krippendorff's alpha, with {analysis.level:.0%} intervals from a bootstrap of conversations. 1 "
            "is perfect agreement, 0 what chance gives. Labels are nominal, numbers are interval. Below 0.667, results "
            "that rest on a measure are tentative at best (Krippendorff).",
        )
    if analysis.over_time:
        many = len({each.condition for each in analysis.over_time}) > 1
        table = Table(
            id="over-time",
            title="Scores of lines, turn by turn",
            columns={
                **({"condition": "text"} if many else {}),
                **{"measure": "text", "turn": "count", "lines": "count", "mean": "number"},
            },
            rows=[
                (*((each.condition,) if many else ()), each.measure, each.turn, each.mean.n, cell(each.mean))
                for each in analysis.over_time
            ],
            caption=f"Means of lines, with {analysis.level:.0%} intervals. The mean of a label is its share. {ALLOWS}",
        )
        groups = [
            Group(name_of(f"{each.condition or each.measure}, turn {each.turn}", 34), [drawings.mean_point(each.mean)])
            for each in analysis.over_time
            if each.mean.value is not None and each.measure == analysis.over_time[0].measure
        ]
        if not groups or len(groups) > MOST_DRAWN:
            yield table
            return
        height = forest_height(groups)
        label = f"{analysis.over_time[0].measure}, with {analysis.level:.0%} intervals"
        yield table.drawn((WIDTH, height), partial(drawings.differences, groups=groups, height=height, label=label))


def power_table(analysis: Analysis) -> Table:
    """The power that was announced before the study ran."""
    return Table(
        id="power",
        title="Power before the study",
        columns={
            "contrast": "text",
            "entities per condition": "count",
            "expected": "number",
            "power": "share",
            "found with 80%": "number",
            "assumed": "text",
        },
        rows=[
            (each.contrast, each.entities, each.effect, each.power, each.detectable, each.assumed)
            for each in analysis.power
        ],
        caption=f"Computed from the settings before any request was sent, for tests at "
        f"{analysis.power[0].alpha:.3g} (5% divided by the number of contrasts).",
    )


def missing_table(analysis: Analysis) -> Table:
    """Missing answers by question and kind."""
    kinds = list(dict.fromkeys(kind for each in analysis.questions for kind in each.missing))
    return Table(
        id="missing",
        title="Missing answers",
        columns={"question": "text", "asked": "count", "answered": "count", **dict.fromkeys(kinds, "count")},
        rows=[
            (each.id, each.after.asked, each.after.answered, *(each.missing.get(kind, 0) for kind in kinds))
            for each in analysis.questions
        ],
        caption="Declined: the entity used its right not to answer. Refused: the model did not answer at all. "
        "Malformed: no valid answer after a second request. Failed: the request failed. Skipped: not asked, because of "
        "earlier answers; or no score, because the entity said nothing.",
        folded=True,
    )


MOST_CONTRASTS = 10
"""Number of exploratory contrasts in the findings."""


def _parted(questions: Sequence[QuestionFigures]) -> tuple[Sequence[QuestionFigures], Sequence[QuestionFigures]]:
    return questions[:MOST_QUESTIONS], questions[MOST_QUESTIONS:]


def headlines(analysis: Analysis) -> Iterator[str]:
    """How many simulations are usable, and problems with the conversations."""
    found, lines = analysis.simulations, analysis.lines
    if not found.usable:
        yield f"No simulation is usable, so there are no results: {_unusable(analysis)}."
        return
    size = analysis.interaction_size
    how = "alone" if size == 1 else "in pairs" if size == 2 else f"in groups of {size}"
    yield (
        f"{found.usable:,} of {numbers.plural(found.planned, 'simulation')} {'is' if found.usable == 1 else 'are'} "
        f"usable: {analysis.met:,} of {_counted(analysis.combinations)} possible combinations of "
        f"{len(analysis.entities):,} entities, {how}."
    )
    if found.usable < found.planned:
        yield f"Not usable: {_unusable(analysis)}."
    yield _lines(lines)
    if lines.left:
        yield f"Removed {numbers.plural(lines.left, 'extra line')} that the narrator wrote beyond the requested turns."
    for each in analysis.questions[0].dimensions if analysis.questions else ():
        if not each.groups:
            yield f"No breakdown by {each.name}: {each.reason}."
    if lines.short:
        have = "simulation has" if lines.short == 1 else "simulations have"
        yield f"{lines.short:,} {have} fewer turns than planned."


def _unusable(analysis: Analysis) -> str:
    found = analysis.simulations
    kinds = ", ".join(f"{kind} {many:,}" for kind, many in analysis.missing.items())
    parts = [f"{found.missing:,} missing ({kinds})"] if found.missing else []
    return ", ".join([*parts, *([f"{found.unfinished:,} not finished"] if found.unfinished else [])]) or "none started"


def _counted(combinations: int | str) -> str:
    return f"{combinations:,}" if isinstance(combinations, int) else combinations


def _lines(lines: LineFigures) -> str:
    words = "" if lines.words_per_line is None else f" of {lines.words_per_line:.1f} words on average"
    amiss = {
        "cut off": lines.cut,
        "with words for other entities": lines.overrun,
        "without a thought": lines.thoughtless or 0,
    }
    more = ", ".join(f"{many:,} {what}" for what, many in amiss.items() if many)
    return f"The conversations have {numbers.plural(lines.count, 'line')}{words}" + (f"; {more}." if more else ".")


def findings(question: QuestionFigures, level: float) -> Iterator[str]:
    """The answers to a question, how they changed, and which groups differ."""
    head, answered = f"{question.id} ({clipped(question.text, MOST_TEXT)})", _answered(question.after)
    if not question.after.answered:
        yield f"{head}: {answered}."
        return
    if question.scale is not None:
        scale = question.scale
        mean = with_interval(scale.mean, level)
        yield f"{head}: mean {mean}{_on_a_scale(scale)}; {answered}."
        if scale.before is not None and scale.change is not None:
            yield _scale_change(question.id, scale.before, scale.change, level)
    elif question.free is not None:
        words = "" if question.free.words is None else f", {question.free.words:.1f} words on average"
        yield f"{head}: {answered}{words}."
    else:
        yield f"{head}: {_shares(question, level)}; {answered}."
        if question.before is not None:
            yield _share_changes(question, level)
    yield from _group_lines(question)


def _on_a_scale(scale: ScaleFigures) -> str:
    if not scale.steps:
        return "" if scale.median is None else f", median {numbers.number(scale.median)}"
    return f" on a scale from {scale.low:g} to {scale.high:g}"


def _answered(asked: Asked) -> str:
    return f"{asked.answered:,} of {asked.asked:,} answered"


def with_interval(value: Value, level: float, kind: Kind = "number") -> str:
    """A value with its interval, or the reason why it has none."""
    if value.value is None:
        return value.reason or "unknown"
    shown, interval = numbers.worded(cell(value), kind)
    return f"{shown} ({level:.0%} interval {interval})" if interval else f"{shown} (no interval: {value.reason})"


def _most_first(question: QuestionFigures) -> list[OptionFigures]:
    return sorted(question.options, key=lambda each: -each.count)


def _shares(question: QuestionFigures, level: float) -> str:
    options = _most_first(question)
    shown = ", ".join(f"‘{each.option}’ {with_interval(each.share, level, 'share')}" for each in options[:MOST_OPTIONS])
    more = len(options) - MOST_OPTIONS
    return f"{shown}, and {numbers.plural(more, 'more option')}" if more > 0 else shown


def in_points(value: Value) -> Value:
    """A difference of shares, in percentage points."""
    shown, low, high = (None if each is None else 100 * each for each in (value.value, value.low, value.high))
    return Value(shown, low, high, value.n, value.entities, value.reason)


def _is_clear(value: Value) -> bool:
    """Whether the interval of a difference leaves out zero."""
    return value.low is not None and value.high is not None and (value.low > 0 or value.high < 0)


def _scale_change(name: str, before: Value, change: Value, level: float) -> str:
    """How a mean changed during the conversation."""
    if change.value is None:
        return f"The change in {name} during the conversation is unknown: {change.reason}."
    moved = f"{with_interval(change, level, 'change')}, from a mean of {numbers.number(before.value)} before"
    if _is_clear(change):
        return f"During the conversation, the mean of {name} {'rose' if change.value > 0 else 'fell'} by {moved}."
    return f"No significant change in {name} during the conversation: {moved}."


def _share_changes(question: QuestionFigures, level: float) -> str:
    """How the shares of a choice changed during the conversation."""
    known = [(each.option, each.change) for each in _most_first(question) if each.change is not None]
    there = [(option, change) for option, change in known if change.value is not None]
    if not there:
        return f"The change in {question.id} during the conversation is unknown: {known[0][1].reason}."
    told = ", ".join(
        f"‘{option}’ {with_interval(in_points(change), level, 'change.1')}" for option, change in there[:MOST_OPTIONS]
    )
    clear = any(_is_clear(change) for _, change in there)
    begin = "Change in {} during the conversation" if clear else "No significant change in {} during the conversation"
    return f"{begin.format(question.id)}, in percentage points: {told}."


def _group_lines(question: QuestionFigures) -> Iterator[str]:
    """Which groups differ: by every pre-registered attribute, and by the exploratory one with the smallest p-value."""
    named = [each for each in question.dimensions if not each.exploratory and each.groups]
    others = [each for each in question.dimensions if each.exploratory and each.p_holm is not None]
    told = {each.name: p_values(each, named) for each in named}
    for each in named:
        if _differs(each.p_holm):
            yield f"{question.id} differs by {each.name} ({told[each.name]}): {_widest(question, each)}."
    if alike := [f"{each.name} ({told[each.name]})" for each in named if not _differs(each.p_holm)]:
        yield f"No significant difference in {question.id} by {' or by '.join(alike)}."
    if question.before is not None and named:
        told = {each.name: p_values(each, named, change=True) for each in named}
        for each in named:
            if _differs(each.change_p_holm):
                yield f"The change in {question.id} differs by {each.name} ({told[each.name]})."
        if alike := [f"{each.name} ({told[each.name]})" for each in named if not _differs(each.change_p_holm)]:
            yield f"No significant difference in the change in {question.id} by {' or by '.join(alike)}."
    if others:
        yield _nearest(question, min(others, key=lambda each: (each.p_holm, each.p)), others)


def _differs(p: float | None) -> bool:
    return p is not None and p < FOUND


def p_values(found: DimensionFigures, others: Sequence[DimensionFigures], *, change: bool = False) -> str:
    """The p-values of an attribute, adjusted for the others of its kind, or why there is no test."""
    p, holm = (found.change_p, found.change_p_holm) if change else (found.p, found.p_holm)
    if p is None or holm is None:
        return f"no test: {found.change_reason if change else found.reason}"
    among = len([each for each in others if (each.change_p if change else each.p) is not None])
    return f"{numbers.p_equals(p)}; Holm-adjusted {numbers.p_equals(holm)}, {numbers.plural(among, 'test')}"


def _nearest(question: QuestionFigures, found: DimensionFigures, others: Sequence[DimensionFigures]) -> str:
    """The exploratory attribute with the smallest p-value."""
    if _differs(found.p_holm):
        return (
            f"Exploratory: {question.id} differs by {found.name} ({p_values(found, others)}): "
            f"{_widest(question, found)}. To confirm it, run a new batch with --by {found.name}."
        )
    return (
        f"Exploratory: no significant difference in {question.id} by any other attribute; the smallest p-value is that "
        f"of {found.name} ({p_values(found, others)})."
    )


def _widest(question: QuestionFigures, found: DimensionFigures) -> str:
    """The two groups that differ most."""
    sides: dict[str, list[tuple[float, str]]] = {}
    for group in found.groups:
        values = [(f"‘{each.option}’", each.share) for each in group.options]
        values += [("mean", group.mean)] if group.mean is not None else []
        for what, value in values:
            if value.value is not None:
                sides.setdefault(what, []).append((value.value, group.value))
    what, apart = max(sides.items(), key=lambda each: max(each[1])[0] - min(each[1])[0])
    (low, least), (high, most) = min(apart), max(apart)
    worded = numbers.percent if question.options else numbers.number
    return f"{what} {worded(low)} for {least}, {worded(high)} for {most}"


def _conversation(study: BatchData, found: Conversation) -> str:
    if not found.lines:
        return "The conversation is missing."
    turns = numbers.plural(found.turns, "turn")
    return f"{numbers.plural(found.lines, 'line')} added; the conversation now has {turns}."


def key_figures(study: BatchData, analysis: Analysis) -> KeyFigures:
    """The key figures of a batch."""
    found, lines, spent = analysis.simulations, analysis.lines, whole_cost([study.summary])
    own = {each.id for each in study.rules.questionnaire.items} if study.rules.questionnaire is not None else set()
    given = [each.after for each in analysis.questions if each.id in own]
    asked, answered = (sum(getattr(each, name) for each in given) for name in ("asked", "answered"))
    unknown = f"{spent.unknown_asks:,} requests of unknown price" if spent.unknown_asks else "all prices known"
    words = "" if lines.words_per_line is None else f"{lines.words_per_line:.1f} words on average"
    talked, conditions = lines.count > 0, len(analysis.conditions)
    answers = [KeyFigure(f"{answered:,}", "answers after the conversation", f"of {asked:,} requested")] if asked else []
    if answers and conditions and not talked:
        answers = [KeyFigure(f"{answered:,}", "answers", f"of {asked:,} requested")]
    groups = KeyFigure(f"{analysis.met:,}", "combinations", f"of {_counted(analysis.combinations)} possible")
    if conditions:
        groups = KeyFigure(f"{conditions:,}", "conditions", f"{len(analysis.entities):,} entities")
    return KeyFigures(
        id="key-figures",
        figures=[
            KeyFigure(f"{found.usable:,}", "usable simulations", f"of {found.planned:,} planned"),
            groups,
            *([KeyFigure(f"{lines.count:,}", "lines", words)] if talked or not conditions else []),
            *answers,
            KeyFigure(cost(spent.usd, 0), "cost", unknown),
            KeyFigure(duration(study.summary.seconds), "time", f"{study.summary.asks.sent:,} requests sent"),
        ],
    )


def _block_id(kind: str, question: str) -> str:
    """The id of a block about a question. It is also a file name: rows of a matrix have a dot in their id."""
    return f"{kind}-{question.replace('.', '-')}"


def cell(value: Value | None) -> Estimate | None:
    """A value of an analysis as a table cell."""
    return None if value is None or value.value is None else Estimate(value.value, value.low, value.high)


def _why_none(values: Iterable[Value | None]) -> str:
    """Why some values have no interval."""
    reasons = dict.fromkeys(each.reason for each in values if each is not None and each.reason)
    return f" Some values have no interval: {', '.join(reasons)}." if reasons else ""


def choices_table(questions: Sequence[QuestionFigures], level: float) -> Table:
    """Every option of every choice: its share and how it changed."""
    options = [(question, each) for question in questions for each in _most_first(question)]
    twice = any(question.before is not None for question in questions)
    return Table(
        id="choices",
        title="Choices",
        part="findings",
        brief=True,
        columns={
            **{"question": "text", "option": "text", "answers": "count", "share": "share"},
            **({"before": "share", "change": "share_change"} if twice else {}),
        },
        rows=[
            (
                *(question.id, each.option, each.count, cell(each.share)),
                *((cell(each.before), cell(each.change)) if twice else ()),
            )
            for question, each in options
        ],
        caption=f"Shares of the answers after the conversation, with {level:.0%} intervals.{_twice(twice)} {ALLOWS}"
        f"{_why_none(each.share for _, each in options)}",
    )


def _twice(twice: bool) -> str:
    return f" Before: answers to the same questions before the conversation.{CHANGES}" if twice else ""


def _share(value: Value, count: int) -> Estimate | None:
    """A share as a cell, with its count."""
    return None if value.value is None else Estimate(value.value, value.low, value.high, count, value.n)


def scales_table(questions: Sequence[tuple[QuestionFigures, ScaleFigures]], level: float) -> Table:
    """Every scale: its mean and how it changed."""
    twice = any(scale.before is not None for _, scale in questions)
    return Table(
        id="scales",
        title="Scales",
        part="findings",
        brief=True,
        columns={
            **{"question": "text", "scale": "text", "answers": "count", "mean": "number", "sd": "number"},
            **({"before": "number", "change": "change"} if twice else {}),
        },
        rows=[
            (
                *(question.id, _ends(scale), question.after.answered, cell(scale.mean), scale.sd),
                *((cell(scale.before), cell(scale.change)) if twice else ()),
            )
            for question, scale in questions
        ],
        caption=f"Means of the answers after the conversation, with {level:.0%} intervals. sd is the standard "
        f"deviation of single answers.{_twice(twice)} {ALLOWS}{_why_none(scale.mean for _, scale in questions)}",
    )


def _ends(scale: ScaleFigures) -> str:
    return f"{scale.low:g} to {scale.high:g}" if scale.low is not None and scale.high is not None else "number"


def question_blocks(question: QuestionFigures, level: float, *, brief: bool) -> Iterator[Block]:
    """One question: a figure and a breakdown by each pre-registered attribute; for free text, examples."""
    if question.free is not None:
        yield Table(
            id=_block_id("answers", question.id),
            title=f"{question.id}: first answers",
            brief=brief,
            columns={"simulation": "text", "name": "text", "answer": "text"},
            rows=[(str(each.simulation), each.name, each.text) for each in question.free.examples],
            caption=f"{clipped(question.text, MOST_TEXT)} {_answered(question.after)}. See answers.csv for all.",
        )
        return
    if not question.after.answered:
        return
    if question.scale is None:
        yield options_figure(question, level)
    elif question.scale.steps:
        yield steps_figure(question, question.scale, level)
    if question.ranks:
        yield ranks_table(question, level)
    for found in [each for each in question.dimensions if not each.exploratory and each.groups]:
        yield by_group(question, found, level, id_=f"{question.id}-by-{found.name}", brief=brief)


def options_figure(question: QuestionFigures, level: float) -> Table:
    """The share of every option, after and before the conversation."""
    options, twice = _most_first(question), question.before is not None
    groups = [
        Group(
            name_of(each.option, 34),
            [
                drawings.share_point(each.share, f"{each.count:,}/{each.share.n:,}"),
                *([drawings.share_point(each.before, before=True)] if each.before is not None else []),
            ],
        )
        for each in options
    ]
    height = forest_height(groups)
    first = options[0]
    table = Table(
        id=_block_id("question", question.id),
        title=f"{question.id}: ‘{first.option}’ is the most frequent answer ({numbers.percent(first.share.value)})",
        columns={
            "option": "text",
            "share": "share",
            **({"before": "share", "change": "share_change"} if twice else {}),
        },
        rows=[
            (each.option, _share(each.share, each.count), *((cell(each.before), cell(each.change)) if twice else ()))
            for each in options
        ],
        caption=f"{clipped(question.text, MOST_TEXT)} Shares of {_answers(question.after)} after the "
        f"conversation, with {level:.0%} intervals.{_twice(twice)} {ALLOWS}{_why_none(each.share for each in options)}",
    )
    if sum(len(group.points) for group in groups) > MOST_DRAWN:
        return table
    label = f"share of answers, with {level:.0%} intervals"
    return table.drawn(
        (WIDTH, height), partial(drawings.shares, groups=groups, height=height, label=label, twice=twice)
    )


def ranks_table(question: QuestionFigures, level: float) -> Table:
    """The mean rank of each option of a ranking."""
    ranks, twice = sorted(question.ranks, key=lambda each: each.mean.value or 0), question.before is not None
    return Table(
        id=_block_id("ranks", question.id),
        title=f"{question.id}: mean ranks",
        columns={
            **{"option": "text", "mean rank": "number"},
            **({"before": "number", "change": "change"} if twice else {}),
        },
        rows=[
            (each.option, cell(each.mean), *((cell(each.before), cell(each.change)) if twice else ())) for each in ranks
        ],
        caption=f"1 is first. {level:.0%} intervals.{_twice(twice)} {ALLOWS}{_why_none(each.mean for each in ranks)}",
    )


def _answers(asked: Asked) -> str:
    return f"{asked.answered:,} answers (of {asked.asked:,} requested)"


def steps_figure(question: QuestionFigures, scale: ScaleFigures, level: float) -> Figure:
    """How often each step of a scale was chosen, with the mean."""
    whole = sum(each.count for each in scale.steps)
    rows: list[tuple[Cell, ...]] = [("mean after the conversation", question.after.answered, None, cell(scale.mean))]
    if scale.before is not None and question.before is not None:
        rows.append(("mean before the conversation", question.before.answered, None, cell(scale.before)))
        rows.append(("change", None if scale.change is None else scale.change.n, None, cell(scale.change)))
    rows += [(f"answered {each.step}", each.count, each.count / whole, None) for each in scale.steps]
    return Figure(
        id=_block_id("question", question.id),
        title=f"{question.id}: mean {numbers.number(scale.mean.value)} on a scale from {scale.low:g} to {scale.high:g}",
        columns={"": "text", "answers": "count", "share": "share", "value": "number"},
        rows=rows,
        caption=f"{clipped(question.text, MOST_TEXT)} Bars: the share of {_answers(question.after)} that chose each "
        f"step after the conversation. Above: the mean with its {level:.0%} interval."
        f"{_twice(scale.before is not None)} {ALLOWS}{_why_none([scale.mean])}",
        size=(WIDTH, drawings.STEPS_HEIGHT),
        draw=partial(drawings.steps, scale=scale, label=f"answer, from {scale.low:g} to {scale.high:g}"),
    )


def by_group(question: QuestionFigures, found: DimensionFigures, level: float, *, id_: str, brief: bool) -> Table:
    """The answers to a question by a pre-registered attribute."""
    twice = question.before is not None
    named = [each for each in question.dimensions if not each.exploratory]
    change = f" Test of the change: {p_values(found, named, change=True)}." if twice else ""
    cut = "" if found.cut is None else f" The two groups are split at {found.cut:g}."
    title = f"differs by {found.name}" if _differs(found.p_holm) else f"no significant difference by {found.name}"
    scale = question.scale
    table = Table(
        id=id_,
        title=f"{question.id}: {title} ({p_values(found, named)})",
        brief=brief,
        columns={"group": "text", **_group_columns(scale is not None, twice)},
        rows=[(each.value, *row) for each in found.groups for row in _group_rows(each, twice)],
        brief_columns=("group", "answers", "mean", "option", "share", "less the others", "change"),
        caption=f"Answers to {question.id} after the conversation by {found.name}, with {level:.0%} intervals. "
        "Less the others: the difference from all entities outside the group. The p-value is that of a permutation "
        "test over entities, adjusted (Holm) for the pre-registered attributes."
        f"{change}{cut} {ALLOWS}{_why_none(_group_values(found.groups))}",
    )
    groups = _mean_groups(found) if scale is not None else _option_groups(question, found)
    if sum(len(group.points) for group in groups) > MOST_DRAWN:
        return table
    height = forest_height(groups)
    if scale is None:
        label = f"share of answers per group, with {level:.0%} intervals"
        return table.drawn(
            (WIDTH, height), partial(drawings.shares, groups=groups, height=height, label=label, twice=False)
        )
    label = f"mean ({_ends(scale)}), with {level:.0%} intervals"
    ends = (scale.low, scale.high)
    draw = partial(drawings.means, groups=groups, height=height, label=label, ends=ends, twice=twice)
    return table.drawn((WIDTH, height), draw)


def _mean_groups(found: DimensionFigures) -> list[Group]:
    return [
        Group(
            name_of(each.value),
            [
                *([drawings.mean_point(each.mean, f"n {each.answered:,}")] if each.mean is not None else []),
                *([drawings.mean_point(each.before, before=True)] if each.before is not None else []),
            ],
        )
        for each in found.groups
    ]


def _option_groups(question: QuestionFigures, found: DimensionFigures) -> list[Group]:
    """Options, each with its share in every group."""
    places = {option.option: at for at, option in enumerate(question.options)}
    looks = drawings.LOOKS
    groups = []
    for option in _most_first(question):
        points: list[Point] = []
        for number, group in enumerate(found.groups):
            share = group.options[places[option.option]].share
            points.append(drawings.share_point(share, name_of(group.value, 16), looks[number % len(looks)]))
        groups.append(Group(name_of(option.option), points))
    return groups


def _group_columns(scale: bool, twice: bool) -> dict[str, Kind]:
    value, change = ("number", "change") if scale else ("share", "share_change")
    columns: dict[str, Kind] = {"entities": "count", "answers": "count"}
    columns |= {"mean": value} if scale else {"option": "text", "share": value}
    columns |= {"less the others": change}
    return columns | ({"before": value, "change": change, "change less the others": change} if twice else {})


def _group_rows(group: GroupFigures, twice: bool) -> Iterator[list[Cell]]:
    """The rows of a group: one for a scale, one per option for a choice."""
    parts: Sequence[GroupFigures | GroupOption] = group.options or [group]
    for each in parts:
        row: list[Cell] = [group.entities, group.answered]
        row += [each.option, _share(each.share, each.count)] if isinstance(each, GroupOption) else [cell(each.mean)]
        row.append(cell(each.difference))
        yield [*row, *([cell(each.before), cell(each.change), cell(each.change_difference)] if twice else [])]


def _group_values(groups: Sequence[GroupFigures]) -> Iterator[Value | None]:
    for group in groups:
        yield group.mean
        yield from (option.share for option in group.options)


def attribute_tables(questions: Sequence[QuestionFigures], level: float) -> Iterator[Table]:
    """The tests of all attributes, and answers by the exploratory ones."""
    looked = [(question, each) for question in questions for each in question.dimensions]
    if not looked:
        return
    twice = any(question.before is not None for question, _ in looked)
    yield Table(
        id="attributes",
        title="Attributes and answers",
        columns={
            **{"question": "text", "attribute": "text", "named in advance": "text", "p": "p", "p, Holm": "p"},
            **({"p of the change": "p", "its Holm": "p"} if twice else {}),
            "no test": "text",
        },
        rows=[
            (
                *(question.id, each.name, not each.exploratory, each.p, each.p_holm),
                *((each.change_p, each.change_p_holm) if twice else ()),
                each.reason,
            )
            for question, each in looked
        ],
        caption="Permutation tests of whether answers depend on an attribute of the entities. Holm adjustment is done "
        "separately for attributes named in advance (pre-registered) and for all others (exploratory). Confirm an "
        "exploratory result in a new batch.",
    )
    for scale, name in ((True, "Scales"), (False, "Choices")):
        some = [
            (question, each)
            for question, each in looked
            if each.exploratory and each.groups and (question.scale is not None) == scale
        ]
        if some:
            yield Table(
                id=f"{name.lower()}-by-group",
                title=f"{name} by exploratory attribute",
                columns={"question": "text", "attribute": "text", "group": "text", **_group_columns(scale, twice)},
                rows=[
                    (question.id, each.name, group.value, *row)
                    for question, each in some
                    for group in each.groups
                    for row in _group_rows(group, twice)
                ],
                caption=f"Answers after the conversation, with {level:.0%} intervals. Less the others: the difference "
                "from all entities outside the group."
                f"{_why_none(value for _, each in some for value in _group_values(each.groups))}",
                folded=True,
            )


def entities_table(analysis: Analysis) -> Table:
    """The entities that took part."""
    return Table(
        id="entities",
        title="Entities",
        columns={"name": "text", "id": "text", "simulations": "count", "lines": "count", "words per line": "number.1"},
        rows=[(each.name, each.id, each.simulations, each.lines, each.words_per_line) for each in analysis.entities],
        caption="Counts over the usable simulations of each entity.",
    )


def run_blocks(study: BatchData) -> Iterator[Block]:
    """Settings, context, questionnaire and prompts."""
    yield from about_run([study.summary], [study.record], study.held, _settings(study))
    settings = study.settings
    first = settings.context if isinstance(settings, Batch) else settings.simulation.context
    later = () if isinstance(settings, Batch) else settings.simulation.later
    yield Text(
        id="context",
        title="Context",
        part="run",
        lines=[settings.description] if isinstance(settings, Batch) and settings.description else [],
        passages=[
            Passage("context", first, open=True),
            *(Passage(f"added after {each.lines:,} lines", each.context, open=True) for each in later),
        ],
    )
    if study.questions:
        yield questionnaire_table(study)
    if passages := list(_prompts(study)):
        about = "The first and the last message of the requests in the first simulation."
        yield Text(id="prompts", title="Prompts", part="run", lines=[about], passages=passages)


def _settings(study: BatchData) -> Iterator[tuple[str, str]]:
    settings, rules, analysis = study.settings, study.rules, study.analysis
    if isinstance(settings, Batch):
        yield "entities", f"{len(settings.entities):,}, {settings.interaction_size:,} per simulation"
        often = "once" if settings.replicates == 1 else f"up to {settings.replicates:,} times"
        yield "simulations", f"{settings.num_simulations:,}, each combination {often}"
        yield "who speaks first", "drawn at random" if settings.order == "random" else "in the given order"
        yield "named in advance", ", ".join(settings.by)
        yield "within subjects", ", ".join(settings.within)
        yield "balanced in random assignment", ", ".join(settings.stratify)
        yield "seats", "; ".join(_seat(each) for each in settings.seats)
    else:
        yield "continues", settings.continues or ""
    yield "model", rules.model
    yield "models of entities", ", ".join(dict.fromkeys(each.model for each in study.entities if each.model))
    yield "turns", f"{rules.n_turns:,} per round, {numbers.plural(rules.simulation_rounds, 'round')}"
    yield "method", rules.method
    yield "style", rules.style
    yield "language", rules.language
    yield "who speaks next", "" if rules.speakers == "order" else rules.speakers
    yield "ends when", rules.until
    yield "events", _events(rules.events)
    yield "new partners each round", f"{rules.partners:,}" if rules.partners else ""
    yield "remember", "" if rules.remember is None else f"{rules.remember:,} characters word for word, then a summary"
    yield "judges", ", ".join(rules.scoring.judges or (rules.model,)) if rules.scoring is not None else ""
    yield "thoughts", "requested" if rules.thoughts else "not requested"
    yield "temperature", "provider default" if rules.temperature is None else f"{rules.temperature:g}"
    yield "reply tokens", f"at most {rules.max_tokens:,}"
    yield "prompts", f"{analysis.prompts} (hash; do not compare batches with different prompts)"


def questionnaire_table(study: BatchData) -> Table:
    """The questions."""
    sheet = study.rules.questionnaire
    if sheet is None:
        return Table(
            id="questionnaire",
            title="Scores",
            part="run",
            columns={"id": "text", "measure": "text"},
            rows=[(each.id, each.text) for each in study.questions],
            caption="What judges scored.",
        )
    when = "before and after the conversation" if sheet.before else "after the conversation"
    when = when if study.rules.n_turns else "in random order" if sheet.shuffle_questions else "in this order"
    order = "Each entity got the options in random order." if sheet.shuffle else "Options were shown in this order."
    return Table(
        id="questionnaire",
        title="Questionnaire",
        part="run",
        columns={"id": "text", "question": "text", "type": "text", "answers": "text"},
        rows=[
            *((each.id, each.text, each.type, _possible(each)) for each in sheet.items),
            *((each.id, each.text, "score of judges", _possible(each)) for each in study.questions[len(sheet.items) :]),
        ],
        caption=f"Asked of every entity {when}. {order}",
    )


def _possible(question: Question) -> str:
    if question.is_scale:
        ends = (question.low, question.low_label), (question.high, question.high_label)
        return " to ".join(f"{step} ({label})" if label else str(step) for step, label in ends)
    if question.type == "number":
        bounds = [f"{word} {end:g}" for word, end in (("from", question.min), ("to", question.max)) if end is not None]
        return " ".join(["a number", *bounds])
    return " | ".join(question.options) or "in their own words"


def _prompts(study: BatchData) -> Iterator[Passage]:
    """The prompts of the first simulation, as far as the current program still sends them."""
    first = next(study.simulations(), None)
    if first is None:
        return
    exchanges = StoredRun(study.record, study.held.results(study.record)).transcript(first[0]).exchanges
    moments: dict[str, tuple[str, Chat]] = {}
    for each in exchanges:
        if isinstance(each.request, Chat):
            asks = each.request.schema is not None
            spoke = "to speak" in moments
            moment = "to speak" if not asks else "questions after" if spoke else "questions before"
            moments.setdefault(moment, (each.label, each.request))
    for moment, (label, request) in moments.items():
        for message in (request.messages[0], request.messages[-1]):
            yield Passage(f"{label}, {moment}: {message.role}", str(message.content))


def contrast_blocks(found: Contrast) -> Iterator[Block]:
    """The differences between two batches: the first minus the second."""
    altered = f", {found.altered:,} of these changed" if found.altered else ""
    yield Text(
        id="contrast",
        title=f"{found.one} minus {found.other}",
        lines=[
            *(f"  {name}: {_setting(one)} and {_setting(other)}" for name, (one, other) in found.differ.items()),
            *([] if found.differ else ["  settings: identical"]),
            f"  entities: {found.entities[0]:,} and {found.entities[1]:,}, {found.common:,} in both{altered}",
        ],
    )
    for question in found.questions:
        yield from _question_gap(question, found)
    if found.left_out:
        lines = [f"{name} was left out: {reason}" for name, reason in found.left_out.items()]
        yield Text(id="left-out", title="Left out", lines=lines)


def _setting(value: object) -> str:
    return "none" if value in (None, "") else clipped(" ".join(str(value).split()), MOST_TEXT)


def _question_gap(question: QuestionGap, found: Contrast) -> Iterator[Block]:
    reworded = ["The wording differs between the two batches."] if question.reworded else []
    yield Text(
        id=_block_id("question", question.id),
        title=f"{question.id}: {clipped(' '.join(question.text.split()), MOST_TEXT)}",
        lines=[*reworded, _paired(question)],
    )
    twice = any(each.change is not None for each in question.gaps)
    yield Table(
        id=_block_id("gaps", question.id),
        columns=_gap_columns(question, found, ["in the change"] if twice else []),
        rows=[[*_gap(each), *([cell(each.change)] if twice else [])] for each in question.gaps],
    )
    yield from _reasons(f"gaps-{question.id}", [each.difference for each in question.gaps])
    for at, dimension in enumerate(question.dimensions):
        yield from _dimension_gap(dimension, question, found, f"by-{at + 1}-{question.id}")


def _paired(question: QuestionGap) -> str:
    """How the answers of the two batches are paired."""
    here, there = question.answers
    if question.pairing == "simulation":
        return (
            f"paired by simulation: {question.pairs:,} pairs of answers by the same entity in the same combination and "
            f"replicate (of {here:,} and {there:,} answers)"
        )
    if question.pairing == "entity":
        return (
            f"paired by entity: {question.pairs:,} entities that answered in both batches "
            f"({here:,} and {there:,} answers)"
        )
    one, other = question.entities
    whose = f"{here:,} answers of {one:,} entities and {there:,} of {other:,}"
    return f"not paired: fewer than half of the entities are in both batches ({whose})"


def _gap_columns(
    question: QuestionGap, found: Contrast, last: Sequence[str], first: Sequence[tuple[str, Kind]] = ()
) -> dict[str, Kind]:
    """The columns of a table of differences. Batches and attributes may have the same name."""
    scale = question.type in ("scale", "number")
    value, change = ("number", "change") if scale else ("share", "share_change")
    columns = [*first, *([] if scale else [("option", "text")]), (found.one, value), (found.other, value)]
    columns += [(name, change) for name in (f"difference ({found.level:.0%} interval)", *last)]
    return dict(zip(distinct_names([name for name, _ in columns]), [kind for _, kind in columns], strict=True))


def _gap(gap: Gap) -> list[Cell]:
    values: list[Cell] = [gap.one, gap.other, cell(gap.difference)]
    return values if gap.option is None else [gap.option, *values]


def _reasons(id_: str, values: Sequence[Value]) -> Iterator[Text]:
    if why := _why_none(values):
        yield Text(id=f"reasons-{id_}", lines=[why.strip()])


def _dimension_gap(dimension: DimensionGap, question: QuestionGap, found: Contrast, id_: str) -> Iterator[Block]:
    """The difference between the batches for each value of an attribute."""
    if not dimension.groups:
        yield Text(id=id_, lines=[f"by {dimension.name}: no breakdown: {dimension.reason}"])
        return
    among = len([each for each in question.dimensions if each.p is not None])
    yield Text(id=id_, lines=[f"by {dimension.name}: {_verdict(dimension, among)}"])
    yield Table(
        id=f"groups-{id_}",
        columns=_gap_columns(
            question, found, ["less that of the others"], [(dimension.name, "text"), ("entities", "count")]
        ),
        rows=[
            [group.value, group.entities, *_gap(gap), cell(group.apart[at]) if group.apart else None]
            for group in dimension.groups
            for at, gap in enumerate(group.gaps)
        ],
    )
    yield from _reasons(id_, [gap.difference for group in dimension.groups for gap in group.gaps])


def _verdict(dimension: DimensionGap, among: int) -> str:
    if dimension.p is None or dimension.p_holm is None:
        return f"no test: {dimension.reason}"
    adjusted = numbers.p_equals(dimension.p_holm)
    tested = f"({numbers.p_equals(dimension.p)}; Holm-adjusted {adjusted}, {numbers.plural(among, 'test')})"
    if dimension.p_holm < FOUND:
        return f"the difference between the batches depends on it {tested}"
    return f"no significant effect on the difference between the batches {tested}"
