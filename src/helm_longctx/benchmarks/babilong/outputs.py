"""Reads the tables of outputs that BABILong's script writes.

Source: booydar/babilong at 7a6efee, scripts/run_model_on_babilong.py (the names), babilong/collect_results.py (how the
tables are read).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from helm_longctx.data.tables import read_csv
from helm_longctx.tasks import InputError
from helm_longctx.tasks.outputs import Output, OutputReader, OutputRun

_FILE = re.compile(
    r"(?P<task>qa(?:1?[0-9]|20))_(?P<length>[0-9]+[kM])_instruction_(?P<instruction>yes|no)_examples_(?P<examples>yes|no)"
    r"_post_prompt_(?P<post_prompt>yes|no)(?:_chat_template_(?:yes|no))?(?:_system_prompt_(?:yes|no))?\.csv"
)

_ENTRIES: dict[tuple[str, ...], tuple[str, str]] = {
    ("yes", "yes", "yes"): ("babilong", ""),
    ("yes", "no", "yes"): ("babilong", ",shots=0"),
    ("yes", "no", "no"): ("babilong_instruction", ""),
    ("no", "no", "no"): ("babilong_bare", ""),
}
"""The run entry and its arguments for the parts of a prompt: instruction, examples and post_prompt."""

_ROWS_AT_ONCE = 1000
"""A table has up to 1,000 short rows."""


_NO_VALUE = frozenset(
    (
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    )
)
"""Outputs that the official code scores as empty ones, because pandas takes them for missing values."""


def _read(path: Path, entry: str) -> Iterator[OutputRun]:
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise InputError(
            f"{path}: not a name of BABILong's tables, such as"
            " qa1_4k_instruction_yes_examples_yes_….csv"
        )
    outputs = []
    for number, row in enumerate(read_csv(path, ("target", "question"), _ROWS_AT_ONCE)):
        is_missing = row["output"] in _NO_VALUE
        outputs.append(
            Output(
                id=f"{match['task']}-{number}",
                prediction="" if is_missing else row["output"],
                references=[row["target"]],
                record={"question": row["question"]},
                location=f"{path}: row {number + 1}",
            )
        )
    # The script's folders are RESULTS/ORGANIZATION/MODEL, or RESULTS/MODEL.
    folder = path.resolve().parent
    model = folder.name
    if folder.parent.name != "babilong_evals":
        model = f"{folder.parent.name}/{folder.name}"
    parts = match.group("instruction", "examples", "post_prompt")
    if not entry and parts not in _ENTRIES:
        raise InputError(f"{path}: no run entry has these parts of the prompt")
    name, arguments = _ENTRIES.get(parts, ("", ""))
    if name == "babilong" and not re.fullmatch("qa[1-5]", match["task"]):
        name = "babilong_more"
    own = f"{name}:task={match['task']},length={match['length']}{arguments}"
    yield OutputRun(
        entry=entry or own,
        model=model,
        outputs=outputs,
    )


READER = OutputReader(
    "BABILong's tables of outputs (qa1_4k_instruction_yes_….csv)", _FILE, _read
)
