"""Tests of the names of models in results, and of the facts beside them."""

from __future__ import annotations

import copy
import pickle

import pytest

from helm_longctx.runs.shown_models import Setup, ShownModel, shown_model
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.request_settings import Sampling


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("", "a/x"),
        (",style=chat", "a/x"),
        (",method=retrieve", "a/x (method=retrieve)"),
        (",method=retrieve,chunks=4", "a/x (method=retrieve chunks=4)"),
        (",top_p=0.95,top_k=20", "a/x (top_p=0.95 top_k=20)"),
        (",method=retrieve,top_p=0.9", "a/x (method=retrieve top_p=0.9)"),
        (",retry_cut=4x", "a/x (retry_cut=4x)"),
    ],
)
def test_a_name_shows_how_a_model_was_asked(arguments: str, name: str) -> None:
    """The name says what differs from the published setup, and its fields say the same."""
    entry = parse_entry(BENCHMARKS, f"helmet_recall:length=8k{arguments}")
    shown = shown_model("a/x", entry)
    assert (str(shown), shown.base, shown.setup) == (name, "a/x", Setup.of_entry(entry))
    assert shown.setup.method.name == entry.settings.method
    assert shown.setup.sampling == entry.settings.request.sampling


def test_the_name_with_plain_prompts() -> None:
    """Without its method, a name is that of the run with plain prompts and the same sampling."""
    entry = parse_entry(BENCHMARKS, "helmet_recall:length=8k,method=retrieve,top_p=0.9")
    plain = shown_model("a/x", entry).without_method
    assert plain == "a/x (top_p=0.9)"
    assert plain.setup == Setup(sampling=Sampling(top_p=0.9))


def test_a_published_name() -> None:
    """A published model has another name than a model of a run, and readers see the same label."""
    published = ShownModel("a/x", is_published=True)
    own = ShownModel("a/x")
    assert published != own
    assert published.label == own.label == "a/x"


@pytest.mark.parametrize(
    "make_copy", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_copies_keep_the_facts(make_copy: object) -> None:
    """A copy of a name has the fields of the original."""
    assert callable(make_copy)
    shown = ShownModel("a/x", Setup(retry_cut=4))
    copied = make_copy(shown)
    assert copied == shown
    assert vars(copied) == vars(shown)
