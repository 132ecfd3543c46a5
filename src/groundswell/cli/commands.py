"""Commands made from described options: parameters, help, groups that load their commands when they are needed.

A command is a function. The fields of parameters that are option structs become flags; other parameters are flags or
arguments of their own, annotated in the same way.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_type_hints

import click
import msgspec
from click.shell_completion import CompletionItem

from groundswell.cli.output import echo
from groundswell.errors import SettingsError
from groundswell.experiments.options import REQUIRED, Field, Flag, Given, Place, build, field_of, fields_of, value_of

VERBOSE, JSON, HELP_ALL = "groundswell.verbose", "groundswell.json", "groundswell.help_all"
HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
OPTIONS = "Options"
LAST = ("How fast", "Limits", "Common options")
"""Groups that come at the end of a help text."""
MOST_COMPLETED = 50
MOST_SHOWN = 12
"""A command with more options than this shows the usual ones, and all of them with --help-all."""


class AsWritten(click.ParamType[Any]):
    """A value as it was written: options are read and checked in one place, which is not here."""

    name = "text"

    def __init__(self, field: Field) -> None:
        self._field = field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Leave it as it is."""
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The choices, the runs of the store, the models, or files."""
        if self._field.flag.completes in ("files", "entities") or issubclass_of(self._field.kind, Path):
            return [CompletionItem(incomplete, type="file")]
        names: Iterable[str] = self._field.choices
        if self._field.flag.completes:
            from groundswell.cli import completion

            with suppress(Exception):  # whoever presses the tab key wants no error
                names = completion.RUNS_AND_MODELS[self._field.flag.completes](ctx.params)
        found = [name for name in names if name.startswith(incomplete)]
        return [CompletionItem(name) for name in found[:MOST_COMPLETED]]


def issubclass_of(kind: Any, parent: type[Any]) -> bool:
    """Whether a type, or what may also be None, is one of a class."""
    return any(isinstance(each, type) and issubclass(each, parent) for each in (kind, *getattr(kind, "__args__", ())))


class FlagOption(click.Option):
    """An option of the command line, made from its description."""

    def __init__(self, field: Field) -> None:
        self.field = field
        flags = field.flags
        if field.is_switch and (off := field.off) is not None:
            flags = [f"{flags[0]}/{off}", *flags[1:]]
        shape: dict[str, Any] = {"is_flag": True} if field.is_switch else {"type": AsWritten(field)}
        super().__init__(
            [_parameter_name(field), *flags],
            default=None,
            multiple=not field.is_switch and field.is_repeated,
            metavar=field.flag.metavar or ("|".join(field.choices) if field.choices else None),
            envvar=field.flag.variable,
            help=described(field),
            required=field.default is REQUIRED,
            **shape,
        )


class FlagArgument(click.Argument):
    """An argument of the command line, made from its description."""

    def __init__(self, field: Field) -> None:
        self.field = field
        super().__init__(
            [_parameter_name(field)],
            type=AsWritten(field),
            required=field.default is REQUIRED,
            nargs=-1 if field.is_list else 1,
            metavar=field.spelled,
        )


def _parameter_name(field: Field) -> str:
    return f"{field.name}_" if field.name in ("continue", "set", "format") else field.name


def described(field: Field) -> str:
    """What an option means, with its default."""
    default = field.default
    if field.is_switch or default in (REQUIRED, None, "", ()) or isinstance(default, Mapping | msgspec.Struct):
        return field.description
    shown = ",".join(map(str, default)) if isinstance(default, tuple | list) else getattr(default, "value", default)
    return f"{field.description} [default: {shown}]"


class Command(click.Command):
    """A command whose help has the usual flags, and all of them with --help-all."""

    def __init__(self, name: str, run: Callable[..., None], fields: Sequence[Field], help: str) -> None:
        self.run = run
        self.fields = {field.name: field for field in fields}
        params: list[click.Parameter] = [_parameter(field) for field in fields]
        self.has_short_help = len(fields) > MOST_SHOWN and any(field.flag.usual for field in fields)
        if self.has_short_help:
            show = f"Show all {len(fields)} options."
            params.append(click.Option(["--help-all"], is_flag=True, is_eager=True, help=show, callback=_show_all))
        super().__init__(name, params=params, help=help, context_settings=dict(HELP))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the words, for errors that name a flag as it was written."""
        ctx.meta["groundswell.words"] = list(args)
        wants_json = any(word == "--json" for word in args)
        ctx.meta[JSON] = ctx.meta.get(JSON, False) or wants_json
        ctx.meta[VERBOSE] = any(word in ("--verbose", "-v") for word in args)
        required = [param for param in self.params if param.required]
        configured = any(word.partition("=")[0] == "--config" for word in args)
        for param in required:
            param.required = not configured  # the file may have it
        try:
            return super().parse_args(ctx, args)
        finally:
            for param in required:
                param.required = True

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function with the values that were given."""
        return self.run(self.given(ctx))

    def given(self, ctx: click.Context) -> dict[str, Given]:
        """What was given on the command line, by field."""
        words = ctx.meta.get("groundswell.words", ())
        found = {}
        for name, field in self.fields.items():
            value = ctx.params.get(_parameter_name(field))
            if value is None or value == ():
                continue
            if field.is_list and not field.is_repeated and sum(map(words.count, field.flags)) > 1:
                raise SettingsError(f"{field.spelled}: is given twice; give it once", field=name)
            found[name] = Given(list(value) if isinstance(value, tuple) else value, _place(field, words), as_text=True)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usual options in one list, or all of them in groups."""
        short = self.has_short_help and not ctx.meta.get(HELP_ALL, False)
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            field = getattr(param, "field", None)
            if short and field is not None and not (field.flag.usual or field.flag.argument):
                continue
            group = OPTIONS if field is None or short else field.flag.group or OPTIONS
            group = "Arguments" if isinstance(param, click.Argument) else group
            if (row := _help_row(param, ctx, short=short)) is not None:
                groups.setdefault(group, []).append(row)
        for name in sorted(
            groups, key=lambda each: (each != "Arguments", each in LAST, each == OPTIONS and len(groups) > 1)
        ):
            with formatter.section(name):
                formatter.write_dl(groups[name], col_max=34)


