"""Forms derived from the description of a command: one input for each option, built from its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from groundswell.experiments.experiment import Command
from groundswell.experiments.options import COMMON, LIMITS, REQUIRED, Field, RunChoices, fields_of
from groundswell.web.dashboard.pages import indented
from groundswell.web.experiments import options_schema

Kind = Literal[
    "switch", "choice", "checks", "constant", "number", "text", "long", "lines", "entities", "json", "group", "rows",
    "either",
]  # fmt: skip
Schema = Mapping[str, Any]

MORE = "More options"
DEEPEST = 4
"""Depth of nested inputs. What is deeper is written as JSON."""
SCALARS = ("string", "integer", "number")
TITLES = {"string": "Text", "integer": "Number", "number": "Number", "boolean": "Yes or no", "array": "List"}


class Input(NamedTuple):
    """One input of a form. `value` is None if nothing is filled in; `default` is then what the server uses."""

    kind: Kind
    name: str = ""
    label: str = ""
    help: str = ""
    required: bool = False
    default: Any = None
    value: Any = None
    choices: Sequence[Any] = ()
    least: float | None = None
    most: float | None = None
    whole: bool = False
    offers: str = ""
    """The list of known names that the input suggests: models or runs."""
    parts: Sequence[Input] = ()
    """The inputs of a group, the alternatives of an `either`; the rows, after an empty one."""
    chosen: int = 0

    @property
    def hint(self) -> str:
        """The default as the placeholder of an empty input."""
        if isinstance(self.default, list | tuple):
            return "\n".join(map(str, self.default))
        return "" if self.default is None else str(self.default)

    @property
    def json(self) -> str:
        """The value as JSON."""
        return "" if self.value is None else indented(self.value)


class Section(NamedTuple):
    """Inputs under a heading. Folded, unless something in it is filled in."""

    title: str
    inputs: Sequence[Input]

    @property
    def is_filled(self) -> bool:
        """Whether an input has a value."""
        return any(one.value is not None for one in self.inputs)


class Form(NamedTuple):
    """The inputs of a command: the usual ones, and the others in sections."""

    usual: Sequence[Input]
    sections: Sequence[Section]


def form_of(
    command: Command, values: Mapping[str, Any], default_model: str = "", entities: Collection[str] = ()
) -> Form:
    """The form of a command, filled in with these values. `entities` are the ids that it lists."""
    schema, inner = options_schema(command)
    shared, labels = fields_of(RunChoices), {one.flags[0]: label(one.name) for one in command.fields.values()}
    usual, sections = list[Input](), dict[str, list[Input]]()
    for name, one in command.fields.items():
        if name not in schema["properties"]:
            continue
        made = _option(
            one, schema["properties"][name], inner, values.get(name), labels, default_model, entities=entities
        )
        if name not in shared and (one.flag.usual or one.flag.in_form or one.flag.argument or made.required):
            usual.append(made)
        else:
            group = one.flag.group or (COMMON if name in shared else MORE)
            sections.setdefault(group, []).append(made)
    order = sorted(sections, key=lambda title: (LIMITS, COMMON).index(title) if title in (LIMITS, COMMON) else -1)
    return Form(sorted(usual, key=lambda one: not one.required), [Section(title, sections[title]) for title in order])


def label(name: str) -> str:
    """The name of an option in words."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _option(
    one: Field,
    schema: Schema,
    inner: Schema,
    value: Any,
    labels: Mapping[str, str],
    default_model: str,
    *,
    entities: Collection[str],
) -> Input:
    made = _input(schema, inner, value)
    if made.kind in ("choice", "checks") and one.choices:
        made = made._replace(choices=one.choices)  # a JSON Schema sorts them
    if one.flag.completes in ("models", "runs"):
        made = _offering(made, one.flag.completes)
        if one.flag.completes == "models" and one.default == ():
            made = made._replace(default=[default_model])
    elif one.flag.completes == "entities":
        picked = made._replace(kind="entities", value=_listed_ids(value, entities))
        written = Input("json", label="JSON", value=None if picked.value is not None else value)
        made = Input("either", parts=(picked._replace(label="Entities of this store"), written), value=value)
        made = made._replace(chosen=int(written.value is not None))
    elif made.kind == "text" and (one.flag.read is not None or one.flag.argument or "TEXT" in one.flag.metavar):
        made = made._replace(kind="long")
    said = re.sub(r"--[a-z][a-z-]+", lambda found: labels.get(found[0], found[0]), one.description)
    return made._replace(name=one.name, label=label(one.name), help=said, required=one.default is REQUIRED)


def _offering(made: Input, offers: str) -> Input:
    """An input that suggests names; a list of names has a row for each."""
    if made.kind != "lines":
        return made._replace(offers=offers)
    row = Input("text", offers=offers)
    rows = [row._replace(value=each) for each in made.value or ()]
    return made._replace(kind="rows", parts=(row, *(rows or [row])))


