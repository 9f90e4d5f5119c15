"""Finds every pattern of the source, makes its worst texts, and measures whether it takes linear time."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:  # Python 3.11 and later
    from re import _constants as codes
    from re import _parser as parser
except ImportError:
    import sre_constants as codes
    import sre_parse as parser

METHODS = (
    "search",
    "match",
    "fullmatch",
    "finditer",
    "findall",
    "sub",
    "subn",
    "split",
)
FROM_THE_START = ("match", "fullmatch")
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
SETS = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)

MANY = 40
"""Repeats of at most so many characters only make a pattern slower by a factor."""

ALPHABET = "aA0 \n\t.,:-_(<[{\"'`*一"
"""Characters of all kinds, tried beside those of the pattern itself."""

TAILS = ("", "\x00", "\n", "a")
"""Ends of texts, at which a pattern can fail after all."""


@dataclass(frozen=True)
class Pattern:
    """A pattern of the source.

    Args:
        name: module and name of the pattern, or of the function that has it.
        compiled: the pattern.
        methods: how its module uses it. `finditer` stands for all that try each place of a text.
    """

    name: str
    compiled: re.Pattern[Any]
    methods: frozenset[str]


# Where patterns stand ---------------------------------------------------------------------------------------------


def iterate_modules(package: str) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each module of a package."""
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            spec = info.module_finder.find_spec(info.name, None)
            assert spec is not None
            assert spec.origin is not None
            yield info.name, Path(spec.origin)


def find_patterns(
    package: str, made: Mapping[str, Sequence[str]]
) -> dict[str, list[Pattern]]:
    """Return all patterns of a package, by their names.

    Args:
        made: the patterns of calls whose pattern is put together, by module and function.

    Raises:
        KeyError: a function puts a pattern together that is not in `made`.
    """
    patterns: dict[str, list[Pattern]] = {}
    seen = set()
    for module, file in iterate_modules(package):
        source = file.read_text(encoding="utf-8")
        if not re.search(r"\bre\b", source):
            continue
        tree = ast.parse(source)
        for pattern in [*find_named(module, tree), *find_calls(module, tree, made)]:
            key = (pattern.compiled, pattern.methods)
            if key not in seen:
                patterns.setdefault(pattern.name, []).append(pattern)
            seen.add(key)
    return patterns


def find_named(module: str, tree: ast.AST) -> Iterator[Pattern]:
    """Yield the patterns that are values of a module, also in its tuples and dictionaries."""
    uses = find_uses(tree)
    for name, value in vars(importlib.import_module(module)).items():
        if name.startswith("__"):
            continue
        for compiled in iterate_patterns(value):
            yield Pattern(
                f"{module}.{name}", compiled, frozenset(uses.get(name, {"finditer"}))
            )


def iterate_patterns(value: Any, depth: int = 4) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from iterate_patterns(part, depth - 1)
    elif depth and isinstance(value, dict):
        yield from iterate_patterns([*value.values()], depth - 1)


def find_uses(tree: ast.AST) -> dict[str, set[str]]:
    """Return how a module uses the patterns that it names."""
    uses: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.attr in METHODS:
            uses.setdefault(node.value.id, set()).add(canonical(node.attr))
    return uses


def canonical(method: str) -> str:
    """Return the method that stands for a method."""
    return method if method in FROM_THE_START else "finditer"


