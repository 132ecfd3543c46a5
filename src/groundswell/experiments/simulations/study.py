"""Studies: from factors and levels to conditions. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.analysis import announced_power, levels_of
from groundswell.experiments.simulations.batch import Batch, Condition
from groundswell.experiments.simulations.combinations import possible
from groundswell.experiments.simulations.entities import check_name
from groundswell.experiments.simulations.options import Level, Study
from groundswell.experiments.simulations.questions import PIPED, Question, Questionnaire, Wanted
from groundswell.experiments.simulations.seats import Seat
from groundswell.experiments.simulations.simulation import Rules
from groundswell.reporting import numbers

MOST_CONDITIONS = 200
SAME = ("type", "low", "high", "min", "max")
"""What the questions of all conditions must have in common, apart from the number of options."""
FACTOR = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def conditions_of(options: Study, entities: int, rules: Callable[[Study], Rules]) -> tuple[Condition, ...]:
    """The conditions of a study with this many entities. `rules` makes the rules from the options of a condition."""
    _check_factors(options)
    crossed = list(_crossed(options.factors))
    cells = list(dict.fromkeys(_cell(levels, options.within) for levels in crossed))
    if entities < len(cells):
        raise SettingsError(
            f"entities: {entities} given, but the study has {len(cells)} between-subject groups; give at least "
            f"{len(cells)}",
            field="entities",
        )
    found = []
    for levels in crossed:
        one = applied(options, levels)
        size = one.interaction_size or 1
        mine = len(range(cells.index(_cell(levels, options.within)), entities, len(cells)))
        number = one.num_simulations
        if number is None:
            drawn = sum(not seat.is_own for seat in one.seats) if one.seats else size
            if drawn > 1:
                raise SettingsError(
                    f"num_simulations is required for conversations; a condition has {mine:,} entities, which are "
                    f"{numbers.plural(possible(mine, drawn), 'combination')} of {drawn}",
                    field="num_simulations",
                )
            number = mine * (options.replicates or 1)
        name = ", ".join(levels.values()) or "all"
        found.append(Condition(name, levels, one.context or "", rules(one), size, number, one.seats))
    _check_placeholders(options)
    for each in found:
        check_name(each.name, "condition")
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"factors: two conditions are called {twice!r}; rename a level", field="factors")
    return tuple(found)


def base_rules(options: Study, conditions: Sequence[Condition], rules: Callable[[Study], Rules]) -> Rules:
    """The rules of a study as a whole: its questionnaire has the questions of all conditions."""
    turns = max(each.rules.n_turns for each in conditions)
    own = any(map(_has_models, options.factors.values()))
    model = options.model or ((conditions[0].rules.model,) if own else ())
    base = rules(applied(msgspec.structs.replace(options, n_turns=turns, model=model), {}))
    return msgspec.structs.replace(base, questionnaire=_common(base.questionnaire, conditions))


def _has_models(levels: Mapping[str, str | Level]) -> bool:
    """Whether every level has a model of its own."""
    return all(isinstance(each, Level) and each.model is not None for each in levels.values())


def _common(base: Questionnaire | None, conditions: Sequence[Condition]) -> Questionnaire | None:
    """The questionnaire of a study, with the questions that only some conditions ask."""
    for condition in conditions:
        own = condition.rules.questionnaire
        if base is None or own is None:
            base = base or own
            continue
        if own.before != base.before:
            raise SettingsError(f"questions: `before` differs in condition {condition.name!r}", field="questions")
        items = {each.id: each for each in base.items}
        for each in own.items:
            if each.id in items and (differs := _differing(each, items[each.id])):
                raise SettingsError(
                    f"question {each.id!r}: {differs} differs in condition {condition.name!r}; give the question "
                    "another id",
                    field="questions",
                )
        more = tuple(each for each in own.questions if not {one.id for one in each.items} <= items.keys())
        base = msgspec.structs.replace(base, questions=(*base.questions, *more)) if more else base
    return base


def _differing(one: Question, other: Question) -> str:
    """What makes the answers of two questions incomparable. `other` is worded with placeholders."""
    if len(one.options) != len(other.options):
        return "the number of options"
    pairs = zip(one.options, other.options, strict=True)
    if set(one.options) != set(other.options) and any(mine != its and "{" not in its for mine, its in pairs):
        return "an option"
    return next((name for name in SAME if getattr(one, name) != getattr(other, name)), "")


def _check_factors(options: Study) -> None:
    questions = {each.id for each in _questions(options.questions)}
    for level in [level for levels in options.factors.values() for level in levels.values()]:
        questions |= {each.id for each in _questions(level.questions if isinstance(level, Level) else None)}
    many = 1
    for factor, levels in options.factors.items():
        if FACTOR.fullmatch(factor) is None:
            raise SettingsError(
                f"factors: {factor!r} may contain only letters, digits, hyphens and underscores, and must start with a "
                "letter",
                field="factors",
            )
        if factor in questions:
            raise SettingsError(f"factors: {factor!r} is also the id of a question; rename one", field="factors")
        if len(levels) < 2:
            raise SettingsError(f"factors: {factor!r} needs at least two levels", field="factors")
        for level in levels:
            check_name(level, f"level of {factor}")
        many *= len(levels)
    if many > MOST_CONDITIONS:
        raise SettingsError(f"factors: {many:,} conditions; at most {MOST_CONDITIONS} are allowed", field="factors")
    for name in options.within:
        if name not in options.factors:
            there = ", ".join(options.factors) or "none"
            raise SettingsError(f"within: there is no factor {name!r}; the factors are {there}", field="within")


def _check_placeholders(options: Study) -> None:
    """Refuse factors whose placeholder is nowhere, since their levels change nothing."""
    everything = str(
        msgspec.to_builtins(msgspec.structs.replace(options, entities=None, contrasts=(), description=None))
    )
    for factor, levels in options.factors.items():
        has_text = any(each if isinstance(each, str) else each.text for each in levels.values())
        if has_text and f"{{{factor}}}" not in everything:
            raise SettingsError(
                f"factors: {factor!r} has texts, but {{{factor}}} is in no context, question, seat or event",
                field="factors",
            )


def _questions(given: Questionnaire | tuple[Question, ...] | None) -> tuple[Question, ...]:
    return given.questions if isinstance(given, Questionnaire) else given or ()


def _crossed(factors: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """All combinations of levels."""
    for chosen in product(*factors.values()):
        yield dict(zip(factors, chosen, strict=True))


def _cell(levels: Mapping[str, str], within: tuple[str, ...]) -> tuple[str, ...]:
    """The levels that entities are assigned to."""
    return tuple(level for factor, level in levels.items() if factor not in within)


def applied(options: Study, levels: Mapping[str, str]) -> Study:
    """The options of one condition: settings of its levels, and texts with the placeholders filled in."""
    texts: dict[str, str] = {}
    for factor, level in levels.items():
        found = options.factors[factor][level]
        found = Level(text=found) if isinstance(found, str) else found
        texts[factor] = level if found.text is None else found.text
        own = {name: getattr(found, name) for name in found.__struct_fields__ if name != "text"}
        own = {name: value for name, value in own.items() if value is not None}
        if "model" in own:
            own["model"] = (own["model"],)
        options = msgspec.structs.replace(options, **own)
    size = options.interaction_size or len(options.seats) or 1
    turns = options.n_turns if options.n_turns is not None else int(size > 1)
    return msgspec.structs.replace(
        options,
        context=_filled(options.context or "", texts),
        until=None if options.until is None else _filled(options.until, texts),
        events=tuple(msgspec.structs.replace(each, text=_filled(each.text, texts)) for each in options.events),
        seats=tuple(_filled_seat(seat, texts) for seat in options.seats),
        questions=_filled_questions(options.questions, texts),
        interaction_size=size,
        n_turns=turns,
    )


def _filled(text: str, texts: Mapping[str, str]) -> str:
    for factor, level in texts.items():
        text = text.replace(f"{{{factor}}}", level)
    return text


def _filled_seat(seat: Seat, texts: Mapping[str, str]) -> Seat:
    texts_of = {name: _filled(getattr(seat, name), texts) for name in ("description", "role", "goal")}
    return msgspec.structs.replace(seat, script=tuple(_filled(line, texts) for line in seat.script), **texts_of)


def _filled_questions(
    given: Questionnaire | tuple[Question, ...] | None, texts: Mapping[str, str]
) -> Questionnaire | tuple[Question, ...] | None:
    if given is None:
        return None
    questions = tuple(
        msgspec.structs.replace(
            each,
            text=_filled(each.text, texts),
            low_label=_filled(each.low_label, texts),
            high_label=_filled(each.high_label, texts),
            when={name: _filled_wanted(wanted, texts) for name, wanted in each.when.items()},
            options=tuple(_filled(option, texts) for option in each.options),
            rows={name: _filled(text, texts) for name, text in each.rows.items()},
        )
        for each in _questions(given)
    )
    return msgspec.structs.replace(given, questions=questions) if isinstance(given, Questionnaire) else questions


def _filled_wanted(wanted: Wanted, texts: Mapping[str, str]) -> Wanted:
    if isinstance(wanted, tuple):
        return tuple(_filled(each, texts) if isinstance(each, str) else each for each in wanted)
    return _filled(wanted, texts) if isinstance(wanted, str) else wanted


def check_contrasts(batch: Batch) -> None:
    """Raise `SettingsError` for contrasts that the study cannot answer."""
    sheet, names = batch.rules.questionnaire, [each.name for each in batch.contrasts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"contrasts: two are called {twice!r}; rename one", field="contrasts")
    questions = {each.id: each for each in batch.rules.questions}
    for each in batch.contrasts:
        each.check(levels_of(batch), questions, twice=sheet is not None and sheet.before)


def study_notes(batch: Batch) -> Iterator[str]:
    """What will run, and with what power."""
    sizes = [len(each) for each in batch.assigned(0)]
    least, most = min(sizes), max(sizes)
    each = f"{least:,}" if least == most else f"{least:,} or {most:,}"
    yield (
        f"{len(batch.entities):,} entities in "
        f"{numbers.plural(len(batch.conditions), 'condition')}, {each} in each; "
        f"{numbers.plural(batch.num_simulations, 'simulation')}"
    )
    for power in announced_power(batch):
        yield power.worded
    yield from unknown_placeholders(batch)


def unknown_placeholders(batch: Batch) -> Iterator[str]:
    """Words in braces that are no factor and no earlier question. They are sent as they are."""
    sheet = batch.rules.questionnaire
    known = {factor for each in batch.conditions for factor in each.levels}
    for question in () if sheet is None else sheet.questions:
        for text in (question.text, *question.rows.values()):
            strange = [name for name in PIPED.findall(text) if name not in known]
            if strange:
                yield (
                    f"question {question.id!r}: {{{strange[0]}}} is neither a factor nor an earlier question, and is "
                    "sent as it is"
                )
        known |= {each.id for each in question.items}
