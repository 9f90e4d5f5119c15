"""Tests that the documentation's commands and options exist, are complete, and have valid run entries."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from helm.benchmark.run import build_parser

from helm_longctx.cli.main import load_parser
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry, split_entry
from helm_longctx.tasks.registry import BENCHMARKS

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    # The data set and the command that these guides add exist only in the tests of the guides.
    *(
        page
        for page in (ROOT / "docs").glob("*.md")
        if page.name not in ("adding-a-dataset.md", "adding-an-analysis.md")
    ),
    *(ROOT / "src/helm_longctx/benchmarks").glob("*/README.md"),
]
ENTRIES = {name for benchmark in BENCHMARKS for name in benchmark.entries}


class Example(NamedTuple):
    """A command and the place where a page shows it."""

    page: str
    line: int
    words: list[str]


def examples(page: Path) -> Iterator[Example]:
    """Yield the commands in code blocks of a page. Lines with `…`, which stands for something left out, are skipped."""
    lines = page.read_text(encoding="utf-8").split("\n")
    fenced = False
    for number, line in enumerate(lines):
        fenced ^= line.strip().startswith("```")
        if not (fenced or line.startswith("    ")):
            continue
        text = line.strip()
        following = number
        while text.endswith("\\"):
            following += 1
            text = f"{text[:-1]} {lines[following].strip()}"
        for part in text.split(" && "):
            part = re.sub(r"^(\w+=\S+ )+", "", part.strip())
            if part.startswith(("helm-longctx ", "helm-run ")) and "…" not in part:
                yield Example(
                    page.name,
                    number + 1,
                    shlex.split(re.sub(r"( > | \| ).*", "", part), comments=True),
                )


ALL = [example for page in PAGES for example in examples(page)]


@pytest.mark.parametrize(
    "example", ALL, ids=lambda example: f"{example.page}:{example.line}"
)
def test_command(example: Example) -> None:
    """Each command of the documentation exists, has valid options, and has run entries that can run."""
    program, *arguments = example.words
    if program == "helm-run":
        options = build_parser().parse_args(arguments)
        entries = options.run_entries or []
    else:
        entries = list(find_entries(arguments))
        parser = load_parser()
        assert arguments[0].startswith("-") or arguments[0] in getattr(
            parser, "commands", {}
        )
        while arguments and (
            command := getattr(parser, "commands", {}).get(arguments[0])
        ):
            parser = command
            arguments = arguments[1:]
        with suppress(
            typer.Exit
        ):  # of options such as --version, which print something while they are parsed
            parser.make_context(program, arguments).close()
    for entry in entries:
        check(entry)


def find_entries(words: list[str]) -> Iterator[str]:
    """Yield the run entries among a command's words. Entries of `--tasks` get the first length of `--length`."""
    lengths = (
        words[words.index("--length") + 1].split(",")
        if "--tasks" in words and "--length" in words
        else []
    )
    for before, word in pairwise(words):
        if ":" in word and word.partition(":")[0] in ENTRIES:
            yield (
                f"{word},length={lengths[0]}"
                if before == "--tasks" and lengths
                else word
            )


def check(entry: str) -> None:
    """Check a run entry as a run does, without the arguments that HELM itself takes."""
    name, arguments = split_entry(entry)
    if name in ENTRIES:
        arguments = {
            key: value
            for key, value in arguments.items()
            if key not in ("model", "model_deployment")
        }
        pairs = ",".join(f"{key}={value}" for key, value in arguments.items())
        parse_entry(BENCHMARKS, f"{name}:{pairs}" if pairs else name)


def test_there_are_commands() -> None:
    """The pages of the documentation have more than 50 commands."""
    assert len(ALL) > 50


def test_a_wrong_command_is_found() -> None:
    """The check fails for a run entry with a length that does not exist."""
    with pytest.raises(InputError):
        check("helmet_recall:length=3")
