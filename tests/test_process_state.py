"""Tests that a command, or a call of `evaluate`, leaves the state of its process as it was."""

from __future__ import annotations

import csv
import gc
import locale
import logging
import os
import random
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nltk.data
import numpy as np
import pytest
import requests
import torch
from helm.benchmark import model_deployment_registry as deployments
from helm.benchmark import model_metadata_registry as models
from helm.benchmark import runner
from helm.benchmark import tokenizer_config_registry as tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

import helm_longctx as lc
import helm_longctx.plugin  # registers entries and models
from helm_longctx import process_state, run_settings
from helm_longctx.apps.certify import command as certify_command
from helm_longctx.config.shared import fill_registries
from helm_longctx.judging.keys import client as keys
from helm_longctx.models import objects
from helm_longctx.models.apis import prices, rates
from helm_longctx.models.apis.transport import LimitedBody
from helm_longctx.models.local.model import _seed_random_numbers
from helm_longctx.models.local.objects import TransformersModel
from helm_longctx.parts import import_user_module
from tests.chaos.batches import write_deployment
from tests.evaluation.calls import call_with_short_texts
from tests.models.small_models import save_model
from tests.support.commands import Command
from tests.support.fabricate_books import build_rubrics
from tests.support.questions import write_questions
from tests.support.servers.batches import serve_batches
from tests.support.servers.llm import serve

ENTRY = "any_jsonl:path=questions,metric=contains,length=4k,count_with=longctx/words"
RUN = ("run", "--entry", ENTRY, "--suite", "s", "--quiet")
BOTH = ("--model", "longctx/lexical", "--model", "longctx/null")
BATCHES = (
    "run",
    "--entry",
    ENTRY,
    "--model",
    "chaos/model",
    "--quiet",
    "--suite",
    "batches",
    "--batch",
)
SHARD = (f"{ENTRY},model=longctx/lexical", "--suite", "shards", "-m", "100")

COMMANDS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "run": (0, (*RUN, *BOTH)),
    "run again": (0, (*RUN, *BOTH)),
    "run without batches": (
        2,
        (*RUN, *BOTH, "--suite", "batches", "--batch", "wait"),
    ),
    "run verbose": (0, (*RUN[:-1], *BOTH, "--verbose")),
    "a wrong entry": (2, ("run", "--entry", "no_such:length=4k", *BOTH)),
    "shard": (0, ("shard", "1/2", *SHARD)),
    "batch": (0, ("batch", "status", "--suite", "s")),
    "estimate": (0, ("estimate", ENTRY, "--model", "longctx/lexical")),
    "gate": (
        3,
        (
            "gate",
            "longctx/lexical",
            "longctx/lexical",
            "--entry",
            ENTRY,
            "--suite",
            "g",
            "--max-drop",
            "5",
        ),
    ),
    "summarize": (0, ("summarize", "--suite", "s")),
    "compare": (0, ("compare", "longctx/lexical", "longctx/null", "--suite", "s")),
    "rejudge": (2, ("rejudge", "--suite", "s", "--judge", "no/judge", "--to", "r")),
    "report": (0, ("report", "--suite", "s")),
    "export": (0, ("export", "--suite", "s", "--to", "table.csv")),
    "import": (2, ("import", "answers.csv", "--suite", "i")),
    "prompts": (0, ("prompts", ENTRY)),
    "doctor": (0, ("doctor", "--no-network")),
    "cache-check": (
        0,
        (
            "cache-check",
            "--model-url",
            "http://127.0.0.1:9/v1",
            "--length",
            "1k",
            "--dry-run",
        ),
    ),
    "certify without questions": (
        0,
        ("certify", "--model", "longctx/lexical", "--claim", "16k", "--dry-run"),
    ),
    "certify": (
        0,
        (
            "certify",
            "--model",
            "longctx/lexical",
            "--claim",
            "2k",
            "--seed",
            "5",
            "--shortest",
            "1k",
            "--error",
            "0.5",
            "-m",
            "30",
            "--quiet",
        ),
    ),
    "compaction": (0, ("compaction", "--quiet", "--to", "compaction")),
    "judge-check": (2, ("judge-check", "--judge", "chaos/model", "--repeats", "1")),
    "run with batches": (0, (*BATCHES, "send")),
    "batch status": (0, ("batch", "status", "--suite", "batches")),
    "run that waits for batches": (0, (*BATCHES, "wait")),
    "batch cancel": (0, ("batch", "cancel", "--suite", "batches")),
    "list": (0, ("list", "helmet")),
}
"""Commands with their exit statuses. Some need what earlier ones have made."""


