"""Tests of the files of reported protocols: every published number, the run entries, and how protocols are found."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.results.boards import ScoreKey, published_boards
from helm_longctx.results.statistics.intervals import effective_length
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.publications import CONFIDENCE, Protocol, read_protocols
from helm_longctx.tasks.registry import BENCHMARKS, find_protocol, find_protocols

PROTOCOLS = [
    (benchmark, protocol)
    for benchmark in BENCHMARKS
    for protocol in find_protocols(benchmark)
]

HELMS_OWN = re.compile(r",?\b(temperature|num_output_tokens)=[^,]+")

# An independent transcription of the numbers of releases: protocol, model with its effort, value, confidence.
BINS = (
    "4k-8k",
    "8k-16k",
    "16k-32k",
    "32k-64k",
    "64k-128k",
    "128k-256k",
    "256k-512k",
    "512k-1m",
)
MRCR_V2 = {
    "GPT-5.2": "98.2H 89.3H 95.3H 92.0H 85.6H 77.0H - -",
    "GPT-5.4 (xhigh)": "97.3H 91.4H 97.2H 90.5H 86.0H 79.3H 57.5H 36.6H",
    "GPT-5.5 (xhigh)": "98.1H 93.0H 96.5H 90.0H 83.1H 87.5H 81.5H 74.0H",
    "Claude Opus 4.7": "- - - - - 59.2H - 32.2H",
    "GPT-5.6 Sol": "- - - - - - 91.5M 73.8M",
    "GPT-5.6 Terra": "- - - - - - 89.6M 72.5M",
    "GPT-5.6 Luna": "- - - - - - 41.3M 41.3M",
    "GPT-6 Astra": "- - - - - - 100M 96.3M",
    "Muse Spark 1.3 (max)": "- - - - - - 98.5M 98.1M",
}
MRCR_V1 = {
    "GPT-5 (high)": "95.2H 86.8H",
    "GPT-5 mini (high)": "84.3H 58.8H",
    "GPT-5 nano (high)": "43.2H 34.9H",
    "o3 (high)": "55.0H -",
    "o4-mini (high)": "56.4H -",
    "GPT-4.1": "57.2H 56.2H",
    "GPT-4.1 mini": "47.2H 45.5H",
    "GPT-4.1 nano": "36.6H 22.6H",
}
GOOGLE = {
    "Gemini 2.5 Pro": "58.0H 16.4H",
    "Gemini 3 Pro": "77.0H 26.3H",
    "Gemini 3.1 Pro (high)": "84.9H 26.3H",
    "Gemini 3 Flash": "67.2M 22.1M",
    "Gemini 3.5 Flash": "77.3H 26.6H",
    "Gemini 3.6 Flash": "91.8M 54.0M",
    "Gemini 3.1 Flash-Lite": "60.1M 12.3M",
    "GPT-5.2": "83.8H -",
    "GPT-5.5": "94.8M -",
    "Claude Opus 4.6": "84.0H -",
    "Claude Opus 4.7": "59.3M -",
    "Claude Sonnet 4.6": "84.9H -",
}
OPENAI_BFS = {
    "GPT-5.2": "94.0H - -",
    "GPT-5 (high)": "78.3H - -",
    "GPT-5 mini (high)": "73.4H - -",
    "GPT-5 nano (high)": "64.0H - -",
    "o3 (high)": "77.3H - -",
    "o4-mini (high)": "62.3H - -",
    "GPT-4.1": "61.7H - -",
    "GPT-4.1 mini": "61.7H - -",
    "GPT-4.1 nano": "25.0H - -",
    "GPT-5.4 (xhigh)": "- 62.5H 9.4H",
    "GPT-5.5 (xhigh)": "- 73.7H 45.4H",
    "GPT-5.6 Sol": "- 90.7M 77.1M",
    "GPT-5.6 Terra": "- 76.9M 71.2M",
    "GPT-5.6 Luna": "- 81.3M 51.2M",
}
OPENAI_PARENTS = {
    "GPT-5.2": "89.0H - -",
    "GPT-5 (high)": "73.3H - -",
    "GPT-5 mini (high)": "64.3H - -",
    "GPT-5 nano (high)": "43.8H - -",
    "o3 (high)": "72.9H - -",
    "o4-mini (high)": "51.1H - -",
    "GPT-4.1": "58.0H - -",
    "GPT-4.1 mini": "60.5H - -",
    "GPT-4.1 nano": "9.4H - -",
    "GPT-5.4 (xhigh)": "- 82.8H 44.4H",
    "GPT-5.5 (xhigh)": "- 90.1H 58.5H",
}
ANTHROPIC_BFS = {
    "Claude Opus 4.6 (64k)": "61.5H -",
    "Claude Opus 4.6 (max)": "61.1H -",
    "Claude Opus 4.6": "- 41.2H",
    "Claude Opus 4.7": "76.9M 40.3M",
    "Claude Opus 4.8": "85.9H 68.1H",
    "Claude Mythos Preview": "85.7H 74.3H",
    "Claude Mythos 5 (max)": "91.1H 79.4H",
}
ANTHROPIC_PARENTS = {
    "Claude Opus 4.6 (64k)": "95.1H 71.1H",
    "Claude Opus 4.6 (max)": "95.4H 72.0H",
    "Claude Opus 4.7": "93.6M -",
    "Claude Opus 4.8": "99.3H 83.3H",
    "Claude Mythos Preview": "99.9H 95.5H",
    "Claude Mythos 5 (max)": "99.96H 97.5H",
}
DEEPSEEK = {
    "DeepSeek-V4-Pro (max)": "83.5H",
    "DeepSeek-V4-Flash (max)": "78.7M",
    "Claude Opus 4.6 (max)": "92.9H",
    "Gemini 3.1 Pro (high)": "76.3H",
}
TABLES = {
    "openai mrcr v2 8-needle {}": (BINS, MRCR_V2),
    "openai mrcr v1 2-needle {}": (("128k", "256k"), MRCR_V1),
    "google mrcr v2 8-needle {}": (("128k average", "1m pointwise"), GOOGLE),
    "openai graphwalks bfs {}": (("128k", "256k", "1m"), OPENAI_BFS),
    "openai graphwalks parents {}": (("128k", "256k", "1m"), OPENAI_PARENTS),
    "anthropic graphwalks bfs {}": (("256k", "1m"), ANTHROPIC_BFS),
    "anthropic graphwalks parents {}": (("256k", "1m"), ANTHROPIC_PARENTS),
    "deepseek mrcr 1m mmr": (("",), DEEPSEEK),
    "qwen mrcr v2 8-needle 256k": (("",), {"Qwen3.8-Max": "92.9M"}),
    "seed mrcr 8-needle": (("",), {"Seed 2.0": "89.4M"}),
    "aa-lcr 1.1": (
        ("",),
        {"GPT-5.6 Sol": "77.7M", "DeepSeek-V4-Pro": "80.3M", "Claude Sonnet 4": "44M"},
    ),
    "longbench v2 of releases": (("",), {"Qwen3.8-Max": "66.3M"}),
    "longbench v2 128k of seed": (("",), {"Seed 2.0": "84.5M"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_published_number(name: str) -> None:
    """The files have every number of the transcription with its confidence."""
    points, table = TABLES[name]
    expected = {
        (name.format(point), model, cell)
        for model, row in table.items()
        for point, cell in zip(points, row.split(), strict=True)
    }
    names = {name.format(point) for point in points}
    values = {
        (protocol.name, row.label, row.value, row.confidence)
        for _, protocol in PROTOCOLS
        if protocol.name in names
        for row in protocol.rows
    }
    assert values >= {
        (of, model, float(cell[:-1]), cell[-1])
        for of, model, cell in expected
        if cell != "-"
    }


@pytest.mark.parametrize(
    ("benchmark", "protocol"),
    PROTOCOLS,
    ids=[protocol.name for _, protocol in PROTOCOLS],
)
def test_every_protocol_can_be_run(benchmark: object, protocol: Protocol) -> None:
    """Each run entry is valid, a judge is the task's official one, each row has a source, and each value is a percentage."""
    for text in protocol.run_entries:
        entry = parse_entry(BENCHMARKS, HELMS_OWN.sub("", text).rstrip(":"))
        assert entry.benchmark is benchmark
        assert not protocol.metric or all(
            protocol.metric in task.metrics for task in entry.tasks
        )
        assert {task.official_judge for task in entry.tasks} - {None} <= {
            protocol.judge
        }
    for row in protocol.rows:
        assert 0 <= row.value <= 100
        assert row.confidence in CONFIDENCE
        assert row.source.title
        assert row.source.page.startswith("https://")
        assert re.fullmatch(r"\d{4}-\d{2}(-\d{2})?|unknown", row.source.date)
    assert protocol.aggregation in (
        "mean over questions",
        "mean over entries",
        "area over lengths",
    )


