"""Tests that run every command of the tutorials and how-to guides, page by page in an empty folder.

A local server answers at every address. `<!-- not run: REASON -->` before a block says why it is not run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path

import pytest
import yaml

from helm_longctx.benchmarks.any_jsonl.tasks import DISTRACTORS
from helm_longctx.data.root import DataRoot
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.models.baselines import lexical
from tests.apps.exchange import fabricate
from tests.apps.report.suites import write_suite
from tests.guides.programs import PROGRAMS, run_line
from tests.guides.steps import Step, read_steps
from tests.support.official import read_golden
from tests.support.servers.batches import BatchServer, serve_batches

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "adding-a-benchmark.md",
    "adding-a-dataset.md",
    "adding-a-provider.md",
    "adding-an-analysis.md",
}
"""Pages that tests/extending follows."""

NEEDS = ("a key", "a cluster", "a container engine", "a GPU", "the network")
"""What a command may need that tests do not have."""

WORDS = str(resources.files("helm_longctx") / "models/baselines/words")
VERDICT = '{"fluency": 1, "correctness": 3, "recall": 1, "precision": 1, "sentence_count": 2}\nGRADE: 9'
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_KEY", "GATEWAY_KEY")

PLACEHOLDERS = {
    "model=…": "model=longctx/lexical",
    "--model …": "--model longctx/lexical",
    "judge=…": "judge=openai/gpt-6.1-sol",
    "runs/lc/helmet_longqa:…": "runs/lc",
    "--judge DEPLOYMENT": "--judge openai/gpt-6.1-sol",
    "--model M ": "--model openai/gpt-6-luna ",
    "openai/o200k_base": WORDS,
    "/models/Llama-3.1-8B-Instruct": WORDS,
    "/path/to/tokenizers/qwen3": WORDS,
    "8k,32k,128k": "8k",
    "8k,128k": "8k --max-eval-instances 1",
    "helmet_rag,helmet_icl,ruler --length 128k": "helmet_rag --length 8k --max-eval-instances 1",
    "128k": "8k",
    "-m 10000": "-m 2",
    "-m 1000": "-m 2",
    "--repeats 3": "--repeats 1",
    "num_samples: 40": "num_samples: 4",
}
"""What stands for something else in the pages, and large numbers that would only take time."""

ADDRESSES = re.compile(r"https?://(gateway\.example|localhost:\d+)")


def answer(prompt: str) -> str:
    """Return a verdict for a judge's prompt, a word for one that asks for it, else the answer of the lexical baseline."""
    if prompt == PROMPT:  # of `models add`
        return "yes"
    if prompt.startswith("Passage:"):  # about a citation
        return "1"
    return (
        VERDICT
        if re.search('GRADE|Say {"|correctness', prompt)
        else lexical.answer(prompt)
    )


@pytest.fixture(scope="module")
def server() -> Iterator[BatchServer]:
    """Serve all models and judges of the pages from one local server."""
    with serve_batches(answer) as running:
        yield running


def pages() -> list[Path]:
    """Return the pages under "Tutorials" and "How-to guides" of the site's menu."""
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    parts = {title: items for part in menu for title, items in part.items()}
    items = [item for title in ("Tutorials", "How-to guides") for item in parts[title]]
    return [
        ROOT / "docs" / page
        for item in items
        for page in item.values()
        if page not in ELSEWHERE
    ]


def commands(page: Path) -> list[Step]:
    """Return the lines of a page that start one of our programs."""
    return [
        step
        for step in read_steps(page)
        if not step.path and step.text.partition(" ")[0] in PROGRAMS
    ]


Give = Callable[[Path, Mapping[str, str]], None]
"""(folder, environment) → None: makes what a page takes for granted."""


def give_suite(folder: Path, environment: Mapping[str, str]) -> None:
    """Write suites with runs of two models, and files of other programs."""
    for name in ("lc", "my-suite"):
        write_suite(
            folder / "benchmark_output/runs" / name,
            ["helmet_recall:length=8k"],
            {"a/one": 0.9, "a/two": 0.5},
            3,
        )
    outputs = folder / "HELMET/output/Llama-3.1-8B"
    outputs.mkdir(parents=True)
    for name, content in list(read_golden(fabricate.__file__)["helmet"].items())[:4]:
        (outputs / name).write_text(json.dumps(content))
    row = {
        "doc_id": 0,
        "doc": {"outputs": ["Ada"], "max_length": 4096},
        "resps": [["It was Ada."]],
        "target": "Ada",
    }
    (folder / "samples_ruler_qa_squad_2025-01-31T12-00-00.0.jsonl").write_text(
        json.dumps(row)
    )


