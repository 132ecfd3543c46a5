"""Options: what a person writes to start something, described once.

Options are a frozen msgspec struct. `Meta` says what a field means and which values it takes; `Flag`, beside it in
`Annotated`, says how the field is written on the command line. Flags, keys of a TOML file, JSON bodies and Python
arguments are all read here, so that they take the same names and values and have the same errors. An error names a
field the way it was written: `--num-env-steps` or `num_env_steps`.
"""

from __future__ import annotations

import os
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from functools import cache
from math import inf
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, UnsetType

from groundswell.engine.options import RunOptions, Schedule
from groundswell.engine.records import Via
from groundswell.errors import SettingsError

T = TypeVar("T")

REQUIRED = NODEFAULT
COMMON, LIMITS = "Common options", "Limits"
"""Groups of the options that many commands share."""
LONGEST = 60
"""So much of a value is shown in an error."""
KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_VALUE = re.compile(r"Invalid enum value (.+)")
_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`")
_BOUND = re.compile(r"Expected `\w+` (>=|>|<=|<) (.+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|>|<=|<) (\d+)")
_BOUNDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}


class Reader(typing.Protocol):
    """Turns text that was written on this machine into data; `place` knows the flag and the folder of a path."""

    def __call__(self, text: str, place: Place, /) -> Any: ...


@dataclass(frozen=True)
class Place:
    """Where a value was written: how its field is spelled there, and the folder that its paths are relative to."""

    spelled: str
    folder: Path = Path()
    source: str = ""
    """The file that it is in, for errors."""

    def file(self, given: str) -> Path:
        """The path that text names."""
        return self.folder / Path(given).expanduser()

    def text_of(self, given: str) -> str:
        """The text in the file that is named."""
        return read_text(self.file(given), self.spelled, given)


class WithoutFiles(Place):
    """A place where no file exists: for text of others, which must not be used to look at this machine's files."""

    def file(self, given: str) -> Path:
        """A path at which nothing can exist."""
        return Path(os.devnull) / given.lstrip("/~")


class Flag:
    """How a field is written on the command line, where its name does not say it.

    `names` are further names: `-n`, `--num-interactions`; a long one also works in TOML, JSON and Python, with
    underscores. `usual` flags are shown by `--help`, all by `--help-all`. Forms show first what is `usual` or
    `in_form`. `read` turns text into data: the contents of a file, for instance. It opens files only through its
    `place`. Values that come over HTTP are never read. `completes` says what a value names, for the shell and for
    forms. `also` are the names that settings use for the field in their errors. `local` options concern this machine
    alone: a request over HTTP cannot have them, and they are not part of a configuration. Those without `over_http`
    are part of it, and still not for a request to say.
    `config` names a TOML file with the other options, like `--config`.
    """

    def __init__(
        self,
        *names: str,
        metavar: str = "",
        group: str = "",
        usual: bool = False,
        in_form: bool = False,
        argument: bool = False,
        variable: str | None = None,
        off: str | None = None,
        long: str = "",
        commas: bool = False,
        read: Reader | None = None,
        also: Sequence[str] = (),
        completes: Literal["", "runs", "models", "files", "entities"] = "",
        local: bool = False,
        over_http: bool = True,
        config: bool = False,
    ) -> None:
        self.names = names
        self.metavar = metavar
        self.group = group
        self.usual = usual
        self.in_form = in_form
        self.argument = argument
        self.variable = variable
        self.off = off
        self.long = long
        self.commas = commas
        self.read = read
        self.also = tuple(also)
        self.completes = completes
        self.local = local
        self.over_http = over_http and not local
        self.config = config

    def as_usual(self) -> Flag:
        """The same, shown by the short help."""
        made = copy(self)
        made.usual = True
        return made


@dataclass(frozen=True)
class Field:
    """One option."""

    name: str
    kind: Any
    default: Any = REQUIRED
    description: str = ""
    flag: Flag = field(default_factory=Flag)

    @property
    def spelled(self) -> str:
        """As the command line has it."""
        return self.flag.metavar or self.name.upper() if self.flag.argument else self.flags[0]

    @property
    def flags(self) -> list[str]:
        """All its flags, the one of its own name first."""
        own = self.flag.long or f"--{dashed(self.name)}"
        first = next((name for name in self.flag.names if name == own), own)
        return [first, *(name for name in self.flag.names if name != first)]

    @property
    def keys(self) -> list[str]:
        """All its names in TOML, JSON and Python."""
        return [self.name, *(_plain_name(name) for name in self.flags[1:] if name.startswith("--"))]

    @property
    def is_switch(self) -> bool:
        """Whether it is true or false."""
        return _bare(self.kind) is bool

    @property
    def is_list(self) -> bool:
        """Whether it takes several values."""
        return _element(self.kind) is not None

    @property
    def is_repeated(self) -> bool:
        """Whether its flag may be given several times. What one text stands for, as NAMES|FILE, is given once."""
        return self.is_list and (self.flag.read is None or self.flag.commas or self.flag.metavar.endswith("..."))

    @property
    def off(self) -> str | None:
        """The flag that switches off an option that is on by default."""
        if self.flag.off is not None:
            return self.flag.off
        return f"--no-{dashed(self.name)}" if self.default is True else None

    @property
    def is_text(self) -> bool:
        """Whether its value is one text."""
        return _bare(self.kind) is str

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that there are, if they are a closed set."""
        return _choices(self.kind)


@dataclass(frozen=True)
class Given:
    """A value as it was written: where, and whether its strings are text to be read, as on the command line."""

    value: Any
    place: Place
    as_text: bool = False


def dashed(name: str) -> str:
    """A name as flags have it."""
    return name.replace("_", "-")


def field_of(name: str, annotation: Any, default: Any = REQUIRED) -> Field:
    """The option that an annotated name is."""
    flag, metas, kind = Flag(), list[Meta](), annotation
    if get_origin(annotation) is Annotated:
        kind, *extras = get_args(annotation)
        flag = next((each for each in extras if isinstance(each, Flag)), flag)
        metas = [each for each in extras if isinstance(each, Meta)]
    description = next((each.description for each in metas if each.description), "") or ""
    for meta in metas:
        kind = Annotated[kind, meta]
    return Field(name, kind, default, description, flag)


def fields_of(options: type[Any]) -> dict[str, Field]:
    """The options of a struct, by name."""
    return _fields_of(cast("Any", options))


@cache
def _fields_of(options: Any) -> dict[str, Field]:
    hints = get_type_hints(options, include_extras=True)
    found = {}
    for each in msgspec.structs.fields(options):
        default = each.default if each.default_factory is NODEFAULT else each.default_factory()
        found[each.encode_name] = field_of(each.encode_name, hints[each.name], default)
    return found


def attributes_of(options: type[Any]) -> dict[str, str]:
    """The attributes of a struct, by the names of its options."""
    return _attributes_of(cast("Any", options))


@cache
def _attributes_of(options: Any) -> dict[str, str]:
    return {each.encode_name: each.name for each in msgspec.structs.fields(options)}


def all_fields(options: type[Any]) -> dict[str, Field]:
    """The options of a command: its own, and those of every run."""
    own = fields_of(options)
    if not any(one.flag.usual for one in own.values()):  # nobody chose which of them the short help shows
        own = {name: replace(one, flag=one.flag.as_usual()) for name, one in own.items()}
    return own | {name: one for name, one in fields_of(RunChoices).items() if name not in own}


def collect(
    fields: Mapping[str, Field],
    given: Mapping[str, Any],
    *,
    what: str,
    folder: Path | None = None,
    text: bool = True,
    source: str = "",
) -> dict[str, Given]:
    """Values by the names of their fields. A name may be one of a field's others; unknown ones are refused.

    `text`: whether strings may be read as the command line reads them, so that they may name files.
    """
    by_key = {key: one for one in fields.values() for key in one.keys}
    found: dict[str, Given] = {}
    for key, value in given.items():
        if key not in by_key:
            raise SettingsError(unknown(key, by_key, what), field=key)
        name = by_key[key].name
        if name in found:
            raise SettingsError(
                f"{key}: sets the same option as {found[name].place.spelled}; use only one of them", field=key
            )
        found[name] = Given(value, Place(key, folder or Path(), source), as_text=False)
        if text and isinstance(value, str | PurePath):
            found[name] = Given(str(value), found[name].place, as_text=True)
        elif text and _is_literal(by_key[key], value):
            found[name] = Given(value[LITERAL], found[name].place)
    return found


def unknown(name: str, known: Iterable[str], what: str) -> str:
    """That a name is not known, and which one may have been meant."""
    there = list(known)
    if near := get_close_matches(name, there, 1):
        return f"{name}: {what} has no such option; did you mean {near[0]}?"
    return f"{name}: {what} has no such option; its options are {', '.join(there)}"


def build(options: type[T], found: Mapping[str, Given], *, flags: bool | None = None) -> T:
    """The options, of values that were collected for its fields. `flags` says whether errors name flags or keys."""
    values = {name: value_of(one, found[name]) for name, one in fields_of(options).items() if name in found}
    for name, one in fields_of(options).items():
        if one.default is REQUIRED and name not in values:
            by_flags = flags if flags is not None else not found or _by_flags(fields_of(options), found)
            raise SettingsError(f"{one.spelled if by_flags else name}: is required", field=name)
    attributes = attributes_of(options)
    try:
        return options(**{attributes[name]: value for name, value in values.items()})
    except SettingsError as error:
        raise respelled(error, fields_of(options), found, flags=flags) from error


def _by_flags(fields: Mapping[str, Field], found: Mapping[str, Given]) -> bool:
    """Whether anything was written on the command line, and not as a key of TOML, JSON or Python."""
    return any(given.place.spelled not in fields[name].keys for name, given in found.items())


def value_of(one: Field, given: Given) -> Any:
    """The value of one option, checked."""
    value, place = given.value, given.place
    if given.as_text:
        try:
            value = _from_text(one, value, place)
        except SettingsError as error:
            raise error if error.field else SettingsError(str(error), field=one.name) from error
    elif isinstance(value, str) and one.is_list and one.flag.read is None:
        value = [value]
    try:
        return msgspec.convert(value, one.kind, strict=not given.as_text, dec_hook=_decoded)
    except SettingsError as error:  # of a struct inside, which knows nothing of options
        raise SettingsError(f"{_shown(place.spelled, given.value)}: {error}", field=one.name) from error
    except msgspec.ValidationError as error:
        before = f"{place.source}: " if place.source else ""
        said = f"{before}{_shown(place.spelled, given.value)}: {worded(error, one.kind, text=given.as_text)}"
        raise SettingsError(said, field=one.name) from error


def _from_text(one: Field, value: Any, place: Place) -> Any:
    """What text on the command line stands for."""
    if isinstance(value, bool) or value is None:
        return value
    for each in [value] if isinstance(value, str) else value:
        check_unicode(each, place.spelled)
    if one.flag.read is not None:
        if isinstance(value, str):
            found = one.flag.read(value, place)
            return [found] if one.is_list and not isinstance(found, list | tuple) else found
        return [one.flag.read(each, place) for each in value]
    if one.is_list:
        values = [value] if isinstance(value, str) else list(value)
        if one.flag.commas:
            values = [part.strip() for each in values for part in each.split(",")]
            if not all(values):
                raise SettingsError(
                    f"{place.spelled}: contains an empty name; separate names with single commas, such as "
                    f"{place.spelled} A,B",
                    field=one.name,
                )
        return [_scalar(_element(one.kind), each, place) for each in values]
    return _scalar(one.kind, value, place)


LITERAL = "text"


def literal(one: Field, value: Any, place: Place | None = None) -> Any:
    """A value as a configuration has it: text that would be read as the name of a file, say, is marked as text."""
    if one.flag.read is None or not isinstance(value, str) or not one.is_text:
        return value
    try:
        same = one.flag.read(value, place or Place(one.name)) == value
    except SettingsError:
        same = False
    return value if same else {LITERAL: value}


def _is_literal(one: Field, value: Any) -> bool:
    """Whether a value is text that was marked as such."""
    return one.flag.read is not None and isinstance(value, dict) and set(value) == {LITERAL} and one.is_text


def _scalar(kind: Any, text: str, place: Place) -> Any:
    """One value of a flag: text, unless it can only be an object or a list, which is JSON or @FILE."""
    bare = _bare(kind)
    if get_origin(bare) is dict:
        return _pairs(text, place)
    if not (isinstance(bare, type) and issubclass(bare, msgspec.Struct)) and get_origin(bare) not in (tuple, list):
        return text
    source = place.text_of(text[1:]) if text.startswith("@") else text
    try:
        return msgspec.json.decode(source)
    except msgspec.DecodeError as error:
        raise SettingsError(f"{_shown(place.spelled, text)}: is not valid JSON: {error}") from error


def _pairs(text: str, place: Place) -> dict[str, str]:
    """`NAME=VALUE,NAME=VALUE`; a name alone stands for NAME=1."""
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    if not parts:
        raise SettingsError(f"{place.spelled}: is empty; write NAME=VALUE,NAME=VALUE")
    return {name.strip(): value.strip() or "1" for name, _, value in parts}


def worded(error: msgspec.ValidationError, kind: Any = None, *, text: bool = False) -> str:
    """What msgspec says of data that does not fit, in plain words and with its place: `[0].id: is missing`.

    `text`: whether all was written as text, so that it is no news if something is text.
    """
    message = str(error)
    place = "" if (at := _PLACE.search(message)) is None else at[1].removeprefix(".")
    if text and place == "[...]":
        place = ""  # which of several values it is, msgspec does not know; all of them are shown
    message = _PLACE.sub("", message)
    if (found := _MISSING.fullmatch(message)) is not None:
        message = f"{found[1]} is missing"
    elif (found := _UNKNOWN.fullmatch(message)) is not None:
        inside = _kind_at(kind, place)
        there = inside.__struct_encode_fields__ if hasattr(inside, "__struct_encode_fields__") else ()
        message = f"unknown field {found[1]}" + (f"; choose from {', '.join(there)}" if there else "")
    elif (found := _VALUE.fullmatch(message)) is not None:
        there = _choices(_kind_at(kind, place))
        what = "unknown value" if text and not place else f"unknown value {found[1]}"
        message = what + (f"; choose from {', '.join(there)}" if there else "")
    elif (found := _EXPECTED.fullmatch(message)) is not None:
        message = f"must be {_kinds(found[1])}" + ("" if text else f", and is {_kinds(found[2])}")
    elif (found := _BOUND.fullmatch(message)) is not None:
        message = f"must be {_BOUNDS[found[1]]} {found[2]}"
    elif (found := _LENGTH.fullmatch(message)) is not None:
        unit = "characters" if found[1] == "str" else "entries"
        message = f"must have {_BOUNDS[found[2]]} {found[3]} {unit}"
    return f"{place}: {message}" if place else message


def respelled(
    error: SettingsError, fields: Mapping[str, Field], given: Mapping[str, Given], *, flags: bool | None = None
) -> SettingsError:
    """An error that speaks of fields, with their names as they were written: flags, if anything came from flags."""
    if flags is None:
        flags = not given or _by_flags(fields, given)
    return spelled_as(error, fields, {name: one.place.spelled for name, one in given.items()}, flags=flags)


def spelled_as(
    error: SettingsError, fields: Mapping[str, Field], written: Mapping[str, str], *, flags: bool
) -> SettingsError:
    """The same, given how fields were written; those that were not are spelled as `flags` says."""
    names = {key: one for one in fields.values() for key in (*one.keys, *one.flag.also)}

    def spell(name: str) -> str:
        one = names[name]
        return written.get(one.name) or (one.spelled if flags else one.name)

    said, about = str(error), error.field or ""
    root = about.partition(".")[0].partition("[")[0]
    head = ""
    if root in names and said.startswith(root):
        head, said = spell(root), said[len(root) :]
    several = "|".join(re.escape(name) for name in names if "_" in name)
    if several:
        said = re.sub(rf"(?<![\w-])(?:{several})\b(?![\w=])", lambda found: spell(found[0]), said)
    changed = SettingsError(head + said, field=names[root].name if root in names else error.field)
    return changed if type(error) is SettingsError else error


def check_unicode(text: str, spelled: str) -> str:
    """What was given, if it is text: bytes that are none come as halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) & 0xFF
        raise SettingsError(
            f"{spelled}: contains the byte {byte:#04x}, which is not valid UTF-8; pass the text as UTF-8"
        ) from error
    return text


def read_text(path: Path, spelled: str, given: str | None = None) -> str:
    """The text in a file."""
    shown = path if given is None else given
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{spelled} {shown}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{spelled} {shown}: is not valid UTF-8 at byte {error.start}; convert the file, for "
            f"example with: iconv -f windows-1252 -t utf-8"
        ) from error


def _decoded(kind: type[Any], value: Any) -> Any:
    if issubclass(kind, PurePath) and isinstance(value, str | PurePath):
        return kind(value)
    raise msgspec.ValidationError(f"Expected `str`, got `{type(value).__name__}`")


def _plain_name(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _shown(spelled: str, value: Any) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return spelled
    text = str(value)
    return f"{spelled} {text}" if len(text) <= LONGEST and text.isprintable() else spelled


def _kinds(said: str) -> str:
    return " or ".join(KINDS.get(each, each) for each in said.split(" | ") if each != "null" or said == "null")


def _bare(kind: Any) -> Any:
    """A type without Annotated and None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (typing.Union, types.UnionType):
        others = [each for each in get_args(kind) if each not in (types.NoneType, UnsetType)]
        return _bare(others[0]) if len(others) == 1 else kind
    return kind


def _element(kind: Any) -> Any:
    """The type of the elements of a sequence; None if it is none."""
    bare = _bare(kind)
    if get_origin(bare) not in (tuple, list, frozenset, set):
        return None
    return get_args(bare)[0]


def _choices(kind: Any) -> tuple[str, ...]:
    bare = _bare(kind)
    if get_origin(bare) is Literal:
        return tuple(map(str, get_args(bare)))
    if isinstance(bare, type) and issubclass(bare, Enum):
        return tuple(str(each.value) for each in bare)
    element = _element(bare)
    return () if element is None else _choices(element)


def _kind_at(kind: Any, place: str) -> Any:
    """The type of what is at a place inside a type. Of several that it may have, a struct or one with choices."""
    kinds = _alternatives(kind)
    for part in re.findall(r"[^.\[\]]+|\[\d+\]|\[\.\.\.\]", place):
        inside = []
        for each in kinds:
            if part.startswith("[") or part.isdigit() or part == "...":
                inside.append(_element(each) or (get_args(each)[-1] if get_args(each) else None))
            elif _is_struct(each):
                inside.append(get_type_hints(each, include_extras=True).get(part))
        kinds = [one for each in inside if each is not None for one in _alternatives(each)]
    telling = [each for each in kinds if _is_struct(each) or _choices(each)]
    return next(iter([*telling, *kinds]), None)


def _alternatives(kind: Any) -> list[Any]:
    """The types of a union, or the type itself."""
    bare = _bare(kind)
    if get_origin(bare) not in (typing.Union, types.UnionType):
        return [bare]
    return [one for each in get_args(bare) for one in _alternatives(each)]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


class HowToRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is carried out: options of every command that runs something. None of it changes what a run finds."""

    via: Annotated[
        Via | None,
        Meta(
            description="How requests are sent. live sends each request immediately. batch uses the provider's "
            "batch API, which costs half as much and takes up to 24 hours. auto chooses by price and "
            "--deadline. The default is live."
        ),
        Flag(group=COMMON),
    ] = None
    batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of requests in one provider batch. The default is the provider's limit: 50,000 "
            "or 100,000."
        ),
        Flag(group=COMMON, metavar="N"),
    ] = None
    schedule: Annotated[
        Schedule | None,
        Meta(
            description="When requests are sent. stream sends each request as soon as its trial makes it. waves "
            "waits until every running trial has made its next request, and then sends all of them "
            "together. The default is stream."
        ),
        Flag(group=COMMON),
    ] = None
    max_concurrent: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Maximum number of live requests in flight per account. Defaults to the value in "
            "groundswell.toml. If it is not set there, the limit is 256, or 4 for the embedded model."
        ),
        Flag(group=COMMON, metavar="N"),
    ] = None
    workers: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Run the trials in this many processes, for CPU-heavy programs and very many trials. Needs a "
            "store in PostgreSQL. With 0, only workers that you start elsewhere with `groundswell worker` run them."
        ),
        Flag(group=COMMON, metavar="N"),
    ] = None
    cluster: Annotated[
        str | None,
        Meta(
            description="Run the trials in workers of a Ray cluster: ray for the one that runs on this machine, or its "
            "address. --workers is then their number. The default is one for each CPU of the cluster."
        ),
        Flag(group=COMMON, metavar="ray|ADDRESS"),
    ] = None
    account: Annotated[
        tuple[str, ...],
        Meta(
            description="Override one setting of an account, for example openai.rate_limit_per_minute=3500. May be "
            "repeated."
        ),
        Flag(group=COMMON, metavar="NAME.SETTING=VALUE"),
    ] = ()
    no_cache: Annotated[
        bool,
        Meta(
            description="Neither read replies from the cache nor write them to it. Replies of scripted and emulated "
            "models are never cached."
        ),
        Flag(group=COMMON),
    ] = False
    budget: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Stop the run before it spends more than this many dollars. With a budget, requests to "
            "models without a known price are refused."
        ),
        Flag(group=LIMITS, metavar="USD", usual=True),
    ] = None
    max_calls: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Maximum number of requests to send."),
        Flag(group=LIMITS, metavar="N"),
    ] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Maximum number of tokens to use, input and output together."),
        Flag(group=LIMITS, metavar="N"),
    ] = None
    deadline: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Stop the run after this many seconds. The timer restarts when a run is resumed. "
            "Provider batches that would not finish in time are cancelled, and their remaining "
            "requests are sent live."
        ),
        Flag(group=LIMITS, metavar="SECONDS"),
    ] = None
    max_reorder_usd: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Maximum cost in dollars of resending batches that the provider no longer lists. Such requests "
            "may be billed twice. If the cost would exceed this limit, the run stops and prints what "
            "to do. The default is 1. Use inf for no limit."
        ),
        Flag(group=LIMITS, metavar="USD"),
    ] = None

    @property
    def for_engine(self) -> dict[str, Any]:
        """What `groundswell.open` is to be given."""
        return {
            "max_concurrent": self.max_concurrent,
            "account": self.account,
            "workers": self.workers,
            "cluster": self.cluster,
        }

    def run_options(self, base: RunOptions | None = None) -> RunOptions:
        """How the run is carried out: as `base` says, except for what was chosen."""
        base = base or RunOptions()
        limits = {"usd": self.budget, "calls": self.max_calls, "tokens": self.max_tokens, "seconds": self.deadline}
        given = {name: value for name, value in limits.items() if value is not None}
        said: dict[str, Any] = {"limits": msgspec.structs.replace(base.limits, **given)}
        said |= {
            name: value for name in ("schedule", "via", "batch_size") if (value := getattr(self, name)) is not None
        }
        if self.max_reorder_usd is not None:
            said["max_reorder_usd"] = None if self.max_reorder_usd == inf else self.max_reorder_usd
        if self.no_cache:
            said["cache"] = False
        changed = msgspec.structs.replace(base, **said)
        if self.batch_size is not None and changed.via == "live":
            raise SettingsError(
                f"batch_size {self.batch_size}: has no effect, as requests are sent live; set via to batch or auto",
                field="batch_size",
            )
        return changed


class RunChoices(HowToRun, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is named, seeded and carried out."""

    name: Annotated[
        str | None,
        Meta(
            description="Name of the run. If a run with this name exists, it is continued. By default the name "
            "is generated from the settings."
        ),
        Flag(metavar="NAME", usual=True),
    ] = None
    seed: Annotated[
        int,
        Meta(ge=-(2**63), le=2**63 - 1, description="Seed of the random number generators."),
        Flag(metavar="N"),
    ] = 0


@dataclass(frozen=True)
class Plan:
    """What `prepare` makes of options, where there is more to say than the settings."""

    settings: Any
    name: str = ""
    """How the name of the run begins, if nobody gives one."""
    seed: int | None = None
    notes: tuple[str, ...] = ()
    """What is said before the run begins."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the choices: `max_concurrent`, `account` and so on."""
    base: RunOptions = field(default_factory=RunOptions)
    """How the run is carried out where nothing was chosen."""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """Options as they came out, for the configuration that is written: the default model, entities of the store."""
