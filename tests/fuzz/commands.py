"""Mutated command lines of `helm-longctx` in processes of their own: each ends with a known status, a message, and no traceback."""

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
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, NoReturn

from helm_longctx.cli.main import main
from helm_longctx.run_settings import MIRROR
from tests.apps.exchange.fabricate import HELMET_NAME
from tests.fuzz.cases import Done, Kind, run_forked
from tests.fuzz.loaders import small_mirror
from tests.fuzz.mutate import dumped, mutated, mutated_bytes, mutated_text
from tests.fuzz.workplace import BATCHED, build_workplace

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
    "reproduce": (
        "reproduce",
        "reproduce helmet recall 8k --suite s",
        "reproduce 'helmet recall 8k' --model longctx/null --argument num_samples=1 --suite r --dry-run",
        "reproduce deepseek mrcr 1m mmr",
    ),
    "fetch": (
        "fetch helmet_recall:length=8k",
        "fetch helmet_rag:task=nq,length=8k helmet_icl:length=8k",
    ),
    "models": ("models", "models --copy-to mine"),
    "models add": (
        "models add my/x --url http://127.0.0.1:9 --model m --context 8k --header X-Team:nlp --local-path local",
        "models add my/x --url http://127.0.0.1:9/v1 --api anthropic --type chat --api-key-env HOME --replace",
    ),
    "models convert": (
        "models convert records.jsonl --to converted --name my/x --dtype float16 --local-path local",
        "models convert records.jsonl --to converted --tokenizer local --replace",
    ),
    "judge-agreement": (
        "judge-agreement --judged judged.jsonl --labels labels.csv --json a.json",
        "judge-agreement --judged judged.jsonl --labels labels.jsonl",
        "judge-agreement --judged benchmark_output/runs/s",
    ),
    "export": ("export --suite s --to out --plot ''", "export --suite s --plot x.svg"),
    "show": (
        f"show {RUN} json_kv-0",
        f"show {RUN.rpartition('/')[-1]} json_kv-1 -o benchmark_output",
    ),
    "reference": (
        "reference lv_eval --suite s --length 128k --model 'Llama*'",
        "reference helmet --suite new",
    ),
    "schema": ("schema", "schema --suite s"),
    "confs": ("confs confs",),
    "doctor": ("doctor --no-run --local-path local", "doctor --suite s"),
    "summarize": ("summarize --suite s --local-path local",),
    "serve": ("serve --suite s --port 8123",),
    "rejudge": (
        "rejudge --suite s --judge longctx/null --to t",
        "rejudge --suite s --local-path local",
    ),
    "judge-check": (
        "judge-check --judge longctx/null --repeats 1 --json j.json --local-path local",
    ),
    "run": (
        "run --suite t --tasks helmet_recall --length 8k --argument task=json_kv --argument num_samples=2 --model longctx/null",
        "run run.yaml --local-path local -n 2",
        "run run.yaml --dry-run --max-cost 1 -v",
        "run --suite t --entry helmet_recall:task=json_kv,length=8k,num_samples=2 --model-url http://127.0.0.1:9/v1 --model-name m -m 2",
        f"run --suite b --entry {BATCHED} -m 3 --batch files --batch-size 2 --local-path local",
        f"run --suite new --entry {BATCHED} -m 3 --batch send --local-path local",
        "run --suite t --conf-path entries.conf --judge none --max-retries 0 --request-timeout 5 -q",
    ),
    "certify": (
        "certify --model longctx/lexical --claim 2k --shortest 1k -m 2 --seed 1 --to out",
        "certify --model-url http://127.0.0.1:9/v1 --model-name m --claim 8k --error 0.2 --dry-run",
    ),
    "estimate": (
        "estimate helmet_recall:task=json_kv,length=8k,num_samples=2 --model longctx/null --json e.json",
        "estimate --conf-paths entries.conf --prices prices.yaml -m 2 --tokens-per-minute 1000",
        "estimate helmet_rag:task=nq,length=8k,shots=1 --model chaos/model --price-input 1 --price-output 2 --local-path local",
    ),
    "shard": (
        "shard 1/2 helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx/null --suite t -m 2 --disable-cache",
        "shard all/2 helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx/null --suite t -m 2 --disable-cache",
        "shard 2/2 --conf-paths entries.conf --suite t -m 2 -n 2",
    ),
    "batch": (
        "batch status --suite b --local-path local",
        "batch cancel --suite b --local-path local --forget",
    ),
    "report": (
        "report --suite s --format markdown",
        "report --suite s --format latex --no-published --to out",
        "report --suite s --server http://localhost:8000",
    ),
    "compare": (
        "compare longctx/null longctx/lexical --suite s --json c.json",
        "compare longctx/null longctx/lexical --suite s --benchmark helmet --length 8k --instances 2",
    ),
    "import": (
        f"import theirs/{HELMET_NAME} --suite t --model my/model",
        "import theirs/answers.csv theirs/samples_nq_2025-01-31T12-00-00.0.jsonl --suite t --entry helmet_rag:task=nq,length=8k",
        "import theirs/2025-01-31T12-00-00_task_abc.json --suite s --format inspect",
        "import theirs --suite t --entry helmet_rag:task=nq,length=8k",
    ),
    "verify": (
        "verify infinite_bench",
        "verify all --page proof.md",
        "verify leval --page proof.md",
    ),
    "correlations": (
        "correlations helmet",
        "correlations helmet --models instruct --length 128k",
        "correlations lv_eval --length 16k --models 'GPT*,*b*,*B*'",
    ),
    "subset": (
        "subset helmet --suite s --price 0.5 --seed 3",
        "subset lv_eval --agreement 0.5 --json s.json --to x.conf",
    ),
    "gate": (
        "gate longctx/lexical longctx/null --entry helmet_recall:task=json_kv,length=8k,num_samples=4 --local-path local",
        "gate longctx/null longctx/null --tasks helmet_recall:task=json_kv --length 8k -m 3 --dry-run --max-drop 5",
    ),
    "cache-check": (
        "cache-check --model longctx/lexical --length 4k --questions 1 --to out --dry-run",
        "cache-check --model-url http://127.0.0.1:9/v1 --model-name m --length 4k --questions 1 --seed 1",
    ),
    "compaction": (
        "compaction --to out --json c.json --rounds 1,2 --max-loss 5 --compactor helm_longctx.errors:shorten",
        "compaction records.jsonl --model longctx/lexical --count 3 --keep 20 --to out --redact --baselines whole",
        "compaction judged.jsonl --model-url http://127.0.0.1:9/v1 --model-name m --compactor compact:kept=1k --dry-run",
    ),
    "checkpoints": ("checkpoints --suite s --json c.json",),
    "likelihood": ("likelihood --suite s",),
    "memory": (
        "memory --suite s",
        "memory --suite s --system a/one --json memory.json",
    ),
    "demo": ("demo --output-path out --local-path local",),
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
    "helm_longctx.runner.rejudge", "helm_longctx.apps.judge_checks.ratings", "helm_longctx.apps.judge_checks.measures", "helm_longctx.documents.plots",
    "helm_longctx.plugin",
)  # fmt: skip
"""What commands import when they need it; here once for all."""


