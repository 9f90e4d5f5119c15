"""Countdown: writes the search that prompts demonstrate and answers should follow, and checks a model's answer.

Source: princeton-pli/LongProc at 78e873a, longproc/countdown_evaluator.py. The official check evaluates the model's
equations as Python code. This module parses them instead; text that Python could not evaluate is wrong.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

from helm_longctx.benchmarks.longproc import prompts

Number = int | float
_LARGEST = 2000
"""The search drops branches with an intermediate result of at least this."""

_OPERATIONS: dict[str, Callable[[int, int], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
# The texts that Python reads as whole numbers: underscores between digits, but no leading zeros. `eval` in the official
# code refuses others (countdown_evaluator.py:190).
_PYTHON_INTEGER = re.compile(r"[ \t\f]*-?(?:0(?:_?0)*|[1-9](?:_?[0-9])*)[ \t\f]*")


def demonstrate(numbers: Sequence[int], target: int) -> tuple[list[str], str]:
    """Return the equations of the first solution that the search finds, and the text of the search with the solution.

    Args:
        numbers: four whole numbers of at least 0.

    Raises:
        ValueError: no order of operations reaches the target.
    """
    search = _Search(target)
    solution = search.run(list(numbers))
    if solution is None:
        raise ValueError("the numbers cannot reach the target")
    return solution, prompts.COUNTDOWN_DEMONSTRATION.format(
        search="".join(search.log), solution=solution
    )


@cache
def demonstrations() -> str:
    """Return the solved examples that every prompt has."""
    examples = []
    for numbers, target in prompts.COUNTDOWN_EXAMPLES:
        _, demonstration = demonstrate(numbers, target)
        examples.append(
            prompts.COUNTDOWN_EXAMPLE.format(
                numbers=numbers,
                target=target,
                demonstration=demonstration,
            )
        )
    return "\n\n".join(examples)


@dataclass
class _Search:
    """A depth-first search that writes down every step."""

    target: int
    log: list[str] = field(default_factory=list)

    def run(self, numbers: list[int]) -> list[str] | None:
        """Search from the given numbers. Returns the equations of the first solution, or None if there is none."""
        pairs = list(combinations(numbers, 2))
        self.log.append(
            prompts.COUNTDOWN_START.format(
                numbers=numbers,
                target=self.target,
                pairs=pairs,
            )
        )
        return self._combine(numbers, 0)

    def _combine(self, numbers: list[int], depth: int) -> list[str] | None:
        """Try all operations on all pairs. The log has no line for the choice of the last pair."""
        # As in the official code, only a line for the pair increases the depth (countdown_evaluator.py:111).
        depth += len(numbers) > 2
        for i, j in combinations(range(len(numbers)), 2):
            first = numbers[i]
            second = numbers[j]
            left = []
            for k, n in enumerate(numbers):
                if k not in (i, j):
                    left.append(n)
            if left:
                self._write(
                    depth,
                    prompts.COUNTDOWN_PICK.format(
                        a=first,
                        b=second,
                        left=left,
                    ),
                )
            for equation, result in _results(max(first, second), min(first, second)):
                rest = self._follow(equation, result, left, depth + 1)
                if rest is not None:
                    return [equation, *rest]
        return None

    def _follow(
        self,
        equation: str,
        result: Number | None,
        left: list[int],
        depth: int,
    ) -> list[str] | None:
        """Continue the search with a result. Returns the equations that follow, or None if the branch is dropped."""
        # Negative results cannot occur, because the larger number comes first.
        if result is None or result % 1 or result >= _LARGEST:
            if result and result % 1:
                decimal = prompts.COUNTDOWN_DECIMAL
            else:
                decimal = prompts.COUNTDOWN_TOO_LARGE
            if result is None:
                line = prompts.COUNTDOWN_INVALID
            else:
                line = decimal
            self._write(depth, line.format(equation=equation, result=result))
            return None
        if not left:
            hit = result == self.target
            if hit:
                line = prompts.COUNTDOWN_HIT
            else:
                line = prompts.COUNTDOWN_MISS
            self._write(
                depth,
                line.format(
                    equation=equation,
                    result=result,
                    target=self.target,
                ),
            )
            return [] if hit else None
        numbers = [int(result), *left]
        line = prompts.COUNTDOWN_ADD + (
            prompts.COUNTDOWN_PAIRS if len(left) > 1 else prompts.COUNTDOWN_LAST_TWO
        )
        values = {
            "numbers": numbers,
            "target": self.target,
            "pairs": list(combinations(numbers, 2)),
        }
        self._write(depth, line.format(equation=equation, result=result, **values))
        return self._combine(numbers, depth)

    def _write(self, depth: int, text: str) -> None:
        self.log.append(f"\n{' ' * depth}|- {text}")


def _results(a: int, b: int) -> Iterator[tuple[str, Number | None]]:
    """Yield the four operations on a >= b as equations with their results, or None for a division by zero."""
    for sign in "+-*":
        result = _OPERATIONS[sign](a, b)
        yield f"{a} {sign} {b} = {result}", result
    if b == 0:
        yield f"{a} / {b} (invalid operation)", None
    elif a % b == 0:
        yield f"{a} / {b} = {a // b}", a // b
    else:
        yield f"{a} / {b} = {a / b:.1f}", a / b


def is_solution(numbers: Sequence[int], target: int, text: str) -> bool:
    """Return whether three lines such as `40 - 19 = 21` use every number once and end at the target."""
    left = list(numbers)
    lines = text.split("\n")
    # Four numbers need three equations, so blank lines or remarks make an answer wrong (countdown_evaluator.py:206).
    if len(lines) != 3:
        return False
    for line in lines:
        equation = read_equation(line)
        if equation is None:
            return False
        *operands, result = equation
        for operand in operands:
            if operand not in left:
                return False
            left.remove(operand)
        left.append(result)
    # If every equation holds and uses its numbers up, one number is left.
    return left[0] == target


def read_equation(line: str) -> tuple[int, int, int] | None:
    """Return the operands and the result of a true equation, or None for any other line.

    As in the official code, a line is split at the first sign of `+-*/`, in this order, that occurs in it. So
    `-5 - 3 = -8` is not an equation.
    """
    left, *right = line.strip().split("=")
    sign = next((sign for sign in _OPERATIONS if sign in left), None)
    if len(right) != 1 or sign is None:
        return None
    operands = left.split(sign)
    if len(operands) != 2 or not all(map(_PYTHON_INTEGER.fullmatch, operands)):
        return None
    try:
        a = int(operands[0])
        b = int(operands[1])
        result = int(right[0])
        if _OPERATIONS[sign](a, b) == result:
            return (a, b, result)
        return None
    except (ValueError, ArithmeticError):
        return None


def search_accuracy(search: str, expected: str) -> float:
    """Measure how far a search follows the expected one: the index of the last compared line, divided by their number.

    The first line is not counted. As in the official code, a search that agrees to its end has (n - 1) / n, and a
    search of one line has -1 / n.
    """
    first, *lines = search.strip().split("\n")
    expected_first, *expected_lines = expected.strip().split("\n")
    if first != expected_first or not expected_lines:
        return 0.0
    index = -1
    dropped = "drop this branch"
    for index, (line, step) in enumerate(zip(lines, expected_lines, strict=False)):  # noqa: B007  # read after the loop
        # Results may differ, but both lines or neither must drop the branch.
        is_tried = (
            "|- Try" in step
            and "Pick two numbers" not in step
            and line.split("=")[0] == step.split("=")[0]
        )
        if line != step and not (is_tried and (dropped in line) == (dropped in step)):
            break
    return index / len(expected_lines)
