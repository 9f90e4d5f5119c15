"""∞Bench's published outputs of seven models, and the table of its README.

Source: OpenBMB/InfiniteBench at 88b3daa, results and README.md. The table is the one of the scorer of 2024-06.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from helm_longctx.benchmarks.infinite_bench.outputs import read_file
from helm_longctx.benchmarks.infinite_bench.tasks import (
    DEBUG_MARKS,
    DEBUG_STARTS,
    INFINITE_BENCH,
    ROWS,
)
from helm_longctx.tasks import (
    DataRoot,
    RepositoryFolder,
    ScorerInput,
    Settings,
    WebFile,
)
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.proofs import (
    OutputScores,
    PrintedScore,
    Proof,
    Reason,
    ScoredOutputs,
)
from helm_longctx.tasks.words import follows_start, tidy

_REPOSITORY = "OpenBMB/InfiniteBench"
_COMMIT = "88b3daa6989da2fbe0077170d7a3c84c25d5ae58"
FOLDER = "proof/infinite_bench/results"
TABLE = "proof/infinite_bench/README.md"
SCORER = "2024-06"

MODELS = {
    "gpt4": "GPT-4",
    "yarn-mistral": "YaRN-Mistral-7B",
    "kimi": "Kimi-Chat",
    "claude2": "Claude 2",
    "yi-6b-200k": "Yi-6B-200K",
    "yi-34b-200k": "Yi-34B-200K",
    "chatglm3": "Chatglm3-6B-128K",
}
"""The models of the printed table in its order, by the names of their folders."""

_OUTPUTS = RepositoryFolder(
    repo=_REPOSITORY,
    commit=_COMMIT,
    folder="results",
    tree="07e0587280edc4224c1b6180ca9276a2dab85e44",
    path=FOLDER,
    files=tuple(f"{model}/preds_{task}.jsonl" for model, task in product(MODELS, ROWS)),
    # Snapshots of the repository without files of 4 MB and more lack it.
    blobs={
        "yarn-mistral/preds_math_calc.jsonl": "b3d253a8443f1b19e27b4a15b6b74715e0e7387f"
    },
)
_README = WebFile(
    f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/README.md",
    TABLE,
    blob="d76102012bc2b7c5f5e600e7a43f7877f2f48550",
)


def _read_outputs(
    root: DataRoot,
    path: str,
    answers: Sequence[str] = ("ground_truth", "label"),
) -> ScoredOutputs:
    """Read a file of outputs for the scorer of the printed table, or raise an `InputError`."""
    # No entry has Kimi's prompts, but its outputs are scored in the same way.
    name = path.rpartition("/preds_")[2].removesuffix(".jsonl")
    if "/kimi/" in path:
        entry = f"infinite_bench_claude:task={name}"
    else:
        entry = ""
    run = read_file(root / path, entry, answers)
    (task,) = parse_entry([INFINITE_BENCH], run.entry).tasks
    fields = task.record_fields(Settings(None, scorer=SCORER))
    records = []
    for output in run.outputs:
        record = {
            "prediction": output.prediction,
            "references": output.references,
            **fields,
        }
        records.append(record)
    return ScoredOutputs(task, records)


def _score_before_may(record: ScorerInput) -> float:
    """Score an answer of `code_debug` as the official code before e60e8dc (2024-05-30) did."""
    name, letter = record["references"]
    output = record["prediction"]
    # White space before the letter was not removed.
    if output[:2] in (f"{letter}.", f"{letter}:"):
        return 1.0
    text = tidy(DEBUG_MARKS, output.strip())
    return float(bool(follows_start(text, DEBUG_STARTS, (letter, name))))


_REASONS = {
    ("yarn-mistral", "code_debug"): Reason(
        "The official code reads an answer after white space only since e60e8dc"
        " (2024-05-30), after the table was made.",
        partial(
            OutputScores.percent,
            path=f"{FOLDER}/yarn-mistral/preds_code_debug.jsonl",
            scorer=_score_before_may,
        ),
    ),
    ("yarn-mistral", "longbook_sum_eng"): Reason(
        "The file has two answers for each book, and the table was made with the column `label`.",
        partial(
            OutputScores.percent,
            path=f"{FOLDER}/yarn-mistral/preds_longbook_sum_eng.jsonl",
            read=partial(_read_outputs, answers=("label",)),
        ),
    ),
    ("yarn-mistral", "longbook_qa_chn"): Reason(
        "The last line of the file is no JSON, so that the official code ends with an"
        " error. No version of the file in the repository gives the printed score."
    ),
}
"""Why printed scores differ from the outputs, by the model's folder and the task."""


def _read_cells(root: DataRoot) -> Iterator[PrintedScore]:
    """Yield the cells of the table in README.md."""
    names = {}
    for name, row in ROWS.items():
        names[row.title] = name
    for line in (root / TABLE).read_text(encoding="utf-8").splitlines():
        title, *texts = (part.strip() for part in line.strip().strip("|").split("|"))
        if title not in names or len(texts) != len(MODELS):
            continue
        for folder, text in zip(MODELS, texts, strict=True):
            path = f"{FOLDER}/{folder}/preds_{names[title]}.jsonl"
            yield PrintedScore(
                model=MODELS[folder],
                column=title,
                text=text,
                compute=partial(OutputScores.percent, path=path),
                reason=_REASONS.get((folder, names[title])),
            )


PROOF = Proof(
    title="outputs of seven models and the table of the authors' README",
    page=f"https://github.com/{_REPOSITORY}/tree/{_COMMIT}",
    sources=(_OUTPUTS, _README),
    read_cells=_read_cells,
    read_outputs=_read_outputs,
    license="MIT, as the repository",
)
