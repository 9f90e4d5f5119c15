"""AgentLongBench's questions on four kinds of logs, each of eight kinds.

Source: euReKa025/AgentLongBench at 57e13e8, eval/common/question_logic.py (`build_prompt`), eval/common/mapping.py,
models/runner_settings.py and scripts/run_vllm_one.sh (temperature and output budget). A record has the right `answer` as
the official row has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from helm_longctx.benchmarks.agentlongbench import scoring
from helm_longctx.benchmarks.agentlongbench.baseline import answer_by_counting
from helm_longctx.benchmarks.agentlongbench.generated import draw_log, draw_question
from helm_longctx.benchmarks.agentlongbench.prompts import MASKED, POKEMON
from helm_longctx.tasks import (
    NO_TEMPLATE,
    STANDARD,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonLines,
    Message,
    Release,
    ReleaseFile,
    Settings,
    Shape,
    Task,
    Types,
    Variant,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.prompt import message_text, read_turns_of_agent
from helm_longctx.tasks.task import text_group

_RELEASE = Release(
    "ign1s/AgentLongBench",
    setting="HELM_LONGCTX_AGENTLONGBENCH_REPO",
    folder="agentlongbench",
    archive="benchmark.tar.gz",
    prefix="benchmark/",
    commit="7c32c2520a777ea51e3a8dcf9d94d524523be12f",
    sha256="5414f8fc051ff0421cc7e8e09380b037ea1c4d6b0c6e8d5f94e87902aeb69d30",
)

FOLDERS = {
    **{STANDARD[label]: label for label in ("32k", "64k", "128k", "256k", "512k")},
    STANDARD["1m"]: "1M",
    2 * STANDARD["1m"]: "2M",
    4 * STANDARD["1m"]: "4M",
}
"""The folders by length."""


@dataclass(frozen=True)
class _Kind:
    """A kind of questions.

    Args:
        official: the official name, which the rows have.
        folder: the folder of its files.
        form: the form of the answer, which decides how it is compared.
        samples: the number of questions in a file, or the most if files have different numbers.
        tells_round: whether its questions name rounds by the results of tools in them.
    """

    official: str
    title: str
    folder: str
    form: str
    samples: int = 25
    tells_round: bool = False


KINDS = {
    "count_frequency_tool": _Kind(
        "Count Frequency(Tool)",
        "Count Frequency (Tool)",
        "tool_response",
        "number",
        tells_round=True,
    ),
    "find_duplicates_tool": _Kind(
        "Find Duplicates(Tool)",
        "Find Duplicates (Tool)",
        "tool_response",
        "truth",
        tells_round=True,
    ),
    "find_target_offsets_tool": _Kind(
        "Find Target Offsets(Tool)",
        "Find Target Offsets (Tool)",
        "tool_response",
        "pair",
        tells_round=True,
    ),
    "count_correctness_env": _Kind(
        "Count Correctness(Env)",
        "Count Correctness (Env)",
        "env_response",
        "number",
    ),
    "count_frequency_env": _Kind(
        "Count Frequency(Env)",
        "Count Frequency (Env)",
        "env_response",
        "number",
    ),
    "find_round_largest_value_env": _Kind(
        "Find Round with Largest Value(Env)",
        "Find Round with Largest Value (Env)",
        "env_response",
        "number",
    ),
    "weighted_summation_env": _Kind(
        "Weighted Summation(Env)",
        "Weighted Summation (Env)",
        "env_response",
        "number",
    ),
    "intersection": _Kind(
        "Intersection",
        "Intersection",
        "final_guess",
        "set",
        samples=50,
    ),
}
"""The kinds of questions by the names of their files."""

SETTINGS = {
    "ki-c": "Knowledge-intensive, concise",
    "ki-v": "Knowledge-intensive, verbose",
    "kf-c": "Knowledge-free, concise",
    "kf-v": "Knowledge-free, verbose",
}
"""The kinds of logs by their folders: with names of Pokemon or masked ones, and with short or long results of tools."""
_MAIN = "ki-c"
"""The kind of logs whose scores the repository shows."""

_COLUMNS: Types = {
    "id": str,
    "question_type": str,
    "messages": list,
    "question": str,
}
_ANSWER = Shape("a number, true or false, a text or a list of texts", scoring.is_answer)
_ROUND = re.compile(r"Round (\d+):")

EXPLANATION = (
    " Here, the tool results for a round are those that stand directly before the message of the user that starts with"
    " the number of this round."
)
"""What follows a question of the explained tasks. It is our own."""


def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    *,
    kind: _Kind,
    system: str,
    explanation: str = "",
) -> Iterator[Example]:
    """Yield the questions of a file in its order: all of them, unless the run entry gives a number."""
    rows = JsonLines(task.only_file(settings, root), _COLUMNS)
    for row in islice(rows, settings.num_samples):
        if row["question_type"] != kind.official:
            reason = f"question_type must be {kind.official!r}"
            raise InputError(f"{row}: {reason}, found {row['question_type']!r}")
        log = _read_log(row)
        question = row["question"] + explanation
        yield Example(
            id=row["id"],
            fields={"question": question},
            references=_read_references(row),
            source="official",
            depth=_find_depth(log, row),
            record={"answer": row.get("answer")},
            messages=[
                {"role": "system", "content": system},
                *log,
                {"role": "user", "content": question},
            ],
            group=text_group("".join(map(message_text, log))),
        )


def _read_log(row: FileRow) -> list[Message]:
    """Return the messages of a row without its own system messages."""
    messages = read_turns_of_agent(f"{row}: column 'messages'", row["messages"])
    return [message for message in messages if message["role"] != "system"]


def _read_references(row: FileRow) -> list[str]:
    answer = row.get("answer")
    if answer is None:
        return []
    _ANSWER.check(f"{row}: column 'answer'", answer)
    return _list_references(answer)


def _list_references(answer: Any) -> list[str]:
    return answer if isinstance(answer, list) else [str(answer)]


_FILL = 0.95
"""Share of the length that a generated log fills, by the estimate of tokens."""

_draw = lru_cache(maxsize=2)(draw_log)
"""Tasks of a run that follow each other ask about the same logs."""


def generate(
    task: Task,
    settings: Settings,
    root: DataRoot,
    *,
    kind: str,
    is_verbose: bool,
) -> Iterator[Example]:
    """Draw logs without knowledge, and a question about each. All kinds of questions are about the same logs."""
    system = MASKED[_find_prompt(kind, is_verbose)]
    for number in range(task.sample(settings)):
        name = f"{settings.level}-{is_verbose}-{settings.seed}-{number}"
        log = _draw(name, _FILL * settings.level, is_verbose)
        question = draw_question(name, kind, log)
        facts = {"round": question.round}
        yield Example(
            id=f"{task.name}-{settings.seed}-{number}",
            fields={"question": question.text},
            references=_list_references(question.answer),
            source="generated",
            depth=_find_depth(log.messages, facts),
            record={"answer": question.answer},
            messages=[
                {"role": "system", "content": system},
                *log.messages,
                {"role": "user", "content": question.text},
            ],
            group=text_group(name),
        )


def _find_depth(log: Sequence[Message], row: Mapping[str, Any]) -> float | None:
    """Return where the round of a question is in the log, or None if the question is about several rounds or none."""
    rounds = [row.get("round"), row.get("i_round")]
    wanted = [number for number in rounds if number is not None]
    if len(wanted) != 1 or row.get("j_round") is not None:
        return None
    before = 0
    start = None
    for message in log:
        content = message["content"] or ""
        match = _ROUND.match(content) if message["role"] == "user" else None
        if match and match[1] == str(wanted[0]):
            start = before
        before += len(message_text(message))
    return None if start is None else start / before


def _name_task(setting: str, kind: str) -> str:
    if setting == _MAIN:
        return kind
    return f"{setting.replace('-', '_')}_{kind}"


def _find_prompt(kind: str, is_verbose: bool) -> str:
    """Return the name of the system message. That of an intersection in a concise log asks for a guess."""
    if kind == "intersection" and not is_verbose:
        return "final_guess"
    return kind


def _find_form(kind: str, is_verbose: bool) -> str:
    """Return the form of the answer."""
    if kind == "intersection" and not is_verbose:
        return "guess"
    return KINDS[kind].form


_task = partial(
    Task,
    template=NO_TEMPLATE,
    can_read=scoring.can_read,
    sizes=sizes_in_tokens(FOLDERS),
    variants={"paper": Variant(temperature=0.7)},
    record_shapes={"answer": _ANSWER},
    baseline=Baseline(answer_by_counting, "<answer>1</answer>"),
    **task_fields(__package__),
)


def _make_task(setting: str, name: str, explanation: str = "") -> Task:
    kind = KINDS[name]
    is_verbose = setting.endswith("v")
    form = _find_form(name, is_verbose)
    is_masked = setting.startswith("kf")
    system = (MASKED if is_masked else POKEMON)[_find_prompt(name, is_verbose)]
    end = "_explained" if explanation else ""
    title = f"{kind.title}, explained" if explanation else kind.title
    if setting != _MAIN:
        title = f"{title}, {setting}"

    def list_sources(length: int) -> tuple[ReleaseFile, ...]:
        file = f"{setting}/{FOLDERS[length]}/{kind.folder}/{name}.jsonl"
        return (ReleaseFile(_RELEASE, f"agentlongbench/{file}"),)

    metric = "f1" if form == "set" else "accuracy"
    score = partial(scoring.score, form=form, is_masked=is_masked)
    scorers = {}
    if is_masked and form == "pair":
        repaired = partial(scoring.score, form="masked pair", is_masked=True)
        scorers = {"published": score, "repaired": repaired}
    return _task(
        name=_name_task(setting, name) + end,
        alias=name + end,
        title=title,
        load=partial(
            load,
            kind=kind,
            system=system,
            explanation=explanation,
        ),
        score=score,
        scorers=scorers,
        headline=(metric,),
        metrics=(metric,),
        sources=list_sources,
        num_samples=kind.samples,
    )


def _make_category(setting: str) -> Category:
    explained = []
    for name, kind in KINDS.items():
        if kind.tells_round:
            explained.append(_make_task(setting, name, EXPLANATION))
    is_main = setting == _MAIN
    return Category(
        "" if is_main else setting.replace("-", "_"),
        "" if is_main else SETTINGS[setting],
        tuple(_make_task(setting, name) for name in KINDS),
        variants=tuple(explained),
        averaged=is_main,
    )


_GENERATED = {"generated_c": "Generated, concise", "generated_v": "Generated, verbose"}
"""The categories of generated logs."""


def _make_generated_task(category: str, name: str) -> Task:
    kind = KINDS[name]
    is_verbose = category.endswith("v")
    form = _find_form(name, is_verbose)
    # Names are numbers.
    form = "masked pair" if form == "pair" else form
    metric = "f1" if form == "set" else "accuracy"
    return _task(
        name=f"{category}_{name}",
        alias=name,
        title=f"{kind.title}, {category.replace('_', ' ')}",
        load=partial(generate, kind=name, is_verbose=is_verbose),
        score=partial(scoring.score, form=form, is_masked=True),
        headline=(metric,),
        metrics=(metric,),
        any_length=True,
        num_samples=kind.samples,
        most_samples=100 * kind.samples,
        arguments=("seed",),
        generated="always",
        official_task=name,
    )


def _make_generated_category(category: str) -> Category:
    return Category(
        category,
        _GENERATED[category],
        tuple(_make_generated_task(category, name) for name in KINDS),
        averaged=False,
    )


AGENTLONGBENCH = read_benchmark(
    __package__,
    [
        *map(_make_category, SETTINGS),
        *map(_make_generated_category, _GENERATED),
    ],
)
