"""Write golden.json, which has the official code's scores on the fabricated answers, and its pages of a document.

    python -m tests.golden_makers officeqa --official FOLDER

FOLDER: a checkout of databricks/officeqa at 7b9a3c1. `score_answer` scores with the four tolerances. `process_file` of
corpus_scripts/transform_scripts/transform_files_page_level.py writes the pages; its tables are left out, because pandas
reads their numbers (see the benchmark's README).
"""

from __future__ import annotations

from tests.benchmarks.officeqa.fabricate import (
    PAGES,
    TOLERANCES,
    make_document,
    make_pairs,
)
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

PAIRS = 4000
"""Number of answers."""

OFFICIAL = """
import json, sys
data = json.load(sys.stdin)
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/corpus_scripts/transform_scripts"]
import reward, transform_files_page_level
scores = [[reward.score_answer(gold, answer, tolerance) for tolerance in data["tolerances"]]
          for gold, answer in data["pairs"]]
transform_files_page_level.load_json_file = lambda path: data["document"]
lines = transform_files_page_level.process_file("document")
print("GOLDEN" + json.dumps({"scores": scores, "pages": "\\n".join(lines)}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    document = make_document(PAGES)
    elements = document["document"]["elements"]
    document["document"]["elements"] = [
        element for element in elements if element["type"] != "table"
    ]
    data = {
        "pairs": make_pairs(PAIRS),
        "tolerances": TOLERANCES,
        "document": document,
    }
    golden = run_official(OFFICIAL, official, data=data)
    sums = [sum(scores) for scores in golden["scores"]]
    golden["scores"] = "".join(str(int(total)) for total in sums)
    golden["pages"] = digest([golden["pages"]])
    write_golden("benchmarks/officeqa", golden)


if __name__ == "__main__":
    main()
