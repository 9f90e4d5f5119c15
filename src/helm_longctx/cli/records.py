"""`prompts`, `score` and `show`: print prompts and scores on standard output."""

import json
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from helm_longctx.apps.exchange.answers import resolve_entry
from helm_longctx.config.shared import READY, OutputPath, fill_registries
from helm_longctx.data.jsonl import JsonLines
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.helm.scenario import stop_sequences
from helm_longctx.helm.truncation import settings_with_tokenizer
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.entry_data import ensure_data
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.prompt import Style
from helm_longctx.tasks.reasoning import may_contain_reasoning, split_answer
from helm_longctx.tasks.registry import BENCHMARKS, parse_entries
from helm_longctx.tasks.task import MOST_SCORED, MetricValues, ScorerInput, Task

_EntryArgument = Annotated[
    str, typer.Argument(help="Run entry without a model, e.g. helmet_recall:length=8k.")
]


def prompts(
    entry: _EntryArgument,
    style: Annotated[
        Style | None,
        typer.Option(help="Style of the prompts. [default: the official one]"),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Number of prompts to print. [default: all]"),
    ] = None,
    parts: Annotated[
        bool,
        typer.Option(
            "--parts", help="Also print the context, and the question after it."
        ),
    ] = False,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Print an entry's prompts in the official order, as JSON lines.

    If there is a second request, `follow_up` has the texts of its prompt around the first answer. With --parts,
    `context` and `question` are null if the last message has no context.
    """
    entries = parse_entries(entry)
    root = DataRoot.find(output_path)
    if any(asked.settings.count_with for asked in entries):
        fill_registries(READY)  # the name can belong to a tokenizer in HELM's registry
    lines = chain.from_iterable(
        _prompt_lines(asked, style, parts, root) for asked in entries
    )
    for line in islice(lines, limit):
        # `print` would use the terminal's encoding, but the output must be UTF-8.
        sys.stdout.buffer.write(_json_line(line))
    sys.stdout.flush()


def _prompt_lines(
    entry: Entry,
    style: Style | None,
    parts: bool,
    root: DataRoot,
) -> Iterator[dict[str, Any]]:
    ensure_data(entry, root)
    settings = settings_with_tokenizer(entry, root)
    for task in entry.tasks:
        asked = settings.request.style
        is_chat = asked == "chat" or (asked == "auto" and task.chat)
        sent = style or ("chat" if is_chat else "completion")
        for example in load_examples(task, settings, root):
            prompt = task.prompt(example, task.variant(settings).system)
            at_length = {"length": entry.label} if entry.label else {}
            line: dict[str, Any] = {"id": example.id, "task": task.name, **at_length}
            line |= {
                "prompt": prompt.text(sent),
                **({} if prompt.has_one_turn else {"messages": prompt.messages}),
            }
            if parts:
                line["context"], line["question"] = prompt.parts(sent) or (None, None)
            if example.follow_up:
                *before, last = example.follow_up.parts
                ending = example.follow_up.ending if sent == "completion" else ""
                line["follow_up"] = [*before, last + ending]
            yield line | {
                "references": example.references,
                "max_tokens": task.budget(settings, example),
                "stop": list(stop_sequences(task, settings))
                if sent == "completion"
                else [],
            }


def _json_line(value: object) -> bytes:
    """Serialize a value as one line, also for readers such as `splitlines` that break lines at other characters."""
    try:
        line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # JSON escapes a lone surrogate
        line = json.dumps(value).encode() + b"\n"
    for character in "\x85\u2028\u2029":
        line = line.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return line


def score(
    entry: _EntryArgument,
    records: Annotated[
        Path,
        typer.Option(
            help="JSON lines with prediction, references and the fields that the metric needs."
        ),
    ],
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Score each prediction as it is, with the reasoning in it."
        ),
    ] = False,
) -> None:
    """Score outputs that you already have, without data. Print a JSON line for each record, in the same order.

    Reasoning between known marks, such as <think> tags, is removed from a prediction first, as in a run. A record with
    the reasoning that a server gave in a field of its own has it as `reasoning`.
    """
    checked = resolve_entry(BENCHMARKS, entry)
    checked.check_machine()
    (task,) = checked.tasks
    unfinished = 0
    suspected = 0
    scored_in_part = 0
    for row in JsonLines(records, {"prediction": str, "references": list}):
        where = f"{records}:{row.number}"
        for reference in row["references"]:
            if not isinstance(reference, str):
                raise InputError(
                    f"{where}: references must be strings, found {shorten(reference)}"
                )
        task.check_record(row, where)
        reasoning = row.pop("reasoning", None)
        if not isinstance(reasoning, str | None):
            raise InputError(
                f"{where}: reasoning must be a string, found {shorten(reasoning)}"
            )
        if not raw:
            prediction = row["prediction"]
            split = split_answer(prediction, reasoning)
            unfinished += split.is_open
            suspected += may_contain_reasoning(prediction, row["references"])
            row["prediction"] = split.answer
        scored_in_part += len(row["prediction"]) > MOST_SCORED
        record = {**row, **task.record_fields(checked.settings)}
        sys.stdout.buffer.write(_json_line(_score_record(task, record, where)))
    sys.stdout.flush()
    if unfinished:
        _warn(
            f"the reasoning of {unfinished} predictions has no end, so they are scored whole"
        )
    if scored_in_part:
        most = f"{MOST_SCORED:,}"
        _warn(
            f"only the first {most} characters of {scored_in_part} predictions were scored"
        )
    if suspected:
        _warn(
            f"{suspected} predictions may contain reasoning: they begin with unknown marks"
        )


def _warn(text: str) -> None:
    print(f"helm-longctx: {text}", file=sys.stderr)


def _score_record(task: Task, record: ScorerInput, where: str) -> MetricValues:
    try:
        return task.scores(record)
    except (IndexError, ZeroDivisionError) as error:
        if record["references"]:
            raise
        reason = f"references is empty, but {task.name} needs at least one reference"
        raise InputError(f"{where}: {reason}") from error


def show(
    run: Annotated[
        str,
        typer.Argument(
            help="Folder of the run, or its name in any suite under --output-path."
        ),
    ],
    instance: Annotated[
        str, typer.Argument(help="Id of the instance, as on the run's page.")
    ],
    output_path: OutputPath = Path("benchmark_output"),
    sent: Annotated[
        bool,
        typer.Option(
            "--sent",
            help="Print the request's other fields and the provider's token counts, as JSON.",
        ),
    ] = False,
) -> None:
    """Print the whole prompt that was sent for an instance, byte for byte, without a newline at the end."""
    from helm_longctx.runs.lookup import find_records, full_prompt

    folder = Path(run)
    if not folder.is_dir():
        name = run.replace("/", "_")  # HELM replaces the slash in a model's name
        folders = []
        for path in output_path.glob("runs/*/*"):
            if path.is_dir() and path.name == name:
                folders.append(path)
        if len(folders) != 1:
            there = f"the name of one run under {output_path / 'runs'}; {len(folders)} runs have this name"
            raise bad_argument("show", "run", run, f"a folder, or {there}")
        (folder,) = folders
    if sent:
        # What the run's files say about an answer in addition to its text; for a failed request, its error.
        for record in find_records(folder, instance):
            result = record.to_state().get("result") or {}
            facts = result.get("facts") or {}
            if not result.get("success"):
                facts = {**facts, "error": result.get("error")}
            elif reason := result["completions"][0].get("finish_reason"):
                facts = {**reason, **facts}
            print(json.dumps(facts, ensure_ascii=False))
        return
    # The bytes must be unchanged, because the run's files have their SHA-256.
    sys.stdout.buffer.write(
        full_prompt(folder, instance).encode("utf-8", "surrogatepass")
    )
