"""`cache-check`: find out whether a server's prefix cache changes its answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.config.options import FOLDERS, MODEL, split_names, takes_options
from helm_longctx.config.shared import Quiet, Verbose, set_log_levels
from helm_longctx.config.single_model import (
    find_deployment,
    load_single_model,
    plan_single_model,
)
from helm_longctx.errors import bad_argument
from helm_longctx.tasks.lengths import parse_length

_Cold = Annotated[
    str | None,
    typer.Option(
        help='Fields in JSON that keep a request away from the cache: {"cache_prompt":'
        " false} for llama.cpp,"
        ' {"cache_salt": "RANDOM"} for vLLM. Cold answers are then to the same'
        " prompts. [default: one of these, if the"
        " server's counts of cached tokens show that it works; {}: none]"
    ),
]
_Tie = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Smallest difference that counts, in nats for each token. [default: half"
        " of the difference of two cold answers, not above 0.02; with --cold 0.02,"
        " because what is read from a cache is rounded otherwise]",
    ),
]


@takes_options(
    [*MODEL, "request_timeout", *FOLDERS],
    dry_run="Only print how many requests and tokens there are, and what they can find.",
)
def cache_check(
    length: Annotated[
        str,
        typer.Option("--length", "--lengths", help="Lengths of prompts, in tokens."),
    ] = "8k",
    questions: Annotated[
        int, typer.Option(min=1, help="Questions for each length and state.")
    ] = 20,
    states: Annotated[
        str | None,
        typer.Option(
            help="States of the cache, separated by semicolons. [default: all]"
        ),
    ] = None,
    texts: Annotated[
        str,
        typer.Option(
            help="Kinds of text, separated by semicolons, each of which is a check of its own."
        ),
    ] = "plain",
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Maximum tokens of an answer.")
    ] = 64,
    seed: Annotated[int, typer.Option(min=0, help="First seed of the texts.")] = 0,
    where: Annotated[
        bool,
        typer.Option(
            "--where",
            help="Search the shortest length, the block and the depths of a difference.",
        ),
    ] = False,
    cold: _Cold = None,
    tie: _Tie = None,
    to: Annotated[
        Path | None,
        typer.Option(help="Folder to write to. [default: cache-checks/MODEL]"),
    ] = None,
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
    from helm_longctx.apps.cache_check.check import (
        CheckPlan,
        check,
        open_folder,
        print_plan,
    )
    from helm_longctx.apps.cache_check.prompts import TEXTS
    from helm_longctx.apps.cache_check.states import (
        BUSY,
        BUSY_CONTROL,
        COLD,
        CONTROL,
        STATES,
        Server,
    )
    from helm_longctx.config.settings import make_settings

    names = split_names([length])
    lengths = []
    for name in names:
        lengths.append(parse_length(name, "cache-check: --length"))
    fields = _read_fields(cold)
    config = load_single_model("cache-check", options, "cache-checks", fewest=1)
    with set_log_levels(quiet, verbose) as prints, make_settings(config).use():
        deployment = find_deployment(plan_single_model(config, prints))
        # All other states are compared with the cold ones.
        allowed = []
        for state in STATES:
            if state not in (BUSY, BUSY_CONTROL):
                allowed.append(state)
        named = _choose("states", states or ";".join(allowed), allowed)
        chosen = list(dict.fromkeys([COLD, CONTROL, *named]))
        plan = CheckPlan(
            lengths=lengths,
            questions=questions,
            states=chosen,
            seed=seed,
            kinds=_choose("texts", texts, TEXTS),
        )
        if config.dry_run:
            print_plan(plan, max_tokens, fields)
            return
        server = Server(deployment, config.local_path, max_tokens, fields)
        folder = to or config.output_path / "cache-checks" / deployment.replace(
            "/", "_"
        )
        open_folder(
            folder,
            {
                "model": deployment,
                "max_tokens": max_tokens,
                "seed": seed,
            },
            server,
            fields is None,
        )
        raise typer.Exit(check(server, plan, folder, where, tie))


def _choose(option: str, text: str, allowed: Iterable[str]) -> list[str]:
    """Return the names in an option."""
    names = [name.strip() for name in text.split(";")]
    for name in names:
        if name not in allowed:
            raise bad_argument("cache-check", f"--{option}", name, allowed)
    return list(dict.fromkeys(names))


def _read_fields(text: str | None) -> dict[str, Any] | None:
    """Return the fields of `--cold`, or None without it."""
    if text is None:
        return None
    try:
        fields = json.loads(text)
    except json.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict):
        raise bad_argument(
            "cache-check",
            "--cold",
            text,
            'an object in JSON, such as {"cache_prompt": false}',
        )
    return fields
