"""HelloBench's files are fetched and checked, official outputs are read, and the judge is asked over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.apps.exchange.importing import import_files
from helm_longctx.benchmarks.hellobench import BENCHMARK
from helm_longctx.benchmarks.hellobench.judge import ChecklistAnnotator
from helm_longctx.benchmarks.hellobench.outputs import READER
from helm_longctx.benchmarks.hellobench.tasks import FILES, JUDGE, LENGTHS, WEIGHTS
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.hellobench.fabricate import (
    build_hellobench,
    make_reply,
    make_rows,
)
from tests.data.pinned import fetch_fabricated
from tests.support.fabricate_words import write
from tests.support.judges import deploy
from tests.support.leaderboards import stats
from tests.support.servers.llm import serve


def load(root: Path, task: str = "chat") -> list[Example]:
    return list(
        load_examples(BENCHMARK.task(task), Settings(None), DataRoot(root, mirror=True))
    )


def test_files_from_a_server(tmp_path: Path) -> None:
    """The official files are downloaded from a server, checked and loaded."""
    files = [*FILES.values(), WEIGHTS]
    assert all(
        "/Quehry/HelloBench/d403282968b0a61a4963a73c631d3fc1318f17d7/" in file.url
        for file in files
    )
    root = fetch_fabricated(
        files, build_hellobench(tmp_path / "made"), tmp_path / "cache"
    )
    for name in FILES:
        inputs = [example.fields["input"] for example in load(root.path, name)]
        assert inputs == [row["instruction"] for row in make_rows(name)]


def test_lengths_of_answers() -> None:
    """Every task has its file, and the numbers of words are those of the files' names."""
    assert {task.name for task in BENCHMARK.tasks} == set(FILES)
    assert all(
        words == 1000 * int(label.removesuffix("k")) for label, words in LENGTHS.items()
    )


@pytest.mark.parametrize(
    "text", ["", "X = [", "X = 3", "X = {'news': [1, 'a']}", "X = {'news': 1}"]
)
def test_malformed_weights(tmp_path: Path, text: str) -> None:
    """A file of weights that is not a dictionary of lists of numbers is refused."""
    (build_hellobench(tmp_path) / WEIGHTS.path).write_text(text)
    with pytest.raises(
        InputError,
        match=r"weighted_scores\.txt: (not an assignment|the weights of 'news' must be)",
    ):
        load(tmp_path)


def test_the_baseline_copies_the_material(tmp_path: Path) -> None:
    """The lexical baseline answers with the text of the instruction, and leaves other prompts to other benchmarks."""
    baseline = BENCHMARK.task("chat").baseline
    assert baseline is not None
    assert callable(baseline.kind)
    for text, requirements in {
        "Do it.\n[Story]: A dog.\nIt ran.\n[Requirements]:\n1. Long.": "A dog.\nIt ran.",
        "Do it. \n[Text Start]: \nA dog. \n[Text End] \n[Requirements]:\n1. Long.": "A dog.",
        "Do it.\n[Topic]: Dogs\n[More]: Big\n[Requirements]:\n1. Long.": "Dogs\n[More]: Big",
        "Write a story.": None,
        "[Question]: x\n[Requirements]: none": None,
    }.items():
        assert baseline.kind([{"role": "user", "content": text}]) == requirements


