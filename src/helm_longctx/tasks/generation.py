"""Draws samples that fill a length, as the scripts of RULER and RULER v2 do: the search for the number of units of
haystack, and texts in parts whose tokens are looked up.

Every draw uses up random numbers, even a draw of the search or of a sample that is too long, so the counts of tokens
have to be exact.

Source: NVIDIA/RULER at c3f5e3b, scripts/data/synthetic: niah.py, common_words_extraction.py, qa.py.
NVIDIA-NeMo/Gym at 07d6b0d, benchmarks/ruler2/sources, has the same search.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import count as numbers
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeVar

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.counting import CountTokens
from helm_longctx.tasks.prompt import Template
from helm_longctx.tasks.task import Example, Settings, Task

_CUT = "\x1f"
"""Stands for a field of a template where the template is split."""

_MOST_DRAWS = 1000
"""The most draws for one sample. The official scripts never give up if no sample fits."""


class Draw(NamedTuple):
    """A sample.

    Args:
        fields: the template's fields without the context.
        context: texts that spaces join. Their tokens are looked up if they come again in other samples.
    """

    fields: dict[str, str]
    context: list[str]
    answers: list[str]

    @property
    def all_fields(self) -> dict[str, str]:
        """The values of the template's fields."""
        return {**self.fields, "context": " ".join(self.context)}


_Item = TypeVar("_Item")

_DrawSample = Callable[[int, int], Draw]
"""(number of the sample, size of the haystack) → a sample. Raises ValueError or IndexError if it cannot be made."""