@cache
def _workplace() -> Path:
    """Return a folder with all files that the valid lines name."""
    for module in MODULES:
        importlib.import_module(module)
    _kept.append(tempfile.TemporaryDirectory(prefix="fuzz-place-"))
    folder = Path(_kept[0].name)
    build_workplace(folder, run_command)
    return folder


_kept: list[tempfile.TemporaryDirectory[str]] = []


def run_command(
    arguments: list[str], folder: Path, environment: dict[str, str] | None = None
) -> Done:
    """Run `helm-longctx` with these arguments in a folder and without a network, and return the outcome."""
    mirror = str(small_mirror())

    def act() -> None:
        os.environ |= {
            MIRROR: mirror,
            "HF_HUB_OFFLINE": "1",
            **(environment or {}),
        }
        _cut_off()
        _become_main(arguments)

    return run_forked(act, folder, LIMIT)


def _cut_off() -> None:
    """For the rest of the process, take away the network, start no server, and make small what takes long."""
    from helm.benchmark import server

    from helm_longctx.cli import demo

    def refuse(*arguments: object) -> NoReturn:
        raise ConnectionRefusedError(111, "Connection refused")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    server.app.run = lambda **options: None
    demo.RUNS = Path("demo.yaml").resolve()
    demo.subprocess = SimpleNamespace(Popen=Forked, STDOUT=None)  # type: ignore[attr-defined]


class Forked:
    """A stand-in for `subprocess.Popen` of our command that forks this process, which has imported everything, and waits."""

    def __init__(self, command: list[str], stdout: IO[bytes], stderr: None):
        done = run_forked(partial(_become_main, command[3:]), Path.cwd(), LIMIT)
        self.returncode = done.status
        stdout.write(done.out + done.err.encode())

    def poll(self) -> int:
        """Return the exit status of the process."""
        return self.returncode