def find_calls(
    module: str, tree: ast.AST, made: Mapping[str, Sequence[str]]
) -> Iterator[Pattern]:
    """Yield the patterns of calls such as `re.sub(pattern, …)`, and of `re.compile` in functions."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            is_call = isinstance(node, ast.Call) and isinstance(
                node.func, ast.Attribute
            )
            if not (is_call and ast.unparse(node.func.value) == "re"):
                continue
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            method = node.func.attr
            if method not in (*METHODS, "compile"):
                continue
            argument = node.args[0]
            name = f"{module}.{function.name}"
            texts = (
                [argument.value] if isinstance(argument, ast.Constant) else made[name]
            )
            flags = read_flags(
                [*node.args[1:], *(word.value for word in node.keywords)]
            )
            for text in texts:
                yield Pattern(
                    name, re.compile(text, flags), frozenset({canonical(method)})
                )


def read_flags(arguments: Sequence[ast.expr]) -> int:
    """Return the flags among the arguments of a call."""
    flags = 0
    for argument in arguments:
        for node in ast.walk(argument):
            if isinstance(node, ast.Attribute) and node.attr.isupper():
                flags |= int(getattr(re, node.attr))
    return flags


# Worst texts ------------------------------------------------------------------------------------------------------


def iterate_texts(compiled: re.Pattern[Any]) -> Iterator[Callable[[int], str]]:
    """Yield makers of the worst texts of a pattern. A maker takes the length of the text."""
    tree = [*parser.parse(compiled.pattern, compiled.flags)]
    own = list(dict.fromkeys(iterate_literals(tree)))
    characters = [*dict.fromkeys([*own[:14], *ALPHABET])]
    writer = _Writer(bool(compiled.flags & re.DOTALL), characters)
    repeats = [*writer.find_repeats(tree, "")]
    if not repeats:
        return  # Each place of a text takes a time that the pattern alone limits.
    units = {writer.write(tree, few) for few in (True, False)}
    units |= {unit[:-1] for unit in units}
    for before, bodies in repeats:
        for body in bodies:
            for tail in TAILS:
                yield (
                    lambda length, before=before, body=body, tail=tail: (
                        before + body * (length // len(body)) + tail
                    )
                )
        units |= {before, *(before + body for body in bodies)}
    units |= {*characters}
    units |= {first + second for first in own[:8] for second in "a0 \n"}
    for unit in sorted(units - {""}):
        yield lambda length, unit=unit: unit * (length // len(unit) + 1)


def iterate_literals(tree: Sequence[Any]) -> Iterator[str]:
    """Yield the characters that a pattern names."""
    for code, argument in tree:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(argument)
        elif code is codes.RANGE:
            yield chr(argument[0])
        elif code is codes.IN:
            yield from iterate_literals(argument)
        else:
            for part in find_parts(code, argument):
                yield from iterate_literals(part)


def find_parts(code: Any, argument: Any) -> list[Sequence[Any]]:
    """Return the patterns in an item of a pattern."""
    if code in REPEATS or str(code) == "POSSESSIVE_REPEAT":
        return [argument[2]]
    if code is codes.SUBPATTERN:
        return [argument[3]]
    if code is codes.BRANCH:
        return list(argument[1])
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [argument[1]]
    return []


@dataclass(frozen=True)
class _Writer:
    """Writes texts that parts of a pattern match.

    Args:
        dot_is_all: whether `.` matches a newline.
        characters: the characters of the texts.
    """

    dot_is_all: bool
    characters: Sequence[str]

    def matches(self, code: Any, argument: Any) -> list[str]:
        """Return the characters that an item of one character matches."""
        return [
            character
            for character in self.characters
            if self._is_in(character, code, argument)
        ]

    def _is_in(self, character: str, code: Any, argument: Any) -> bool:
        if code is codes.ANY:
            return self.dot_is_all or character != "\n"
        if code is codes.LITERAL:
            return ord(character) == argument
        if code is codes.NOT_LITERAL:
            return ord(character) != argument
        if code is codes.RANGE:
            return bool(argument[0] <= ord(character) <= argument[1])
        if code is codes.CATEGORY:
            kind = str(argument).replace("CATEGORY_", "").replace("UNI_", "")
            is_kind = {
                "DIGIT": character.isdigit(),
                "SPACE": character.isspace(),
                "WORD": character.isalnum() or character == "_",
            }[kind.replace("NOT_", "")]
            return is_kind != kind.startswith("NOT_")
        is_negative = argument[0][0] is codes.NEGATE
        members = argument[is_negative:]
        return any(self._is_in(character, *member) for member in members) != is_negative

    def write(self, tree: Sequence[Any], few: bool = True) -> str:
        """Return a text that a pattern matches, with few or with some repeats."""
        text = ""
        for code, argument in tree:
            if code in SETS:
                text += next(iter(self.matches(code, argument)), "a")
            elif code in REPEATS or str(code) == "POSSESSIVE_REPEAT":
                text += self.write(argument[2], few) * max(argument[0], not few)
            elif code in (codes.SUBPATTERN, codes.BRANCH):
                text += self.write(find_parts(code, argument)[0], few)
        return text

    def find_repeats(
        self, tree: Sequence[Any], before: str
    ) -> Iterator[tuple[str, list[str]]]:
        """Yield each part that can be repeated without end: a text before it, and what is repeated."""
        for index, (code, argument) in enumerate(tree):
            start = before + self.write(tree[:index])
            parts = find_parts(code, argument)
            if code in REPEATS and argument[1] > MANY:
                yield start, self._list_bodies(parts[0])
            for part in parts:
                yield from self.find_repeats(part, start)

    def _list_bodies(self, tree: Sequence[Any]) -> list[str]:
        bodies = {self.write(tree), self.write(tree, few=False)}
        if len(tree) == 1 and tree[0][0] in SETS:
            bodies |= {*self.matches(*tree[0])[:6]}
        return sorted(bodies - {""})[:8]


# Measurement ------------------------------------------------------------------------------------------------------

SHORT = 1_000
"""Characters of a text that is tried first."""

SUSPECT = 0.0004
"""Processor seconds for a short text beyond which its growth is measured."""

CERTAIN = 0.25
"""Processor seconds that no linear pattern needs for a short text."""

GROWTH = 8.0
"""How much longer a text of four times the length may take. It is 4 in linear time, and 16 in quadratic time."""

MEASURED = 3
"""How many of a pattern's worst texts are measured at several lengths."""


