"""A benchmark of this repository is its folder and its tests: in a copy with a new folder, everything finds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.extending.guide import Guide, copy_repository, run_in_copy

GUIDE = Guide("adding-a-benchmark.md")
SOURCE = "src/helm_longctx/benchmarks/mystery"
FOLDER = {
    f"{SOURCE}/__init__.py": GUIDE.files["mystery/mystery.py"],
    f"{SOURCE}/README.md": GUIDE.files[f"{SOURCE}/README.md"],
    "tests/benchmarks/mystery/__init__.py": "",
    "tests/benchmarks/mystery/fabricate.py": GUIDE.files[
        "tests/benchmarks/mystery/fabricate.py"
    ],
}
GENERATED = {
    "README.md": "| [Mystery](src/helm_longctx/benchmarks/mystery/README.md): who did it? One multiple-choice task on stories"
    " | `mystery` | 4k to 8k tokens |",
    "docs/index.md": "[Mystery](../src/helm_longctx/benchmarks/mystery/README.md)",
    "docs/reference/tasks.md": "| `mystery` | `whodunit` | 4k, 8k | 100 | 10 | accuracy |",
    "docs/reference/metrics.md": "| `accuracy` | Whether the letter is the right one. | 0 to 1, higher is better | all |",
    "docs/reference/data.md": "| <https://huggingface.co/datasets/example-org/mystery> | ",
    "NOTICE": f"{SOURCE}/__init__.py\n  Mystery, https://huggingface.co/datasets/example-org/mystery, version 1.0",
    "CITATION.cff": '  - type: data\n    title: "Mystery"\n',
    "src/core_evals/helm_longctx/framework.yml": "- name: mystery\n  description: 'Mystery: whodunit'\n",
}
"""The files that `make reference` changes, and a part of what it adds."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the new folder and its tests, before `make reference`."""
    folder = tmp_path_factory.mktemp("copy")
    copy_repository(folder)
    for path, text in FOLDER.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def before_and_after(copy: Path) -> tuple[dict[str, str], dict[str, str]]:
    """All texts of the copy by their paths, before and after `make reference`."""
    before = read_texts(copy)
    run_in_copy(copy, sys.executable, "docs/make_reference.py")
    return before, read_texts(copy)


def read_texts(folder: Path) -> dict[str, str]:
    """The texts of the files that git would have."""
    paths = (
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8", errors="replace")
        for path in paths
    }


def test_only_generated_lists_change(
    before_and_after: tuple[dict[str, str], dict[str, str]],
) -> None:
    """`make reference` changes the lists of benchmarks and no other file."""
    before, after = before_and_after
    assert {path for path in after if after[path] != before.get(path)} == set(GENERATED)
    for path, added in GENERATED.items():
        assert added not in before[path]
        assert added in after[path]


def test_commands_know_it(copy: Path, tmp_path: Path) -> None:
    """`list` shows its page, `confs` writes its files, and a run of it has a score."""
    data = tmp_path / "data"
    run_in_copy(
        copy,
        sys.executable,
        "-c",
        f"from tests.benchmarks.mystery.fabricate import *; import pathlib; build_mystery(pathlib.Path({str(data)!r}))",
    )
    listed = run_in_copy(copy, "helm-longctx", "list", COLUMNS="200")
    assert "who did it?" in listed
    assert f"{tmp_path}/confs/mystery_8k.conf" in run_in_copy(
        copy, "helm-longctx", "confs", f"{tmp_path}/confs"
    )
    options = (
        "--suite",
        "s",
        "-m",
        "9",
        "-o",
        f"{tmp_path}/out",
        "--models-to-run",
        "longctx/null",
    )
    ours = ("--runner-class-name", "helm_longctx.runner.LongContextRunner")
    run_in_copy(
        copy,
        "helm-run",
        "--conf-paths",
        f"{tmp_path}/confs/mystery_4k.conf",
        *options,
        *ours,
        HELM_LONGCTX_DATA=str(data),
    )
    summary = run_in_copy(
        copy, "helm-longctx", "summarize", "--suite", "s", "-o", f"{tmp_path}/out"
    )
    assert "Mystery 4k: scores in %" in summary
    assert "n=3" in summary


def test_the_checks_of_all_benchmarks_check_it(
    copy: Path, before_and_after: object
) -> None:
    """Contract, documentation (its page is in the site) and fuzzing accept the folder as it is, and look at it."""
    files = ("tests/test_contract.py", "tests/test_docs.py")
    chosen = "mystery or whodunit or site or links or generated or conf_files or imports or unique"
    passed = run_in_copy(
        copy,
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-k",
        chosen,
        *files,
    )
    assert "test_run_specs[mystery] PASSED" in passed
    assert "test_comparability_is_told_twice_alike[mystery] PASSED" in passed
    assert "whodunit] PASSED" in passed
    code = (
        "import random; from tests.fuzz import loaders, records\n"
        "loaders.run('mystery.load', random.Random(1))\n"
        "assert loaders.fabricated_files(loaders.TASKS['whodunit'][1]) == ['mystery/8192.jsonl']\n"
        "assert records.OF_BENCHMARK['mystery'] == {'prediction': 'Answer: B'}\n"
    )
    run_in_copy(copy, sys.executable, "-c", code)
