"""Tests of the help of `helm-longctx`: its groups and examples."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
import typer

from helm_longctx.cli.main import COMMANDS, Command, app, load_parser

NO_NOUN_OR_IMPERATIVE = re.compile(r"(The|A|An|How|What|Whether|It|This) |.* at most\b")
"""Openings and wordings that are neither a noun phrase nor an imperative."""

ALL = COMMANDS


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.name)
def test_examples_are_parsed(command: Command) -> None:
    """The parser accepts every example of the help, so its options exist and nothing required is missing."""
    parser = load_parser()
    arguments = [command.name, *shlex.split(command.example)]
    while arguments and (
        subcommand := getattr(parser, "commands", {}).get(arguments[0])
    ):
        parser = subcommand
        arguments = arguments[1:]
    with parser.make_context(command.name, arguments) as context:
        assert not context.args


def parameters(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of each parameter of a command and of its sub-commands."""
    for parameter in command.params:
        yield f"{command.name} {parameter.name}", str(getattr(parameter, "help", None))
    for subcommand in getattr(command, "commands", {}).values():
        yield from parameters(subcommand)


def test_helps_are_noun_phrases_or_imperatives() -> None:
    """The help of each option starts with a capital, ends with a period or a default, and is no clause."""
    helps = dict(parameters(load_parser()))
    assert len(helps) > 150
    assert [
        name for name, text in helps.items() if not re.fullmatch(r"[A-Z].*[.\]]", text)
    ] == []
    assert [
        name for name, text in helps.items() if NO_NOUN_OR_IMPERATIVE.match(text)
    ] == []


def test_every_command_has_a_group() -> None:
    commands = typer.main.get_group(app).commands
    assert set(commands) == {command.name for command in ALL}
    assert all(command.rich_help_panel for command in commands.values())
