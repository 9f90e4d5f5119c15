"""Tests of a second call: it asks again, or goes on with the journal of a call that was killed."""

from __future__ import annotations

import functools
import signal
from typing import Any

import orjson
import pytest

import helm_longctx as lc
from helm_longctx.evaluation.identities import (
    describe_function,
    digest_weights,
    find_changes,
)
from helm_longctx.models.safe_names import make_safe_name
from helm_longctx.runs.files import MODEL
from helm_longctx.runs.journal import NAME
from tests.evaluation.calls import call, look_up
from tests.evaluation.interrupted import die_at_the_fourth_question, run_function


def test_a_second_call_asks_again() -> None:
    """A second call asks again, because a function's code may have changed; nothing comes from the request cache."""
    asked: list[str] = []

    def answer(prompt: lc.Prompt) -> str:
        asked.append(prompt.id)
        return f"call {len(asked) // 5}"

    assert set(call(answer).answers.answer) == {"call 0"}
    asked.append("")
    result = call(answer)
    assert set(result.answers.answer) == {"call 1"}
    assert len(asked) == 9
    # A complete run is kept by `resume`.
    assert set(call(answer, resume=True).answers.answer) == {"call 1"}
    assert len(asked) == 9


def test_a_killed_process_is_continued(caplog: pytest.LogCaptureFixture) -> None:
    """A call in another process goes on with the answers of a killed one, and says how many they are."""
    status, _, errors = run_function(die_at_the_fourth_question)
    assert status == -signal.SIGKILL, errors
    asked: list[str] = []

    def answer(prompt: lc.Prompt) -> str:
        asked.append(prompt.id)
        return "of the second process"

    answer.__qualname__ = "answer"  # as in the first process
    with pytest.raises(
        lc.InputError, match=r"had another model \(code: \w+, now \w+\)"
    ):
        call(answer, num_samples=5, resume=True)
    result = call(answer, num_samples=5, resume="anyway", quiet=False)
    assert asked == ["json_kv-3", "json_kv-4"]
    assert (
        list(result.answers.answer)
        == ["of the first process"] * 3 + ["of the second process"] * 2
    )
    assert "goes on with 3 answers of an earlier call" in caplog.text
    assert (
        "answers of several versions of the model, which differ in code"
        in (result.scores.reason[0])
    )


def test_an_interrupted_call_says_how_to_continue() -> None:
    """An error in the middle of a run says where the answers are and how to go on with them."""
    broken = {"json_kv-2"}

    def answer(prompt: lc.Prompt) -> str | None:
        return None if prompt.id in broken else "x"

    with pytest.raises(
        lc.InputError,
        match=rf"2 answers are kept in .*{NAME}; call evaluate again with resume=True to",
    ):
        call(answer)
    broken.clear()
    assert set(call(answer, resume=True).answers.answer) == {"x"}


def test_the_identity_is_kept() -> None:
    """What identifies a model stands in the run's folder, and another model does not go on with its answers."""
    result = call(look_up, name="mine")
    (path,) = result.suite.glob(f"*/{MODEL}")
    identity = orjson.loads(path.read_bytes())
    assert identity["class"] == "builtins.function"
    assert identity["qualname"] == "look_up"
    assert {"helm-longctx", "transformers"} <= set(identity["packages"])
    with pytest.raises(
        lc.InputError,
        match=r"resume=True: the earlier call had another model \(qualname: look_up, now",
    ):
        call(lambda prompt: "", name="mine", resume=True)


def make_answer(text: str) -> Any:
    """Return a function that closes over a text."""
    return lambda prompt: text


KEPT = "1"


def use_a_global(prompt: lc.Prompt) -> str:
    """Return a global text."""
    return KEPT


class Client:
    """A callable object with a setting."""

    def __init__(self, text: str):
        self.text = text
        self.asked: list[str] = []

    def __call__(self, prompt: lc.Prompt) -> str:
        """Return the setting, and count."""
        self.asked.append(prompt.id)
        return self.text


VERSIONS: dict[str, tuple[Any, Any, str]] = {
    "lambdas": (lambda prompt: "a", lambda prompt: "b", "code"),
    "closures": (make_answer("a"), make_answer("b"), "closure text"),
    "partials": (
        functools.partial(lambda text, prompt: text, "a"),
        functools.partial(lambda text, prompt: text, "b"),
        "code",
    ),
    "objects": (Client("a"), Client("b"), "field text"),
    "methods": (Client("a").__call__, Client("b").__call__, "field text"),
}


@pytest.mark.parametrize("kind", VERSIONS)
def test_an_edited_function_does_not_go_on(kind: str) -> None:
    """A function whose code or values have changed is refused with what changed, and the same one goes on."""
    first, second, changed = VERSIONS[kind]
    call(first, name="mine", num_samples=1)
    assert list(
        call(first, name="mine", num_samples=1, resume=True).answers.answer
    ) == ["a"]
    with pytest.raises(
        lc.InputError, match=rf"had another model \({changed}: \w+, now \w+\)"
    ):
        call(second, name="mine", num_samples=1, resume=True)


def test_a_global_value_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain value of the function's module is a part of the function."""
    before = describe_function(use_a_global)
    monkeypatch.setattr("tests.evaluation.test_resuming.KEPT", "2")
    assert find_changes(before, describe_function(use_a_global)) == ["global KEPT"]
    assert "1" not in before.values()


def test_weights_identify_a_model() -> None:
    """One changed value of a model's weights changes its identity; moving them to another type of numbers, too."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(300, 300)
    before = digest_weights(model)
    assert digest_weights(model) == before
    with torch.no_grad():
        model.weight[17, 5] += 0.001
    after = digest_weights(model)
    assert len({before, after, digest_weights(model.bfloat16())}) == 3


def test_a_wrong_value_of_resume() -> None:
    """Another value of `resume` is refused before anything is asked."""
    with pytest.raises(lc.InputError, match="resume='yes' is invalid"):
        call(look_up, resume="yes")


def test_a_refused_call_keeps_earlier_results() -> None:
    """A call that is refused before a question is asked removes nothing."""
    result = call(look_up)
    with pytest.raises(lc.InputError, match="judges"):
        call(look_up, judge=["none", "auto"])
    assert (result.suite / result.results[0].run.path.name / "stats.json").is_file()


def test_names_of_other_scripts() -> None:
    """Names in other scripts, and very long ones, do not fall together, and are names of folders."""
    names = ["模-1", "型-1", "模", "型", "x" * 300, "x" * 301, "my model", "my_model"]
    safe = [make_safe_name(name) for name in names]
    assert len(set(safe)) == len(names)
    assert safe[-2:] == ["my-model", "my_model"]
    assert all(len(name) <= 80 and name.isascii() for name in safe)
