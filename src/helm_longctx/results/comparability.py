"""Finds the reasons why a score does not compare with published scores or with others in a table.

Everything that shows scores (tables, pages, exports, plots) uses this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from helm_longctx.documents.numbers import format_amount
from helm_longctx.errors import list_first
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.entry_data import digest_own_files
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.metric_names import FAILURES, GENERATED_DATA
from helm_longctx.tasks.task import PLAIN, Task

_EMPTY = "answer_empty"
"""The statistic that is 1 for answers without a text."""

_IN_REASONING = "answer_in_reasoning"
"""The statistic that is 1 for answers whose only text is in the field of the reasoning."""

_SUSPECTED = "reasoning_suspected"
"""The statistic that is 1 for answers that may contain reasoning."""

_COUNTED = {
    _EMPTY: "{} of {} answers are empty",
    _IN_REASONING: "{} of {} answers have all their text in the reasoning field; check"
    " the server's reasoning parser",
    _SUSPECTED: "{} of {} answers may contain reasoning",
}
"""Statistics of answers that are shown as numbers of answers."""

GENERATED = "generated"
"""The kind of the caveat of a score whose questions this package made in place of the benchmark's own."""

SHARES = {
    "request_failed": "failed requests",
    "request_refused": "refused requests",
    "request_too_long": "requests too long for the model",
    "judge_failed": "failed judgements",
    "prompt_cut": "cut prompts",
    "prompt_cut_by_server": "prompts that the server cut",
    "other_model": "answers of another model",
    "answer_repeats": "answers that the server ended because they repeat themselves",
    "answer_scored_in_part": "answers of which only the first 524,288 characters were scored",
    _EMPTY: "empty answers",
    _IN_REASONING: "answers in the reasoning field",
    _SUSPECTED: "answers may contain reasoning",
}
"""Statistics that are zero in a comparable run, with a description of what they count."""


class Caveat(NamedTuple):
    """A reason why a score is not comparable.

    Args:
        kind: `missing` (the task has no score), `length` (one that the benchmark does not have), `num_samples` (fewer
            examples than the benchmark has), `chats` (not the official ones), `subsampled` (drawn by HELM's `-m`),
            `method` (not asked by the official prompts), `sampling` (tokens were drawn as the entry says), `retry_cut`
            (cut answers were asked for again with a larger budget), `scorer` (not the authors' latest), `judge` (not
            the official one), `judges` (several in the place of an official one), `generated` (this package made the
            questions in place of the benchmark's own), `files` (the user's own files have
            changed since the run), `data` (the questions were read from another version of a publisher's file than the
            pinned one), `remote_code` (the model's code is from the hub), `resumed` (the model has changed between the
            answers), `imported` (without its answers), or the name of a statistic in `SHARES`.
        task: the task's name, empty for `judges`, and for an imported score of a whole category.
        detail: for `length` its label, for `generated` the run entry that asks the benchmark's own questions, if there
            is one, for `num_samples` the number and the official number, if there is one, for
            `chats`, `method`, `scorer`, `judge` and `judges` the names, for `sampling` its arguments, for `retry_cut`
            the factor, for `imported` the file, for `data` the file with both digests, for `remote_code` the model and
            its commit, for `resumed` what had changed, for a statistic in `_COUNTED` the numbers of these answers and of
            all answers, for another statistic its value.
    """

    kind: str
    task: str
    detail: str = ""

    @property
    def code(self) -> str:
        """The reason for programs: `kind:task` or `kind:task=detail`."""
        return f"{self.kind}:{self.task}" + (f"={self.detail}" if self.detail else "")

    @property
    def brief(self) -> str:
        """The reason for people, without its task and without the value of a statistic."""
        if self.kind == "missing":
            return "missing tasks"
        return SHARES.get(self.kind if self.kind != _EMPTY else "", self.text)

    @property
    def text(self) -> str:
        """The reason for people, without the task."""
        if self.kind in _COUNTED:
            return _COUNTED[self.kind].format(*self.detail.split("/"))
        if self.kind in SHARES:
            return f"{SHARES[self.kind]}: {format_amount(100 * float(self.detail))} %"
        if self.kind == "num_samples":
            samples, _, official = self.detail.partition("/")
            if official:
                return f"{samples} of the benchmark's {official} examples"
            return f"{samples} of your questions"
        return {
            "missing": "no score",
            "length": f"{self.detail} is not a length of the benchmark",
            "subsampled": "instances drawn by -m",
            "retry_cut": f"cut answers asked for again with {self.detail} the output budget",
            "sampling": f"sampled with {self.detail}",
            "stream": f"asked after each {self.detail} tokens of the context",
            "chats": f"asked with the {self.detail} chats",
            "method": f"asked by the method {self.detail}",
            "scorer": f"scored by the authors' scorer of {self.detail}",
            "judge": f"judged by {self.detail}",
            "judges": f"judged by {self.detail}, so the parts do not compare",
            GENERATED: "generated questions, not the benchmark's own",
            "imported": f"imported from {self.detail}, without answers",
            "remote_code": f"the model runs code of {self.detail}",
            "resumed": f"answers of several versions of the model, which differ in {self.detail}",
            "files": "your files have changed since this run",
            "data": f"another version of the data: {self.detail}",
        }[self.kind]


