"""`cache-check`: find out whether a server's prefix cache changes its answers."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_longctx.config.load import load_config, read_options, split_names, takes_options
from helm_longctx.config.shared import Quiet, Verbose, fill_registries, set_log_levels
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.registry import first_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helm_longctx.apps.cache_check.states import Reply, Server
    from helm_longctx.apps.cache_check.verdict import Cell

DESIGN = "design.json"


@takes_options(
    *("model", "model_url", "model_name", "model_type", "api_key_env", "context", "tokenizer"),
    *("request_timeout", "output_path", "local_path", "dry_run"),
    dry_run="Only print how many requests and tokens there are, and what they can find.",
)
def cache_check(
    length: Annotated[str, typer.Option("--length", "--lengths", help="Lengths of prompts, in tokens.")] = "8k",
    questions: Annotated[int, typer.Option(min=1, help="Questions for each length and state.")] = 20,
    states: Annotated[
        str | None, typer.Option(help="States of the cache, separated by semicolons. [default: all]")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens of an answer.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="First seed of the texts.")] = 0,
    where: Annotated[
        bool, typer.Option("--where", help="Search the shortest length and the depths of a difference.")
    ] = False,
    cold: Annotated[
        str | None,
        typer.Option(
            help='Fields in JSON that keep a request away from the cache: {"cache_prompt": false} for llama.cpp,'
            ' {"cache_salt": "RANDOM"} for vLLM. Cold answers are then to the same prompts.'
        ),
    ] = None,
    tie: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Smallest difference that counts, in nats for each token. [default: half of the difference of two cold"
            " answers, not above 0.02; with --cold 0.02, because what is read from a cache is rounded otherwise]",
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Folder to write to. [default: cache-checks/MODEL]")] = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Find out whether a server answers the same whatever its prefix cache holds.

    The same questions are asked cold, warm, after other prompts with the same beginning, in parallel, and so on. The
    exit status is 0 if no state changes the answers, 1 if one does, and 3 if that is open. A difference is shown by a
    script that needs nothing but curl.
    """
    from helm_longctx.config.plan import make_plan, use_settings

    lengths = [parse_length(each, "cache-check: --length") for each in split_names([length])]
    fields = _read_fields(cold)
    models = [*split_names(options["model"] or []), *filter(None, [options["model_url"]])]
    if len(models) != 1:
        raise bad_argument("cache-check", "--model", ", ".join(models), "one model, by --model or --model-url")
    # No task is run: a plan has an entry, and finds the model and asks its server.
    entry = f"{first_entry()}:length=4k"
    config = load_config(None, read_options({**options, "suite": "cache-checks", "entry": [entry]}))
    with set_log_levels(quiet, verbose) as prints, use_settings(config):
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            deployment = make_plan(config).specs[0].adapter_spec.model_deployment
        chosen = _choose_states(states)
        if config.dry_run:
            _print_plan(lengths, questions, chosen, max_tokens, bool(fields))
            return
        from helm_longctx.apps.cache_check.states import Server

        folder = to or config.output_path / "cache-checks" / deployment.replace("/", "_")
        design = {"model": deployment, "max_tokens": max_tokens, "seed": seed}
        _keep_design(folder, design | ({"cold": fields} if fields else {}))
        plan = (lengths, questions, chosen, seed)
        raise typer.Exit(_check(Server(deployment, config.local_path, max_tokens, fields), plan, folder, where, tie))


def _choose_states(text: str | None) -> list[str]:
    """Return the states, with the cold ones, which all others are compared with."""
    from helm_longctx.apps.cache_check.states import COLD, CONTROL, STATES

    names = [each.strip() for each in text.split(";")] if text else list(STATES)
    for name in names:
        if name not in STATES:
            raise bad_argument("cache-check", "--states", name, STATES)
    return list(dict.fromkeys([COLD, CONTROL, *names]))


def _read_fields(text: str | None) -> dict[str, Any]:
    """Return the fields of `--cold`; none without it."""
    try:
        fields = json.loads(text or "{}")
    except json.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict):
        raise bad_argument("cache-check", "--cold", text or "", 'an object in JSON, such as {"cache_prompt": false}')
    return fields