def _help_row(param: click.Parameter, ctx: click.Context, *, short: bool) -> tuple[str, str] | None:
    """How an option is written, and what it means; in short, by its own name and in one sentence."""
    if isinstance(param, FlagArgument):
        return param.field.spelled, param.field.description
    if not short or not isinstance(param, FlagOption):
        return param.get_help_record(ctx)
    one_letter = [flag for flag in param.opts if not flag.startswith("--")]
    written = ", ".join([*one_letter, param.field.flags[0]])
    if not param.is_flag:
        written += f" {param.field.flag.metavar or 'VALUE'}"
    sentence = param.field.description.partition(". ")[0].partition(": ")[0].rstrip(".")
    choices = f": {', '.join(param.field.choices)}" if param.field.choices else ""
    default = param.field.default
    known = isinstance(default, int | float) and not isinstance(default, bool)
    return written, f"{sentence}{choices}{'.' if sentence else ''}" + (f" [{default}]" if known else "")


def _parameter(field: Field) -> click.Parameter:
    return FlagArgument(field) if field.flag.argument else FlagOption(field)


def _place(field: Field, words: Sequence[str]) -> Place:
    """Where a value was written: the flag that the user chose of several."""
    if field.flag.argument:
        return Place(field.spelled)
    used = [flag for flag in field.flags if any(word == flag or word.startswith(f"{flag}=") for word in words)]
    return Place(used[0] if used else field.spelled)


def _show_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta[HELP_ALL] = True
        echo(ctx.get_help())
        ctx.exit()


def command_of(function: Callable[..., None], name: str | None = None) -> Command:
    """A command from a function. What its structs and parameters say are its options."""
    hints = get_type_hints(function, include_extras=True)
    structs: dict[str, type[Any]] = {}
    own: list[Field] = []
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            structs[parameter.name] = kind
        else:
            default = REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default
            own.append(field_of(parameter.name, kind, default))
    fields = {field.name: field for field in own}
    for struct in structs.values():
        fields = {**fields, **{key: field for key, field in fields_of(struct).items() if key not in fields}}

    def run(given: Mapping[str, Given]) -> None:
        values: dict[str, Any] = {each.name: value_of(each, given[each.name]) for each in own if each.name in given}
        for each, struct in structs.items():
            values[each] = build(struct, {key: one for key, one in given.items() if key in fields_of(struct)})
        function(**values)

    named = name or function.__name__.replace("_", "-")
    return Command(named, run, list(fields.values()), inspect.getdoc(function) or "")


class Group(click.Group):
    """Commands of a name. Those of a module are loaded when one of them is called, or their help is shown."""

    def __init__(self, name: str, help: str, lazy: Mapping[str, tuple[str, str]] | None = None) -> None:
        """`lazy` has names of commands, each with its `module:attribute` and the line that the help shows."""
        super().__init__(name, help=help, no_args_is_help=True, context_settings=dict(HELP))
        self.lazy = dict(lazy or {})

    def add(self, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Make a command of a function, which stays as it is."""

        def register(function: Callable[..., None]) -> Callable[..., None]:
            self.add_command(command_of(function, name))
            return function

        return register

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which they are declared."""
        return [*self.lazy, *(name for name in self.commands if name not in self.lazy)]

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        """A command; its module is imported if need be."""
        if cmd_name in self.lazy and cmd_name not in self.commands:
            module, _, attribute = self.lazy[cmd_name][0].partition(":")
            found = getattr(importlib.import_module(module), attribute)
            self.add_command(found if isinstance(found, click.Command) else command_of(found, cmd_name), cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Names with a line on each; nothing is loaded for that."""
        rows = [
            (name, self.lazy[name][1] if name in self.lazy else self.commands[name].get_short_help_str(limit=90))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of a name that is not known, say what may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            if not near:
                raise
            said = f"{error.message.rstrip('.')}; did you mean {near[0]!r}?"
            raise click.UsageError(said, ctx) from error


__all__ = ["HELP", "JSON", "VERBOSE", "Command", "Flag", "Group", "SettingsError", "command_of"]
