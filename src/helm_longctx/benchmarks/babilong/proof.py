"""BABILong's published outputs of eight models, and the accuracies that its notebooks and a table print of them.

Source: booydar/babilong, babilong_evals at 94a73a3 (branch predictions_06_2024) and a60bbf3 (branch smollm-eval),
babilong_results/all_results.csv at a60bbf3, and four notebooks at 7a6efee.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from helm_longctx.benchmarks.babilong.outputs import READER
from helm_longctx.benchmarks.babilong.tasks import BABILONG, LABELS, MAIN, score_label
from helm_longctx.tasks import (
    DataRoot,
    InputError,
    RepositoryFolder,
    ScorerInput,
    WebFile,
)
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.outputs import OutputRun
from helm_longctx.tasks.proofs import (
    OutputScores,
    PrintedScore,
    Proof,
    Reason,
    ScoredOutputs,
)

_REPOSITORY = "booydar/babilong"
_OF_NOTEBOOKS = "94a73a3654388649c5bf37d104eb4509308a1379"
_OF_TABLE = "a60bbf35754896e61e8c809444596fbbfae30567"
_MAIN_COMMIT = "7a6efee29f5cac03c3c410e6799c80fd2ffe3610"
FOLDER = "proof/babilong"

_LENGTHS = ("0k", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k")

_NOTEBOOKS = {
    "eval_LongAlpaca-13B": "08aafec02b2b2364d4ce811977fd844870f2b786",
    "eval_Mistral-7B-Instruct-v0.2": "668d092dcac879a50a5cc7c3ea7d36c3495a1330",
    "eval_Mixtral-8x7B-Instruct-v0.1": "bb409c35060c3774f424c92d1b7ef7a79d933394",
    "eval_activation-beacon_models": "ebd71c4f5874b3d852e25702d649a571680cb456",
}
"""The notebooks that print accuracies of published outputs, with git's ids of their content."""

_LENGTHS_OF_MODELS = {
    "Yukang/LongAlpaca-13B": 7,
    "mistralai/Mistral-7B-Instruct-v0.2": 7,
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 7,
    "namespace-Pt/activation-beacon-llama2-7b-chat": 9,
    "namespace-Pt/activation-beacon-mistral-7b": 9,
}
"""The models of the notebooks, with the number of `_LENGTHS` that are printed."""

FORMS = (
    "instruction_yes_examples_yes_post_prompt_yes",
    "instruction_no_examples_no_post_prompt_no",
)
"""The parts of prompts of which the notebooks print accuracies, as the names of files have them."""

_FIRST_TABLES = {
    "microsoft/Phi-3-mini-128k-instruct": f"qa1_0k_{FORMS[0]}.csv",
    "HuggingFaceTB/SmolLM2-360M": f"qa1_0k_{FORMS[1]}_chat_template_no_system_prompt_no.csv",
    "HuggingFaceTB/SmolLM2-360M-Instruct": f"qa1_0k_{FORMS[0]}_chat_template_no_system_prompt_no.csv",
}
"""A file of outputs of each model of all_results.csv. If these exist, the folder is there."""

_CSV = f"{FOLDER}/all_results.csv"


