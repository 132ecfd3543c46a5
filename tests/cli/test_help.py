"""Help: ten usual options at most, one sentence each, and all of them with --help-all."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from groundswell.cli.app import app
from groundswell.cli.commands import MOST_SHOWN, Command, FlagOption, Group


def commands(group: Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    """Every command, with the words that call it."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(None, name)
        if isinstance(found, Group):
            yield from commands(found, (*words, name))
        if isinstance(found, Command):
            yield " ".join((*words, name)), found


ALL = dict(commands(app))


@pytest.mark.parametrize("name", ALL)
def test_few_options_are_shown(name: str) -> None:
    command = ALL[name]
    if command.has_short_help:
        usual = [field.spelled for field in command.fields.values() if field.flag.usual and not field.flag.argument]
        assert 3 <= len(usual) <= 10, usual
    else:
        assert len(command.fields) <= MOST_SHOWN


@pytest.mark.parametrize("name", ALL)
def test_every_option_is_described_in_sentences(name: str) -> None:
    for param in ALL[name].params:
        if isinstance(param, FlagOption):
            said = param.field.description
            assert said[:1] == said[:1].upper(), param.field.spelled
            assert said.endswith((".", ")")), param.field.spelled


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if command.has_short_help])
def test_all_options_are_shown_on_request(name: str) -> None:
    context = click.Context(ALL[name])
    short = ALL[name].get_help(context)
    context.meta["groundswell.help_all"] = True
    whole = ALL[name].get_help(context)
    for field in ALL[name].fields.values():
        if not field.flag.argument:
            assert field.flags[0] in whole
            assert field.flag.usual == (f"{field.flags[0]} " in short or f"{field.flags[0]}\n" in short), field.spelled
