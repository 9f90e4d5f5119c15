"""Tests of the shape of the code: telling names, and docstrings of tests."""

from __future__ import annotations

import ast
import re
from importlib import resources
from pathlib import Path

SOURCE = Path(str(resources.files("helm_longctx"))).parent
TESTS = Path(__file__).parent

PARTICIPLES = 0.01
"""Functions named by a participle (`adapted`, `known`) leave open who does what; httpx, structlog and inspect_ai have
under one in a hundred."""

_IRREGULAR = (
    "drawn found given held kept known left made put read said sent shown told written"
)
_PARTICIPLE = re.compile(rf"_*(?:\w*ed|(?:\w*_)?(?:{'|'.join(_IRREGULAR.split())}))")
_OTHER_WORDS = re.compile(
    r"_*(?:can|has|is|was)_\w+|_*(?:\w*_)?(?:embed|exceed|feed|need|proceed|seed|speed|read|put)"
)
"""Questions (`is_kept`), and verbs and nouns that only look like participles; `read` is first of all a command."""

FEWEST_WORDS = 4
"""A sentence that says what a test checks has a subject, a verb and an object."""

_REFERS_BACK = re.compile(
    r"(It|Its|They|Their|That|Those|This|These|He|Nor|But|Also|And|So|Not|Never|Nothing but)\b"
)
"""Words with which a sentence goes on; a docstring has no sentence before it."""


def functions() -> list[tuple[str, str, int]]:
    """Return module, name and number of lines of every function and method."""
    return [
        (
            str(path.relative_to(SOURCE)),
            node.name,
            (node.end_lineno or 0) - node.lineno + 1,
        )
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def is_participle(name: str) -> bool:
    """Return whether a function's name ends in a participle."""
    return bool(_PARTICIPLE.fullmatch(name)) and not _OTHER_WORDS.fullmatch(name)


def test_functions_are_named_by_verbs_or_results() -> None:
    """At most one in a hundred functions has a participle as its name."""
    names = functions()
    participles = [
        f"{module}:{name}" for module, name, _ in names if is_participle(name)
    ]
    assert len(participles) <= PARTICIPLES * len(names), participles


def test_participles_are_told_from_other_names() -> None:
    """The check finds participles, and accepts other words of similar form."""
    assert all(
        map(
            is_participle,
            ("adapted", "_known", "said", "_renumbered", "_best_of_raw_and_parsed"),
        )
    )
    assert not any(
        map(
            is_participle,
            (
                "adapt",
                "text_seed",
                "send_seed",
                "need",
                "_read",
                "is_kept",
                "read_rows",
                "words",
            ),
        )
    )


def unclear(docstring: str) -> bool:
    """Return whether the first paragraph of a docstring is no full sentence that can be read alone."""
    first = " ".join(docstring.partition("\n\n")[0].split())
    return (
        len(first.split()) < FEWEST_WORDS
        or not first.endswith(".")
        or bool(_REFERS_BACK.match(first))
    )


def test_docstrings_of_tests_are_full_sentences() -> None:
    """The docstring of each test can be read alone."""
    paths = sorted(TESTS.rglob("test_*.py"))
    misplaced = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {docstring}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if (docstring := ast.get_docstring(node)) and unclear(docstring)
    ]
    assert len(paths) > 50
    assert misplaced == []


def imports_of(source: str) -> list[str]:
    """Return the names of the modules that a file imports, also those of which only names are imported."""
    modules = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules += [
                node.module or "",
                *(f"{node.module}.{alias.name}" for alias in node.names),
            ]
    return modules


def misplaces_helpers(source: str) -> bool:
    """Return whether a file imports a module of tests, or switches off ruff's check of names that are defined twice."""
    of_tests = (
        name
        for name in imports_of(source)
        if re.match(r"(tests|bench)\.(\w+\.)*test_\w+", name)
    )
    return any(of_tests) or bool(re.search(r"#\s*noqa\b.*F811", source))


def test_helpers_are_not_in_test_modules() -> None:
    """No file imports from a module of tests: fixtures are in a `conftest.py`, and helpers of tests in `support`."""
    folders = [
        folder
        for name in ("tests", "bench", "docs")
        if (folder := TESTS.parent / name).is_dir()
    ]
    paths = [
        path
        for folder in folders
        for path in folder.rglob("*.py")
        if path != Path(__file__)
    ]
    assert len(paths) > 300
    assert [
        str(path)
        for path in paths
        if misplaces_helpers(path.read_text(encoding="utf-8"))
    ] == []


def test_misplaced_helpers_are_found() -> None:
    """The check finds each kind of import from a module of tests, and accepts imports of helpers."""
    wrong = (
        "from tests.cli.test_cli import Command",
        "from tests.cli import test_cli",
        "import tests.test_docs",
    )
    assert all(
        map(misplaces_helpers, (*wrong, "def test_it(run):  # noqa: F811\n    pass"))
    )
    assert not any(
        map(
            misplaces_helpers,
            ("from tests.support.commands import Command", "import tests.e2e.commands"),
        )
    )


def test_riddles_are_told_from_sentences() -> None:
    """The check finds fragments and sentences that refer back, and accepts full sentences."""
    assert all(
        map(
            unclear,
            (
                "It is named.",
                "Nobody listens.",
                "Tables and JSON.",
                "They are sent as they are now.",
            ),
        )
    )
    assert not unclear("A file that is cut off is named.")
