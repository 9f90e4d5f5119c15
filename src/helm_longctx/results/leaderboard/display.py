"""Writes the files for a run's page. Long texts are elided and link to the whole text."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import zstandard
from helm.benchmark.presentation.run_display import write_run_display_json
from helm.benchmark.presentation.schema import Schema

from helm_longctx.errors import InputError
from helm_longctx.helm_api import RunSpec
from helm_longctx.helm_log import helm_log
from helm_longctx.locks import hold_lock
from helm_longctx.results.leaderboard.builder import environment_of, fill_in
from helm_longctx.runs.files import FORMAT_ERRORS, INSTANCE_STATS, STATES, find_sample
from helm_longctx.runs.helm_files import State, write_states
from helm_longctx.runs.prompts import (
    LIMIT,
    elide,
    elide_messages,
    evidence_of,
    instance_names,
    read_prompts,
    to_text,
)
from helm_longctx.runs.records import read_records, read_run_states
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.writing import replace_file, replace_page

_INPUTS = (STATES, INSTANCE_STATS)

_PREFIX = ".display-"
_LOCK = ".display.lock"
_PATIENCE = 60.0

_helm_lock = threading.Lock()
"""One thread at a time calls HELM's functions: they use Mako, and Python 3.11's parser can fail in two threads."""

# HELM's front end renders an input as HTML if it contains this, and as text otherwise.
_HTML_MARKER = '<br><img src="data:image;base64'
# An invisible image of one pixel.
_HTML_SWITCH = f'{_HTML_MARKER},R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7" alt="" hidden>'
# The CSS classes with which the front end renders a text.
_BOX = "bg-base-200 p-2 block overflow-auto w-full max-h-[36rem] mb-2 whitespace-pre-wrap localize-text-direction"
_EVIDENCE = re.compile(r"\[evidence, depth \d+%: [^\]]*\]")
_LEFT_OUT = re.compile(r"\[\.\.\. [\d,]+ characters left out, [^\]]*\.\.\.\]")


def write_display(
    run: Path,
    run_spec: RunSpec,
    schema: Schema,
    skip_completed: bool,
) -> None:
    """Write a run's display files, in which long texts are elided.

    The files of another adapter's run are written by HELM's code from a copy of the run's states.

    Raises:
        InputError: the run's states or statistics are damaged.
    """
    done = skip_completed and all((run / name).is_file() for name in OUTPUTS)
    if done or not all((run / name).is_file() for name in _INPUTS):
        write_run_display_json(
            str(run), run_spec, schema, skip_completed
        )  # logs why there is nothing to do
        return
    with _make_folder(run) as folder:
        lean = _LeanStates(texts := _FullTexts(run))
        if run_spec.adapter_spec.method == ADAPTER_METHOD:
            groups = []
            for name in run_spec.groups:
                if name in schema.name_to_run_group:
                    groups.append(schema.name_to_run_group[name])
            with _helm_lock:
                # The statistics that the tables of the run's groups have as columns.
                statistics = set()
                for group in groups:
                    for name in group.metric_groups:
                        if name not in schema.name_to_metric_group:
                            continue
                        for column in schema.name_to_metric_group[name].metrics:
                            if column.perturbation_name in (None, "__all__"):
                                filled = fill_in(column, environment_of(group))
                                statistics.add(filled.name)
            texts.copy_prompts(LIMIT)
            _write_pages(run, folder, statistics, lean.change)
        else:
            texts.copy_prompts(LIMIT)
            states = map(lean.change, read_run_states(run))
            adapter_spec = run_spec.adapter_spec
            write_states(folder / STATES, adapter_spec, run_spec.annotators, states)
            shutil.copyfile(run / INSTANCE_STATS, folder / INSTANCE_STATS)
            try:
                with _helm_lock:
                    write_run_display_json(
                        str(folder), run_spec, schema, skip_completed=False
                    )
            except json.JSONDecodeError as error:
                raise InputError(
                    f"{run / INSTANCE_STATS} cannot be read ({type(error).__name__});"
                    " repeat that run"
                ) from error
        for output in OUTPUTS:
            # All files are complete before the first one is moved, so the page never mixes two summaries.
            os.replace(folder / output, run / output)
        # This comes last, so that after an error the files of the last summary are still there.
        lean.finish()
    if lean.missing:
        helm_log.warning(
            f"{run}: {lean.missing} whole prompts cannot be shown, because prompts.zst"
            " is missing or damaged"
        )


@contextmanager
def _make_folder(run: Path) -> Iterator[Path]:
    """Yield an empty folder in a run's folder, and remove it and the folders of processes that were killed.

    One process at a time has such a folder. Another one waits, and after `_PATIENCE` seconds removes only its own.
    """
    with hold_lock(
        run / _LOCK, "another process can write the same pages", _PATIENCE
    ) as is_alone:
        for left in run.glob(f"{_PREFIX}*") if is_alone else ():
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=run) as name:
            yield Path(name)


class _LeanStates:
    """Elides the texts of request states for a page.

    Args:
        texts: the whole texts, with the run's prompts.

    Attributes:
        missing: number of states whose whole prompt is missing from the run's prompt store.
    """

    def __init__(self, texts: _FullTexts):
        self._texts = texts
        self._prompts: dict[tuple[str, str | None], str] = {}
        self.missing = 0

    def change(self, state: State) -> State:
        """Return the state for the page. The answer of a failed request is its error, because HELM's page needs one."""
        instance = state["instance"]
        references = []
        for reference in instance["references"]:
            references.append(reference["output"]["text"])
        evidence = evidence_of(references, find_sample(instance))
        page_state: State = _elide_all(state, evidence)
        prompt, text = self._add_whole_texts(state)
        if prompt:
            self._prompts[instance["id"], instance.get("sub_split")] = prompt
        self._rewrite(
            page_state["request"], "prompt", state["request"], evidence, prompt
        )
        self._rewrite(
            page_state["instance"]["input"], "text", instance["input"], evidence, text
        )
        result = page_state.get("result")
        if result and not result["completions"]:
            # HELM's page takes the first completion without a check.
            result["completions"] = [
                {
                    "text": f"[no answer: {result.get('error')}]",
                    "logprob": 0,
                    "tokens": [],
                }
            ]
        return page_state

    def _rewrite(
        self,
        target: State,
        field: str,
        source: State,
        evidence: Sequence[str],
        whole: str | None,
    ) -> None:
        """Elide the prompt or conversation of a request or an input, and add the link to the whole one.

        Args:
            field: the field with the text of a prompt.
            source: the request or input before eliding.
            whole: digest of the whole text if it is too long for the page.
        """
        if messages := source.get("messages"):
            parts = elide_messages(messages, evidence)
            if whole and field == "text":
                target["text"] = _conversation_html(
                    parts, self._texts.link(whole), self._texts.index
                )
                del target["messages"]
                return
            if whole:
                link = [{"role": "whole conversation", "content": file_name(whole)}]
            else:
                link = []
            target["messages"] = [
                *link,
                *(
                    {**part, "content": _escape_markup(part["content"])}
                    for part in parts
                ),
            ]
        elif field == "prompt":
            if whole:
                target[field] = f"[whole prompt: {file_name(whole)}]\n\n{target[field]}"
            else:
                target[field] = target[field]
        else:
            text = target[field]
            if whole:
                target[field] = _text_html(
                    text, self._texts.link(whole), self._texts.index
                )
            else:
                target[field] = _escape_markup(text)

    def finish(self) -> None:
        """Write the page that lists the prompts."""
        digests = list(self._prompts.values())
        names = instance_names((*key, digest) for key, digest in self._prompts.items())
        self._texts.finish(dict(zip(names, digests, strict=True)))

    def _add_whole_texts(self, state: State) -> tuple[str | None, str | None]:
        """Return the digests of the whole prompt and of a text with the whole input, or None for a short text."""
        instance = state["instance"]
        sample = find_sample(instance)
        pointer = (sample.full_prompt if sample else None) or {}
        if (stored := str(pointer.get("sha256"))) in self._texts:
            return stored, stored
        # A long prompt that is in the pointer but not in the store cannot be linked.
        self.missing += pointer.get("characters", 0) > LIMIT
        prompt = to_text(state["request"]["prompt"], state["request"].get("messages"))
        text = to_text(instance["input"]["text"], instance["input"].get("messages"))
        if len(prompt) > LIMIT:
            prompt_digest = self._texts.add(prompt)
        else:
            prompt_digest = None
        if len(text) <= LIMIT:
            return prompt_digest, None
        # A prompt that contains the input is used for both links.
        return (
            prompt_digest,
            prompt_digest
            if prompt_digest and text in prompt
            else self._texts.add(text),
        )


