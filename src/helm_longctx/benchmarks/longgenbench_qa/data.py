"""Puts questions of GSM8K and MMLU together.

Source: Dominic789654/LongGenBench at 9845864, longgenbench_GSM8K_openai.py and longgenbench_MMLU_openai.py (`main` and
`process_question`). The repository states no license, so its system messages are read from these files.
"""

import ast
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from helm_longctx.data.jsonl import JsonLines, read_object
from helm_longctx.tasks import DataRoot, Example, InputError, RepositoryFolder, Settings, Task, WebFile

REPOSITORY, COMMIT = "Dominic789654/LongGenBench", "98458646ced747ca81a2d3023213a00a70cd7694"
FOLDER = "longgenbench_qa"
SUBJECTS = tuple(
    """
    abstract_algebra anatomy astronomy business_ethics clinical_knowledge college_biology college_chemistry
    college_computer_science college_mathematics college_medicine college_physics computer_security conceptual_physics
    econometrics electrical_engineering elementary_mathematics formal_logic global_facts high_school_biology
    high_school_chemistry high_school_computer_science high_school_european_history high_school_geography
    high_school_government_and_politics high_school_macroeconomics high_school_mathematics high_school_microeconomics
    high_school_physics high_school_psychology high_school_statistics high_school_us_history high_school_world_history
    human_aging human_sexuality international_law jurisprudence logical_fallacies machine_learning management marketing
    medical_genetics miscellaneous moral_disputes moral_scenarios nutrition philosophy prehistory
    professional_accounting professional_law professional_medicine professional_psychology public_relations
    security_studies sociology us_foreign_policy virology world_religions
    """.split()  # noqa: SIM905  # longer than a page as a list
)
GSM8K_TOGETHER, MMLU_TOGETHER = 35, 20
"""Questions in a prompt (run_longgenbench_GSM8K.sh and run_longgenbench_MMLU.sh)."""

GSM8K_PROMPT = "LongGenBench_GSM8K_prompt/LongGenBench_prompt.txt"
MMLU_PROMPT = "LongGenBench_MMLU_prompt/LongGenBench_prompt.json"
PROMPTS = RepositoryFolder(
    REPOSITORY,
    COMMIT,
    folder="data",
    tree="ed810cbe0103a0f195b2e54318435712f879c778",
    path=f"{FOLDER}/data",
    files=(GSM8K_PROMPT, MMLU_PROMPT, *(f"MMLU/data/test/{subject}_test.csv" for subject in SUBJECTS)),
)
QUESTIONS = WebFile(
    "https://raw.githubusercontent.com/openai/grade-school-math/3101c7d5072418e28b9008a6636bde82a006892c"
    "/grade_school_math/data/test.jsonl",
    f"{FOLDER}/gsm8k_test.jsonl",
    blob="e4c2ff4942b9a78bd74f04141224c11e28d12dc9",
)
"""The test set in the authors' repository, which the hub's data set `gsm8k` was made from."""


def _script(name: str, blob: str) -> WebFile:
    address = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/{name}"
    return WebFile(address, f"{FOLDER}/{name}", blob=blob)


GSM8K_SCRIPT = _script("longgenbench_GSM8K_openai.py", "50314be536403d13fd667971c623c2b891b420a9")
MMLU_SCRIPT = _script("longgenbench_MMLU_openai.py", "5956cbe1bb65b289d7bce7b30b570ea33af34736")
_SYSTEM = "Answer each question step by step"
"""How the system messages begin."""


def load_gsm8k(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield prompts of 35 consecutive questions."""
    system = _read_system(root / GSM8K_SCRIPT.path)
    examples = (root / PROMPTS.path / GSM8K_PROMPT).read_text(encoding="utf-8")
    rows = JsonLines(root / QUESTIONS.path, {"question": str, "answer": str})
    numbered = iter(enumerate(rows))
    for number in range(task.sample(settings)):
        batch = [row for _, row in islice(numbered, GSM8K_TOGETHER)]
        if not batch:
            return
        # The examples have the numbers 1 to 8.
        asked = "".join(f"Question_{place}:\n{row['question']}\n" for place, row in enumerate(batch, 9))
        user = f"Examples: \n{examples}\n\nFollowing Question: \n{asked}\n"
        yield _example(f"gsm8k-{number}", system, user, [row["answer"] for row in batch])


def load_mmlu(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield a prompt of 20 questions for each subject."""
    system = _read_system(root / MMLU_SCRIPT.path)
    examples = read_object(root / PROMPTS.path / MMLU_PROMPT)
    for subject in islice(SUBJECTS, task.sample(settings)):
        questions, answers = _read_subject(root / PROMPTS.path / f"MMLU/data/test/{subject}_test.csv")
        asked = "".join(f"Question_{place}:\n{text}\n\n" for place, text in enumerate(questions, 6))
        # First all questions of the worked examples, and then all answers (`batched_prompt`).
        pairs = [part.split("\nA: ") for part in examples[subject].split("\n\nQ: ")[1:]]
        solved = [
            f"{kind}_{number}:\n{pair[place]}\n\n"
            for place, kind in enumerate(("Question", "Answer"))
            for number, pair in enumerate(pairs, 1)
        ]
        user = f"Examples: \n{''.join(solved)}Following Question: \n{asked}"
        # `format_subject` puts a space before each word.
        title = "".join(f" {word}" for word in subject.split("_"))
        yield _example(f"mmlu-{subject}", system.format(title), user, answers)


def _example(name: str, system: str, user: str, answers: list[str]) -> Example:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return Example(id=name, fields={}, references=answers, source="official", messages=messages)


def _read_system(script: Path) -> str:
    """Return the system message in an official script: the only text that begins as it does."""
    try:
        nodes = ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        (text,) = {n.value for n in nodes if isinstance(n, ast.Constant) and str(n.value).startswith(_SYSTEM)}
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{script} has no system message; fetch the file again") from error
    return str(text)


def _read_subject(path: Path) -> tuple[list[str], list[str]]:
    """Return the first questions of a subject and their answers (`format_batch_example`).

    pandas reads the file as in the official code: a column of numbers is printed as pandas prints them, and an empty
    cell or the word None as nan. A question with an empty line becomes several, which moves the answers.
    """
    import pandas

    table: Any = pandas.read_csv(path, header=None)
    text = "".join(
        table.iloc[row, 0]
        + "\n"
        + "".join(f"({'ABCD'[option]}) {table.iloc[row, option + 1]}" for option in range(table.shape[1] - 2))
        + "\n\n"
        for row in range(len(table))
    )
    questions = f"{text}\n\n".split("\n\n")
    return questions[:MMLU_TOGETHER], [str(answer) for answer in table.iloc[:MMLU_TOGETHER, table.shape[1] - 1]]
