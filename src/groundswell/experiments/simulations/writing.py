"""Entities written by a model: the program that writes one, and the driver that writes many.

Left to itself, a model writes the same few people again and again. So the attributes of each entity are sampled first,
from the distributions of its type, and the model writes a name, a description and the free-text attributes. With
`free`, the model chooses all attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf
from random import Random
from typing import Any

import msgspec

from groundswell.engine.run import Run
from groundswell.errors import MalformedReply, SettingsError
from groundswell.estimate.declared import estimates
from groundswell.estimate.figures import Estimate
from groundswell.estimate.sample import rehearse
from groundswell.experiments.settled import carry_out, settled
from groundswell.experiments.simulations.catalogue import Catalogue
from groundswell.experiments.simulations.entities import LONGEST_NAME, Dimension, Entity, EntityType, Value, check_text
from groundswell.experiments.simulations.sampling import MOST_SAMPLED, Names, implausible, profile
from groundswell.program.request import Chat, ChatOptions, Fault, assistant, user
from groundswell.program.trial import Trial, program

MOST_WRITTEN = 10_000
LONGEST_WISHES = 10_000
REPLIES = (60, inf)
"""Tokens per written entity, for estimates."""
EXAMPLES = 3

DESCRIBE = (
    "Write a name, and a description of two to four sentences in the third person: concrete, believable, free of "
    "clichés, and in keeping with everything above."
)
ANOTHER = "Do not take the first name that comes to mind. For the style, where that fits, but make up another: {names}."


class Writing(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings of the driver `write`. `wishes` are additional requirements in words."""

    type: EntityType
    count: int
    model: str
    wishes: str = ""
    free: bool = False
    temperature: float | None = None
    max_tokens: int = 1_000

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_WRITTEN:
            raise SettingsError(f"count {self.count}: must be from 1 to {MOST_WRITTEN:,}", field="count")
        if not self.model.strip():
            raise SettingsError("model is empty; write it as provider/model", field="model")
        check_text(self.wishes, "wishes", LONGEST_WISHES)
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise SettingsError(f"temperature {self.temperature}: must be from 0 to 2", field="temperature")
        if not 1 <= self.max_tokens <= 100_000:
            raise SettingsError(f"max_tokens {self.max_tokens}: must be from 1 to 100,000", field="max_tokens")


class Sketch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spec of one trial: the type without its names, the sampled attributes, and example names."""

    number: int
    type: EntityType
    attributes: dict[str, Value]
    names: tuple[str, ...]
    model: str
    wishes: str = ""
    temperature: float | None = None
    max_tokens: int = 1_000

    @property
    def open(self) -> list[Dimension]:
        """The dimensions that the model writes."""
        return [dimension for dimension in self.type.dimensions if dimension.name not in self.attributes]


class Draft(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply of a model."""

    name: str
    description: str
    attributes: dict[str, Value] = {}


class Written(msgspec.Struct, frozen=True):
    """The result of a run. `same_name` counts entities with the same name as an earlier one; they are kept.

    `faults` counts missing entities by kind of fault. Unfinished entities are neither usable nor missing. `implausible`
    counts entities to which a check of the type applies, or whose name contradicts their gender; they are kept.
    """

    entities: tuple[Entity, ...]
    planned: int
    usable: int
    missing: int
    same_name: int
    faults: dict[str, int]
    implausible: int = 0


@program("simulations/write", version=1)
async def write_one(trial: Trial, spec: Sketch) -> Draft:
    """Ask for one entity. If the reply does not conform to the type, the model is told why and asked once more."""
    options: ChatOptions = {
        "schema": schema_of(spec),
        "temperature": spec.temperature,
        "max_tokens": spec.max_tokens,
    }
    messages = [user(brief_of(spec))]
    first = await trial.ask(spec.model, messages, label="writer", **options)
    draft = read(first.text, spec)
    if isinstance(draft, Draft):
        return draft
    said = [assistant(first.text)] if first.text else []
    told = user(f"That was not valid: {draft}. Reply with the whole JSON again, put right.")
    second = await trial.ask(spec.model, [*messages, *said, told], label="writer", **options)
    draft = read(second.text, spec)
    if isinstance(draft, Draft):
        return draft
    raise MalformedReply(f"entity of type {spec.type.name!r}", draft, second.text)


def brief_of(spec: Sketch) -> str:
    """The prompt for the model."""
    type_ = spec.type
    given = [each for each in type_.dimensions if each.name in spec.attributes]
    parts = [f"Make up one for a simulation: {type_.name}.", type_.description]
    if given:
        parts.append("This is settled:")
        parts += [f"- {each.name}: {_shown(spec.attributes[each.name])}{_explained(each)}" for each in given]
    if spec.wishes.strip():
        parts.append(f"What is wanted besides: {spec.wishes.strip()}")
    parts += ["", DESCRIBE]
    if spec.names:
        parts.append(ANOTHER.format(names=", ".join(spec.names)))
    form = '"name" and "description"'
    if spec.open:
        parts.append("Write these attributes too:")
        parts += [f"- {each.name}{_allowed(each)}{_explained(each)}" for each in spec.open]
        form = '"name", "description" and "attributes", an object with the attributes above'
    parts.append(f"Reply with a JSON object alone: {form}.")
    return "\n".join(part for at, part in enumerate(parts) if part or at > 1)