@dataclass(frozen=True)
class Script:
    """What an official script is called with, and the search that all of them share.

    Args:
        length: tokens that prompt and output must not exceed.
    """

    template: Template
    count: CountTokens
    length: int
    output: int
    seed: int
    root: DataRoot

    def tokens(self, draw: Draw) -> int:
        """Count the tokens of a completion prompt and the output."""
        prompt = self.template.render({**draw.fields, "context": _CUT})
        before, after = prompt.text("completion").split(_CUT)
        texts = [*draw.context]
        texts[0] = before + texts[0]
        texts[-1] += after
        return self.count(*texts) + self.output

    def draw_all(
        self,
        draw: _DrawSample,
        step: int,
        size: int = 0,
    ) -> Iterator[Draw]:
        """Yield samples of a size without end; search the size if none is given."""
        size = size or self.search_size(draw, step)
        return (self.draw_fitting(draw, number, size, step) for number in numbers())

    def search_size(
        self,
        draw: _DrawSample,
        step: int,
        cwe: bool = False,
    ) -> int:
        """Search the largest haystack with which a sample fits, or raise an `InputError` as the official search."""
        probe = 4096 if cwe else step
        try:
            # The official search asks the first question in all its draws (qa.py:160, 179).
            per_unit = (self.tokens(draw(0, probe)) - self.output) / probe
            # Three times the estimate leaves room for a first draw of long units (niah.py:229).
            if cwe:
                largest = int(self.length // per_unit) * 2
            else:
                largest = int((self.length / per_unit) * 3)
            low = step
            high = max(largest, 2 * step)
            while low <= high:
                middle = (low + high) // 2
                if self.tokens(draw(0, middle)) <= self.length:
                    low = middle + 1
                else:
                    high = middle - 1
        except (ValueError, IndexError) as error:
            raise InputError(
                f"the official script fails with this seed and tokenizer ({error}); use"
                " another seed"
            ) from error
        return max(high, step)

    def draw_fitting(
        self,
        draw: _DrawSample,
        number: int,
        size: int,
        step: int,
    ) -> Draw:
        """Draw a sample until one fits. The haystack shrinks with every failure."""
        for _ in range(_MOST_DRAWS):
            try:
                sample = draw(number, size)
            # The official loop catches whatever fails, and tries again with a smaller haystack (niah.py:271).
            except (ValueError, IndexError):
                sample = None
            if sample and self.tokens(sample) <= self.length:
                return sample
            # Another draw of the smallest size can be shorter, so it is tried again (niah.py:272).
            size -= step if size > step else 0
        raise InputError(
            f"no sample fits into {self.length} tokens of this tokenizer; use a larger length"
        )


def make_script(
    task: Task,
    settings: Settings,
    root: DataRoot,
    output: int,
) -> Script:
    """Return the script of a run entry. Raises an `InputError` if there is no tokenizer."""
    return Script(
        task.template,
        settings.count_tokens(task.name),
        settings.level,
        output,
        settings.seed,
        root,
    )


def make_example(
    task: Task,
    number: int,
    draw: Draw,
    evidence: str | None,
    group: str = "",
) -> Example:
    """Make the example of a sample. `evidence` is the start of its only piece, from which the depth follows."""
    context = draw.all_fields["context"]
    start = -1 if evidence is None else context.find(evidence)
    depth = start / len(context) if start >= 0 else None
    return Example(
        f"{task.name}-{number}",
        draw.all_fields,
        draw.answers,
        "official",
        depth=depth,
        group=group,
    )


Samples = Callable[[Script], Iterator[Draw]]
"""(script) → the samples of a task in the official order."""


def cut_ends(text: str) -> list[str]:
    """Cut off the first and the last word of a text, since other text is joined to them."""
    start, *rest = text.split(" ", 1)
    if not rest:
        return [start]
    return [start, *rest[0].rsplit(" ", 1)]


def join_texts(texts: Iterable[Sequence[str]], separator: str) -> list[str]:
    """Join texts, each a sequence of parts. Parts inside a text stay the same objects, so they are looked up fast."""
    texts = iter(texts)
    joined = [*next(texts)]
    for text in texts:
        joined[-1] += separator + text[0]
        joined += text[1:]
    return joined


def _interleave(*columns: Sequence[str]) -> list[str]:
    """Return the first texts of all columns, the second ones, and so on. All columns have the same length."""
    texts = [""] * sum(map(len, columns))
    for number, column in enumerate(columns):
        texts[number :: len(columns)] = column
    return texts


@lru_cache(maxsize=8)
def _labels(count: int) -> list[str]:
    return [f"{number}." for number in range(1, count + 1)]


def number_words(words: Sequence[str]) -> list[str]:
    """Number the words of a list, as parts that spaces join: `1.`, `blue`, `2.`, `red`."""
    return _interleave(_labels(len(words)), words)


def write_query(keys: Sequence[str]) -> str:
    """Write the keys that are asked for: `a`, or `a, b, and c`."""
    *others, last = keys
    if others:
        return f"{', '.join(others)}, and {last}"
    return last


def write_needles(needles: Sequence[tuple[str, str]], sentence: str) -> list[str]:
    """Write the lines of needles, whose sentence has `{}` for key and value, as parts that spaces join."""
    start, verb, end = map(str.strip, sentence.split("{}"))
    first, rest = start.split(" ", 1)
    ends = [f"{value}{end}\n{first}" for _, value in needles[:-1]] + [
        needles[-1][1] + end
    ]
    return [
        first,
        *_interleave(
            [rest] * len(ends), [key for key, _ in needles], [verb] * len(ends), ends
        ),
    ]


_DEPTHS = [round(100 * number / 39) for number in range(40)]
"""The percentages of a text's sentences that can come before a needle."""


def hide_at_depths(
    sentences: Sequence[str],
    needles: Sequence[Sequence[str]],
    rng: Random,
) -> list[str]:
    """Insert needles, each a sequence of parts, between sentences, at some of the official depths."""
    drawn = rng.sample(_DEPTHS, len(needles))
    positions = sorted(int(len(sentences) * (depth / 100)) for depth in drawn)
    texts: list[str] = []
    for (start, end), needle in zip(pairwise([0, *positions]), needles, strict=True):
        # The official scripts join empty parts, too, so that two spaces stand there.
        texts += [*(sentences[start:end] or [""]), *needle]
    return [*texts, *(sentences[positions[-1] :] or [""])]


def hide(lines: list[_Item], hidden: Sequence[_Item], rng: Random) -> list[_Item]:
    """Insert lines at random positions, in their order."""
    positions = sorted(rng.sample(range(len(lines)), len(hidden)))
    # Each line that was inserted moves the positions behind it by one.
    for number, position in enumerate(positions):
        lines.insert(position + number, hidden[number])
    return lines


def draw_below(rng: Random, count: int) -> int:
    """Draw a number as `rng.choice(range(count))` does, in a third of the time."""
    bits = count.bit_length()
    while (number := rng.getrandbits(bits)) >= count:
        pass
    return number


class KeyWords:
    """All pairs such as `quick-hedgehog` in order, made when asked for: six million would take half a gigabyte."""

    def __init__(self, adjectives: Iterable[str], nouns: Iterable[str]):
        self._nouns = sorted(set(nouns))
        # The pairs of "blue" and of "blue-eyed" are mixed in alphabetical order; all others stand in blocks. Each
        # adjective has its block, and the number of the block's first adjective.
        self._blocks: list[tuple[int, list[str]]] = []
        for number, start in enumerate(
            sorted({f"{adjective}-" for adjective in adjectives})
        ):
            first, block = self._blocks[-1] if self._blocks else (0, [])
            if not (block and start.startswith(block[0])):
                first = number
                block = []
            block.append(start)
            self._blocks.append((first, block))
        self.count = len(self._blocks) * len(self._nouns)

    def draw(self, rng: Random) -> str:
        """Draw a pair as `rng.choice` draws it from a list of all."""
        return self[draw_below(rng, self.count)]

    def __getitem__(self, index: int) -> str:
        number, offset = divmod(index, len(self._nouns))
        first, starts = self._blocks[number]
        if len(starts) == 1:
            return starts[0] + self._nouns[offset]
        return self._mix(tuple(starts))[offset + (number - first) * len(self._nouns)]

    @cache  # noqa: B019  # one object lives as long as the process
    def _mix(self, starts: tuple[str, ...]) -> list[str]:
        phrases: list[str] = []
        for start in starts:
            phrases += [start + noun for noun in self._nouns]
        return sorted(phrases)


def read_words(name: str) -> list[str]:
    """Return the words of a file of the package wonderwords."""
    text = (resources.files("wonderwords.assets") / name).read_text(encoding="utf-8")
    return [word.rstrip() for word in text.splitlines()]


@cache
def plain_words(kind: str) -> list[str]:
    """Return the words of a kind, `adjective` or `noun`, of wonderwords that have only lower-case letters, sorted."""
    chosen = set()
    for word in " ".join(read_words(f"{kind}list.txt")).split():
        if word.isascii() and word.isalpha() and word.islower():
            chosen.add(word)
    return sorted(chosen)


def all_words() -> list[str]:
    """Return the nouns, adjectives and verbs of wonderwords, sorted."""
    names = ("nounlist.txt", "adjectivelist.txt", "verblist.txt")
    words: set[str] = set()
    for name in names:
        words |= set(read_words(name))
    return sorted(words)


@cache
def key_words() -> KeyWords:
    """Return the words that serve as keys of needles."""
    return KeyWords(read_words("adjectivelist.txt"), read_words("nounlist.txt"))
