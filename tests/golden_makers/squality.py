"""Write golden.json, which has the official code's inputs and scores on the fabricated stories.

    python -m tests.golden_makers squality --official FOLDER

FOLDER: a checkout of nyu-mll/SQuALITY at dc08d4f. Its metric, and the line of its script that joins an input, run in a
process of their own.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

START = """
import json, re, sys
from pathlib import Path
from types import ModuleType, SimpleNamespace as Space
from rouge_score import rouge_scorer
datasets = ModuleType("datasets")
datasets.Metric = object
datasets.utils = Space(file_utils=Space(add_start_docstrings=lambda *texts: lambda cls: cls))
sys.modules["datasets"] = datasets
sys.path.insert(0, "utils/metrics/multi_rouge")
import multi_rouge
script = Path("run_summarization.py").read_text(encoding="utf-8")
line = re.search(r"^ +(inputs = .*sep_tok, inp, sep_tok, qst.*)$", script, re.MULTILINE)[1]

def join(rows):
    pairs = [(row["document"], question["question_text"]) for row in rows for question in row["questions"]]
    names = {"prefix": "", "sep_tok": "", "all_inputs": [d for d, _ in pairs], "all_questions": [q for _, q in pairs]}
    exec(line, names)
    return names["inputs"]

def measure(references, output):
    # The official code strips both; it also puts line breaks between sentences, which these kinds of ROUGE ignore.
    found = multi_rouge.Rouge()._compute([output.strip()], [[text.strip() for text in references]],
                                         ["rouge1", "rouge2", "rougeL"], False, True)
    return [found[name][0].fmeasure if name in found else 0.0 for name in ("rouge1", "rouge2", "rougeL")]
"""

CODE = """
from tests.benchmarks.squality.fabricate import records, rows
from tests.support.official import digest
print("GOLDEN" + json.dumps({"inputs": digest(join(rows())), "scores": [measure(*record) for record in records()]}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    write_golden("benchmarks/squality", run_official(START + CODE, folder=official))


if __name__ == "__main__":
    main()
