"""Tests of benchmarks, providers and methods of other packages that cannot be used: each is left out, all else works."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helm.common.cache import BlackHoleCacheConfig

import helm_longctx.tasks.methods.registry as methods
import helm_longctx.tasks.registry as benchmarks
from helm_longctx.errors import InputError
from helm_longctx.models.apis import OpenAIClient, provider
from helm_longctx.redaction import text
from tests.support.faulty_plugins import FAULTS, write_plugins

LOADERS: dict[str, Callable[[], object]] = {
    "benchmarks": lambda: [
        benchmark.name for benchmark in benchmarks.load_benchmarks()
    ],
    "providers": lambda: list(provider.providers.__wrapped__()),
    "methods": lambda: list(methods.load_methods()),
}
GOOD = {"benchmarks": "mystery", "providers": "acme", "methods": "question_first"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all plug-ins."""
    return write_plugins(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, in which this process finds the plug-ins."""
    provider.providers()  # this process keeps the providers that were installed when it asked first
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(text, "_formats", text._formats)
    monkeypatch.setattr(text, "_format_pattern", text._format_pattern)
    importlib.invalidate_caches()
    yield folder
    for name in [
        name
        for name, module in sys.modules.items()
        if str(folder) in str(getattr(module, "__file__", ""))
    ]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_faulty_plugin_is_left_out_with_one_warning(
    kind: str,
    installed: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A plug-in that cannot be imported or used is left out with one line, and ours and the good one are loaded."""
    ours = LOADERS[kind]()
    assert GOOD[kind] in ours
    assert not {name for name in ours if name.startswith(kind)}
    lines = [message for message in caplog.messages if " is left out: " in message]
    warnings = Counter(line.split()[1].partition(":")[0] for line in lines)
    names = {*FAULTS[kind], f"zz_{kind}"}
    assert {name: count for name in names if (count := warnings[name]) != 1} == {}
    assert [line for line in lines if "\n" in line or len(line) > 400] == []
    assert capsys.readouterr().out == ""


def test_a_provider_that_is_left_out_has_no_effect(installed: Path) -> None:
    """A record with our client's class neither gets our requests and keys, nor changes which keys are redacted."""
    formats = text._formats
    record = importlib.import_module("providers_client_of_openai").PLUGIN
    assert record.client is OpenAIClient
    with pytest.raises(InputError, match="another one has its client OpenAIClient"):
        provider._check(provider.providers(), record)
    assert OpenAIClient.provider.name == "openai"
    library = OpenAIClient(BlackHoleCacheConfig(), api_key="key-of-a-user").client
    assert str(library.base_url) == "https://api.openai.com/v1/"
    assert text._formats == formats


def test_the_client_of_a_provider_that_is_left_out_sends_nothing(
    installed: Path,
) -> None:
    """A client that is derived from ours does not send its provider's keys to ours when its provider is left out."""
    record = importlib.import_module("providers_derived").PLUGIN
    with pytest.raises(InputError, match="another one has its name openai"):
        provider._check(provider.providers(), record)
    with pytest.raises(
        InputError, match="DerivedClient is the client of no provider that is in use"
    ):
        record.client(BlackHoleCacheConfig(), api_key="key-of-a-user")


def test_an_entry_point_can_name_our_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Entry points of our benchmarks, which an old installation still has, cause no warning and no second copy."""
    (tmp_path / "old-1.dist-info").mkdir()
    points = (
        "[helm_longctx.benchmarks]\nhelmet = helm_longctx.benchmarks.helmet:BENCHMARK\n"
    )
    (tmp_path / "old-1.dist-info/entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    assert benchmarks.load_benchmarks() == benchmarks.BENCHMARKS
    assert caplog.messages == []


COMMANDS = """
import sys
from helm_longctx.cli.main import main
failures = []
for line in sys.argv[1:]:
    sys.argv = ["helm-longctx", *line.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            failures.append(f"{line}: {end.code}")
    except BaseException as error:
        failures.append(f"{line}: {error!r}")
sys.exit("; ".join(failures) or 0)
"""


def test_commands_work_beside_faulty_plugins(folder: Path, tmp_path: Path) -> None:
    """Lists, schemas, protocols, prompts, runs and `helm-run` itself end as if no faulty plug-in were installed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "HELM_LONGCTX_DATA": str(tmp_path),
    }
    options = {
        "cwd": tmp_path,
        "env": environment,
        "capture_output": True,
        "text": True,
        "check": False,
    }
    prompts = "prompts helmet_recall:task=json_kv,length=8k --limit 1"
    run = "run --suite s --entry fresh_text:length=4k,num_samples=1 --model longctx/lexical"
    lines = [
        prompts,
        "list",
        "list mystery",
        "schema",
        "reproduce",
        "models",
        run,
        "report --suite s",
    ]
    done = subprocess.run([sys.executable, "-c", COMMANDS, *lines], **options)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout.partition("\n")[0])["task"] == "json_kv"
    command = [
        sys.executable,
        "-m",
        "helm.benchmark.run",
        "--dry-run",
        "--suite",
        "s",
        "-m",
        "1",
    ]
    done = subprocess.run(
        [*command, "-r", "fresh_text:length=4k,model=longctx/lexical"], **options
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "benchmarks_exits:PLUGIN is left out: SystemExit" in done.stderr