def _escape_markup(text: str) -> str:
    """Escape a text that HELM's front end would render as HTML, because that could run scripts from a prompt."""
    if _HTML_MARKER in text:
        return _box(html.escape(text, quote=False))
    return text


def _text_html(text: str, link: str, index: str) -> str:
    """Return the HTML of an input for HELM's front end, with links and marked evidence."""
    # The marks are added after the escaping, so that there is no other markup.
    body = _EVIDENCE.sub(r"<mark>\g<0></mark>", html.escape(text, quote=False))
    body = _LEFT_OUT.sub(lambda mark: _anchor(link, mark[0]), body)
    return f"<div>{_links(link, 'Whole prompt', index)}</div>{_box(body)}"


def _conversation_html(
    messages: Iterable[Mapping[str, str]],
    link: str,
    index: str,
) -> str:
    """Return the HTML of a long conversation for HELM's front end: it shows messages as text, without links."""
    parts = (
        f"<div>{html.escape(m['role'])}</div>{_box(html.escape(m['content'], quote=False))}"
        for m in messages
    )
    return f"<div>{_links(link, 'Whole conversation', index)}</div>{''.join(parts)}"


def _links(link: str, text: str, index: str) -> str:
    return f"{_anchor(link, text)} · {_anchor(index, 'all prompts of this run')}"


