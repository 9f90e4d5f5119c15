"""Mutated command lines of `helm-longctx`, each in a process of its own: status 0, 1 or 2, a message, no traceback."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import shlex
import shutil
import socket
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NoReturn

from helm_longctx.cli.main import main
from helm_longctx.sources.root import ENVIRONMENT
from tests.fabricate import score_records
from tests.fabricate_runs import long_prompts, write_run
from tests.fuzz.cases import Done, Kind, run_forked
from tests.fuzz.loaders import small_mirror
from tests.fuzz.mutate import dumped, mutated, mutated_bytes, mutated_text

LIMIT = 120.0
RUN = "benchmark_output/runs/s/helmet_recall:task=json_kv,length=8k,model=longctx_null"
LINES = {
    "list": ("list helmet --length 8k", "list", "list --json --length 128k"),
    "prompts": (
        "prompts helmet_recall:task=json_kv,length=8k,num_samples=2 --limit 2",
        "prompts helmet_rag:task=nq,length=8k,shots=1,num_samples=2,seed=7 --style chat",
        "prompts lv_eval:dataset=cmrc_mixup,length=16k,num_samples=1 --limit 1",
        "prompts helmet_icl:length=8k,num_samples=1,labels=natural_label,protocol=current",
        "prompts helmet_niah:length=5000,num_samples=1,style=completion -o out",
        "prompts helmet_cite:task=asqa,length=8k,num_samples=2,shots=0,thinking_tokens=5",
    ),
    "score": (
        "score helmet_rerank:task=msmarco,length=8k --records records.jsonl",
        "score lv_eval:dataset=cmrc_mixup,length=16k --records records.jsonl",
    ),
    "fetch": ("fetch helmet_recall:length=8k", "fetch helmet_rag:task=nq,length=8k helmet_icl:length=8k"),
    "models": ("models", "models --copy-to mine"),
    "models add": (
        "models add my/x --url http://127.0.0.1:9 --model m --context 8k --header X-Team:nlp --local-path local",
        "models add my/x --url http://127.0.0.1:9/v1 --api anthropic --type chat --api-key-env HOME --replace",
    ),
    "judge-agreement": (
        "judge-agreement --judged judged.jsonl --labels labels.csv --json a.json",
        "judge-agreement --judged judged.jsonl --labels labels.jsonl",
        "judge-agreement --judged benchmark_output/runs/s",
    ),
    "export": ("export --suite s --to out --plot ''", "export --suite s --plot x.svg"),
    "show": (f"show {RUN} json_kv-0", f"show {RUN.rpartition('/')[-1]} json_kv-1 -o benchmark_output"),
    "reference": ("reference lv_eval --suite s --length 128k --model 'Llama*'", "reference helmet --suite new"),
    "schema": ("schema", "schema --suite s"),
    "confs": ("confs confs",),
    "doctor": ("doctor --no-run --local-path local",),
    "summarize": ("summarize --suite s --local-path local",),
    "serve": ("serve --suite s --port 8123",),
    "rejudge": ("rejudge --suite s --judge longctx/null --to t", "rejudge --suite s --local-path local"),
    "judge-check": ("judge-check --judge longctx/null --repeats 1 --json j.json --local-path local",),
    "general": ("--version", "--help", "score --help"),
}
"""Valid lines by sub-command."""

DEVICES = ("/dev/null", "/dev/full", "/proc/none/x")
ODD_WORDS = (
    "", " ", "-", "--", "-o", "--suite", "--length", "--json", "--nope", "-x", "x" * 300, "x" * 5000, "😀", "\udcff", "file", "folder",
    "file/below", "damaged", "..", ".", *DEVICES, "-1", "0", "1", "99999999999999999999", "nan", "true", "a=b", "a,b", "*", "[", "%s",
    "{}", "a\nb", "none", "auto", "8k", "longctx/lexical", "openai/gpt-4o-2024-05-13", "latest", "records.jsonl", "a/b", "--help",
)  # fmt: skip
MODULES = (
    "helm.benchmark.presentation.summarize", "helm.benchmark.server", "helm.clients.auto_client", "helm_longctx.judging.judge", "pandas",
    "helm_longctx.running.rejudge", "helm_longctx.report.ratings", "helm_longctx.judging.check.measures", "helm_longctx.report.plot",
    "helm_longctx.judging.check.plotting", "helm_longctx.judging.agreement", "matplotlib.pyplot", "helm_longctx.plugin",
)  # fmt: skip
"""What commands import when they need it; here once for all."""


@cache
def _workplace() -> Path:
    """A folder with everything that the valid lines name."""
    for module in MODULES:
        importlib.import_module(module)
    _kept.append(tempfile.TemporaryDirectory(prefix="fuzz-place-"))
    place = Path(_kept[0].name)
    suite = place / "benchmark_output/runs/s"
    for entry in (
        "helmet_recall:task=json_kv,length=8k,model=longctx/null",
        "lv_eval:dataset=cmrc_mixup,length=16k,model=longctx/null",
    ):
        write_run(suite, entry, long_prompts(2, 2000))
    ratings = [{"id": str(number), "judge_score": number % 4 / 3, "rater": f"r{number % 2}"} for number in range(20)]
    lines = "".join(json.dumps(row) + "\n" for row in ratings)
    for name in ("judged.jsonl", "labels.jsonl"):
        (place / name).write_text(lines)
    (place / "labels.csv").write_text("id,judge_score\n" + "".join(f"{n},{n % 3}\n" for n in range(20)))
    records = [record for record in score_records() if record["task"] == "msmarco"][:3]
    (place / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (place / "file").write_text("")
    (place / "folder").mkdir()
    return place


_kept: list[tempfile.TemporaryDirectory[str]] = []


def run_command(arguments: list[str], folder: Path, environment: dict[str, str] | None = None) -> Done:
    """The outcome of `helm-longctx` with these arguments, in a folder, without a network."""
    mirror = str(small_mirror())

    def act() -> None:
        os.environ |= {ENVIRONMENT: mirror, "HF_HUB_OFFLINE": "1", **(environment or {})}
        _cut_off()
        sys.argv = ["helm-longctx", *arguments]
        main()

    return run_forked(act, folder, LIMIT)


def _cut_off() -> None:
    """For the rest of the process there is no network, no server is started, and intervals are of few resamples."""
    from helm.benchmark import server

    from helm_longctx.judging import agreement

    def refuse(*arguments: object) -> NoReturn:
        raise ConnectionRefusedError(111, "Connection refused")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    server.app.run = lambda **options: None
    agreement.RESAMPLES = 20


def run(command: str, rng: random.Random) -> None:
    """A mutated line, sometimes with damaged files or another mirror."""
    arguments = shlex.split(rng.choice(LINES[command]))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        arguments = _mutated_line(arguments, rng)
    with tempfile.TemporaryDirectory(prefix="fuzz-line-") as folder:
        here = Path(folder) / "a/here"
        shutil.copytree(_workplace(), here)
        if rng.random() < 0.3:
            _damage(here, rng)
        mirrors = ("file", "folder", "/none", "")
        environment = {ENVIRONMENT: rng.choice(mirrors[:3])} if rng.random() < 0.05 else None
        check(run_command(arguments, here, environment), arguments)


def check(done: Done, arguments: list[str]) -> None:
    """Status 0, or a status and a message that says why."""
    line, said = shlex.join(arguments)[:300], done.err[-400:]
    assert "Traceback (most recent" not in done.err, f"a traceback: {line}: {said}"
    assert done.status in (0, 1, 2), f"status {done.status}: {line}: {said}"
    assert done.status != 0 or "helm-longctx: error" not in done.err, f"an error with status 0: {line}: {said}"
    assert done.status == 0 or done.err.strip() or done.out.strip(), f"status {done.status} without a word: {line}"
    errors = [text for text in done.err.splitlines() if text.startswith("helm-longctx: error")]
    assert len(errors) <= 1, f"several errors: {line}: {said}"
    assert not errors or (done.status == 2 and len(errors[0]) < 4000), f"status {done.status}: {line}: {said}"


def _mutated_line(arguments: list[str], rng: random.Random) -> list[str]:
    """Another line, which writes nowhere else than in its folder."""
    while True:
        changed = _changed(list(arguments), rng)
        if not any("\0" in word or _leads_elsewhere(word) for word in changed):
            return changed


def _leads_elsewhere(word: str) -> bool:
    for device in DEVICES:
        word = word.replace(device, "")
    return bool(re.search(r"(^|^-\w+|[^\w.)])/|\.\.", word.replace("..", "", word == "..")))


def _changed(words: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(words))
    kind = rng.randrange(7)
    if kind == 0 and len(words) > 1:
        del words[place]
    elif kind == 1:
        words.insert(place, words[rng.randrange(len(words))])
    elif kind == 2:
        words[place] = rng.choice(ODD_WORDS)
    elif kind == 3:
        words.insert(place + 1, rng.choice(ODD_WORDS))
    elif kind == 4:
        words[place] = mutated_text(words[place], rng)
    else:
        words[place] = _changed_entry(words[place], rng)
    return words


def _changed_entry(word: str, rng: random.Random) -> str:
    """Another value, argument or name in a run entry; a typo in any other word."""
    name, colon, rest = word.partition(":")
    if not colon or "=" not in rest:
        at = rng.randrange(len(word) + 1)
        return word[:at] + rng.choice("aex_-=:, ") + word[at + 1 :]
    parts = rest.split(",")
    place = rng.randrange(len(parts))
    key, _, value = parts[place].partition("=")
    others = (
        f"{key}={rng.choice(ODD_WORDS)}", f"{mutated_text(key, rng)}={value}", key, f"{key}=", f"={value}", f"{key}={value}={value}",
        f" {key} = {value} ", "judge=none", "context=none", "truncation=error", "length=1m", "shots=0", "num_samples=0", "model=a/b",
    )  # fmt: skip
    parts[place : place + rng.randint(0, 1)] = [rng.choice(others)]
    return f"{mutated_text(name, rng) if rng.random() < 0.1 else name}:{','.join(parts)}"


def _damage(here: Path, rng: random.Random) -> None:
    """Change a file that a line can read."""
    path = rng.choice(sorted(path for path in here.rglob("*") if path.is_file()))
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.6:
        path.write_bytes(dumped(mutated(json.loads(data), rng), rng))
    else:
        path.write_bytes(mutated_bytes(data, rng))


KIND = Kind("commands", tuple(LINES), 60, run)
