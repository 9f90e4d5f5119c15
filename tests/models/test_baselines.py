"""Tests that the baseline models read prompts of every form and nothing else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    ALL_MODEL_DEPLOYMENTS,
    get_model_deployment,
)
from helm.benchmark.model_metadata_registry import get_model_metadata
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.request import Request
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet.tasks import HELMET, ICL
from helm_longctx.data.root import DataRoot
from helm_longctx.models.baselines import lexical
from helm_longctx.models.baselines.lexical import recognise
from helm_longctx.models.registration import register
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MAIN_METRIC, Task
from tests.support.tasks import entry_of

RECALL = HELMET.entries["helmet_recall"].tasks
ALL = pytest.mark.parametrize("task", [*RECALL, *ICL], ids=lambda task: task.name)
CHAT = pytest.mark.parametrize("chat", [True, False], ids=["chat", "completion"])


def asked(
    task: Task,
    length: str,
    root: DataRoot,
    chat: bool,
    model: str = "longctx/lexical",
    samples: int = 20,
) -> float:
    """Return the mean score of a model on a task, scored as a run scores it."""
    register()
    client = AutoClient({}, "nowhere", BlackHoleCacheBackendConfig())
    entry = parse_entry(
        BENCHMARKS,
        f"{entry_of(task)}:task={task.name},length={length},num_samples={samples}",
    )
    scores = []
    for example in task.load(task, entry.settings, root):
        prompt = task.prompt(example).user_turn
        prefix = ""
        if not chat:
            prompt, prefix = (
                task.prompt(example).text("completion"),
                task.prompt(example).answer_prefix,
            )
        text = (
            client.make_request(
                Request(model_deployment=model, model=model, prompt=prompt)
            )
            .completions[0]
            .text
        )
        scores.append(
            task.scores(
                {"prediction": prefix + text, "references": example.references}
            )[MAIN_METRIC]
        )
    return sum(scores) / len(scores)


@pytest.mark.parametrize("task", RECALL, ids=lambda task: task.name)
@CHAT
def test_lexical_finds_every_needle(task: Task, chat: bool) -> None:
    """The lexical baseline is perfect on generated recall tasks, in both forms."""
    assert asked(task, "8k", DataRoot(Path("nowhere"), mirror=False), chat) == 1.0


@CHAT
def test_lexical_takes_the_label_of_similar_texts(chat: bool, tmp_path: Path) -> None:
    """The lexical baseline finds the label if texts of a label share words."""
    from tests.support.fabricate import hub, write

    root = DataRoot(tmp_path, mirror=True)
    rng = random.Random(3)
    hub(tmp_path, rng, "PolyAI__banking77", {"train": 10, "test": 10}, {"label": 77})
    for split, count in (("train", 800), ("test", 100)):
        labels = [rng.randrange(77) for _ in range(count)]
        rows = (
            {
                "text": f"{rng.choice(('please', 'why'))} topic{n} {rng.choice(('now', 'again'))}",
                "label": n,
            }
            for n in labels
        )
        write(tmp_path / f"hub/PolyAI__banking77/{split}.jsonl", rows)
    banking = next(task for task in ICL if task.name == "banking77")
    assert asked(banking, "8k", root, chat, samples=50) > 0.95
    assert asked(banking, "8k", root, chat, "longctx/null", samples=50) < 0.1


@ALL
@CHAT
def test_null_gets_what_its_constant_is_worth(
    task: Task, chat: bool, mirror: DataRoot
) -> None:
    """The null baseline's score is the share of references that equal its constant."""
    entry = parse_entry(
        BENCHMARKS, f"{entry_of(task)}:task={task.name},length=4k,num_samples=60"
    )
    references = [
        example.references for example in task.load(task, entry.settings, mirror)
    ]
    floor = sum(
        reference == [task.baseline.constant] for reference in references
    ) / len(references)
    assert asked(task, "4k", mirror, chat, "longctx/null", samples=60) == pytest.approx(
        floor
    )


@given(st.text() | st.sampled_from([task.template.user for task in (*RECALL, *ICL)]))
def test_any_prompt_gets_an_answer(prompt: str) -> None:
    """No prompt makes a baseline fail, and the answer is always the same."""
    assert lexical.answer(prompt) == lexical.answer(prompt)


@ALL
@given(data=st.data())
def test_a_known_form_with_any_text(task: Task, data: st.DataObject) -> None:
    """Prompts of a known form with odd contexts and questions are answered."""
    text = st.text("ab.\n:\"' label文", max_size=30)
    fields = {
        name: data.draw(text)
        for name in ("context", "question", "demos", "query", "type_needle_v")
    }
    assert isinstance(
        lexical.answer(task.template.render(fields).text("completion")), str
    )


def test_unknown_form() -> None:
    """A prompt of an unknown form is not recognized, and its answer is empty."""
    assert recognise("What is the capital of France?") is None
    assert lexical.answer("What is the capital of France?") == ""


def test_a_conversation_with_calls_of_tools() -> None:
    """A turn that only calls tools has no content, and what it asks for is searched as other turns are."""
    function = {"name": "look", "arguments": '{"place": "Old Bridge"}'}
    call = {"id": "1", "type": "function", "function": function}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "Nothing is there."},
        {"role": "user", "content": "Which place did you look at?"},
    ]
    assert "Old Bridge" in lexical.answer_conversation(messages)


def test_requests_are_heeded() -> None:
    """The baselines respect stop sequences and the number of samples, and cache nothing."""
    register()
    client = AutoClient({}, "nowhere", BlackHoleCacheBackendConfig())
    task = RECALL[0]
    prompt = task.template.render(
        {"context": '"k": "v-w",', "question": "k", "demos": ""}
    ).user_turn
    request = Request(
        model_deployment="longctx/lexical",
        model="longctx/lexical",
        prompt=prompt,
        num_completions=2,
        stop_sequences=["-"],
    )
    result = client.make_request(request)
    assert [completion.text for completion in result.completions] == ["v", "v"]
    assert result.success
    assert not result.cached


def test_registering_twice_is_once() -> None:
    """Registering twice makes both models known to HELM once, by name and with a description."""
    register()
    before = len(ALL_MODEL_DEPLOYMENTS)
    register()
    assert len(ALL_MODEL_DEPLOYMENTS) == before
    for name in ("longctx/lexical", "longctx/null"):
        assert get_model_deployment(name).max_sequence_length is None
        assert get_model_metadata(name).description