def test_names_are_unique() -> None:
    """No two protocols have one name, and each name finds its protocol."""
    names = [protocol.name for _, protocol in PROTOCOLS]
    assert len(set(names)) == len(names)
    for _, protocol in PROTOCOLS:
        assert find_protocol(protocol.name.upper(), BENCHMARKS)[1] == protocol


def test_tables_of_papers_are_the_published_results() -> None:
    """A protocol of a paper has the numbers of the benchmark's published table, and no copy of them."""
    (_, protocol) = find_protocol("helmet recall 128k", BENCHMARKS)
    rows = {row.model: row.value for row in protocol.rows}
    (helmet,) = [benchmark for benchmark in BENCHMARKS if benchmark.name == "helmet"]
    published = [
        row
        for row in helmet.published()
        if (row.category, row.length) == ("recall", 131072)
    ]
    assert rows == {
        row.model: pytest.approx(100 * fmean(row.scores.values()), abs=1e-6)
        for row in published
    }
    assert len(rows) > 50


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("OpenAI MRCR v2, 8 needles, 512K-1M", "openai mrcr v2 8-needle 512k-1m"),
        ("DeepSeek's MRCR 1M (MMR)", "deepseek mrcr 1m mmr"),
        ("graphwalks bfs 1mil anthropic", "anthropic graphwalks bfs 1m"),
        ("AA-LCR 1.1", "aa-lcr 1.1"),
        ("mmr", "deepseek mrcr 1m mmr"),
        ("Google 1M pointwise", "google mrcr v2 8-needle 1m pointwise"),
    ],
)
def test_names_are_found_as_people_write_them(text: str, name: str) -> None:
    """Case, order, plurals, and missing words do not matter if one protocol is meant."""
    assert find_protocol(text, BENCHMARKS)[1].name == name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "deepsek mrcr 1m",
            "no protocol is called 'deepsek mrcr 1m'; did you mean 'deepseek mrcr 1m mmr'",
        ),
        (
            "openai mrcr v2 8-needle 128k",
            "'openai mrcr v2 8-needle 64k-128k', 'openai mrcr v2 8-needle 128k-256k'; give one",
        ),
        ("", "no protocol is called ''"),
    ],
)
def test_other_names_are_an_error(text: str, told: str) -> None:
    """A misspelled or ambiguous name ends in one line with the names that can be meant."""
    with pytest.raises(InputError, match=re.escape(told)):
        find_protocol(text, BENCHMARKS)


