"""Display files of a run at any length: texts elided, with links to the whole ones."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helm.benchmark.presentation.run_display import write_run_display_json
from helm.benchmark.presentation.schema import Schema
from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hwarn

from helm_longctx.errors import InputError
from helm_longctx.report.full_texts import FullTexts, file_name
from helm_longctx.report.screen import conversation_html, input_html, safe_input
from helm_longctx.runs.conversation import elide_messages, to_text
from helm_longctx.runs.elision import LIMIT, elide, evidence_of
from helm_longctx.runs.states import State, rewrite_states

INPUTS = STATES, STATISTICS = "scenario_state.json", "per_instance_stats.json"
OUTPUTS = ("instances.json", "display_predictions.json", "display_requests.json")

_helm_writes = threading.Lock()
"""HELM's part goes through Mako templates, and Python 3.11's parser fails now and then in two threads at once."""


def write_display(run: Path, run_spec: RunSpec, schema: Schema, skip_completed: bool) -> None:
    """Write a run's display files as HELM does, from a copy of its states in which long texts are elided.

    Raises:
        InputError: the run's states or statistics cannot be read.
    """
    done = skip_completed and all((run / name).is_file() for name in OUTPUTS)
    if done or not all((run / name).is_file() for name in INPUTS):
        write_run_display_json(str(run), run_spec, schema, skip_completed)  # says why there is nothing to do
        return
    with tempfile.TemporaryDirectory(prefix=".display-", dir=run) as folder:
        copy, lean = Path(folder), LeanStates(FullTexts(run))
        rewrite_states(run / STATES, copy / STATES, lean.change)
        shutil.copyfile(run / STATISTICS, copy / STATISTICS)
        try:
            with _helm_writes:
                write_run_display_json(str(copy), run_spec, schema, skip_completed=False)
        except json.JSONDecodeError as error:
            raise InputError(f"{run / STATISTICS} is not a whole file; make that run again") from error
        for name in OUTPUTS:
            os.replace(copy / name, run / name)
    lean.finish()
    if lean.missing:
        hwarn(f"{run}: {lean.missing} whole prompts cannot be shown, prompts.zst is missing or damaged")


class LeanStates:
    """Elides the texts of request states, and keeps the whole ones.

    Args:
        texts: where they are kept.

    `missing` counts the states whose whole prompt was stored once and is not there any more.
    """

    def __init__(self, texts: FullTexts):
        self._texts = texts
        self._texts.add_stored(LIMIT)
        self._prompts: dict[str, str] = {}
        self.missing = 0

    def change(self, state: State) -> State:
        """The state for the screen. A request without an answer shows its error as one, else HELM could not show it."""
        evidence = _evidence(state["instance"])
        shown: State = _elide(state, evidence)
        prompt, text = self._whole(state)
        if prompt:
            self._prompts[state["instance"]["id"]] = prompt
        self._show(shown["request"], "prompt", state["request"], evidence, prompt)
        self._show(shown["instance"]["input"], "text", state["instance"]["input"], evidence, text)
        result = shown.get("result")
        if result and not result["completions"]:
            result["completions"] = [{"text": f"[no answer: {result.get('error')}]", "logprob": 0, "tokens": []}]
        return shown

    def _show(self, shown: State, name: str, asked: State, evidence: Sequence[str], whole: str | None) -> None:
        """Put what a request or an input asks in the form of the screen.

        Args:
            name: the field that has the text of a prompt.
            whole: digest of the whole text, if it is too long for the page.
        """
        if messages := asked.get("messages"):
            parts = elide_messages(messages, evidence)
            if whole and name == "text":
                shown["text"] = conversation_html(parts, self._texts.link(whole), self._texts.index)
                del shown["messages"]
                return
            link = [{"role": "whole conversation", "content": file_name(whole)}] if whole else []
            shown["messages"] = [*link, *({**each, "content": safe_input(each["content"])} for each in parts)]
        elif name == "prompt":
            shown[name] = f"[whole prompt: {file_name(whole)}]\n\n{shown[name]}" if whole else shown[name]
        else:
            text = shown[name]
            shown[name] = input_html(text, self._texts.link(whole), self._texts.index) if whole else safe_input(text)

    def finish(self) -> None:
        """Write the list of prompts."""
        self._texts.finish(self._prompts)

    def _whole(self, state: State) -> tuple[str | None, str | None]:
        """Digests of the whole prompt and of the text with the whole input, where they are too long for the page."""
        instance = state["instance"]
        pointer = (instance.get("extra_data") or {}).get("full_prompt", {})
        if (stored := pointer.get("sha256")) in self._texts:
            return stored, stored
        self.missing += pointer.get("characters", 0) > LIMIT
        prompt = to_text(state["request"]["prompt"], state["request"].get("messages"))
        text = to_text(instance["input"]["text"], instance["input"].get("messages"))
        sent = self._texts.add(prompt) if len(prompt) > LIMIT else None
        if len(text) <= LIMIT:
            return sent, None
        return sent, sent if sent and text in prompt else self._texts.add(text)


def _evidence(instance: dict[str, Any]) -> list[str]:
    references = [reference["output"]["text"] for reference in instance["references"]]
    return evidence_of(references, (instance.get("extra_data") or {}).get("record", {}))


def _elide(value: Any, evidence: Sequence[str]) -> Any:
    if isinstance(value, str):
        return elide(value, evidence)
    if isinstance(value, dict):
        return {key: _elide(part, evidence) for key, part in value.items()}
    return [_elide(part, evidence) for part in value] if isinstance(value, list) else value