def give_judged(folder: Path, environment: Mapping[str, str]) -> None:
    """Write a run that two judges have judged, with a person's labels."""
    entry = "helmet_longqa:task=narrativeqa,length=8k,judge=anthropic/claude-sonnet-5-5+openai/gpt-6.1-sol,model=longctx/lexical"
    assert (
        run_line(
            f"helm-run --run-entries {entry} --suite lc -m 2", folder, environment
        ).returncode
        == 0
    )
    (states,) = folder.glob("benchmark_output/runs/lc/*/scenario_state.json")
    names = ids(states)
    (folder / "labelled.csv").write_text(
        "id,correctness\n" + "".join(f"{name},3\n" for name in names)
    )


def ids(states: Path) -> list[str]:
    """Return the identifiers of a run's instances."""
    return re.findall(r'^ +"id": "(.*)"', states.read_text(), re.MULTILINE)


def give_outputs(folder: Path, environment: Mapping[str, str]) -> None:
    """Write outputs to score."""
    (folder / "outputs.jsonl").write_text(
        '{"prediction": "label: 3", "references": ["3"]}\n'
    )


def give_entries(folder: Path, environment: Mapping[str, str]) -> None:
    """Write a file of run entries."""
    entry = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=longctx/lexical"
    (folder / "run_entries.conf").write_text(
        f'entries: [{{description: "{entry}", priority: 1}}]\n'
    )


GIVEN: dict[str, Give] = {
    "quickstart.md": give_outputs,
    "running.md": give_judged,
    "results.md": give_suite,
    "judges.md": give_judged,
    "scale.md": give_entries,
}
"""What a page takes for granted, by page."""


@pytest.mark.parametrize(
    "page", [page for page in pages() if commands(page)], ids=lambda page: page.stem
)
def test_page(
    page: Path, server: BatchServer, tmp_path: Path, mirror: DataRoot
) -> None:
    """Every command of a page ends with status 0 when the commands are run in the order of the page."""
    environment = dict.fromkeys(KEYS, "sk-stand-in-0123456789") | {
        "OPENAI_BASE_URL": server.openai,
        "ANTHROPIC_BASE_URL": server.address,
        "HELM_LONGCTX_DATA": str(mirror.path),
    }
    if "models add vllm/judge" not in page.read_text(encoding="utf-8"):
        assert (
            run_line(
                f"helm-longctx models add vllm/judge --url {server.address}",
                tmp_path,
                environment,
            ).returncode
            == 0
        )
    if page.name in GIVEN:
        GIVEN[page.name](tmp_path, environment)
    for step in read_steps(page):
        text = fill_in(step.text, server, tmp_path)
        if step.path:
            (tmp_path / step.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / step.path).write_text(
                text * (800 if step.path.endswith(DISTRACTORS) else 1), encoding="utf-8"
            )
        elif text.partition(" ")[0] in PROGRAMS and not step.mark:
            done = run_line(text, tmp_path, environment)
            log = done.stderr[-3000:] + done.stdout[-1000:]
            assert done.returncode == 0, f"{page.name}:{step.line}: {text}\n{log}"


def fill_in(text: str, server: BatchServer, folder: Path) -> str:
    """Put the local server's address, and values for placeholders, into a command or a file."""
    for name, value in PLACEHOLDERS.items():
        text = text.replace(name, value)
    if runs := sorted(folder.glob("benchmark_output/runs/*/*/scenario_state.json")):
        text = text.replace(" RUN", f" {runs[0].parent.relative_to(folder)}").replace(
            "INSTANCE", ids(runs[0])[0]
        )
    return ADDRESSES.sub(server.address, text)


def test_reasons() -> None:
    """Every mark `not run` gives one of a few reasons, or names an existing test that runs the command."""
    steps = [
        (page.name, step) for page in pages() for step in read_steps(page) if step.mark
    ]
    assert steps
    assert [
        (name, step.line, step.mark) for name, step in steps if not is_reason(step.mark)
    ] == []


def is_reason(mark: str) -> bool:
    """Return whether a mark gives a known reason, or names a test that exists."""
    test = re.fullmatch(r"(tests/\S+\.py) runs it", mark)
    return (ROOT / test[1]).is_file() if test else mark.removeprefix("needs ") in NEEDS