@given(st.text(max_size=60))
def test_any_text_is_a_protocol_or_an_error(text: str) -> None:
    """Whatever a user types, the result is a protocol or an error of one line."""
    told = ""
    try:
        assert find_protocol(text, BENCHMARKS)[1].name
    except InputError as error:
        told = str(error)
    assert "\n" not in told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("protocols: []", "KeyError: 'sources'"),
        (
            "sources: {}\nprotocols: [{name: x, title: x, points: {}, rows: [], colour: red}]",
            "unknown key colour",
        ),
        ("sources: {}\nprotocols: [{name: x}]", "KeyError"),
        ("- 1", "TypeError"),
    ],
)
def test_a_malformed_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, told: str
) -> None:
    """A file of another package that is malformed ends in one line that names the file."""
    folder = tmp_path / "malformed_protocols"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "protocols.yaml").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "malformed_protocols", raising=False)
    with pytest.raises(InputError, match=f"protocols.yaml: .*{told}"):
        read_protocols("malformed_protocols")


def test_conditions_name_what_is_not_stated() -> None:
    """The conditions of a protocol say what the page says, and name what it does not say."""
    anthropic = find_protocol("anthropic graphwalks bfs 256k", BENCHMARKS)[1]
    assert anthropic.conditions == [
        "mean over questions",
        "5 trials",
        "temperature 1",
        "output budget not stated",
    ]
    assert anthropic.run_entries == (
        "graphwalks:task=openai_bfs_corrected,length=256k,repeats=5,temperature=1.0",
    )
    assert (
        "the lengths not stated" in find_protocol("seed mrcr", BENCHMARKS)[1].conditions
    )


def test_rulers_readme_breaks_its_own_threshold() -> None:
    """The five effective lengths of RULER's README that its scores contradict are those that the page names."""
    (ruler,) = [benchmark for benchmark in BENCHMARKS if benchmark.name == "ruler"]
    scores = {(row.model, row.length): row.scores[""] for row in ruler.published()}
    printed = {
        "Qwen3-14B": (128, 64),
        "Qwen2.5-7B-Instruct-1M": (128, 64),
        "Qwen3-8B": (64, 32),
        "Qwen3-4B": (64, 32),
        "EXAONE-4.0-1.2B": (32, 16),
    }
    names = {name.lower(): name for name, _ in scores}
    for model, (readme, ours) in printed.items():
        of_model = {
            length or 0: score
            for (name, length), score in scores.items()
            if name == names[model.lower()]
        }
        assert of_model[readme * 1024] < (ruler.effective_score or 0)
        assert effective_length(of_model, ruler.effective_score or 0) == ours * 1024


def test_a_shell_takes_every_name() -> None:
    """No word of a protocol's name needs quotes in a shell, and the name with `<128k` of earlier versions still works."""
    words = [word for _, protocol in PROTOCOLS for word in protocol.name.split()]
    assert [word for word in words if shlex.quote(word) != word] == []
    assert (
        find_protocol("openai graphwalks bfs <128k", BENCHMARKS)[1].name
        == "openai graphwalks bfs 128k"
    )


def test_the_table_of_a_benchmark_has_its_sample() -> None:
    """A benchmark's own table has as many questions as its run entries have, and the leaderboard shows the same number."""
    for benchmark in BENCHMARKS:
        tables = [
            protocol for protocol in find_protocols(benchmark) if protocol.is_table
        ]
        if not tables:
            continue
        (board,) = published_boards([benchmark])
        for protocol in tables:
            entry = parse_entry([benchmark], protocol.entries[0])
            keys = {
                ScoreKey(score.model, entry.name, entry.settings.length)
                for score in board.scores
            }
            shown = {board.scores[key].interval.n for key in keys & board.scores.keys()}
            assert shown == {protocol.samples}