def _box(body: str) -> str:
    return f'<div class="{_BOX}">{body}</div>{_HTML_SWITCH}'


def _anchor(link: str, text: str) -> str:
    return f'<a class="link link-primary" href="{html.escape(link)}" target="_blank">{text}</a>'


def _elide_all(value: Any, evidence: Sequence[str]) -> Any:
    """Elide every text in plain data."""
    kind = type(value)
    if kind is str:
        if len(value) <= LIMIT:
            return value
        return elide(value, evidence)
    if kind is dict:
        return {key: _elide_all(part, evidence) for key, part in value.items()}
    if kind is list:
        return [_elide_all(part, evidence) for part in value]
    return value


_INSTANCES = "instances.json"
_PREDICTIONS = "display_predictions.json"
_REQUESTS = "display_requests.json"
OUTPUTS = (_INSTANCES, _PREDICTIONS, _REQUESTS)


def _write_pages(
    run: Path,
    folder: Path,
    statistics: Collection[str],
    change: Callable[[State], State],
) -> None:
    """Write the display files of a run whose states have one request for each trial.

    Args:
        statistics: the names of the statistics that the pages show.

    Raises:
        InputError: the run's records are damaged.
    """
    seen: set[tuple[str, str]] = set()
    with ExitStack() as stack:
        instances, predictions, requests = (
            stack.enter_context(_json_list(folder / name)) for name in OUTPUTS
        )
        for record in read_records(run):
            state = record.to_state()
            # HELM skips such states, too.
            if not state.get("result"):
                continue
            page = change(state)
            instance = page["instance"]
            perturbation = instance.get("perturbation")
            # A perturbation is a dictionary and cannot be in a set.
            key = (instance["id"], json.dumps(perturbation))
            if key not in seen:
                seen.add(key)
                instances(instance)
            about = {"instance_id": instance["id"]}
            if perturbation:
                about["perturbation"] = perturbation
            about["train_trial_index"] = record.repeat
            shown = {}
            for name, value in record.values.items():
                if name in statistics:
                    shown[name] = value
            predictions({**about, **_prediction(page), "stats": shown})
            requests({**about, "request": page["request"]})


