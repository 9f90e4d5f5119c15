"""Tests that every pattern that reads a text from outside takes linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pytest

from helm_longctx.benchmarks.officeqa.scoring import _LONGEST_ANSWER
from helm_longctx.failures import _HEAD, _TAIL
from helm_longctx.models.apis.provider import providers
from helm_longctx.redaction import text as redaction
from helm_longctx.tasks.words import _letter_patterns
from tests.support.patterns import Pattern, find_patterns, find_slow_text

MADE: Mapping[str, Sequence[str]] = {
    "apps.compaction.scoring.is_right": (r"(?<![\w])aa(?![\w])",),
    "benchmarks.gsm_infinite.tasks.name_variables": (r"assign (V\d+) = a\.",),
    "benchmarks.helmet.data.passages._depth": ("a word",),
    "benchmarks.helmet.scoring.parse_output": ("Answer:(.*)", "answer is(.*)"),
    "benchmarks.leval.tasks.find_letters": ("[ABCD]+",),
    "benchmarks.longbench.tasks.compare_numbers": (
        r"(\d+)",
        r"Paragraph (\d+)",
        r"段落(\d+)",
    ),
    "benchmarks.longgenbench.tasks.find_entries": (r"Week (\d+)",),
    "benchmarks.longgenbench.tasks.write_headings": (r"#\*# (\D+) 1\b[^\n]*\Z",),
    "benchmarks.mrcr_v2.tasks.find_answer": ("a word",),
    "benchmarks.ruler2.tasks.copy_question": ("^Question a: (.*)$",),
    "data.hub._own_files": (r"folder/split-\d+-of-\d+\.parquet",),
    "judging.keys.client.family_of": ("gpt|o[0-9]",),
    "models.apis.parameters.find_change": (r"(?<!\w)(?:top_p|topP)(?!\w)",),
    "models.apis.parameters.is_named": (r"(?<!\w)(?:top_p|topP)(?!\w)",),
    "models.apis.sending._is_rate_limit": (r"\b429\b",),
    "models.apis.provider._check_names": ("[a-z][a-z0-9_]*",),
    "models.baselines.lexical.nearest_label": ("\n\n",),
    "models.baselines.lexical._find_whole": (r"aa(?!\w)",),
    "redaction.personal.__init__": ("a word",),
    "redaction.text._compile": (),  # see `test_keys`
    "tasks.counting.__init__": ("<s>|</s>",),
    "tasks.words._letter_patterns": tuple(
        pattern.pattern for pattern in _letter_patterns("ABCD")
    ),
}
"""Examples of the patterns that functions put together."""

TRUSTED = {
    "benchmarks.ada_leval.tasks._SECTION",
    "benchmarks.agentlongbench.scoring._GIVEN_SEPARATORS",
    "benchmarks.hellobench.tasks._MATERIAL",
    "benchmarks.infinite_bench.tasks._TARGET",
    "benchmarks.longbench_pro.tasks._OPTION",
    "benchmarks.longbench_v2.tasks._CHOICES",
    "benchmarks.longcodebench.tasks._CHOICES",
    "benchmarks.longgenbench.tasks.write_headings",
    "benchmarks.longproc.tasks._LINK",
    "benchmarks.longproc.tasks._ROUTE",
    "benchmarks.mrcr_v2.tasks._REQUEST",
    "benchmarks.oolong.tasks._OPTIONS",
    "benchmarks.scbench.tasks._TARGET",
}
"""Patterns that read only questions and right answers of benchmarks, whose files are pinned. No text of a model or a server reaches them."""


def _cut_after(bracket: str) -> Callable[[str], str]:
    return lambda text: text[: text.rfind(bracket) + 1]


PREPARED: Mapping[str, Callable[[str], str]] = {
    "benchmarks.graphwalks.tasks._LIST": _cut_after("]"),
    "benchmarks.graphwalks.tasks._LATE_LIST": _cut_after("]"),
    "benchmarks.graphwalks.tasks._ANY_LIST": _cut_after("]"),
    "benchmarks.helmet.verdicts._object": _cut_after("}"),
    "benchmarks.oolong.tasks._PLAIN_BOX": _cut_after("}"),
}
"""What is done to a text before a pattern reads it."""

IN_SHORT = {
    "failures.": _HEAD + _TAIL,
    "benchmarks.officeqa.scoring.": _LONGEST_ANSWER,
}
"""Modules whose patterns read no more than so many characters of a text: of a message its ends, or a short answer."""

USED_AS = {"benchmarks.longcodebench.tasks._BOXED": "match"}
"""How patterns in a tuple are used."""


def prepare(name: str) -> Callable[[str], str]:
    """Return what is done to a text before a pattern reads it."""
    for module, most in IN_SHORT.items():
        if name.startswith(module):
            return lambda text: text[:most]
    return PREPARED.get(name, lambda text: text)


@pytest.fixture(scope="module")
def patterns() -> Mapping[str, Sequence[Pattern]]:
    """Return every pattern of the package, by its name without the package's."""
    made = {f"helm_longctx.{name}": texts for name, texts in MADE.items()}
    patterns_by_name = find_patterns("helm_longctx", made)
    return {
        name.removeprefix("helm_longctx."): group
        for name, group in patterns_by_name.items()
    }


def test_tables_name_patterns(patterns: Mapping[str, Sequence[Pattern]]) -> None:
    """Every exception is a pattern that exists."""
    assert len(patterns) > 200
    assert {*TRUSTED, *PREPARED, *USED_AS} <= {*patterns}


def test_patterns_are_linear(patterns: Mapping[str, Sequence[Pattern]]) -> None:
    """No pattern that reads a text of a model or a server takes more than linear time for its worst texts."""
    slow = {}
    for name, group in patterns.items():
        for pattern in group:
            methods = frozenset([USED_AS[name]]) if name in USED_AS else pattern.methods
            used = Pattern(name, pattern.compiled, methods)
            if name not in TRUSTED and (text := find_slow_text(used, prepare(name))):
                slow[name] = text
    assert not slow


def test_keys() -> None:
    """The pattern of all providers' keys, which reads every reply and error, takes linear time."""
    assert providers()
    keys = re.compile(redaction._format_pattern)
    assert len(keys.pattern) > 100
    assert not find_slow_text(Pattern("keys", keys, frozenset({"finditer"})))


@pytest.mark.parametrize(
    "text", [r"\s+$", "a.*b", r"(a+)+c", r"\[([^\]]*)\]", r"(?s)x(.*?)y\s*\Z"]
)
def test_slow_patterns_are_found(text: str) -> None:
    """The check finds patterns that take quadratic or exponential time."""
    assert find_slow_text(Pattern("slow", re.compile(text), frozenset({"finditer"})))


@pytest.mark.parametrize(
    "text", [r"\w+", r"(?<!\s)\s+$", r"a[^ab]*b", r"\d+(?:\.\d+)?"]
)
def test_linear_patterns_are_told_from_slow_ones(text: str) -> None:
    """The check accepts patterns that take linear time."""
    assert not find_slow_text(
        Pattern("linear", re.compile(text), frozenset({"finditer"}))
    )