def describe_loggers() -> dict[str, Any]:
    """Return what is set in the loggers of ours and of HELM, and in the root of all. Other libraries set theirs when they are imported."""
    loggers = {"root": logging.root}
    for name, logger in [*logging.root.manager.loggerDict.items()]:
        if name.startswith("helm") and isinstance(logger, logging.Logger):
            loggers[name] = logger
    described = {}
    for name, logger in loggers.items():
        # The filters are added once, and count only while we work.
        values = (logger.level, *map(repr, logger.handlers))
        if values != (0,) or not logger.propagate or logger.disabled:
            described[name] = (*values, logger.propagate, logger.disabled)
    return described


def take_snapshot() -> dict[str, Any]:
    """Return what one command could change for the next one."""
    signals = {}
    for number in signal.valid_signals():
        signals[number] = signal.getsignal(number)
    threads = [each.name for each in threading.enumerate() if not each.daemon]
    mask = os.umask(0)
    os.umask(mask)
    variables = dict(os.environ)
    for name in list(variables):
        # The runtime of OpenMP sets them when it is loaded.
        if name.startswith("KMP_"):
            del variables[name]
    return {
        "environment": variables,
        "folder": os.getcwd(),
        "umask": mask,
        "path": list(sys.path),
        "arguments": list(sys.argv),
        "recursion": sys.getrecursionlimit(),
        "signals": signals,
        "threads": threads,
        "loggers": describe_loggers(),
        "log is disabled": logging.root.manager.disable,
        "locale": locale.setlocale(locale.LC_ALL),
        "csv": csv.field_size_limit(),
        "socket": socket.getdefaulttimeout(),
        "collections": gc.get_threshold(),
        "NLTK": list(nltk.data.path),
        "deployments": list(deployments.ALL_MODEL_DEPLOYMENTS),
        "deployments by name": dict(deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT),
        "models": list(models.ALL_MODELS_METADATA),
        "tokenizers": list(tokenizers.ALL_TOKENIZER_CONFIGS),
        "HELM's folder": runner.get_benchmark_output_path(),
        "settings": run_settings._in_use,
        "paces": list(rates._makers),
        "objects": dict(objects.OBJECTS),
        "judges": dict(keys._found),
        "ends": process_state._ends,
    }


def take_snapshot_of_libraries() -> dict[str, Any]:
    """Return what libraries also change when they are imported."""
    return {
        "warnings": list(warnings.filters),
        "random": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "torch": torch.get_rng_state().tolist(),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook),
        "imports": list(sys.meta_path),
        "variables": dict(os.environ),
    }


def find_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [name for name, value in before.items() if value != after[name]]


@pytest.fixture
def questions() -> None:
    """A data set of three questions in the folder of the test."""
    rows = []
    for name, key in (("door", "37"), ("school", "74"), ("town", "111")):
        context = f"The key of the {name} is {key}."
        question = f"What is the key of the {name}?"
        rows.append({"context": context, "question": question, "answers": [key]})
    Path("questions").mkdir()
    write_questions(Path("questions"), *rows)
    Path("answers.csv").write_text("no,such,columns\n1,2,3\n")


