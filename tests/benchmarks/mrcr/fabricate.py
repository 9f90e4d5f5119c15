"""Fabricate MRCR's rows and odd outputs, which are the same on every machine; the bins are small and have the lengths
of `BINS`."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tiktoken

from helm_longctx.benchmarks.mrcr.tasks import NEEDLES, PATH
from tests.support.fabricate_words import words, write

BINS = {"8k": 128, "16k": 256, "32k": 512}
"""The lengths of the fabricated bins in tokens, which replace the official lengths."""
ROWS = 60
RECORD = {"answer": "AnsLake Vel", "random_string_to_prepend": "Ans"}


def encoding() -> tiktoken.Encoding:
    """Return a small encoding of single bytes and of the space joined with a letter."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {
        f" {letter}".encode(): 256 + number
        for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")
    }
    return tiktoken.Encoding(
        "small", pat_str=r" ?\w+|\W", mergeable_ranks=ranks, special_tokens={}
    )


def build_split(root: Path) -> Path:
    """Write the data set's only split."""
    rng = random.Random(8)
    write(root / PATH, (_row(rng) for _ in range(ROWS)))
    return root / PATH


def _row(rng: random.Random) -> dict[str, Any]:
    needles = rng.choice(NEEDLES)
    turns = [
        (f"write a poem about {words(rng, 1)}", f"{words(rng, rng.randint(1, 9))} 詩")
        for _ in range(rng.randint(1, 5))
    ]
    wanted = rng.randrange(len(turns))
    prefix = f"{rng.getrandbits(40):x}Q"
    pairs = [(("user", ask), ("assistant", text)) for ask, text in turns]
    messages = [
        {"role": role, "content": text} for pair in pairs for role, text in pair
    ]
    messages.append(
        {"role": "user", "content": f"Prepend {prefix} to the poem {wanted + 1}."}
    )
    return {
        "prompt": json.dumps(messages), "answer": prefix + turns[wanted][1], "random_string_to_prepend": prefix,
        "n_needles": needles, "desired_msg_index": 2 * wanted + 1, "total_messages": len(messages),
        "n_chars": sum(len(message["content"]) for message in messages), "date_added": "04-12-2025",
    }  # fmt: skip


def records() -> list[dict[str, str]]:
    """Return outputs, answers and the random string."""
    rng = random.Random(9)
    made = []
    for number in range(12):
        prefix = ["Ab3xQ", "", "xx", "naïve"][number % 4]
        text = "aaaa" if number == 2 else words(rng, 4 if number % 2 else 60)
        for output in _outputs(rng, prefix, text):
            made.append(
                {
                    "prediction": output,
                    "answer": prefix + text,
                    "random_string_to_prepend": prefix,
                }
            )
    return made


def _outputs(rng: random.Random, prefix: str, text: str) -> Iterator[str]:
    shuffled = text.split()
    rng.shuffle(shuffled)
    texts = (
        text,
        "",
        text[: len(text) // 2],
        text * 2,
        text.upper(),
        " ".join(shuffled),
        text[::-1],
        words(rng, 30),
        "詩\n",
    )
    for given in texts:
        yield from (
            prefix + given,
            given,
            f" {prefix}{given}",
            f"{prefix}{prefix}{given}",
            f"{prefix} {given}\n",
        )
    yield prefix.lower() + text


FORMATS = ("poem", "essay", "riddle")
TOPICS = ("tapirs", "rain", "clocks", "Ghent")
ENCODING = '''
"""A small encoding in place of o200k_base: single bytes."""

def o200k_base():
    ranks = {bytes([byte]): byte for byte in range(256)}
    return {"name": "o200k_base", "pat_str": r".|\\n", "mergeable_ranks": ranks, "special_tokens": {}}

ENCODING_CONSTRUCTORS = {"o200k_base": o200k_base}
'''


def write_encoding(folder: Path) -> Path:
    """Write a folder for PYTHONPATH with which processes count bytes and download no encoding."""
    module = folder / "tiktoken_ext/openai_public.py"
    module.parent.mkdir(parents=True)
    module.write_text(ENCODING, encoding="utf-8")
    return folder


def use_encoding(folder: Path) -> None:
    """Let this process import the encoding in a folder, as PYTHONPATH does for a new process."""
    sys.path.insert(0, str(folder))


def build_mrcr(root: Path) -> Path:
    """Write conversations in the official words. Counted in bytes, three for each number of needles are in the bin 8k,
    and the last one, of eight needles, is in the bin 16k."""
    rng = random.Random(11)
    rows = [_conversation(rng, needles, 750) for needles in NEEDLES for _ in range(3)]
    write(root / PATH, [*rows, _conversation(rng, NEEDLES[-1], 1500)])
    return root / PATH


def _conversation(rng: random.Random, needles: int, size: int) -> dict[str, Any]:
    wanted, *others = rng.sample(
        [f"{kind} about {topic}" for kind in FORMATS for topic in TOPICS], 4
    )
    asked = [wanted] * needles + [rng.choice(others) for _ in range(4)]
    rng.shuffle(asked)
    texts = [words(rng, size // len(asked) + rng.randrange(9)) for _ in asked]
    messages = [
        {"role": role, "content": text}
        for ask, answer in zip(asked, texts, strict=True)
        for role, text in (("user", f"write a {ask}"), ("assistant", answer))
    ]
    number = rng.randrange(needles)
    prefix = f"{rng.getrandbits(40):x}Q"
    position = [position for position, ask in enumerate(asked) if ask == wanted][number]
    ordinal = {1: "1st", 2: "2nd", 3: "3rd"}.get(number + 1, f"{number + 1}th")
    order = f"Prepend {prefix} to the {ordinal} (1 indexed) {wanted}. Do not include any other text in your response."
    messages.append({"role": "user", "content": order})
    return {
        "prompt": json.dumps(messages), "answer": prefix + texts[position], "random_string_to_prepend": prefix,
        "n_needles": needles, "desired_msg_index": 2 * position + 1, "total_messages": len(messages),
        "n_chars": sum(len(message["content"]) for message in messages), "date_added": "04-12-2025",
    }  # fmt: skip
