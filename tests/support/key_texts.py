"""A text that repeats facts from far above, so that it has key tokens, and the settings with which they are found."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.tasks.logprobs import KeyTokenRule, mean_logprob, split_windows

_GOLDEN = Path(__file__).parents[1] / "models" / "longppl.json"

PACKAGED = "packaged"
SMALL = "small"
"""The models: the one that a package has, and a random one that is made on the spot."""

_LOW = {"least_gain": 0.5, "least_logprob": -9.0}
"""Bounds with which a random model has key tokens."""

_SMALL_RULES = (
    KeyTokenRule(short_context=60, step=16, **_LOW),
    KeyTokenRule(short_context=100, step=37, **_LOW),
    KeyTokenRule(short_context=2000, step=16, **_LOW),
)
"""Rules for the random model. The text is too short for the last one."""

_PACKAGED_RULE = KeyTokenRule(short_context=100, step=37)

_FILL = (
    "The river runs north of the town.",
    "A king once built a school.",
    "The wind was cold.",
)


def make_text() -> str:
    """Return the text. Some of its characters have several tokens, and it has the name of a special token."""
    chance = random.Random(7)
    facts = []
    for name in ("Olive", "Rye", "Basil", "Ämilie", "北京"):
        code = chance.randrange(10**6, 10**7)
        badge = f"{chance.choice('🐢🦉éß')}{chance.randrange(100, 999)}"
        facts.append(f"The code of {name} is {code} and the badge is {badge}.")
    fill = [chance.choice(_FILL) for _ in range(12)]
    return "\n".join([" ".join(facts), " ".join(fill), "</s>", " ".join(facts)])


def list_cases() -> Iterator[dict[str, Any]]:
    """Yield the settings that are compared with the package."""
    for adds_token in (False, True):
        for rule in _SMALL_RULES:
            yield _make_case(SMALL, adds_token, rule)
    yield _make_case(PACKAGED, True, _PACKAGED_RULE)


def _make_case(model: str, adds_token: bool, rule: KeyTokenRule) -> dict[str, Any]:
    return {"model": model, "adds_token": adds_token, "rule": rule._asdict()}


def load_model(case: dict[str, Any], folders: dict[str, str]) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a case.

    Args:
        case: the case.
        folders: the folder of each model.
    """
    import transformers
    from tokenizers import processors

    folder = folders[case["model"]]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    token = tokenizer.bos_token
    template = processors.TemplateProcessing(
        single=f"{token} $A" if case["adds_token"] else "$A",
        special_tokens=[(token, tokenizer.bos_token_id)],
    )
    tokenizer.backend_tokenizer.post_processor = template
    return model, tokenizer


def read_cases(model: str) -> list[dict[str, Any]]:
    """Return the cases of a model, with what the package `longppl` returned for them."""
    cases = json.loads(_GOLDEN.read_text(encoding="utf-8"))
    return [case for case in cases if case["model"] == model]


def check_case(case: dict[str, Any], folder: str) -> None:
    """Compare our numbers of a case with the package's.

    Args:
        folder: the folder of the model.
    """
    from helm_longctx.models.local.key_tokens import score_text
    from helm_longctx.models.local.model import LocalModel
    from helm_longctx.models.local.scoring import make_scorer

    model, tokenizer = load_model(case, {case["model"]: folder})
    text = score_text(
        tokenizer,
        make_scorer(LocalModel(model), 128),
        make_text(),
        special=True,
        rule=KeyTokenRule(**case["rule"]),
    )
    assert text.key_tokens.tokens == (case["n_key_token"] or 0)
    if case["longppl"] is None:
        assert text.key_tokens.perplexity is None
    else:
        assert text.key_tokens.perplexity == pytest.approx(case["longppl"], rel=1e-4)
    if not case["adds_token"]:
        perplexity = math.exp(-mean_logprob(split_windows(text.logprobs)))
        assert perplexity == pytest.approx(case["ppl"], rel=1e-4)
