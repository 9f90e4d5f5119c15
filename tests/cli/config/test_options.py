"""Tests that the options of commands which take runs are made from the schema of a configuration."""

from __future__ import annotations

import re

import pytest

from helm_longctx.cli.main import load_parser
from helm_longctx.config.options import SELECTION, SETTINGS
from tests.support.commands import Command

SAMPLE = (
    "--argument",
    "task=json_kv",
    "--argument",
    "num_samples=1",
    "--model",
    "longctx/null,longctx/lexical",
)
COMMANDS = (
    "run",
    "gate",
    "certify",
    "reproduce",
    "estimate",
    "shard",
)


def options_of(words: str) -> dict[str, tuple[list[str], str]]:
    """Return the spellings and the help of each option of a command, by its parameter."""
    parser = load_parser()
    for word in words.split():
        parser = parser.commands[word]
    return {
        param.name: (param.opts, param.help)
        for param in parser.params
        if param.param_type_name == "option"
    }


def test_run_has_an_option_for_each_setting() -> None:
    """`run` takes every setting, and its help is the description of the field without its article."""
    options = options_of("run")
    assert len(SETTINGS) > 25
    for name, setting in SETTINGS.items():
        spellings, about = options[name]
        assert tuple(spellings) == setting.names
        assert about.lower().startswith(
            re.sub(r"^(the|an?) ", "", str(setting.field.description).lower())
        )


def test_a_setting_that_is_read_from_a_text_takes_a_text() -> None:
    """The context window can be given as `128k`, although it is a number once it is read."""
    parser = load_parser().commands["run"]
    options = ["--model-url", "http://127.0.0.1:8000/v1", "--context", "128k"]
    context = parser.make_context("run", options)
    assert context.params["context"] == "128k"


@pytest.mark.parametrize("words", COMMANDS)
def test_a_setting_has_one_spelling(words: str) -> None:
    """A command that takes a setting spells it as `run` does: with our name and with HELM's."""
    options = options_of(words)
    taken = options.keys() & SETTINGS.keys()
    assert taken >= {"model"} or words == "gate"
    assert {name: tuple(options[name][0]) for name in taken} == {
        name: SETTINGS[name].names for name in taken
    }


@pytest.mark.parametrize(
    "words",
    [
        "run",
        "gate",
        "estimate",
        "shard",
    ],
)
def test_commands_choose_runs_in_the_same_way(words: str) -> None:
    """All commands about runs take the same options that say which."""
    assert (
        set(SELECTION) - ({"model"} if words == "gate" else set())
        <= options_of(words).keys()
    )


def test_runs_of_tasks_are_estimated(command: Command) -> None:
    """`estimate` makes the same runs of --tasks, --length and --argument as of the entry that they stand for."""
    entry = "helmet_recall:length=8k,task=json_kv,num_samples=1"
    assert (
        command("estimate", entry, "--models-to-run", "longctx/null,longctx/lexical")
        == 0
    )
    expected = command.out
    assert (
        command("estimate", "--tasks", "helmet_recall", "--length", "8k", *SAMPLE) == 0
    )
    assert command.out == expected
    assert (
        command(
            "estimate",
            "--run-entries",
            entry,
            "--model",
            "longctx/null,longctx/lexical",
            "-m",
            "5",
        )
        == 0
    )
    assert command.out == expected


def test_lengths_belong_to_tasks(command: Command) -> None:
    """A length without tasks is refused by the name of the option that is missing."""
    assert command("estimate", "--length", "8k", "--model", "longctx/null") == 2
    assert "tasks is missing" in command.err