def find_slow_text(
    pattern: Pattern, prepare: Callable[[str], str] = lambda text: text
) -> str:
    """Return a text, by its unit, for which a pattern takes more than linear time; empty without any.

    Args:
        prepare: what the caller of the pattern does to a text before, such as cutting it.
    """
    costs = []
    for make in iterate_texts(pattern.compiled):
        for method in pattern.methods:
            measure = Measure(pattern.compiled, method, make, prepare)
            # An exponential pattern would never end with the short text.
            if measure(24) > CERTAIN:
                return measure.name
            cost = measure(SHORT)
            if cost > CERTAIN:
                return measure.name
            costs.append((cost, measure.name, measure))
    for cost, name, measure in sorted(costs, key=lambda row: -row[0])[:MEASURED]:
        if cost > SUSPECT and grows_fast(measure):
            return name
    return ""


@dataclass(frozen=True)
class Measure:
    """Measures a pattern with a text of any length.

    Args:
        make: makes the text.
        prepare: changes it as the caller of the pattern does.
    """

    compiled: re.Pattern[Any]
    method: str
    make: Callable[[int], str]
    prepare: Callable[[str], str]

    @property
    def name(self) -> str:
        """The method and a short text."""
        return f"{self.method} {self.make(40)!r}"

    def __call__(self, length: int, repeats: int = 1) -> float:
        """Return the processor seconds for a text, the least of some repeats."""
        text: Any = self.prepare(self.make(length))
        if isinstance(self.compiled.pattern, bytes):
            text = text.encode()
        return min(take(self.compiled, self.method, text) for _ in range(repeats))


def grows_fast(measure: Measure) -> bool:
    """Return whether the time grows much faster than the text, in both of two steps to texts of four times the length."""
    before = measure(SHORT // 4, 4)
    for length in (SHORT, 4 * SHORT):
        now = measure(length, 3)
        if now < GROWTH * before:
            return False
        before = now
    return True


def take(compiled: re.Pattern[Any], method: str, text: Any) -> float:
    """Return the processor seconds that a pattern takes for a text."""
    start = time.thread_time()
    if method == "finditer":
        for _ in compiled.finditer(text):
            pass
    else:
        getattr(compiled, method)(text)
    return time.thread_time() - start