def _listed_ids(value: Any, entities: Collection[str]) -> list[str] | None:
    """The ids of entities; None if the form does not list all of them, or if the value has whole entities."""
    if not isinstance(value, list | tuple):
        return None
    return list(value) if all(isinstance(each, str) and each in entities for each in value) else None


def _input(schema: Schema, inner: Schema, value: Any = None, deep: int = 0) -> Input:
    """The input for a value of a JSON Schema."""
    found, alternatives = _resolved(schema, inner)
    base = Input("json", default=schema.get("default"), value=value, help=str(found.get("description", "")))
    kind = found.get("type")
    if deep >= DEEPEST:
        return base
    if len(alternatives) > 1:
        return _either(base, alternatives, inner, deep)
    if "enum" in found:
        alone = len(found["enum"]) == 1 and "default" not in schema
        return base._replace(kind="constant" if alone else "choice", choices=found["enum"])
    if kind == "boolean":
        unset = base.default is None
        return base._replace(kind="choice", choices=[True, False]) if unset else base._replace(kind="switch")
    if kind in ("integer", "number"):
        least, most = found.get("minimum", found.get("exclusiveMinimum")), found.get("maximum")
        return base._replace(kind="number", least=least, most=most, whole=kind == "integer")
    if kind == "string":
        return base._replace(kind="text" if deep == 0 else "long")
    if kind == "array":
        return _several(base, found, inner, deep)
    if kind == "object" and found.get("properties") and isinstance(value, Mapping | None):
        return base._replace(kind="group", parts=_properties(found, inner, value or {}, deep))
    return base


def _resolved(schema: Schema, inner: Schema) -> tuple[Schema, Sequence[Schema]]:
    """A schema without references and null, and its alternatives if it has several."""
    if "$ref" in schema:
        return _resolved(inner[schema["$ref"].rpartition("/")[2]], inner)
    several = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(several) == 1:
        return _resolved(several[0], inner)
    return schema, several


def _either(base: Input, alternatives: Sequence[Schema], inner: Schema, deep: int) -> Input:
    fits = [_fits(_resolved(each, inner)[0], base.value) for each in alternatives]
    chosen = fits.index(True) if True in fits else 0
    parts = [
        _input(each, inner, base.value if at == chosen else None, deep)._replace(label=_title(each, inner))
        for at, each in enumerate(alternatives)
    ]
    return base._replace(kind="either", parts=parts, chosen=chosen)


def _several(base: Input, schema: Schema, inner: Schema, deep: int) -> Input:
    """An input for a list."""
    if not isinstance(schema.get("items"), Mapping):  # any list, or one of a fixed length
        return base
    item, alternatives = _resolved(schema["items"], inner)
    values = base.value if isinstance(base.value, list | tuple) else ()
    if "enum" in item:
        return base._replace(kind="checks", choices=item["enum"])
    if item.get("type") in SCALARS and not any("\n" in str(each) for each in values):
        return base._replace(kind="lines", whole=item["type"] != "string")
    empty = _input(schema["items"], inner, None, deep + 1)
    if empty.kind not in ("group", "either", "long"):
        return base
    title = _title(schema["items"], inner) if not alternatives else "Entry"
    rows = [_input(schema["items"], inner, each, deep + 1) for each in values]
    return base._replace(kind="rows", parts=[one._replace(label=title) for one in (empty, *rows)])


def _properties(schema: Schema, inner: Schema, values: Mapping[str, Any], deep: int) -> Sequence[Input]:
    required = schema.get("required", ())
    return [
        _input(each, inner, values.get(name), deep + 1)._replace(
            name=name, label=label(name), required=name in required, help=each.get("description", "")
        )
        for name, each in schema["properties"].items()
    ]


def _fits(schema: Schema, value: Any) -> bool:
    """Whether a value may be meant by this alternative."""
    if isinstance(value, Mapping):
        return schema.get("type") == "object" and set(value) <= set(schema.get("properties", value))
    if isinstance(value, list | tuple):
        return schema.get("type") == "array"
    if isinstance(value, bool):
        return schema.get("type") == "boolean"
    if isinstance(value, int):
        return schema.get("type") in ("integer", "number")
    if isinstance(value, float):
        return schema.get("type") == "number"
    return isinstance(value, str) and schema.get("type") == "string"


def _title(schema: Schema, inner: Schema) -> str:
    found, _ = _resolved(schema, inner)
    if found.get("type") == "array" and "items" in found:
        one = _title(found["items"], inner)
        return "List, as JSON" if one == "JSON" else f"List of {one.lower()}s"
    if "title" in found:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", found["title"]).capitalize()
    return TITLES.get(found.get("type", ""), "JSON")
