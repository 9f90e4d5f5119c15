"""Compare samples of the real files with the official scripts' samples.

    python -m tests.golden_makers oneruler_samples --official FOLDER [--languages CODE,CODE]

FOLDER: a checkout of mungg/OneRuler at a3fe6af. The files are copied from it into a mirror, where each is checked against
its SHA-256. As in golden.json, a rule stands for Stanza's sentences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote

from helm_longctx.benchmarks.oneruler.tasks import (
    LANGUAGES,
    LISTS,
    NEEDLES,
    NOUNS,
    ONERULER,
    WITHOUT_MODEL,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.counting import make_counter
from helm_longctx.tasks.task import Settings
from tests.benchmarks.oneruler.fabricate import split_sentences, tokenizer
from tests.golden_makers.oneruler import LENGTH, digest_row, run_scripts

SAMPLES = 2


def make_mirror(official: Path, root: Path) -> int:
    """Copy the files of all languages, and return their number."""
    files = {NOUNS, *(file for language in LANGUAGES for file in language[2:] if file)}
    for file in files:
        source = official / unquote(
            file.url.partition("a3fe6af862dc4b30794afc0a8f3d4f60758cecfa/")[2]
        )
        if hashlib.sha256(source.read_bytes()).hexdigest() != file.sha256:
            raise SystemExit(f"{source} has another SHA-256")
        (root / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / file.path)
    for language in LANGUAGES:
        if language.code not in WITHOUT_MODEL:
            book = re.sub(
                r"\s+", " ", (root / language.book.path).read_text(encoding="utf-8")
            )
            path = root / f"oneruler/sentences/{language.code}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                json.dumps(split_sentences(book), ensure_ascii=False), encoding="utf-8"
            )
    return len(files)


def main() -> None:
    """Compare all tasks in all languages, and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--languages", default=",".join(language.code for language in LANGUAGES)
    )
    arguments = parser.parse_args()
    official = arguments.official.resolve()
    languages = arguments.languages.split(",")
    counter = make_counter(tokenizer())
    equal = 0
    count = 0
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        print(f"{make_mirror(official, root)} files have their SHA-256")
        data = {
            "languages": languages,
            "tasks": [*NEEDLES, *LISTS],
            "length": LENGTH,
            "samples": SAMPLES,
            "cases": [],
        }
        for sample, expected in run_scripts(official, root, data)["samples"].items():
            task = ONERULER.task(sample.replace(" ", "_").removeprefix("en_"))
            settings = Settings(8192, num_samples=SAMPLES, counter=counter)
            examples = task.load(task, settings, DataRoot(root, mirror=True))
            digests = [
                digest_row(example.messages[0]["content"], example.references)
                for example in examples
            ]
            count += len(expected)
            equal += sum(a == b for a, b in zip(digests, expected, strict=True))
            if digests != expected:
                print(f"  differs: {sample}")
    print(f"{equal} of {count} samples are equal")


if __name__ == "__main__":
    main()
