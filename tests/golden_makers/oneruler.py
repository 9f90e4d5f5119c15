"""Write golden.json, which has the official scripts' samples and scores of the fabricated files.

    python -m tests.golden_makers oneruler --official FOLDER

FOLDER: a checkout of mungg/OneRuler at a3fe6af. The scripts need transformers, pandas, tenacity and wonderwords. Stanza,
which downloads a model of each language, is replaced by a rule that the test shares.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.oneruler.tasks import LANGUAGES, LISTS, NEEDLES, NOUNS
from tests.benchmarks.oneruler.fabricate import build_oneruler, score_cases, tokenizer
from tests.golden_makers.running import parse_folders, run_official, write_golden

LENGTH = 8000
SAMPLES = 3

OFFICIAL = """
import contextlib, io, json, os, runpy, sys, types
from pathlib import Path
import yaml

sys.path[:0] = [str(Path("eval").resolve()), str(Path("synthetic").resolve())]
from tests.benchmarks.oneruler.fabricate import split_sentences
from tests.golden_makers.oneruler import digest_row

stanza = types.ModuleType("stanza")
def download(lang, model_dir):
    if lang in ("st", "sw"):
        raise ValueError("Unsupported language")
def pipeline(lang, processors):
    class Found:
        def __init__(self, book):
            self.sentences = [types.SimpleNamespace(text=each) for each in split_sentences(book)]
    return Found
stanza.download, stanza.Pipeline = download, pipeline
sys.modules["stanza"] = stanza
os.environ["STANZA_RESOURCES_DIR"] = "stanza"

data = json.load(sys.stdin)
tasks = yaml.safe_load(Path("../config/synthetic.yaml").read_text())
golden = {"samples": {}, "scores": []}
for code in data["languages"]:
    for task in data["tasks"]:
        arguments = " ".join(f"--{key} {value}" for key, value in tasks[task]["args"].items())
        sys.argv = f"x --save_dir out/{code} --save_name {task} --tokenizer_path tokenizer --tokenizer_type hf --lang {code}".split()
        sys.argv += f"--max_seq_length {data['length']} --tokens_to_generate 30 --num_samples {data['samples']}".split()
        sys.argv += arguments.split()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_path(f"synthetic/{tasks[task]['task']}.py", run_name="__main__")
        rows = map(json.loads, Path(f"out/{code}/{task}/validation.jsonl").read_text(encoding="utf-8").splitlines())
        golden["samples"][f"{code} {task}"] = [digest_row(row["input"], row["outputs"]) for row in rows]
import evaluate
for kind, code, expected, output in data["cases"]:
    row = {"index": 1, "outputs": expected, "response-m": output}
    scores = ""
    # Only for names with "deepseek" the official code scores what is in <Answer>.
    for model in ("m", "deepseek"):
        Path("case.jsonl").write_text(json.dumps(row) + "\\n")
        with contextlib.redirect_stdout(io.StringIO()):
            scores += str(int(evaluate.evaluate_jsonl("case.jsonl", kind, code, model)["avg_acc"]))
    golden["scores"].append(scores)
golden["scores"] = " ".join(golden["scores"])
print("GOLDEN" + json.dumps(golden))
"""


def digest_row(prompt: str, answers: list[str]) -> str:
    """Return a hash of a prompt and its answers."""
    return hashlib.sha256(json.dumps([prompt, answers]).encode()).hexdigest()[:16]


def place_files(root: Path, data: Path) -> None:
    """Copy our files to the places of the official repository."""
    places = {root / NOUNS.path: "vocab/100_noun_list_translated.tsv"}
    for language in LANGUAGES:
        places[root / language.book.path] = f"books/{language.code}/book.txt"
        places[root / language.niah.path] = f"prompt/{language.code}/niah.txt"
        places[root / language.cwe.path] = f"prompt/{language.code}/cwe.txt"
        if language.words:
            places[root / language.words.path] = (
                f"vocab/dictionaries/{language.title}/{language.title}.csv"
            )
    for source, target in places.items():
        (data / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, data / target)


def run_scripts(official: Path, root: Path, data: Mapping[str, object]) -> Any:
    """Run the official scripts on the files under a data root.

    Args:
        data: the languages, the tasks, the length in tokens, the number of samples, and the cases for the metrics.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "OneRuler"
        for part in ("synthetic", "eval"):
            shutil.copytree(official / "OneRuler" / part, folder / part)
        shutil.copy(official / "OneRuler/tokenizer.py", folder)
        shutil.copytree(official / "config", Path(name) / "config")
        place_files(root, folder / "data")
        (folder / "tokenizer").mkdir()
        tokenizer().save(str(folder / "tokenizer/tokenizer.json"))
        (folder / "tokenizer/tokenizer_config.json").write_text(
            '{"tokenizer_class": "PreTrainedTokenizerFast"}'
        )
        return run_official(OFFICIAL, data=data, folder=folder)


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    languages = [language.code for language in LANGUAGES]
    data = {
        "languages": languages,
        "tasks": [*NEEDLES, *LISTS],
        "length": LENGTH,
        "samples": SAMPLES,
    }
    with tempfile.TemporaryDirectory() as name:
        golden = run_scripts(
            official, build_oneruler(Path(name)), {**data, "cases": score_cases()}
        )
    write_golden("benchmarks/oneruler", golden, indent=0)


if __name__ == "__main__":
    main()