def _raw(commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{_REPOSITORY}/{commit}/{path}"


def _names_of_notebooks() -> Iterator[str]:
    for model, count in _LENGTHS_OF_MODELS.items():
        for form in FORMS:
            for task in MAIN:
                for length in _LENGTHS[:count]:
                    yield f"{model}/{task}_{length}_{form}.csv"


_SOURCES = (
    RepositoryFolder(
        repo=_REPOSITORY,
        commit=_OF_NOTEBOOKS,
        folder="babilong_evals",
        tree="cb2640eb79e543346228fedc7cf27c3b757e75ee",
        path=f"{FOLDER}/94a73a3/babilong_evals",
        files=tuple(_names_of_notebooks()),
    ),
    RepositoryFolder(
        repo=_REPOSITORY,
        commit=_OF_TABLE,
        folder="babilong_evals",
        tree="b9e1e32964857bd2949271346218d6d9a220978b",
        path=f"{FOLDER}/a60bbf3/babilong_evals",
        files=tuple(f"{model}/{name}" for model, name in _FIRST_TABLES.items()),
    ),
    WebFile(
        _raw(_OF_TABLE, "babilong_results/all_results.csv"),
        _CSV,
        blob="e1434b48521025da6f7c5bb4cba7ce335fa1c082",
    ),
    *(
        WebFile(
            _raw(_MAIN_COMMIT, f"notebooks/{name}.ipynb"),
            f"{FOLDER}/notebooks/{name}.ipynb",
            blob,
        )
        for name, blob in _NOTEBOOKS.items()
    ),
)


def _read_outputs(root: DataRoot, path: str) -> ScoredOutputs:
    """Read a table of outputs, or raise an `InputError`."""
    (run,) = READER.read(root / path, "")
    assert isinstance(run, OutputRun)
    (task,) = parse_entry([BABILONG], run.entry).tasks
    records = []
    for output in run.outputs:
        scored = {"prediction": output.prediction, "references": output.references}
        records.append({**output.record, **scored})
    return ScoredOutputs(task, records)


def _score_before(record: ScorerInput, task: str) -> float:
    """Score an output as the official code did when the notebooks were run.

    Labels in the question were looked for without ignoring case, so names in the questions of qa5 counted as second
    answers (babilong/metrics.py at 1e7893a). The next commit of the file, 58e5d20, corrects it.
    """
    # A label in lower case cannot match where every capital letter is replaced.
    question = re.sub("[A-Z]", "\0", record["question"])
    return score_label({**record, "question": question}, LABELS[task])["accuracy"]


_REASON = (
    "The notebook was run with the official code before 58e5d20, which counted names in"
    " the question as second answers."
)


def _read_cells(root: DataRoot) -> Iterator[PrintedScore]:
    """Yield the accuracies that the notebooks print, and those of all_results.csv."""
    for name in _NOTEBOOKS:
        path = f"{FOLDER}/notebooks/{name}.ipynb"
        if root.has(path):
            yield from _read_notebook(
                json.loads((root / path).read_text(encoding="utf-8"))
            )
    if root.has(_CSV):
        with (root / _CSV).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield from _read_row(root, row)


def _read_notebook(notebook: Mapping[str, object]) -> Iterator[PrintedScore]:
    model = form = ""
    cells: Sequence[Mapping[str, object]] = notebook["cells"]  # type: ignore[assignment]
    for cell in cells:
        source = "".join(cell["source"])  # type: ignore[arg-type]
        model = (re.findall(r"^model_name = '(.+)'", source, re.MULTILINE) or [model])[
            -1
        ]
        form = (re.findall(r"^prompt_name = '(.+)'", source, re.MULTILINE) or [form])[
            -1
        ]
        for output in cell.get("outputs", ()):  # type: ignore[attr-defined]
            lines = "".join(output.get("text", ())).strip().splitlines()
            is_table = all(re.fullmatch(r"\d+( \d+)+ ?", line) for line in lines)
            if is_table and len(lines) == len(MAIN):
                for task, line in zip(MAIN, lines, strict=True):
                    yield from _read_line(model, form, task, line.split())


def _read_line(
    model: str,
    form: str,
    task: str,
    texts: Sequence[str],
) -> Iterator[PrintedScore]:
    for length, text in zip(_LENGTHS, texts, strict=False):
        path = f"{FOLDER}/94a73a3/babilong_evals/{model}/{task}_{length}_{form}.csv"
        before = partial(
            OutputScores.percent, path=path, scorer=partial(_score_before, task=task)
        )
        yield PrintedScore(
            model=model,
            column=f"{task} {length}" + ("" if form == FORMS[0] else ", bare prompt"),
            text=text,
            compute=partial(OutputScores.percent, path=path),
            reason=Reason(_REASON, before),
        )


def _read_row(root: DataRoot, row: Mapping[str, str]) -> Iterator[PrintedScore]:
    model = row["model_name"]
    task = row["task"]
    texts = {}
    for name, text in row.items():
        if name not in ("model_name", "task"):
            texts[name] = text
    for length, text in texts.items():
        if task in MAIN:
            compute = partial(
                _best_form,
                model=model,
                task=task,
                length=length,
                lengths=[*texts],
            )
        else:
            compute = partial(
                _mean_of_tasks,
                model=model,
                length=length,
                lengths=[*texts],
            )
        yield PrintedScore(
            model=model,
            column=f"{task} {length}",
            text=text,
            compute=compute,
        )


def _best_form(
    scores: OutputScores,
    model: str,
    task: str,
    length: str,
    lengths: Sequence[str],
) -> float:
    """Return the accuracy in the form of the prompt that has the highest mean over the lengths of the table."""
    folder = f"{FOLDER}/a60bbf3/babilong_evals/{model}"
    start = f"{task}_{length}_"
    paths = sorted((scores.root / folder).glob(f"{start}*.csv"))
    if not paths:
        raise InputError(f"{folder} has no outputs of {task} at {length}")
    means = {}
    for path in paths:
        form = path.name.removeprefix(start)
        means[form] = scores.mean(
            [f"{folder}/{task}_{label}_{form}" for label in lengths]
        )
    best = max(means, key=lambda form: means[form])
    return scores.percent(f"{folder}/{start}{best}")


def _mean_of_tasks(
    scores: OutputScores,
    model: str,
    length: str,
    lengths: Sequence[str],
) -> float:
    """Return the mean accuracy of the five tasks, each in its best form."""
    return sum(_best_form(scores, model, task, length, lengths) for task in MAIN) / len(
        MAIN
    )


PROOF = Proof(
    title="outputs of eight models, the authors' notebooks and their table all_results.csv",
    page=f"https://github.com/{_REPOSITORY}/tree/{_OF_NOTEBOOKS}",
    sources=_SOURCES,
    read_cells=_read_cells,
    read_outputs=_read_outputs,
    license="Apache-2.0, as the repository",
)