def _keep_design(folder: Path, design: dict[str, Any]) -> None:
    """Keep what the answers in a folder are about; raise an `InputError` if it has other ones."""
    path = folder / DESIGN
    folder.mkdir(parents=True, exist_ok=True)
    if path.is_file() and json.loads(path.read_text(encoding="utf-8")) != design:
        raise InputError(f"cache-check: --to={folder}: this folder has a check with other options; give another one")
    path.write_text(json.dumps(design, indent=2) + "\n", encoding="utf-8")


def _check(
    server: Server, plan: tuple[list[int], int, list[str], int], folder: Path, searches: bool, tie: float | None
) -> int:
    """Ask, print and write what was found, and return the exit status."""
    from helm_longctx.apps.cache_check.reproduction import write_script
    from helm_longctx.apps.cache_check.sections import cache_blocks, describe_builds, open_cells
    from helm_longctx.apps.cache_check.states import ask_states
    from helm_longctx.apps.cache_check.verdict import TIE, judge, judge_builds

    tie = TIE if server.cold_fields and tie is None else tie
    lengths, questions, states, seed = plan
    replies = ask_states(server, lengths, questions, states, seed, folder)
    cells = judge(replies, tie)
    print_blocks(cache_blocks(cells, replies, server.deployment))
    builds = judge_builds(replies)
    for line in describe_builds(builds):
        print(line)
    (folder / "cells.json").write_text(json.dumps([vars(each) for each in cells], indent=1) + "\n", encoding="utf-8")
    differing = [each for each in cells if each.differs]
    shortest = _first_of_states(differing)
    if searches:
        shortest = _search(server, cells, seed, folder, tie)
    for cell in shortest:
        if script := write_script(server, cell, folder):
            print(f"This script shows it ({cell.state}): {script}")
    print(f"All data: {folder}")
    return 1 if differing or any(each.differs for each in builds) else 3 if open_cells(cells) or not cells else 0


def _search(server: Server, cells: list[Cell], seed: int, folder: Path, tie: float | None) -> list[Cell]:
    """Print where each difference is, and return the cell of the shortest length of each state."""
    from helm_longctx.apps.cache_check.states import ask_states
    from helm_longctx.apps.cache_check.where import QUESTIONS, SEEDS, find_where

    def ask(length: int, states: Sequence[str], is_spread: bool) -> list[Reply]:
        place = folder / "where" / f"{states[-1].replace(' ', '-')}-{length}{'-spread' * is_spread}"
        return ask_states(server, [length], QUESTIONS, states, seed + SEEDS * (1 + is_spread), place, is_spread)

    found = [
        find_where(cells, each.state, ask, tie) for each in _first_of_states([each for each in cells if each.differs])
    ]
    for each in found:
        print(each.text)
    return [each.cell for each in found]


def _first_of_states(cells: list[Cell]) -> list[Cell]:
    """Return the cell of the shortest length of each state."""
    return list({each.state: each for each in reversed(cells)}.values())[::-1]


def _print_plan(lengths: list[int], questions: int, states: list[str], max_tokens: int, is_exact: bool) -> None:
    from helm_longctx.apps.cache_check.states import COLD, CONTROL, STATES, list_copies
    from helm_longctx.apps.cache_check.verdict import smallest_share

    requests = questions * sum(STATES[state].requests for state, _ in list_copies(states, is_exact))
    tokens = sum(requests * length for length in lengths)
    for length in lengths:
        print(f"{length_label(length)}: {requests} requests, {requests * length / 1e6:,.1f}M prompt tokens")
    print(f"Together: {requests * len(lengths)} requests, {tokens / 1e6:,.1f}M prompt tokens if nothing is cached.")
    print(f"An answer has at most {max_tokens} tokens.")
    cells = len(lengths) * sum(state not in (COLD, CONTROL) for state in states)
    share = smallest_share(questions, cells)
    found = f"that changes {share:.0%} of its answers" if share else "of no size; ask more questions"
    print(
        f"A server that repeats its cold answers exactly: a state {found} is found in 80 % of checks. Nothing was sent."
    )