class TestOutputs:
    """The official scripts' files of answers and of judged answers."""

    @pytest.fixture(autouse=True)
    def mirror(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the fabricated files the mirror."""
        monkeypatch.setenv(MIRROR, str(build_hellobench(tmp_path / "mirror")))

    def write_outputs(self, path: Path, name: str, *replies: str) -> Path:
        """Write answers to the first instructions, which are judged if there are replies."""
        rows = [
            {
                "id": row["id"],
                "instruction": row["instruction"],
                "response": f"Text {number}.",
            }
            for number, row in enumerate(make_rows(name)[:2])
        ]
        judged = [
            {"checklist_wise_evaluation": json.loads(reply)} for reply in replies
        ] or [{}, {}]
        path = path / f"{name}_results.jsonl"
        write(path, [{**row, **own} for row, own in zip(rows, judged, strict=True)])
        return path

    def test_judged_answers(self, tmp_path: Path) -> None:
        """Judged answers have the official scores; one whose list is too short has none."""
        name = "heuristic_text_generation_2k"
        path = self.write_outputs(
            tmp_path / "m1", name, make_reply(1, 0, 1), make_reply(1)
        )
        (run,) = READER.read(path, "")
        assert (run.entry, run.model) == (f"hellobench_words:task={name}", "m1")
        assert [output.prediction for output in run.outputs] == ["Text 0.", "Text 1."]
        records = [
            {"prediction": output.prediction, **output.record, **output.notes}
            for output in run.outputs
        ]
        first, second = (BENCHMARK.task(name).scores(record) for record in records)
        assert (first["judge_score"], first["rescaled_score"]) == (
            0.705,
            pytest.approx(4 * 0.705 - 3),
        )
        assert "judge_score" not in second
        assert second["judge_score_strict"] == 0
        assert [output.notes["jury"]["failed"] for output in run.outputs] == [0.0, 1.0]

    def test_an_import(self, tmp_path: Path) -> None:
        """`import` makes a run of a judged file, whose statistics are the official scores, without asking a judge."""
        replies = make_reply(1, 0, 1), make_reply(1)
        path = self.write_outputs(tmp_path / "m1", "chat", *replies)
        imported = import_files(
            [path], tmp_path / "benchmark_output/runs/s", BENCHMARKS
        )
        assert list(imported.runs.values()) == [2]
        statistics = stats(tmp_path, "hellobench:task=chat,model=imported_m1")
        assert statistics["longctx_score", "chat"] == 0.705
        assert statistics["judge_failed", "chat"] == 0.5

    def test_answers_alone(self, tmp_path: Path) -> None:
        """A file of answers is read without a judge, and is left out if the folder also has the judged answers."""
        plain = self.write_outputs(tmp_path / "generations/m2", "chat")
        (run,) = READER.read(plain, "")
        assert run.entry == "hellobench:task=chat,judge=none"
        assert run.outputs[0].notes == {}
        other = self.write_outputs(tmp_path / "generations/m3", "chat")
        judged = self.write_outputs(
            tmp_path / "judgements/m2", "chat", *[make_reply(1, 1, 1)] * 2
        )
        assert READER.files(tmp_path) == [other, judged]

    def test_other_files(self, tmp_path: Path) -> None:
        """Files with other names and answers to unknown instructions are refused."""
        with pytest.raises(
            InputError,
            match=r"not a name of HelloBench's files: TASK_results.jsonl; open_ended_qa",
        ):
            list(READER.read(tmp_path / "qa_results.jsonl", ""))
        write(
            tmp_path / "chat_results.jsonl",
            [{"id": "x", "instruction": "", "response": ""}],
        )
        with pytest.raises(
            InputError, match=r"row 1 of .*: HelloBench has no instruction 'x'"
        ):
            list(READER.read(tmp_path / "chat_results.jsonl", ""))


def test_a_judge_needs_the_data_of_nltk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the data is missing, a run with a judge is refused, and a run without one has no number of words."""
    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setenv(MIRROR, str(tmp_path))
    from nltk.tokenize import _get_punkt_tokenizer

    _get_punkt_tokenizer.cache_clear()
    with serve(lambda prompt: "ok") as server:
        name = deploy(
            "tests/hellobench",
            "OpenAIClient",
            base_url=server.openai,
            api_key="x",
            model="m",
        )
        ChecklistAnnotator.check(name)
        with pytest.raises(
            InputError,
            match=r"lacks nltk_data/tokenizers/punkt_tab/english/abbrev_types.txt, .*; get it with: helm-longctx fetch hell",
        ):
            ChecklistAnnotator.check(name, {})
    assert BENCHMARK.task("chat").scores({"prediction": "A text."}) == {}


def test_published_scores() -> None:
    """There are 26 models on the five tasks, and nine of them with required numbers of words."""
    rows = BENCHMARK.published()
    main = {row.model: row.scores for row in rows if not row.category}
    assert len(main) == 26
    assert all(len(scores) == 5 for scores in main.values())
    assert len([row for row in rows if row.category == "words"]) == 9
    assert JUDGE.endswith("gpt-4o-2024-05-13")