@pytest.fixture
def batch_server(questions: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server with batches as `chaos/model`, whose answers have no verdict, and the rubrics of a check of judges."""
    build_rubrics(Path("data"))
    # One of five kinds of questions is enough.
    Path("kinds.yaml").write_text(
        "always: {recall: 'fresh_text:task=recall'}\n"
        "by_choice: {tool_calls: 'tool_calls:task=constraint'}\n"
    )
    monkeypatch.setattr(certify_command, "_KINDS", Path("kinds.yaml"))
    monkeypatch.setenv(run_settings.MIRROR, "data")
    with serve_batches(lambda prompt: "37") as server:
        write_deployment(Path("prod_env"), server, "openai")
        yield


def test_commands_leave_no_state(command: Command, batch_server: None) -> None:
    """Each command gives back what it changes in its process, whether it succeeds or not."""
    changes = {}
    for name, (status, arguments) in COMMANDS.items():
        command.monkeypatch.setattr(sys, "argv", ["helm-longctx", *arguments])
        before = take_snapshot()
        libraries = take_snapshot_of_libraries()
        ended = command(*arguments)
        assert ended == status, f"{name}: {command.out[-300:]}{command.err}"
        changed = find_changes(before, take_snapshot())
        if name == "run again":
            # What it needs was imported by the command before.
            changed += find_changes(libraries, take_snapshot_of_libraries())
        if changed:
            changes[name] = changed
    assert not changes


def test_a_call_leaves_no_state(questions: None) -> None:
    """A call of `evaluate` gives back what it changes in the process of the user."""

    def answer(prompt: lc.Prompt) -> str:
        return "37"

    call_with_short_texts(answer)
    before = take_snapshot() | take_snapshot_of_libraries()
    call_with_short_texts(answer, resume=False)
    assert not find_changes(before, take_snapshot() | take_snapshot_of_libraries())
    with pytest.raises(lc.InputError):
        call_with_short_texts(answer, {"metric": "no"})
    assert not find_changes(before, take_snapshot() | take_snapshot_of_libraries())


def test_posts_of_the_user(questions: None) -> None:
    """What the calling program posts between two calls is not limited as replies of models are."""
    with serve(lambda prompt: "37") as server:
        address = f"{server.address}/v1/completions"
        body = {"model": "m", "prompt": "a", "max_tokens": 1}
        call_with_short_texts(lambda prompt: "37")
        assert not isinstance(requests.post(address, json=body).raw, LimitedBody)

        def answer(prompt: lc.Prompt) -> str:
            limited.append(
                isinstance(requests.post(address, json=body).raw, LimitedBody)
            )
            return "37"

        limited: list[bool] = []
        call_with_short_texts(answer, resume=False)
    assert limited
    assert all(limited)


def test_a_second_local_path(command: Command) -> None:
    """A command does not know the models of an earlier one with another folder of configuration."""
    for folder in ("one", "two"):
        register = ("models", "add", f"corp/{folder}", "--local-path", folder)
        with serve(lambda prompt: "37") as server:
            added = (*register, "--url", f"{server.address}/v1", "--model", "m")
            assert command(*added) == 0, command.err
        known = dict(deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT)
        with process_state.giving_back():
            fill_registries(Path(folder))
            now = dict(deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT)
            assert f"corp/{folder}" in now
            assert folder == "one" or "corp/one" not in now
        assert known == deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT


def test_a_model_that_trains(tmp_path: Path) -> None:
    """Each part of a model of the user has its mode for training or for answers again, and random numbers go on."""
    folder = save_model(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.train()
    frozen = next(iter(model.children()))
    frozen.eval()
    before = [module.training for module in model.modules()]
    loaded = TransformersModel(model, tokenizer)
    local = loaded.load()
    assert not any(module.training for module in model.modules())
    torch.manual_seed(3)
    expected = torch.rand(1).item()
    torch.manual_seed(3)
    with _seed_random_numbers(1, local._model.device):
        torch.rand(1)
    assert torch.rand(1).item() == expected
    loaded.close()
    assert [module.training for module in model.modules()] == before


def test_a_module_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder from which a user's module is imported is on Python's path until the command ends."""
    (tmp_path / "module_of_a_user.py").write_text("VALUE = 3\n")
    before = list(sys.path)
    with process_state.giving_back():
        assert import_user_module("module_of_a_user").VALUE == 3
        assert sys.path == [*before, str(tmp_path)]
    assert sys.path == before


def test_prices_that_change(tmp_path: Path) -> None:
    """A file of prices that was changed is read again."""
    path = tmp_path / "prices.yaml"
    for dollars in (1, 2):
        path.write_text(f"a/b: {{input: {dollars}, output: 1}}\n")
        os.utime(path, (dollars, dollars))
        assert prices._read_once(path)["a/b"]["input"] == dollars