def schema_of(spec: Sketch) -> dict[str, Any]:
    """The JSON schema of a reply."""
    properties: dict[str, Any] = {"name": {"type": "string"}, "description": {"type": "string"}}
    if spec.open:
        properties["attributes"] = _object({dimension.name: _schema(dimension) for dimension in spec.open})
    return _object(properties)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema(dimension: Dimension) -> dict[str, Any]:
    """The schema of a value. What a schema cannot express is checked when the reply is read."""
    if dimension.type == "boolean":
        return {"type": "boolean"}
    if dimension.type == "categorical":
        return {"type": "string", "enum": list(dimension.options)}
    if dimension.type == "text":
        return {"type": "string"}
    low, high = dimension.min_value or 0, dimension.max_value or 0
    if dimension.type == "int":
        return {"type": "integer", "minimum": int(low), "maximum": int(high)}
    return {"type": "number", "minimum": low, "maximum": high}


def read(text: str, spec: Sketch) -> Draft | str:
    """The draft in a reply, or what is wrong with it."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3]
    try:
        draft = msgspec.json.decode(bare, type=Draft)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return str(error).rstrip(".")
    attributes = {name: _as_meant(spec.type.dimension(name), value) for name, value in draft.attributes.items()}
    name = " ".join(draft.name.split())[:LONGEST_NAME].rstrip()  # a name that is too long is cut
    draft = Draft(name, draft.description.strip(), attributes)
    return _problem(draft, spec) or draft


def _problem(draft: Draft, spec: Sketch) -> str | None:
    """Why a draft is not a valid entity, if it is not."""
    wanted = [dimension.name for dimension in spec.open]
    if lacking := [name for name in wanted if name not in draft.attributes]:
        return f"attributes: {', '.join(lacking)} missing"
    if strange := [name for name in draft.attributes if name not in wanted]:
        return f"attributes: {', '.join(strange)} not asked for"
    if not draft.description:
        return "description: it is empty"
    try:
        spec.type.check(draft.attributes)
        entity_of(draft, spec, "entity")
    except SettingsError as error:
        return str(error)
    empty = [name for name in wanted if draft.attributes[name] == "" and _is_text(spec.type, name)]
    return f"attributes: {', '.join(empty)} empty" if empty else None


def _is_text(type_: EntityType, name: str) -> bool:
    dimension = type_.dimension(name)
    return dimension is not None and dimension.type == "text"


def _as_meant(dimension: Dimension | None, value: Value) -> Value:
    """Turn 35.0 into an integer where one is expected, and strip text."""
    if dimension is None:
        return value
    if dimension.type == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value.strip() if dimension.type == "text" and isinstance(value, str) else value


def entity_of(draft: Draft, spec: Sketch, id_: str) -> Entity:
    """The entity of a draft, with its sampled attributes."""
    both = {**spec.attributes, **draft.attributes}
    attributes = {dimension.name: both[dimension.name] for dimension in spec.type.dimensions if dimension.name in both}
    return Entity(id_, draft.name, draft.description, attributes, spec.type.id)


def sketches_of(settings: Writing, seed: int) -> Iterator[Sketch]:
    """The specs of all trials. Sends nothing."""
    bare = _bare(settings.type)
    names = Names(settings.type, seed)
    for number in range(1, settings.count + 1):
        attributes = {} if settings.free else profile(settings.type, seed, number)
        rng = Random(f"{seed}/{bare.id}/{number}/examples")
        examples = rng.sample(settings.type.names, min(EXAMPLES, len(settings.type.names)))
        if not examples and settings.type.person_names is not None:
            examples = [names.of(rng.randint(1, MOST_SAMPLED), attributes) for _ in range(EXAMPLES)]
        yield Sketch(
            number,
            bare,
            attributes,
            tuple(examples),
            settings.model,
            settings.wishes,
            settings.temperature,
            settings.max_tokens,
        )


def _bare(type_: EntityType) -> EntityType:
    """A type with all that a model and the check of its reply need."""
    dimensions = tuple(msgspec.structs.replace(each, tables=(), source="") for each in type_.dimensions)
    return EntityType(type_.id, type_.name, type_.description, dimensions)


async def write(run: Run, settings: Writing) -> Written:
    """Write all entities. A failed one does not stop the others."""
    run.lane_of(Chat(settings.model, ()))  # fails on an unknown model before anything is sent
    seed = run.record.seed
    await carry_out(run, write_one, sketches_of(settings, seed))
    entities: list[Entity] = []
    faults = Counter[str]()
    sketches = ((sketch, sketch) for sketch in sketches_of(settings, seed))
    async for sketch, _, found in settled(run, write_one, sketches):
        if isinstance(found, Draft):
            entities.append(entity_of(found, sketch, f"entity-{run.record.id}-{sketch.number}"))
        elif isinstance(found, Fault):
            faults[found.kind.value] += 1
    names = {entity.name.casefold() for entity in entities}
    reasons = implausible(settings.type)
    return Written(
        entities=tuple(entities),
        planned=settings.count,
        usable=len(entities),
        missing=faults.total(),
        same_name=len(entities) - len(names),
        faults=dict(faults.most_common()),
        implausible=sum(bool(reasons(each.attributes, each.name)) for each in entities),
    )


@estimates(write)
def expected(settings: Writing) -> Estimate:
    """Estimate the usage."""
    return rehearse(write_one, sketches_of(settings, 0), replies=REPLIES)


def keep(catalogue: Catalogue, written: Written, run_id: str) -> list[Entity]:
    """Add the entities that a run wrote to the store, each only once; returns those that were added now."""
    return catalogue.keep(run_id, written.entities)


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _allowed(dimension: Dimension) -> str:
    """The allowed values of a dimension, in words."""
    if dimension.type == "boolean":
        return ": true or false"
    if dimension.type == "categorical":
        return f": one of {', '.join(map(repr, dimension.options))}"
    if dimension.type == "text":
        return ": text"
    return f": a {'whole ' * (dimension.type == 'int')}number from {dimension.min_value:g} to {dimension.max_value:g}"


def _explained(dimension: Dimension) -> str:
    return f" ({dimension.description.rstrip('.')})" if dimension.description else ""
