"""Mutated command lines of `helm-run`, as real processes: each ends with a message and a status, and no traceback."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from helm_longctx.run_settings import MIRROR
from tests.fuzz.cases import PATIENCE, Done, Kind
from tests.fuzz.commands import check
from tests.fuzz.loaders import small_mirror
from tests.fuzz.mutate import mutated_text

LIMIT = 240
ENTRIES = (
    "helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx/lexical",
    "helmet_rag:task=nq,length=8k,num_samples=2,shots=1,model=longctx/null",
    "lv_eval:dataset=cmrc_mixup,length=16k,num_samples=2,model=longctx/lexical",
)
VALUES = (
    "",
    "x",
    "-1",
    "0",
    "8",
    "1m",
    "none",
    "auto",
    "helmet_recal",
    "json_vk",
    "a/b",
    "99999999999999999999",
    "😀",
    "a=b",
    "8k ",
)
OPTIONS = (
    ["-m", "2"],
    ["--suite", "other"],
    ["-n", "2"],
    ["--disable-cache"],
    ["--seed", "1"],
)


def _mutated_entry(entry: str, rng: random.Random) -> str:
    """Return an entry with another value, with an argument missing or repeated, or with a typo in a name."""
    name, _, rest = entry.partition(":")
    parts = rest.split(",")
    position = rng.randrange(len(parts) - 1)
    key, _, value = parts[position].partition("=")
    kind = rng.randrange(5)
    if kind == 0:
        del parts[position]
    elif kind == 1:
        parts.append(parts[position])
    elif kind == 2:
        parts[position] = f"{mutated_text(key, rng)}={value}"
    elif kind == 3:
        name = mutated_text(name, rng)
    else:
        parts[position] = f"{key}={rng.choice(VALUES)}"
    return f"{name}:{','.join(parts)}".replace("\0", "").replace("\ud83d", "")


def run(target: str, rng: random.Random) -> None:
    """Run a mutated entry with our runner or HELM's."""
    entry = _mutated_entry(rng.choice(ENTRIES), rng)
    runner = (
        ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]
        if target == "ours"
        else []
    )
    arguments = [
        "--run-entries",
        entry,
        "--suite",
        "s",
        "-m",
        "2",
        *runner,
        *rng.choice(OPTIONS),
    ]
    with tempfile.TemporaryDirectory(prefix="fuzz-run-") as folder:
        check(_helm_run(arguments, Path(folder)), arguments, mistake=1)


def _helm_run(arguments: list[str], folder: Path) -> Done:
    """Run `helm-run`, and return its outcome. HELM logs to standard error, of which only errors count as messages."""
    environment = {
        **os.environ,
        MIRROR: str(small_mirror()),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "helm.benchmark.run", *arguments], cwd=folder, env=environment, capture_output=True, timeout=PATIENCE * LIMIT,
        check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


KIND = Kind("runs", ("ours", "helms"), 10, run, limit=LIMIT + 10)