def do_files_differ(entry: Entry, files: str | None) -> bool:
    """Whether the user's own files have changed since a run.

    Args:
        files: their digest when the run was made, or None if it has none.
    """
    if files is None:
        return False
    # Files that are not on this machine have not changed.
    today = digest_own_files(entry.tasks, entry.settings.path)
    return today not in (None, files)


def task_caveats(
    task: Task,
    entry: Entry,
    means: Mapping[str, float],
    files_changed: bool = False,
) -> Iterator[Caveat]:
    """Yield why a task's scores in a run are not comparable.

    Args:
        entry: what the run was asked with.
        means: the task's statistics, each the mean over instances without perturbation.
        files_changed: whether the user's own files have changed since the run.
    """
    settings = entry.settings
    length = settings.length
    is_own = "path" in task.arguments
    if means.get(GENERATED_DATA):
        official_entry = entry.benchmark.find_official_entry(entry.name, task, length)
        yield Caveat(GENERATED, task.name, official_entry)
    # The user's own questions have no published scores, whatever their length.
    if length is not None and length not in task.sizes and not is_own:
        yield Caveat("length", task.name, length_label(length))
    if (samples := task.sample(settings)) < (
        official := task.official_sample(settings)
    ):
        # Only the data says how many questions a user's file has.
        yield Caveat(
            "num_samples",
            task.name,
            str(samples) if is_own else f"{samples}/{official}",
        )
    if means.get("subsampled"):
        yield Caveat("subsampled", task.name)
    if times := settings.retry_cut:
        yield Caveat("retry_cut", task.name, f"{times}x")
    if settings.request.sampling:
        yield Caveat("sampling", task.name, str(settings.request.sampling))
    if stream := settings.stream:
        yield Caveat("stream", task.name, str(stream))
    if settings.chats != "truncated":
        yield Caveat("chats", task.name, settings.chats)
    if (method := settings.method) != PLAIN:
        yield Caveat("method", task.name, method)
    if task.is_other_scorer(settings.scorer):
        yield Caveat("scorer", task.name, settings.scorer)
    if not task.is_official(settings.judge):
        yield Caveat("judge", task.name, settings.judge)
    if files_changed:
        yield Caveat("files", task.name)
    share_of_answers = 1 - sum(means.get(name, 0) for name in FAILURES)
    answers = round(means.get("num_instances", 0) * entry.repeats * share_of_answers)
    for name in SHARES:
        if share := means.get(name):
            if name in _COUNTED:
                detail = f"{share * answers:.0f}/{answers}"
            else:
                detail = f"{share:.4g}"
            yield Caveat(name, task.name, detail)


def data_caveats(
    task: Task,
    length: int | None,
    digests: Mapping[str, str],
) -> Iterator[Caveat]:
    """Yield a caveat for each file of a run that is not the pinned one.

    Args:
        digests: the SHA-256 of the files that the questions were read from, by path.
    """
    for source in task.sources(length):
        for path, pinned in source.stored_sha256.items():
            digest = digests.get(path, pinned)
            if digest != pinned:
                name = path.rpartition("/")[2]
                detail = f"{name} with SHA-256 {digest[:8]} instead of {pinned[:8]}"
                yield Caveat("data", task.name, detail)


def describe(caveats: Iterable[Caveat]) -> list[str]:
    """Return the reasons for people, each with its tasks, such as `no score (narrativeqa)`."""
    tasks: dict[str, list[str]] = {}
    for caveat in caveats:
        tasks.setdefault(caveat.text, []).append(caveat.task)
    reasons = []
    for text, names in tasks.items():
        reasons.append(f"{text} ({', '.join(names)})" if any(names) else text)
    return reasons


class ColumnReason(NamedTuple):
    """Why the score of a model in a column is missing or not comparable.

    Args:
        task: the task of a mean that the reason is about; empty if it is about all.
    """

    column: str
    reason: str
    task: str


def describe_columns(reasons: Iterable[ColumnReason], most: int | None) -> str:
    """Return each reason once, with its columns and tasks, such as `Recall 8k, RAG 8k: no score (narrativeqa)`.

    Args:
        most: the largest number of columns, and of tasks, that a reason names; None for all.
    """
    columns: dict[str, dict[str, None]] = {}
    tasks: dict[str, dict[str, None]] = {}
    for reason in reasons:
        columns.setdefault(reason.reason, {})[reason.column] = None
        if reason.task:
            tasks.setdefault(reason.reason, {})[reason.task] = None
    texts = []
    for text, titles in columns.items():
        described = f"{list_first(titles, most)}: {text}"
        if text in tasks:
            described += f" ({list_first(tasks[text], most)})"
        texts.append(described)
    return "; ".join(texts)
