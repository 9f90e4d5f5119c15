"""Pages to look into runs: the instances of a run entry with the answers of all models, and the evidence in place.

Prompts are shown elided. What a list needs is in one file, and the texts are in further files, which the page loads
when an instance is opened. They are scripts, since without a server a browser reads no other files.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from helm_longctx.documents.document import Report
from helm_longctx.documents.site import safe_json, write_page
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.boards import FLOORS, Board
from helm_longctx.results.reading import Result, Run
from helm_longctx.runs.answers import Answer, Key, read_answers, read_steps
from helm_longctx.runs.conversation import elide_messages
from helm_longctx.runs.elision import elide, evidence_of
from helm_longctx.runs.files import STATES, reading
from helm_longctx.runs.prompts import instance_names, prompt_digest

CHUNK = 25
"""Number of instances whose texts are in one file."""

PREVIEW = 160
"""Number of characters of a question and of an answer in the list."""

FLAGS = {
    "request_too_long": "too long",
    "request_refused": "refused",
    "request_failed": "failed",
    "prompt_cut": "prompt cut",
    "prompt_cut_by_server": "prompt cut by the server",
    "answer_empty": "empty",
    "output_truncated": "output cut",
    "thinking_unfinished": "thinking unfinished",
    "judge_failed": "no verdict",
}
"""Statistics by which answers can be filtered, with their names on the page."""


OwnRun = tuple[Run, Sequence[Result]]


@dataclass
class Instance:
    """An instance with the answers of all models, as data for the page.

    Args:
        prompts: the different prompts that were sent, each a list of roles and elided texts.
        answers: the answers by the number of the run.
    """

    question: str
    references: list[str]
    depth: float | None
    prompts: list[list[tuple[str, str]]] = field(default_factory=list)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)


def page_name(run: Run) -> str:
    """Return the file of the page with a run's instances, which the runs of one entry share."""
    entry = run.entry
    # The name alone is not unique, because characters are replaced and its end can be cut.
    readable = re.sub(r"[^A-Za-z0-9]+", "-", entry).strip("-")[:80]
    return f"instances-{readable}-{digest(entry)[:6]}.html"


def helm_page(server: str, run: Run, instance: str = "") -> str:
    """Return the address of a run's page in HELM, or of an instance on it; empty without a server."""
    if not server:
        return ""
    at = f"?instance={quote(instance, safe='')}" if instance else ""
    return f"{server.rstrip('/')}/#/runs/{quote(run.path.name)}{at}"


def write_instance_pages(report: Report, boards: Sequence[Board], folder: Path, server: str) -> list[Path]:
    """Write a page for each run entry. Raises an `InputError` if a file of a run is damaged."""
    entries: dict[tuple[str, str], list[OwnRun]] = {}
    for board in boards:
        for run, results in board.runs:
            if (run.path / STATES).is_file():
                entries.setdefault((board.title, page_name(run)), []).append((run, results))
    for (group, name), runs in entries.items():
        # The page shows the answers of the first runs at first.
        ordered = sorted(runs, key=lambda each: each[1][0].model in FLOORS)
        _write_page(report, group, ordered, folder / name, server)
    return [folder / name for _, name in entries]


def _write_page(report: Report, group: str, runs: Sequence[OwnRun], path: Path, server: str) -> None:
    instances: dict[Key, Instance] = {}
    for number, (run, results) in enumerate(runs):
        _add_run(instances, number, run, results, server)
    texts = folder_of(path)
    texts.mkdir(parents=True, exist_ok=True)
    for chunk, start in enumerate(range(0, len(instances), CHUNK)):
        content = safe_json(list(map(vars, islice(instances.values(), start, start + CHUNK))))
        (texts / f"{chunk}.js").write_text(f"addTexts({chunk}, {content});\n", encoding="utf-8", errors="replace")
    rows = []
    for key, instance in instances.items():
        answers = [instance.answers.get(number) for number in range(len(runs))]
        rows.append(
            {
                **{"id": key[1], "task": key[0], "repeat": key[2], "depth": instance.depth},
                "question": instance.question[:PREVIEW],
                "answers": [
                    each and [each["score"], each["flags"], (each.get("text") or each.get("error") or "")[:PREVIEW]]
                    for each in answers
                ],
            }
        )
    index = {
        "chunk": CHUNK,
        "flags": FLAGS,
        "folder": texts.name,
        "runs": [
            {"name": each[0].path.name, "model": each[1][0].model, "page": helm_page(server, each[0])} for each in runs
        ],
        "rows": rows,
    }
    (texts / "index.js").write_text(f"window.INDEX = {safe_json(index)};\n", encoding="utf-8", errors="replace")
    title = runs[0][0].entry
    write_page(path, "instances.html", report=report, page=None, active=group, title=title, folder=texts.name)


