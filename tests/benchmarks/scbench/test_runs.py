"""SCBench's data are fetched from a hub, loaded, cut by the adapter and sent."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import datasets
import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment

from helm_longctx import environment
from helm_longctx.benchmarks.scbench import BENCHMARK
from helm_longctx.data.fetch import ensure
from helm_longctx.data.hub import HubDataset
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.run_settings import MIRROR
from helm_longctx.runner.estimate import Rate, estimate_runs
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runs.prompts import read_prompts
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.scbench.fabricate import CONTEXTS, build_scbench, rows, tokenizer
from tests.data.hub_server import Hub, point_at, serve
from tests.runner import making
from tests.support.fabricate_words import write

ENTRY = "scbench_multi_turn:task=summary,model=longctx/lexical,model_deployment="
LIMIT = 4000
OFFICIAL = 200 * 5
"""A window, and the number of its tokens that the official code reserves for En.Sum."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a mirror with fabricated contexts and return its folder."""
    build_scbench(tmp_path / "data")
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def window() -> Iterator[str]:
    """Deploy the lexical baseline with a window that is too small for the contexts."""
    client = ClientSpec("helm_longctx.models.baselines.clients.LexicalClient")
    truncator = Truncator(LIMIT, tokenizer)
    deployment = ModelDeployment("test/window", client, model_name="longctx/lexical")
    with (
        mock.patch.object(Truncator, "for_deployment", return_value=truncator),
        making.deployed(deployment) as name,
    ):
        yield name


def load(task: Task, root: Path, **arguments: int) -> list[Example]:
    return list(
        load_examples(task, Settings(None, **arguments), DataRoot(root, mirror=True))
    )


def test_data_of_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every task's rows from the hub equal the fabricated ones: texts, lists of numbers and the context's column."""
    files = {}
    for task in BENCHMARK.categories[0].tasks:
        buffer = io.BytesIO()
        datasets.Dataset.from_list(rows(task.name, 1)).to_parquet(buffer)
        files[f"scbench_{task.name}/test/0000.parquet"] = buffer.getvalue()
    with serve(Hub({"microsoft/SCBench": files})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        root = DataRoot(tmp_path / "data", mirror=False)
        root.path.mkdir()
        sources = [
            source
            for task in BENCHMARK.categories[0].tasks
            for source in task.sources(None)
        ]
        assert (
            sum(
                source.splits["test"]
                for source in sources
                if isinstance(source, HubDataset)
            )
            == 922
        )
        ensure(
            [replace(source, splits={"test": CONTEXTS}) for source in sources],
            root,
            "fetch it",
        )
    build_scbench(tmp_path / "mirror")
    for task in BENCHMARK.tasks:
        assert load(task, root.path) == load(task, tmp_path / "mirror")


def test_prompts_on_a_context_follow_each_other(data: Path) -> None:
    """Questions on a context follow each other in both modes, a sample has the first questions, and turns share one
    text in memory."""
    for task in BENCHMARK.tasks:
        examples = load(task, data)
        groups = [example.group for example in examples]
        assert groups == sorted(groups)
        assert len({example.id for example in examples}) == len(examples)
        assert load(task, data, num_samples=7) == examples[:7]
        starts = [
            example.messages[0]["content"][: example.context[1]]
            for example in examples
            if example.context
        ]
        assert len(set(starts)) == CONTEXTS
        if task.alias == task.name:
            assert (
                len({id(example.messages[0]["content"]) for example in examples})
                == CONTEXTS
            )


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("kv", {"answer": 7}, "answer must be text, found 7"),
        ("kv", {"input": None}, "input must be text"),
        ("mf", {"input": "What is it?"}, "KeyError 'prefix'"),
        ("mf", {"answer": "12"}, "answer must be a number"),
        ("choice_eng", {"answer": "none of these"}, "ValueError"),
        ("choice_eng", {"options": None}, "KeyError 'OPTION_A'"),
        ("repoqa", {"name": None}, "answer must be a function"),
        ("summary_with_needles", {"task": "scbench_other"}, "KeyError 'scbench_other'"),
    ],
)
def test_malformed_rows(
    name: str, change: dict[str, object], error: str, tmp_path: Path
) -> None:
    """The error is one line that names the row and says what is wrong."""
    task = BENCHMARK.task(name)
    data = rows(name, 1)
    data[1]["multi_turns"][0] |= change
    write(tmp_path / task.paths(None)[0], data)
    with pytest.raises(InputError, match=error) as caught:
        load(task, tmp_path)
    assert "\n" not in str(caught.value)
    assert "row 2 of" in str(caught.value)


def test_repoqa_needs_an_extra(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the grammars RepoQA ends in an error before anything is sent, and the other tasks are loaded."""
    monkeypatch.setattr(
        environment, "is_installed", lambda module: not module.startswith("tree_sitter")
    )
    with pytest.raises(
        InputError, match=r"repoqa needs tree_sitter.*helm-longctx\[code\]"
    ):
        load(BENCHMARK.task("repoqa"), data)
    assert load(BENCHMARK.task("kv"), data)


def test_a_run_cuts_the_first_turn(data: Path, window: str, tmp_path: Path) -> None:
    """Only the first turns are cut, all to the same size, each turn has room for its answer, and the estimate counts
    the same requests."""
    runner = making.make_runner(tmp_path)
    assert isinstance(runner, LongContextRunner)
    estimate = estimate_runs(runner, [making.spec_of(ENTRY + window)], {}, Rate())[0]
    run = making.make_run(tmp_path, ENTRY + window)
    prompts = sent(run)
    examples = load(BENCHMARK.task("summary"), data)
    assert estimate.requests == len(prompts) == len(examples) == 5 * CONTEXTS
    tokens = tokenizer()
    for example, messages in zip(examples, prompts, strict=True):
        assert messages[1:] == list(example.messages[1:])
        beside = sum(len(tokens.encode(message["content"])) for message in messages[1:])
        most = LIMIT - CHAT_BUFFER - max(OFFICIAL, beside + 200)
        assert most - 2 <= len(tokens.encode(messages[0]["content"])) <= most + 2
    statistics = {name[0]: value for name, value in making.means(run).items()}
    assert statistics["prompt_cut"] == 1
    assert {f"turn_{number}" for number in range(1, 6)} < set(statistics)


def sent(run: Path) -> list[list[dict[str, str]]]:
    """Return the messages of each prompt that was sent, in order."""
    texts = [text.decode() for _, text in read_prompts(run)]
    return [
        json.loads(text)
        if text.startswith("[{")
        else [{"role": "user", "content": text}]
        for text in texts
    ]


def test_truncation_error_names_the_excess(
    data: Path, window: str, tmp_path: Path
) -> None:
    """With `truncation=error`, one line says how many tokens too long the contexts are."""
    with pytest.raises(
        InputError,
        match=r"15 instances of summary are up to \d{4} tokens too long; nothing was sent",
    ):
        making.make_run(
            tmp_path, ENTRY.replace(",model=", ",truncation=error,model=") + window
        )
