"""What `groundswell simulate` reads before it runs: entities, context, questions, and a name that is free."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from groundswell.cli.catalogued import catalogue_of, is_there, text_of
from groundswell.cli.prompts import as_unicode, read_text
from groundswell.errors import SettingsError

if TYPE_CHECKING:
    import msgspec

    from groundswell.experiments.simulations.catalogue import Catalogue
    from groundswell.experiments.simulations.entities import Entity, EntityType
    from groundswell.experiments.simulations.questions import Questionnaire

    S = TypeVar("S", bound=msgspec.Struct)

HEADLINE = 36
"""So many letters of a context are in a name that is made up."""
LOOKS_LIKE_A_FILE = re.compile(r"[^\s,]+\.(json|csv|txt|md|text)", re.IGNORECASE)


def read_context(given: str) -> str:
    """The context: the text itself, or what is in the file of that name."""
    path = file_named(as_unicode(given, "--context"), "--context")
    return given if path is None else read_text(path, "--context").strip()


def read_entities(given: str, store: str) -> list[Entity]:
    """Entities by their ids, from the store; or those in a file."""
    path = file_named(as_unicode(given, "--entities"), "--entities")
    if path is None:
        ids = [each.strip() for each in given.split(",")]
        if not all(ids):
            raise SettingsError("--entities: an id is empty; write --entities ann,bob")
        return _stored(ids, store)
    if path.suffix.lower() != ".csv" and (listed := _listed(path)) is not None:
        return _stored(listed, store)
    return _whole(path, store)


def _whole(path: Path, store: str) -> list[Entity]:
    """The entities of a file. Those without an id are numbered: the same file must give the same batch."""
    import msgspec

    from groundswell.experiments.simulations.entities import taking_part
    from groundswell.experiments.simulations.files import read_csv, read_json

    text, source = text_of(path), f"--entities {path}"
    table, kinds = path.suffix.lower() == ".csv", _types(store)
    types, entities = read_csv(text, source, kinds) if table else read_json(text, source)
    kinds |= {each.id: each for each in types}
    for entity in entities:
        if (kind := kinds.get(entity.entity_type_id or "")) is not None:
            kind.check(entity.attributes)
    numbered = [
        entity if entity.id in text else msgspec.structs.replace(entity, id=f"entity-{number}")
        for number, entity in enumerate(entities, 1)
    ]
    return [taking_part(entity, kinds.get(entity.entity_type_id or "")) for entity in numbered]


def _types(store: str) -> dict[str, EntityType]:
    """The entity types of a store, if there is one."""
    if not is_there(store):
        return {}
    with catalogue_of(store) as catalogue:
        return {kind.id: kind for kind in catalogue.types()}


def file_named(given: str, flag: str) -> Path | None:
    """The file that is meant, if one is; a name that can only be a file's and is not there is an error."""
    path = Path(given).expanduser()
    try:
        there = path.is_file()
    except (OSError, ValueError):  # too long for a name, or no name at all: then it is text
        there = False
    if not there and LOOKS_LIKE_A_FILE.fullmatch(given.strip()):
        raise SettingsError(f"{flag} {given}: there is no such file")
    return path if there else None


def _listed(path: Path) -> list[str] | None:
    """The ids in a JSON file, if it has ids and not entities."""
    import msgspec

    try:
        found = msgspec.json.decode(read_text(path, "--entities"))
    except msgspec.DecodeError as error:
        raise SettingsError(f"--entities {path}: this is not JSON: {error}") from error
    if isinstance(found, dict) and "entity_ids" in found:
        found = found["entity_ids"]
    for name, held in found.items() if isinstance(found, dict) else ():
        if isinstance(held, list) and held and all(isinstance(each, str) for each in held):
            raise SettingsError(
                f"--entities {path}: {name!r} is no field; ids are given as entity_ids, or as a bare list"
            )
    if not (isinstance(found, list) and found and any(isinstance(each, str) for each in found)):
        return None
    if not all(isinstance(each, str) for each in found):
        raise SettingsError(f"--entities {path}: some entries are ids and others are not; give ids, or whole entities")
    return found


