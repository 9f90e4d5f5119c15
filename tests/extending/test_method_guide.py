"""Follows the part of docs/methods.md that adds a method in a package of its own."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.extending.guide import Guide, run_with_modules
from tests.support import scripted
from tests.support.servers.llm import serve

GUIDE = Guide("methods.md")
ENTRY = "helmet_recall:task=json_kv,length=8k,method=question_first,times=2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the guide's files, as pip would install the package."""
    GUIDE.write(tmp_path)
    info = tmp_path / "question_first-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: question-first\nVersion: 1\n"
    )
    points = (
        GUIDE.files["pyproject.toml"]
        .partition("[project.entry-points.")[2]
        .replace('"', "")
    )
    (info / "entry_points.txt").write_text(
        f"[{points}halves = halves:METHOD\nlast = last:METHOD\n"
    )
    (line,) = re.findall(r"`METHOD = (make_memory_method\(.*\))`", GUIDE.text)
    imports = "from my_memory import Last\n\nfrom helm_longctx.tasks.methods.memory import make_memory_method\n"
    (tmp_path / "last.py").write_text(f"{imports}METHOD = {line}\n")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in which Python finds the package."""
    return run_with_modules([folder], *command, folder=folder)


def test_the_method_of_another_package(folder: Path) -> None:
    """The guide's command prints prompts of the method, its arguments are checked, and a run has its name and its row."""
    (line,) = re.findall(
        r"`(helm-longctx prompts .*method=question_first.*?)`", GUIDE.text
    )
    assert ENTRY in line
    done = run(folder, *line.split())
    assert done.returncode == 0, done.stderr
    prompt = json.loads(done.stdout)["prompt"]
    question = re.findall(r"Key: (\S+)\nCorresponding value:$", prompt)[0]
    assert f"{question}\n\n{question}\n\n" in prompt
    done = run(folder, "helm-longctx", "prompts", ENTRY.replace("times=2", "times=0"))
    assert (
        done.returncode,
        "times='0' is invalid; give a whole number from 1" in done.stderr,
    ) == (
        2,
        True,
    )
    entry = f"{ENTRY},num_samples=2"
    done = run(
        folder,
        "helm-longctx",
        "run",
        "--entry",
        entry,
        "--model",
        "longctx/lexical",
        "--suite",
        "s",
    )
    assert done.returncode == 0, done.stderr
    assert "(method=question_first times=2)" in re.sub(r"[│\s]+", " ", done.stdout)


def copy_pair(prompt: str) -> str:
    """Answer with the value of the key that is asked for, or with the pair where a part helps."""
    pairs = scripted.pairs_of(prompt)
    keys = scripted.ASKED.findall(prompt)
    key = keys[-1] if keys else ""
    if key not in pairs:
        return "nothing"
    return f'"{key}": "{pairs[key]}"' if "Copy what helps" in prompt else pairs[key]


@pytest.mark.parametrize(
    ("method", "requests"),
    [
        ("halves", 3),
        ("last,turn=50000", 1),
        ("memory,system=my_memory.Last,turn=50000", 1),
    ],
)
def test_programs_of_another_package(method: str, requests: int, folder: Path) -> None:
    """The guide's program and memory answer all questions, by an entry point and by the name of a class."""
    entry = (
        f"helmet_recall:task=json_kv,length=8k,num_samples=2,style=chat,method={method}"
    )
    with serve(copy_pair) as server:
        model = (
            "--model-url",
            server.openai,
            "--model-name",
            "m",
            "--model-type",
            "chat",
            "--context",
            "100k",
        )
        done = run(
            folder, "helm-longctx", "run", "--entry", entry, *model, "--suite", "s"
        )
        assert done.returncode == 0, done.stderr
        asked = [
            call.prompt for call in server.calls if scripted.ASKED.search(call.prompt)
        ]
    assert len(asked) == 2 * requests
    (path,) = folder.glob("benchmark_output/runs/s/*/scenario_state.json")
    for state in json.loads(path.read_text())["request_states"]:
        assert (
            state["result"]["completions"][0]["text"]
            == state["instance"]["references"][0]["output"]["text"]
        )