def _prediction(page: State) -> dict[str, Any]:
    """Return the fields of HELM's `DisplayPrediction` that an answer of text has."""
    completion = page["result"]["completions"][0]
    fields = {
        "reference_index": page.get("reference_index"),
        "annotations": page.get("annotations"),
        "thinking_text": (completion.get("thinking") or {}).get("text"),
    }
    present = {}
    for name, value in fields.items():
        if value is not None:
            present[name] = value
    return {"predicted_text": completion["text"], "base64_images": [], **present}


@contextmanager
def _json_list(path: Path) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes the next element of a JSON list."""
    separators = chain([b"\n"], repeat(b",\n"))
    with path.open("wb") as file:
        file.write(b"[")

        def add(element: Any) -> None:
            try:
                data = orjson.dumps(element)
            except TypeError:  # a lone surrogate
                data = json.dumps(element).encode("ascii")
            file.write(next(separators) + data)

        yield add
        file.write(b"\n]")


FOLDER = "prompts"
INDEX = "index.html"


class _FullTexts:
    """The folder `prompts` of a run, with a file `<digest>.txt.gz` for each text and an index page.

    Web servers send these files as compressed text. A file that exists is not written again, unless the index page is
    missing: it is removed before the first file is written and written after the last one, so that no file of a
    process that was killed is kept.
    """

    def __init__(self, run: Path):
        self._run = run
        self._folder = run / FOLDER
        self._digests: set[str] = set()
        self._is_whole = (self._folder / INDEX).is_file()
        if self._is_whole:
            self._written = {path.name for path in self._folder.glob("*.txt.gz")}
        else:
            self._written = set()
        # helm-server serves HELM's output folder as `benchmark_output`.
        parts = ("runs", run.parent.name, run.name, FOLDER)
        self._address = "/".join(
            ["benchmark_output", *(quote(part, safe="") for part in parts)]
        )

    def add(self, text: str) -> str:
        """Write a text and return its digest."""
        data = text.encode("utf-8", "surrogatepass")
        return self._write(hashlib.sha256(data).hexdigest(), data)

    def copy_prompts(self, limit: int) -> None:
        """Write the prompts of more than `limit` bytes from the run's prompt store, up to the first damaged one."""
        try:
            for digest, data in read_prompts(self._run):
                if len(data) > limit:
                    self._write(digest, data)
        except (*FORMAT_ERRORS, zstandard.ZstdError):
            return

    def __contains__(self, digest: str) -> bool:
        return digest in self._digests

    def link(self, digest: str) -> str:
        """Return the address of a text, relative to the page's."""
        return f"{self._address}/{file_name(digest)}"

    @property
    def index(self) -> str:
        """The address of the index page."""
        return f"{self._address}/{INDEX}"

    def finish(self, digests: dict[str, str]) -> None:
        """Write the index page, and remove files of an earlier run in the same folder."""
        names = {file_name(digest) for digest in self._digests}
        for path in (*self._folder.glob("*.txt.*"), self._folder / INDEX):
            if path.name not in names:
                path.unlink(missing_ok=True)
        if names:
            title = html.escape(self._run.name)
            head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
            links = {}
            for name, digest in digests.items():
                links[html.escape(name)] = file_name(digest)
            items = []
            for name, link in links.items():
                items.append(f'<li><a href="{link}">{name}</a></li>')
            rows = "\n".join(items)
            body = f"<h1>Prompts of {title}</h1>\n<ol>\n{rows}\n</ol>\n"
            replace_file(self._folder / INDEX, f"{head}{body}".encode())

    def _write(self, digest: str, data: bytes) -> str:
        name = file_name(digest)
        if not self._digests:
            self._folder.mkdir(exist_ok=True)
        self._digests.add(digest)
        if name not in self._written:
            if self._is_whole:
                (self._folder / INDEX).unlink(missing_ok=True)
                self._is_whole = False
            # With mtime=0 the file depends only on the text. Level 1 is fast, and the page is rarely opened.
            packed = gzip.compress(data, compresslevel=1, mtime=0)
            replace_page(self._folder / name, packed)
            self._written.add(name)
        return digest


def file_name(digest: str) -> str:
    """Return the name of the file with the text of a digest."""
    return f"{digest[:16]}.txt.gz"