def _become_main(arguments: list[str]) -> None:
    sys.argv = ["helm-longctx", *arguments]
    main()


def run(command: str, rng: random.Random) -> None:
    """Run a mutated line, sometimes with damaged files or another mirror."""
    arguments = shlex.split(rng.choice(LINES[command]))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        arguments = _mutated_line(arguments, rng)
    with tempfile.TemporaryDirectory(prefix="fuzz-line-") as folder:
        here = Path(folder) / "a/here"
        shutil.copytree(_workplace(), here)
        if rng.random() < 0.3:
            _damage(here, rng)
        mirrors = ("file", "folder", "/none", "")
        environment = {MIRROR: rng.choice(mirrors[:3])} if rng.random() < 0.05 else None
        check(run_command(arguments, here, environment), arguments)


def check(done: Done, arguments: list[str], mistake: int = 2) -> None:
    """Check that the status is 0, or that a message says why it is not.

    Args:
        mistake: the status after an error for users.
    """
    line = shlex.join(arguments)[:300]
    said = done.err[-400:]
    assert "Traceback (most recent" not in done.err, f"a traceback: {line}: {said}"
    assert done.status in (0, 1, 2, 3), f"status {done.status}: {line}: {said}"
    assert done.status != 0 or "helm-longctx: error" not in done.err, (
        f"an error with status 0: {line}: {said}"
    )
    assert done.status == 0 or done.err.strip() or done.out.strip(), (
        f"status {done.status} without a word: {line}"
    )
    errors = [
        text for text in done.err.splitlines() if text.startswith("helm-longctx: error")
    ]
    assert len(errors) <= 1, f"several errors: {line}: {said}"
    assert not errors or (done.status == mistake and len(errors[0]) < 4000), (
        f"status {done.status}: {line}: {said}"
    )


def _mutated_line(arguments: list[str], rng: random.Random) -> list[str]:
    """Return a mutated line that writes only into its folder."""
    while True:
        changed = _changed(list(arguments), rng)
        if not any("\0" in word or _leads_elsewhere(word) for word in changed):
            return changed


def _leads_elsewhere(word: str) -> bool:
    for harmless in (*DEVICES, "http://"):
        word = word.replace(harmless, "")
    return bool(
        re.search(r"(^|^-\w+|[^\w.)])/|\.\.", word.replace("..", "", word == ".."))
    )


def _changed(words: list[str], rng: random.Random) -> list[str]:
    position = rng.randrange(len(words))
    kind = rng.randrange(7)
    if kind == 0 and len(words) > 1:
        del words[position]
    elif kind == 1:
        words.insert(position, words[rng.randrange(len(words))])
    elif kind == 2:
        words[position] = rng.choice(ODD_WORDS)
    elif kind == 3:
        words.insert(position + 1, rng.choice(ODD_WORDS))
    elif kind == 4:
        words[position] = mutated_text(words[position], rng)
    else:
        words[position] = _changed_entry(words[position], rng)
    return words


def _changed_entry(word: str, rng: random.Random) -> str:
    """Return a run entry with another value, argument or name, or another word with a typo."""
    name, colon, rest = word.partition(":")
    if not colon or "=" not in rest:
        at = rng.randrange(len(word) + 1)
        return word[:at] + rng.choice("aex_-=:, ") + word[at + 1 :]
    parts = rest.split(",")
    position = rng.randrange(len(parts))
    key, _, value = parts[position].partition("=")
    others = (
        f"{key}={rng.choice(ODD_WORDS)}", f"{mutated_text(key, rng)}={value}", key, f"{key}=", f"={value}", f"{key}={value}={value}",
        f" {key} = {value} ", "judge=none", "context=none", "truncation=error", "length=1m", "shots=0", "num_samples=0", "model=a/b",
    )  # fmt: skip
    parts[position : position + rng.randint(0, 1)] = [rng.choice(others)]
    return (
        f"{mutated_text(name, rng) if rng.random() < 0.1 else name}:{','.join(parts)}"
    )


def _damage(here: Path, rng: random.Random) -> None:
    """Change a file that a line can read."""
    path = rng.choice(sorted(path for path in here.rglob("*") if path.is_file()))
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.6:
        path.write_bytes(dumped(mutated(json.loads(data), rng), rng))
    else:
        path.write_bytes(mutated_bytes(data, rng))


KIND = Kind("commands", tuple(LINES), 60, run, limit=2 * LIMIT)
