"""Compare the answers of two batches, paired where possible.

simulation  both ran the same combinations: each answer is paired with that of the same entity in the same combination
            and replicate
entity      both have the same entities in different company: the mean of each entity is paired with its own mean
none        the entities differ: the means of the two batches are compared

Intervals account for entities and their company, as in the analysis of one batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.batch import Batch
from groundswell.experiments.simulations.dimensions import divided
from groundswell.experiments.simulations.entities import Entity
from groundswell.experiments.simulations.gaps import LEVEL, Compared, DimensionGap, Gap, Pairing, Sides, paired_by
from groundswell.experiments.simulations.questions import Kind, Question, Value, aligned
from groundswell.experiments.simulations.sheets import NO_ANSWER, Codes
from groundswell.experiments.simulations.simulation import Rules
from groundswell.stats.clusters import rows
from groundswell.stats.compare import holm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from groundswell.experiments.simulations.reading import SimulationShown

    Ints = NDArray[np.int64]


class QuestionGap(msgspec.Struct, frozen=True):
    """The comparison of one question. A scale has one gap, a choice one per option.

    pairs     number of pairs: of answers or of entities; 0 if not paired
    reworded  whether the wording differs between the batches
    """

    id: str
    text: str
    type: Kind
    pairing: Pairing
    pairs: int
    answers: tuple[int, int]
    entities: tuple[int, int]
    gaps: list[Gap]
    dimensions: list[DimensionGap]
    reworded: bool = False


class Contrast(msgspec.Struct, frozen=True):
    """The first batch minus the second.

    common    number of entities in both batches, by id and name
    altered   number of these with a different description, attributes or model in the second batch
    differ    settings that differ, with both values
    left_out  questions that cannot be compared, with the reason
    """

    one: str
    other: str
    entities: tuple[int, int]
    common: int
    altered: int
    differ: dict[str, tuple[Any, Any]]
    questions: list[QuestionGap]
    left_out: dict[str, str]
    level: float = LEVEL


class Taken(NamedTuple):
    """A batch, or one condition of a study, and its simulations."""

    batch: Batch
    simulations: Iterable[SimulationShown]
    name: str = ""
    """The default is the name of the batch."""


def contrast(one: Taken, other: Taken, by: Sequence[str] = ()) -> Contrast:
    """Compare two batches, also by the attributes that either was run with `--by`."""
    sheets = [each.batch.rules.questionnaire for each in (one, other)]
    twice = [{each.id for each in sheet.items} if sheet is not None and sheet.before else set() for sheet in sheets]
    asked = [_items_of(each.batch.rules) for each in (one, other)]
    shared, left_out = _shared(*asked)
    if not shared:
        raise SettingsError(_nothing_shared(left_out))
    ground = Ground()
    sides = [ground.gathered(each, shared) for each in (one, other)]
    field = _Field(ground, twice[0] & twice[1], _named(one, other, by))
    people = [{(each.id, each.name): each for each in taken.batch.entities} for taken in (one, other)]
    common = people[0].keys() & people[1].keys()
    return Contrast(
        one=one.name or one.batch.name,
        other=other.name or other.batch.name,
        entities=(len(people[0]), len(people[1])),
        common=len(common),
        altered=sum(people[0][each] != people[1][each] for each in common),
        differ=differing(one.batch, other.batch),
        questions=[
            field.question(question, (sides[0][id_], sides[1][id_]), reworded=asked[1][id_].text != question.text)
            for id_, question in shared.items()
        ],
        left_out=left_out,
    )


def differing(one: Batch, other: Batch) -> dict[str, tuple[Any, Any]]:
    """The settings that differ, apart from entities, questions and measures."""
    names = [name for name in one.rules.__struct_fields__ if name not in ("questionnaire", "scoring")]
    pairs: dict[str, tuple[Any, Any]] = {name: (getattr(one.rules, name), getattr(other.rules, name)) for name in names}
    first, second = ([*each.rules.scoring.judges] if each.rules.scoring else [] for each in (one, other))
    pairs["judges"] = (first, second)
    for name in ("context", "interaction_size", "replicates", "order"):
        pairs[name] = (getattr(one, name), getattr(other, name))
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _shared(one: dict[str, Question], other: dict[str, Question]) -> tuple[dict[str, Question], dict[str, str]]:
    """The questions that can be compared, and why the others cannot."""
    shared: dict[str, Question] = {}
    left_out: dict[str, str] = {}
    for id_, question in one.items():
        if (there := other.get(id_)) is None:
            left_out[id_] = "the second batch does not have it"
        elif question.type == "text" or there.type != question.type:
            left_out[id_] = "free text cannot be compared" if there.type == question.type else "its type differs"
        elif set(question.options) != set(there.options):
            left_out[id_] = "its options differ"
        elif any(getattr(question, name) != getattr(there, name) for name in ("low", "high", "min", "max")):
            left_out[id_] = "its scale differs"
        else:
            shared[id_] = question
    left_out.update({id_: "the first batch does not have it" for id_ in other if id_ not in one})
    return shared, left_out


def _nothing_shared(left_out: dict[str, str]) -> str:
    why = "; ".join(f"{id_}: {reason}" for id_, reason in left_out.items())
    told = f": {why}" if why else "; run both with the same --questions"
    return f"the two batches have no question that can be compared{told}"


def _named(one: Taken, other: Taken, by: Sequence[str]) -> list[str]:
    names = dict.fromkeys([*one.batch.by, *other.batch.by, *by])
    there = {name for taken in (one, other) for entity in taken.batch.entities for name in entity.attributes}
    for name in names:
        if name not in there:
            raise SettingsError(f"by: no entity has an attribute {name!r}", field="by")
    return list(names)


class Ground:
    """Numbers of entities and of their companies, shared by both batches."""

    def __init__(self) -> None:
        self.people: list[Entity] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._companies: dict[tuple[int, ...], int] = {}
        self._occasions: dict[tuple[str, int], int] = {}
        """Conditions with replicates: a company meets once in each."""
        self.codes: dict[str, Codes] = {}
        """Numbers for the answers to each question."""

    @property
    def companies(self) -> list[tuple[int, ...]]:
        """The members of each company."""
        return list(self._companies)

    def gathered(self, taken: Taken, questions: dict[str, Question]) -> dict[str, Ints]:
        """The answers to each question, one row each: entity, company, occasion, answer before and after."""
        import numpy as np

        own = {entity.id: self._person(entity) for entity in taken.batch.entities}
        common = _items_of(taken.batch.rules)
        items = {each.name: _items_of(each.rules) for each in taken.batch.conditions} or {"": common}
        for id_, question in questions.items():
            self.codes.setdefault(id_, Codes(question))
        tables = {id_: array("q") for id_ in questions}
        for shown in taken.simulations:
            if shown.status != "completed":
                continue
            there = [each for each in shown.entity_ids if each in own]  # own participants are not compared
            members = tuple(sorted(own[each] for each in there))
            company = self._companies.setdefault(members, len(self._companies))
            condition = shown.metadata.get("condition", "") if taken.batch.conditions else ""
            occasion = self._occasions.setdefault((condition, shown.metadata["replicate"]), len(self._occasions))
            given: dict[tuple[str, str, bool], Value] = {}
            for answer in shown.answers:
                asked = items[condition].get(answer.question)
                if answer.value is not None and asked is not None and answer.question in questions:
                    value = aligned(answer.value, asked, common[answer.question])
                    given.setdefault((answer.question, answer.entity_id, answer.before), value)
            for id_, table in tables.items():
                for entity in there:
                    coded = (self.codes[id_].of(given.get((id_, entity, before))) for before in (True, False))
                    table.extend((own[entity], company, occasion, *coded))
        return {id_: np.array(table, dtype=np.int64).reshape(-1, 5) for id_, table in tables.items()}

    def _person(self, entity: Entity) -> int:
        number = self._numbers.setdefault((entity.id, entity.name), len(self.people))
        if number == len(self.people):
            self.people.append(entity)
        return number


def _items_of(rules: Rules) -> dict[str, Question]:
    """The questions and the numbers of judges, by id."""
    return {each.id: each for each in rules.questions}


class _Field(NamedTuple):
    """What all questions share: entities and companies, the questions that both batches also asked before the
    conversation, and the attributes.
    """

    ground: Ground
    twice: set[str]
    by: list[str]

    def question(self, question: Question, tables: tuple[Ints, Ints], *, reworded: bool) -> QuestionGap:
        """Compare one question."""
        import numpy as np

        table, first = np.concatenate(tables), np.arange(len(tables[0]) + len(tables[1])) < len(tables[0])
        found = rows(np.zeros(len(table)), table[:, 0], table[:, 1], self.ground.companies)
        sides = Sides(found, first, table[:, 2], table[:, 3], table[:, 4])
        answered = sides.among(sides.after != NO_ANSWER)
        pairing, pairs = paired_by(answered)
        values = self.ground.codes[question.id].values
        compared, who = Compared(question, values, sides, pairing, question.id in self.twice), answered.rows.who
        people = self.ground.people
        return QuestionGap(
            id=question.id,
            text=question.text,
            type=question.type,
            pairing=pairing,
            pairs=pairs,
            answers=(int(answered.first.sum()), int((~answered.first).sum())),
            entities=(len(np.unique(who[answered.first])), len(np.unique(who[~answered.first]))),
            gaps=compared.gaps(),
            dimensions=_adjusted([compared.by(name, divided(people, name, named=True)) for name in self.by]),
            reworded=reworded,
        )


def _adjusted(dimensions: Sequence[DimensionGap]) -> list[DimensionGap]:
    adjusted = iter(holm([each.p for each in dimensions if each.p is not None]))
    return [each if each.p is None else msgspec.structs.replace(each, p_holm=next(adjusted)) for each in dimensions]
