"""The tables and plots of log-probabilities, beside the accuracy of the same tasks and models, and their command."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from helm_longctx.config.shared import OutputPath, SuiteOption
from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    interval_cell,
    number_cell,
    text_columns,
)
from helm_longctx.documents.numbers import (
    DASH,
    format_count,
    format_decimals,
    format_signed_decimals,
)
from helm_longctx.documents.plots import curves
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, label, read_suite
from helm_longctx.results.cells import (
    find_longppl,
    find_perplexity,
    interval_row,
    model_cell,
    score_cell,
    short_name,
)
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import Interval, simultaneous_intervals
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.power import signal_to_noise
from helm_longctx.results.statistics.rare_misses import (
    FEWEST_TEXTS,
    MISS,
    TOO_FEW,
    interval_with_misses,
    summarize,
)
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.metric_names import (
    ANSWER_LOGPROB,
    KEY_TOKENS,
    MEAN_LOGPROB,
    nearest_depth,
    window_logprob,
)
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.request_settings import LIKELIHOOD, PERPLEXITIES
from helm_longctx.tasks.task import MAIN_METRIC

_GAIN = f"{MEAN_LOGPROB}_gain"

_FEWEST_MODELS = 3
"""Smallest number of models whose spread is compared with the noise."""

_WINDOW = re.compile(rf"{window_logprob(0)[:-1]}(\d+)")

_ABOUT = (
    "Mean log-probability of the gold answers' tokens, in nats: of several answers the"
    " best one. The gain is the value given the whole prompt minus the value without"
    " its context, paired by question. It is what the context gives; at 0 the model"
    " does not use it."
)

_COLUMNS = (
    *text_columns("Task", "Length", "Model"),
    Column("n", "Number of questions."),
    Column(
        "With context", "Log-probability of a token given the whole prompt, in nats."
    ),
    Column("Without", "The same given the prompt without its context."),
    Column("Gain", "The difference, paired by question."),
    Column(
        "Gain of an answer", "The difference of the whole answer's log-probability."
    ),
    Column(
        "Likelihood",
        "Probability of a token given the whole prompt: the score on the board, in percent.",
    ),
    Column("Accuracy", "The task's official score in this suite, in percent."),
)


def likelihood_sections(boards: Sequence[Board]) -> list[Section]:
    """Return the sections of all boards with log-probabilities, or nothing if there are none."""
    officials = {}
    for board in boards:
        if not board.metric:
            officials[(board.benchmark.name, board.folder)] = board
    sections = []
    for board in boards:
        if board.metric == LIKELIHOOD:
            official = officials.get((board.benchmark.name, board.folder))
            blocks = [
                *_answers(board, official),
                *_misses(board),
                *_depths(board),
                *_separation(board, official),
            ]
            sections.append(
                Section(
                    name=board.file_name,
                    title=f"What does the context give? {board.title}",
                    blocks=blocks,
                    about=_ABOUT,
                )
            )
        elif board.metric in PERPLEXITIES:
            sections.append(
                Section(
                    name=board.file_name,
                    title=f"Loss over the position: {board.title}",
                    blocks=[*_positions(board), *_key_tokens(board)],
                    about=_ABOUT_LOSS,
                )
            )
    return sections


def _own(board: Board) -> Iterator[Result]:
    """Yield the results of tasks, in the order of tables."""
    for task in board.benchmark.tasks:
        for length in board.lengths:
            for model in board.own_models:
                if (result := board.score(model, task.name, length)) and result.task:
                    yield result


def _nats(
    interval: Interval | None,
    show: Callable[[float], str] = format_decimals,
) -> Cell:
    missing = "the prompts have no context apart from the question"
    return interval_cell(interval, show, missing)


def _mean_nats(
    interval: Interval | None,
    show: Callable[[float], str] = format_decimals,
) -> Cell:
    """Return a mean over answers, with the reason where it has no interval."""
    cell = _nats(interval, show)
    if cell.value is None or cell.detail:
        return cell
    return replace(
        cell,
        detail=TOO_FEW,
        note=(
            f"an interval needs {FEWEST_TEXTS} texts, and enough misses among them to know their"
            " share; the median and the share of misses have intervals"
        ),
    )


def _about(board: Board, result: Result) -> list[Cell]:
    return [
        Cell(board.titles[result.task]),
        Cell(label(result.length)),
        model_cell(board, result.model),
    ]


def _answers(board: Board, official: Board | None) -> Iterator[Block]:
    rows = []
    for result in _own(board):
        rows.append(
            [
                *_about(board, result),
                number_cell(result.interval.n, format_count),
                _mean_nats(result.find_interval(MEAN_LOGPROB)),
                _mean_nats(result.find_interval(f"{MEAN_LOGPROB}_without_context")),
                _mean_nats(result.find_interval(_GAIN), format_signed_decimals),
                _mean_nats(
                    result.find_interval(f"{ANSWER_LOGPROB}_gain"),
                    format_signed_decimals,
                ),
                score_cell(result),
                score_cell(
                    official.score(result.model, result.task, result.length)
                    if official
                    else None
                ),
            ]
        )
    if rows:
        yield Table(
            name=f"{board.file_name}-answers",
            title=f"Gold answers: {board.title}",
            columns=_COLUMNS,
            rows=rows,
            search=True,
        )


_ABOUT_MISSES = (
    "A few answers that a model finds almost impossible decide a mean. The median and"
    " the share of such misses do not depend on how low they are, and their intervals"
    f" are right for every distribution. A mean has an interval from {FEWEST_TEXTS}"
    f" questions on, of which one at least is a miss in {LEVEL_TEXT} if 3 % of all are."
)


def _misses(board: Board) -> Iterator[Block]:
    """Yield what stands beside the means, because a few very unlikely answers decide these."""
    rows = []
    for result in _own(board):
        answers = []
        for answer in result.answers:
            if MEAN_LOGPROB in answer.values:
                answers.append(answer)
        if not answers:
            continue
        groups = [answer.group for answer in answers]
        whole = summarize([answer.values[MEAN_LOGPROB] for answer in answers], groups)
        with_gain = [answer for answer in answers if _GAIN in answer.values]
        row = [
            *_about(board, result),
            number_cell(whole.median.n, format_count),
            _nats(whole.median),
            number_cell(whole.trimmed_mean, format_decimals),
            interval_cell(whole.misses),
        ]
        if with_gain:
            gain = summarize(
                [answer.values[_GAIN] for answer in with_gain],
                [answer.group for answer in with_gain],
            )
            row += [
                _nats(gain.median, format_signed_decimals),
                number_cell(gain.trimmed_mean, format_signed_decimals),
            ]
        else:
            row += [_nats(None), _nats(None)]
        rows.append(row)
    if not rows:
        return
    columns = [
        *_COLUMNS[:3],
        Column("n", "Number of questions; questions that belong together count once."),
        Column("Median", "Median over questions given the whole prompt, in nats."),
        Column(
            "Trimmed mean",
            "Mean without the lowest and the highest tenth of the questions.",
        ),
        Column(f"Below {MISS:g} nats", "Share of such answers, in percent."),
        Column("Median gain", "Median over questions of the gain, in nats."),
        Column("Trimmed gain", "Mean gain without the lowest and the highest tenth."),
    ]
    yield Table(
        name=f"{board.file_name}-misses",
        title=f"Beside the means: {board.title}",
        columns=columns,
        rows=rows,
        about=_ABOUT_MISSES,
        search=True,
    )


def _depths(board: Board) -> Iterator[Block]:
    """Yield the gain by depth of the evidence, for tasks whose questions have one."""
    rows = []
    for result in _own(board):
        by_depth: dict[int, list[tuple[float, str]]] = defaultdict(list)
        for answer in result.answers:
            if answer.depth is not None and _GAIN in answer.values:
                by_depth[nearest_depth(answer.depth)].append(
                    (answer.values[_GAIN], answer.group)
                )
        for depth, values in sorted(by_depth.items()):
            gains = [value for value, _ in values]
            groups = [group for _, group in values]
            interval = interval_with_misses(gains, groups)
            median = summarize(gains, groups).median
            about = [
                *_about(board, result),
                Cell(f"{depth} %", depth),
                number_cell(len(values), format_count),
            ]
            rows.append([*about, _mean_nats(interval), _nats(median)])
    if rows:
        columns = [
            *_COLUMNS[:3],
            Column("Depth"),
            _COLUMNS[3],
            Column("Gain", "Mean of a token, in nats."),
            Column("Median gain", "Median over questions, with its interval."),
        ]
        yield Table(
            name=f"{board.file_name}-depths",
            title=f"Gain by depth: {board.title}",
            columns=columns,
            rows=rows,
            search=True,
        )


def _separation(board: Board, official: Board | None) -> Iterator[Block]:
    """Yield how well likelihood and accuracy tell the same models apart: signal to noise."""
    rows = []
    cells = dict.fromkeys((result.task, result.length) for result in _own(board))
    for task, length in cells if official else ():
        assert official
        models = []
        for model in board.competitors:
            if official.score(model, task, length):
                models.append(model)
        pairs = []
        for model in models:
            pairs.append(
                (board.score(model, task, length), official.score(model, task, length))
            )
        both = []
        for ours, theirs in pairs:
            if ours and theirs:
                both.append((ours, theirs))
        if len(both) < _FEWEST_MODELS:
            continue
        values = (
            [(ours, MEAN_LOGPROB) for ours, _ in both],
            [(ours, MAIN_METRIC) for ours, _ in both],
            [(theirs, MAIN_METRIC) for _, theirs in both],
        )
        rows.append(
            [
                Cell(board.titles[task]),
                Cell(label(length)),
                Cell(str(len(both)), len(both)),
                *map(_ratio_cell, values),
            ]
        )
    if rows:
        columns = [
            *_COLUMNS[:2],
            Column("Models", "Models with both scores, without floors."),
            Column(
                "Log-probability",
                "Signal to noise of the mean log-probability of a token.",
            ),
            Column("Likelihood", "Signal to noise of the probability of a token."),
            Column("Accuracy", "Signal to noise of the official score."),
        ]
        about_table = (
            "Standard deviation of the models' true scores divided by the standard"
            " error of a score: the larger number separates these models better. Below"
            " 1 they are not told apart."
        )
        yield Table(
            name=f"{board.file_name}-separation",
            title="Which separates the models better?",
            columns=columns,
            rows=rows,
            about=about_table,
        )


def _ratio_cell(results: Sequence[tuple[Result, str]]) -> Cell:
    """Return the signal to noise of a statistic of each result."""
    statistics = []
    for result, name in results:
        if name in result.statistics:
            statistics.append(result.statistics[name])
    if len(statistics) < 2:
        return Cell(DASH, note="fewer than two models have it")
    signal = signal_to_noise(
        [result.interval.mean for result in statistics],
        [result.error for result in statistics],
    )
    if not math.isfinite(signal.ratio):
        return Cell(DASH, note="the scores have no noise, or are all equal")
    return Cell(format_decimals(signal.ratio, 1), signal.ratio)


_ABOUT_LOSS = (
    "Mean loss of the tokens in each window of 1,024 tokens, in nats: minus their"
    " log-probability given everything before them. It falls as long as the model uses"
    " what is further back. Where it stays level, more context gives nothing; where it"
    " rises, the model cannot read that far. The intervals of a curve are right"
    f" together in {LEVEL_TEXT}."
)


def _positions(board: Board) -> Iterator[Block]:
    rows = []
    points = []
    ends = set()
    for result in _own(board):
        for end, values in _windows(result):
            loss = Interval(
                mean=-values.mean,
                low=-values.high,
                high=-values.low,
                n=values.n,
            )
            ends.add(end)
            rows.append(
                [
                    *_about(board, result),
                    number_cell(end, format_count),
                    number_cell(loss.n, format_count),
                    _nats(loss),
                ]
            )
            part = f"{board.titles[result.task]} {label(result.length)}".strip()
            shown = {
                "model": short_name(result.model),
                "part": part,
                "position": format_count(end),
                "kind": "own",
            }
            points.append({**shown, **interval_row(loss)})
    if not rows:
        return
    levels = list(map(format_count, sorted(ends)))
    parts = list(dict.fromkeys(str(point["part"]) for point in points))
    spec = curves(parts, levels, "Position (tokens)", "position", is_share=False)
    yield Figure(
        name=f"{board.file_name}-curve",
        title="Loss over the position",
        about=_ABOUT_LOSS,
        spec=spec,
        rows=points,
        by_model=True,
    )
    columns = [
        *_COLUMNS[:3],
        Column("To token"),
        Column("n", "Number of texts."),
        Column("Loss", "In nats."),
    ]
    yield Table(
        name=f"{board.file_name}-positions",
        title=f"Loss over the position: {board.title}",
        columns=columns,
        rows=rows,
        search=True,
    )


_ABOUT_KEY_TOKENS = (
    "A key token is probable given everything before it, and much less so given the last few thousand tokens. LongPPL is"
    " the perplexity of key tokens alone; most other tokens need no long context."
)


def _key_tokens(board: Board) -> Iterator[Block]:
    """Yield the table of LongPPL beside the perplexity, if key tokens were asked for."""
    rows = []
    for result in _own(board):
        key_tokens = result.find_interval(KEY_TOKENS)
        if key_tokens is None:
            continue
        rows.append(
            [
                *_about(board, result),
                number_cell(key_tokens.n, format_count),
                interval_cell(find_perplexity(result), format_decimals, "not run"),
                interval_cell(
                    find_longppl(result), format_decimals, "no text has key tokens"
                ),
                number_cell(key_tokens.mean, format_decimals),
            ]
        )
    if not rows:
        return
    columns = [
        *_COLUMNS[:3],
        Column("n", "Number of texts."),
        Column("Perplexity", "Of all tokens but the first one."),
        Column("LongPPL", "Of the key tokens."),
        Column("Key tokens", "Mean number in a text."),
    ]
    yield Table(
        name=f"{board.file_name}-key-tokens",
        title=f"Key tokens: {board.title}",
        about=_ABOUT_KEY_TOKENS,
        columns=columns,
        rows=rows,
        search=True,
    )


def _windows(result: Result) -> list[tuple[int, Interval]]:
    """Return the ends of a result's windows, and their means with intervals that are right together in 95 %."""
    ends = []
    samples = []
    groups = []
    for name in result.statistics:
        match = _WINDOW.fullmatch(name)
        if not match:
            continue
        texts = []
        for answer in result.answers:
            if name in answer.values:
                texts.append(answer)
        ends.append(int(match[1]))
        samples.append([answer.values[name] for answer in texts])
        groups.append([answer.group for answer in texts])
    return list(zip(ends, simultaneous_intervals(samples, groups), strict=True))


def likelihood(
    suite: SuiteOption,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Show what the context gives: log-probabilities of gold answers with and without it, beside the accuracy.

    The suite needs runs with metric=likelihood, or with metric=perplexity or metric=longppl for the loss over the
    position in a text.
    """
    sections = likelihood_sections(
        read_suite(suite_folder(output_path, suite), BENCHMARKS).boards
    )
    if not sections:
        raise InputError(
            f"{suite} has no run with metric=likelihood, metric=perplexity or metric=longppl; make one first"
        )
    for section in sections:
        print_blocks(section.blocks)