def _stored(ids: Sequence[str], store: str) -> list[Entity]:
    """Entities by their ids; that of a type stands for all its entities."""
    advice = "`groundswell entities list` shows those there are; a file of whole entities will do too"
    if not is_there(store):
        raise SettingsError(f"--entities: there is no store {store}, so there are no entities in it; {advice}")
    with catalogue_of(store) as catalogue:
        taken = catalogue.taken(ids)
        types = catalogue.types_by_id([id_ for id_ in ids if id_ not in taken])
        meant: list[str] = []
        for id_ in ids:
            meant += _members(catalogue, id_) if id_ in types else [id_]
        try:
            return catalogue.cast(meant)
        except SettingsError as error:
            near = _near_types(catalogue, [id_ for id_ in ids if id_ not in taken and id_ not in types])
            raise SettingsError(f"{error}{near}: {advice}", field="entity_ids") from error


def _members(catalogue: Catalogue, type_: str) -> list[str]:
    found = [entity.id for entity in catalogue.entities(entity_type_id=type_)]
    if not found:
        raise SettingsError(
            f"--entities {type_}: this entity type has no entities yet: groundswell entities sample --type {type_}"
        )
    return found


def _near_types(catalogue: Catalogue, missing: Sequence[str]) -> str:
    """Entity types whose ids are much like those that are missing."""
    known = [kind.id for kind in catalogue.types()]
    near = dict.fromkeys(each for id_ in missing for each in get_close_matches(id_, known, 1))
    if not near:
        return ""
    return f"; there {'is an entity type' if len(near) == 1 else 'are entity types'} {', '.join(map(repr, near))}"


def read_attributes(given: Sequence[str], entities: Sequence[Entity]) -> list[str]:
    """The attributes that --by names: each on its own, or with commas between them."""
    there = {name for entity in entities for name in entity.attributes}
    parts = [[each] if each in there else each.split(",") for each in given]  # a name may have a comma in it
    return [as_unicode(name.strip(), "--by") for each in parts for name in each]


def read_questions(path: Path) -> Questionnaire:
    """A questionnaire: a list of questions, or an object that has them."""
    import msgspec

    from groundswell.experiments.simulations.questions import Kind, Question, Questionnaire
    from groundswell.experiments.simulations.wording import plain

    if not path.exists():
        raise SettingsError(f"--questions {path}: there is no such file")
    text = read_text(path, "--questions")
    try:
        found = msgspec.json.decode(text)
        if isinstance(found, list):
            found = {"questions": found}
        _check_fields(found, Questionnaire)
        for question in found["questions"] if isinstance(found.get("questions"), list) else ():
            _check_fields(question, Question)
        return msgspec.convert(found, Questionnaire)
    except msgspec.ValidationError as error:
        raise SettingsError(f"--questions {path}: {plain(error, {'type': get_args(Kind)})}") from error
    except (msgspec.DecodeError, SettingsError) as error:
        raise SettingsError(f"--questions {path}: {error}") from error


def _check_fields(found: Any, kind: type[Any]) -> None:
    """Refuse a field that is not known: it would be ignored in silence."""
    if not isinstance(found, dict):
        raise SettingsError(f"{found!r} is no {kind.__name__.lower()}: write a JSON object")
    known = kind.__struct_fields__
    for name in found:
        if name not in known:
            raise SettingsError(f"a {kind.__name__.lower()} has no field {name!r}; there are {', '.join(known)}")


def headline(context: str) -> str:
    """The beginning of a context, as a name has it."""
    words = "".join(letter if letter.isprintable() else " " for letter in context).split()
    kept = ""
    for word in words:
        if len(kept) + len(word) + 1 > HEADLINE:
            return f"{kept.rstrip('.,;:') or word[:HEADLINE]}…"
        kept = f"{kept} {word}".strip()
    return kept.rstrip(".") or "simulations"


def make_up_name(
    title: str, store: str, seed: int, driver: str, named: Callable[[str], S], *, dated: bool = True
) -> tuple[str, S]:
    """A name, and the settings that have it: those of the run that is the same, or one that nobody has yet."""
    from groundswell.cli.stored import opened
    from groundswell.program.request import canonical

    today = f"{title} {date.today().isoformat()}" if dated else title
    if not is_there(store):
        return today, named(today)
    day = r" \d{4}-\d\d-\d\d" if dated else ""
    ours = re.compile(rf"{re.escape(title)}{day}(?: \(\d+\))?")
    with opened(store) as held:
        for record in held.runs.list(drivers=(driver,)):
            if record.name is not None and record.seed == seed and ours.fullmatch(record.name):
                same = named(record.name)
                if canonical(same).decode() == record.settings:
                    return record.name, same
        name, number = today, 1
        while held.runs.find(name) is not None:
            number += 1
            name = f"{today} ({number})"
    return name, named(name)
