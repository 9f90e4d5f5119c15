"""`compaction`: find out what compaction loses on the user's own transcripts, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.config.options import (
    FOLDERS,
    LIMITS,
    MODEL,
    split_names,
    takes_options,
)
from helm_longctx.config.shared import (
    JsonPath,
    Quiet,
    Verbose,
    check_folder,
    set_log_levels,
)
from helm_longctx.config.single_model import load_single_model
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.tasks.lengths import parse_length

_MOST_ROUNDS = 64

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Transcripts: messages of OpenAI or Anthropic as JSON lines, sessions of"
        " Claude Code, Codex or OpenCode, or folders of them. [default: a sample of our"
        " own]",
        show_default=False,
    ),
]
Compactors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMPACTOR",
        help="Compactor: compact, server, MODULE:FUNCTION or a command with {input} and"
        " {output}; with NAME= before it, if wanted. Several can be given.",
    ),
]


@takes_options(
    [*MODEL, "reasoning_effort", *LIMITS, *FOLDERS],
    model="Model that answers the probes. [default: a reader that copies the best"
    " sentence, without a key]",
    dry_run="Only print what would be sent, and its price.",
)
def compaction(
    files: Files = None,
    compactor: Compactors = None,
    compact_model: Annotated[
        str | None,
        typer.Option(
            help="Deployment that compacts: for compact and server. [default: the model]"
        ),
    ] = None,
    probe_model: Annotated[
        str | None,
        typer.Option(help="Deployment that makes the probes. [default: the model]"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Deployment that judges answers that are not exact. [default: the model]"
        ),
    ] = None,
    probes: Annotated[
        Path | None,
        typer.Option(
            help="File of probes: read if it exists, and written otherwise. [default:"
            " in the folder]"
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="Probes to make for each transcript.",
        ),
    ] = 24,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Tokens at the end that are not asked about, and that the baseline"
            " last keeps. [default: a quarter]"
        ),
    ] = None,
    rounds: Annotated[
        str,
        typer.Option(help="In how many parts a transcript comes, such as 1,2,4."),
    ] = "1",
    baselines: Annotated[
        str, typer.Option(help="Baselines: whole, last, nothing, or none.")
    ] = "whole,last,nothing",
    together: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Questions in one request.",
        ),
    ] = 10,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Replace secrets and personal details before anything is sent, and"
            " show what was replaced.",
        ),
    ] = False,
    redact_words: Annotated[
        Path | None,
        typer.Option(help="File of further words to replace, one a line."),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=99,
            help="Points of recall that a compactor may lose against --base. Sets the exit status.",
        ),
    ] = None,
    must_keep: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Kinds of probes of which a compactor may lose none, such as constraints,decisions. Sets the exit"
            " status.",
        ),
    ] = None,
    base: Annotated[
        str, typer.Option(help="Compactor or baseline that --max-loss refers to.")
    ] = "whole",
    command_timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that a command may take.")
    ] = 600,
    to: Annotated[
        Path | None,
        typer.Option(help="Folder to write to. [default: compactions/NAME]"),
    ] = None,
    json_path: JsonPath = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Find out what compaction loses on your own transcripts: recall of what vanishes, tokens kept, and dollars.

    Questions are made from the part that vanishes, checked, and asked about what each compactor leaves. With --max-loss
    the exit status is 0 if no compactor loses more than that, 1 if one does, and 3 if the probes cannot tell. The
    command can be interrupted and repeated: nothing is paid for twice. Without a model it runs without a key.
    """
    check_folder("json", json_path)
    config = load_single_model("compaction", options, "compactions")
    from helm_longctx.apps.compaction.comparison import Wanted, compare

    wanted = Wanted(
        files=files or [],
        compactors=compactor or [],
        compact_model=compact_model,
        probe_model=probe_model,
        judge=judge,
        probes=probes,
        count=count,
        keep=None if keep is None else parse_length(keep, "compaction: --keep"),
        rounds=_read_rounds(rounds),
        baselines=_read_baselines(baselines),
        together=together,
        redact=redact,
        words=_read_words(redact_words),
        max_loss=max_loss,
        must_keep=_read_kinds(must_keep),
        base=base,
        seconds=command_timeout,
        to=to,
        json_path=json_path,
    )
    with set_log_levels(quiet, verbose) as prints:
        raise typer.Exit(compare(wanted, config, prints))


def _read_rounds(text: str) -> list[int]:
    rounds = []
    for word in text.split(","):
        number = word.strip()
        if not number.isascii() or not number.isdigit():
            number = "0"
        if not 1 <= int(number[:9]) <= _MOST_ROUNDS:
            allowed = f"numbers from 1 to {_MOST_ROUNDS}, such as 1,2,4"
            raise bad_argument("compaction", "--rounds", text, allowed)
        rounds.append(int(number))
    return sorted(set(rounds))


def _read_baselines(text: str) -> list[str]:
    names = []
    for name in text.split(","):
        if name.strip():
            names.append(name.strip())
    return [] if names == ["none"] else list(dict.fromkeys(names))


def _read_kinds(text: str | None) -> list[str]:
    """Return the kinds of probes that must be kept."""
    from helm_longctx.apps.compaction.probes import KINDS

    kinds = []
    for kind in split_names([text] if text else []):
        if kind not in KINDS:
            raise bad_argument("compaction", "--must-keep", kind, KINDS)
        kinds.append(kind)
    return kinds


def _read_words(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "the text is not UTF-8"
        raise InputError(f"compaction: --redact-words={path}: {reason}") from None
    words = []
    for line in text.splitlines():
        if line.strip():
            words.append(line.strip())
    if not words:
        raise InputError(f"compaction: --redact-words={path}: the file has no word")
    return words
