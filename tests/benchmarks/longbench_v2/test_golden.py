"""Requests, letters and tables equal the official code's, which was run on the same data (golden_makers/longbench_v2.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.longbench_v2 import BENCHMARK
from helm_longctx.benchmarks.longbench_v2 import prompts as prompts_of
from helm_longctx.benchmarks.longbench_v2.tasks import (
    BY_CLASS,
    COT,
    LETTERS,
    PATH,
    QUESTIONS,
    find_letter,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED
from helm_longctx.tasks.prompt import FollowUp
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longbench_v2.fabricate import (
    LIMITS,
    SEEDS,
    answer,
    build_longbench_v2,
    fingerprint,
    rows,
    tokenizer,
)
from tests.support.fabricate_words import write

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
TABLE = ("accuracy", *BY_CLASS)


@dataclass(frozen=True)
class Asked:
    """The requests of one question, its answer and its scores."""

    requests: list[str]
    was_cut: bool
    answer: str
    scores: dict[str, float]


def ask(root: DataRoot, case: str, mode: str) -> Iterator[Asked]:
    """Send each question in the same way as the adapter and the runner."""
    task = BENCHMARK.task(mode)
    budget = task.output_tokens(Settings(None))
    temperature = task.variant(Settings(None)).temperature
    window = LIMITS[case] + max(RESERVED, budget + CHAT_BUFFER)
    truncator = Truncator(window, lambda: tokenizer(case.split()[0]))
    for example in task.load(task, Settings(None), root):
        instance = to_instance(BENCHMARK, task, Settings(None), example, budget)
        sample = Sample.from_json(instance.extra_data)
        fitted = truncator.fit(instance.input.text, sample, budget, "chat")
        requests = [fingerprint("user", fitted.prompt, temperature, budget)]
        said = answer(fitted.prompt)
        if sample.follow_up:
            second = FollowUp(**sample.follow_up)
            said, prompt = answer(second.prompt(said)), second.prompt(said)
            requests.append(fingerprint("user", prompt, temperature, second.max_tokens))
        record = {
            "prediction": said,
            "references": example.references,
            **example.record,
        }
        yield Asked(requests, fitted.cut, said, task.scores(record))


@pytest.mark.parametrize("mode", ["0shot", "cot", "no_context"])
@pytest.mark.parametrize("case", LIMITS)
def test_requests_letters_and_tables(case: str, mode: str, tmp_path: Path) -> None:
    """The requests of every question, the letter that is read in its answer and both tables are the official ones."""
    for seed in SEEDS:
        build_longbench_v2(tmp_path, seed)
        golden = GOLDEN[f"{case} {mode} {seed}"]
        asked = list(ask(DataRoot(tmp_path, mirror=True), case, mode))
        assert [request for each in asked for request in each.requests] == golden[
            "asked"
        ]
        assert [find_letter(each.answer) for each in asked] == golden["pred"]
        assert any(each.was_cut for each in asked) == (
            mode != "no_context" and "99999" not in case
        )
        columns = {
            name: [each.scores[name] for each in asked if name in each.scores]
            for name in TABLE
        }
        assert [
            str(round(100 * fmean(values), 1)) for values in columns.values()
        ] == golden["tables"][0]
        assert (
            str(
                round(
                    100 * fmean(each.scores["accuracy_compensated"] for each in asked),
                    1,
                )
            )
            == golden["tables"][1][0]
        )


TEXTS = st.lists(
    st.sampled_from(
        [
            "$COT$",
            "$Q$",
            "$C_A$",
            "$C_D$",
            "$DOC$",
            "$",
            "COT$",
            "{question}",
            " a",
            "\n",
        ]
    )
).map("".join)
FIELDS = {
    "context": "$DOC$",
    "question": "$Q$",
    **{letter: f"$C_{letter}$" for letter in LETTERS},
}


@given(st.fixed_dictionaries(dict.fromkeys(FIELDS, TEXTS)), TEXTS)
def test_placeholders_in_texts(texts: dict[str, str], reasoning: str) -> None:
    """Placeholders in texts are replaced one after the other in the whole prompt, as in the official code, and `$COT$`
    comes last."""
    row = {
        **rows(1)[0],
        **texts,
        **{f"choice_{letter}": texts[letter] for letter in LETTERS},
    }
    write(Path(PATH), [row])
    (example,) = COT.load(COT, Settings(None), DataRoot(Path(), mirror=True))
    assert example.follow_up
    prompts = (COT.prompt(example).user_turn, example.follow_up.prompt(reasoning))
    for template, prompt in zip(
        (prompts_of.COT, prompts_of.COT_ANSWER), prompts, strict=True
    ):
        wanted = template.format(**FIELDS, reasoning="$COT$")
        for name, placeholder in FIELDS.items():
            wanted = wanted.replace(placeholder, texts[name].strip())
        assert prompt == (
            wanted
            if template == prompts_of.COT
            else wanted.replace("$COT$", reasoning.strip())
        )


def test_golden_cases_say_something() -> None:
    """The golden cases have all letters, answers without a letter, right and wrong answers, and questions with
    placeholders."""
    assert any("$COT$" in row["question"] for seed in SEEDS for row in rows(seed))
    letters = [letter for facts in GOLDEN.values() for letter in facts["pred"]]
    assert set(letters) == {"A", "B", "C", "D", None}
    assert len(GOLDEN) == 3 * len(LIMITS) * len(SEEDS)
    assert {facts["tables"][0][0] for facts in GOLDEN.values()} > {"25.0"}
    assert BENCHMARK.tasks[0].num_samples == QUESTIONS
