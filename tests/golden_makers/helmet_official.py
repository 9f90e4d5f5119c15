"""Run the official HELMET code on a mirror folder; `helmet` starts this module in a process of its own.

The module reads a task as JSON from the standard input and writes `GOLDEN` and a JSON object to the standard output. The checkout's
modules must be on the path, and the working folder must be the mirror. What a machine without a network lacks is
replaced: the hub's data sets and the Llama 2 tokenizer come from the mirror, and a rule stands for the judge of citations.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import datasets
import numpy as np
import transformers
from transformers import PreTrainedTokenizerFast

from helm_longctx.environment import ignore_broken_torchvision

MIRROR = Path.cwd()
read_json = vars(datasets)["load_dataset"]


def load_dataset(path: str, name: str = "", **options: Any) -> Any:
    """Return the mirror's copy of a hub data set; JSON files are read as the official code reads them."""
    if path == "json":
        return read_json(path, **options)
    folder = MIRROR / "hub" / path.replace("/", "__")
    folder = folder / name if (folder / name).is_dir() else folder
    return datasets.DatasetDict(
        {
            file.stem: _read_split(file, options.get("features"))
            for file in sorted(folder.glob("*.jsonl"))
        }
    )


def _read_split(path: Path, features: Any) -> Any:
    rows = [
        json.loads(line)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line
    ]
    split = datasets.Dataset.from_list(rows, features=features)
    if (path.parent / "features.json").exists():
        for column, names in json.loads(
            (path.parent / "features.json").read_text(encoding="utf-8")
        ).items():
            split = split.cast_column(column, datasets.ClassLabel(names=names))
    return split


class Llama:
    """The mirror's tokenizer under the name that the official code asks for; it tokenizes each text only once."""

    @staticmethod
    @functools.cache
    def from_pretrained(name: str) -> Any:
        """Return the tokenizer as a function of a text."""
        folder = MIRROR / "tokenizers" / name.replace("/", "__")
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json")
        )
        return functools.cache(
            lambda text, return_offsets_mapping=True: tokenizer(
                text, return_offsets_mapping=True
            )
        )


def make_it_fast() -> None:
    """Make the official code use one process, memory and no caches; results that depend on random generators must not
    be reused."""
    datasets.disable_caching()
    datasets.disable_progress_bars()
    datasets.config.IN_MEMORY_MAX_SIZE = 1 << 40
    for name in ("map", "filter"):
        method = getattr(datasets.Dataset, name)

        def call(
            self: Any,
            *args: Any,
            _method: Any = method,
            num_proc: int | None = None,
            **options: Any,
        ) -> Any:
            return _method(self, *args, **options)

        setattr(datasets.Dataset, name, call)
    decode = datasets.Dataset.__iter__
    decoded = WeakKeyDictionary[Any, list[dict[str, Any]]]()

    def iterate(self: Any) -> Iterator[dict[str, Any]]:
        if self.format["type"]:  # `map` and `filter` read such rows
            return decode(self)
        return map(
            dict, decoded.get(self) or decoded.setdefault(self, list(decode(self)))
        )

    datasets.Dataset.__iter__ = iterate


def prompts(case: dict[str, Any]) -> dict[str, Any]:
    """Return digests of a case's prompts in the order in which eval.py makes them."""
    loaded = _load(case)
    rows = loaded["data"]
    texts = {
        "chat": (loaded["user_template"].format(**row) for row in rows),
        "completion": (loaded["prompt_template"].format(**row) for row in rows),
    }
    if not case["dataset"].startswith(
        "alce"
    ):  # eval_alce.py reads these answers from the rows
        texts["references"] = (
            json.dumps(_listed(row["answer"]), ensure_ascii=False) for row in rows
        )
    return {
        "count": len(rows),
        **{name: _digest(task_texts) for name, task_texts in texts.items()},
    }


def _load(case: dict[str, Any]) -> dict[str, Any]:
    import data

    settings = SimpleNamespace(
        **{name: case[name] for name in ("shots", "seed", "max_test_samples")}
    )
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    return data.load_data(
        settings, case["dataset"], case["test_files"], case["demo_files"]
    )


def _listed(answer: str | list[str]) -> list[str]:
    return [answer] if isinstance(answer, str) else answer


def _digest(texts: Iterator[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()


def scores(
    cases: dict[str, dict[str, Any]], records: list[dict[str, Any]]
) -> list[dict[str, float]]:
    """Return the official scores of outputs.

    Args:
        cases: a case of every task that the records name; its loader brings its metrics.
        records: task, prediction, references, and qrels where documents are ranked.
    """
    import data

    @functools.cache
    def post_process_of(task: str) -> Any:
        return _load(cases[task])["post_process"]

    results = []
    for record in records:
        row = {"answer": record["references"]}
        post_process = None
        if "qrels" in record:  # the metric's cutoffs depend on the number of documents
            ctxs = [
                {"id": name, "label": label, "text": ""}
                for name, label in record["qrels"].items()
            ]
            Path("ranked.jsonl").write_text(
                json.dumps({"qid": "q", "query": "", "ctxs": ctxs}) + "\n"
            )
            ranked = data.load_msmarco_rerank("ranked.jsonl", "ranked.jsonl")
            row = ranked["data"][0]
            post_process = ranked["post_process"]
        metrics, _ = (post_process or post_process_of(record["task"]))(
            {"output": record["prediction"]}, row
        )
        results.append({name: float(value) for name, value in metrics.items()})
    return results


def citations(records: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Return the scores of eval_alce.py for answers with citations, as fractions of 1; what it skips is absent."""
    import eval_alce

    remove = eval_alce.remove_citations
    calls = []
    eval_alce.remove_citations = lambda text: calls.append(text) or remove(text)
    eval_alce.autoais_model = "the rule below"
    eval_alce._run_nli_autoais = lambda *pair: int(
        hashlib.sha256("|".join(pair).encode()).digest()[0] % 5 < 3
    )
    return [_cited(eval_alce.main, record, calls) for record in records]


def _cited(evaluate: Any, record: dict[str, Any], calls: list[str]) -> dict[str, float]:
    listed = "answers" in record
    path = Path("qampari.json" if listed else "asqa.json")
    path.write_text(json.dumps({"data": [{**record, "output": record["prediction"]}]}))
    calls.clear()
    evaluate(["--f", str(path), "--citations", "--no_rouge"])
    scores = json.loads(Path(f"{path}.score").read_text())
    judged = (
        len(calls) > 1
    )  # the first call is for the whole answer, the others are for its sentences
    left_out = {"citation_positions"} | ({"str_em", "str_hit"} if listed else set())
    left_out |= set() if judged else {"citation_rec", "citation_prec"}
    whole = {"length", "num_preds"}
    return {
        name: value / (1 if name in whole else 100)
        for name, value in scores.items()
        if name not in left_out
    }


def main() -> None:
    """Read the task and print the results."""
    vars(datasets)["load_dataset"] = load_dataset
    transformers.AutoTokenizer = Llama
    ignore_broken_torchvision()
    make_it_fast()
    task = json.load(sys.stdin)
    golden: dict[str, Any] = {}
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        for name, case in task["prompts"].items():
            print(name, file=sys.stderr)
            golden.setdefault("prompts", {})[name] = prompts(case)
        golden["scores"] = scores(task["scored"], task["records"])
        golden["citations"] = citations(task["citations"])
    print("GOLDEN" + json.dumps(golden))


if __name__ == "__main__":
    main()