def folder_of(path: Path) -> Path:
    """Return the folder with the texts of a page."""
    return path.with_suffix("")


def _add_run(instances: dict[Key, Instance], number: int, run: Run, results: Sequence[Result], server: str) -> None:
    """Add a run's answers, holding one of them in memory at a time."""
    rows: list[tuple[str, str | None, str]] = []
    keys: list[Key] = []
    for answer in read_answers(run.path, (score for result in results for score in result.answers)):
        # The report has no scores of HELM's perturbed copies.
        if not answer.is_perturbed:
            with reading(run.path / STATES):
                _add_answer(instances, number, answer)
                keys.append(answer.key)
                rows.append((answer.key[1], answer.key[0] or None, prompt_digest(answer.state)))
    for key, steps in read_steps(run.path):
        if key in instances:
            instances[key].answers[number]["steps"] = [*map(_step, steps)]
    # Names need all rows of a run, because the names of equal ids differ by a number.
    for key, name in zip(keys, instance_names(rows), strict=True):
        instances[key].answers[number] |= {"name": name, "helm": helm_page(server, run, key[1])}


def _add_answer(instances: dict[Key, Instance], number: int, answer: Answer) -> None:
    score, evidence = answer.score, evidence_of(answer.references, answer.sample)
    if answer.key not in instances:
        references = [elide(each) for each in answer.references]
        instances[answer.key] = Instance(elide(answer.question), references, score.depth if score else None)
    request, prompts = answer.state["request"], instances[answer.key].prompts
    prompt = [("", elide(request["prompt"], evidence))]
    if messages := request.get("messages"):
        prompt = [(each["role"], each["content"]) for each in elide_messages(messages, evidence)]
    # Prompts depend on the model's tokenizer and style. Equal prompts are stored once.
    if prompt not in prompts:
        prompts.append(prompt)
    values = score.values if score else {}
    thinking = (answer.completion.get("thinking") or {}).get("text") or ""
    texts = {"text": answer.text, "thinking": thinking, "error": answer.error}
    instances[answer.key].answers[number] = {
        "score": None if score is None or score.score is None else round(score.score, 4),
        "flags": [flag for flag in FLAGS if values.get(flag)],
        "metrics": {name: round(value, 4) for name, value in values.items()},
        "prompt": prompts.index(prompt),
        **{name: elide(str(text)) for name, text in texts.items() if text},
    }


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a request of a method: what it was for and cost in a line, and its texts."""
    usage, dollars = step["usage"], step["dollars"]
    cached = f" ({usage['cached_tokens']:,} cached)" if usage and usage["cached_tokens"] else ""
    facts = [
        step["label"] or "request",
        f"{usage['input_tokens']:,}{cached} + {usage['output_tokens']:,} tokens" if usage else "",
        "" if step["seconds"] is None else f"{step['seconds']:.1f} s",
        "" if dollars is None else f"${dollars:.4f}",
        "shared with an earlier question, which has paid for it" if step["shared"] else "",
    ]
    calls = "".join(f"\n[{call['name']} {call['arguments']}]" for call in step["calls"])
    return {
        "facts": " · ".join(filter(None, facts)),
        "prompt": [(message["role"], message["content"]) for message in step["prompt"]],
        "text": elide(step["error"] or step["text"] + calls),
    }
