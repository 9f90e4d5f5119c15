"""LongGenBench's two tasks that the official repository has; the paper's third one, CommonsenseQA, is not in it.

Questions of GSM8K and MMLU are put together. Source: Dominic789654/LongGenBench at 9845864,
longgenbench_GSM8K_openai.py and longgenbench_MMLU_openai.py (`main`, `extract_ans`, `process_question`,
`parse_pred_ans`, `test_answer`). The official code writes answers to a text file and reads this file line by line. The
repository states no license, so its system messages are read from these files.
"""

import ast
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from helm_longctx.data.jsonl import read_object
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    NO_TEMPLATE,
    DataRoot,
    Example,
    InputError,
    JsonLines,
    MetricValues,
    RepositoryFolder,
    ScorerInput,
    Settings,
    Task,
    WebFile,
    read_benchmark,
    task_fields,
)

_REPOSITORY = "Dominic789654/LongGenBench"
_COMMIT = "98458646ced747ca81a2d3023213a00a70cd7694"
FOLDER = "longgenbench_qa"
SUBJECTS = tuple(row["name"] for row in read_table(__package__, "subjects.csv"))
_GSM8K_TOGETHER = 35
_MMLU_TOGETHER = 20
"""Questions in a prompt (run_longgenbench_GSM8K.sh and run_longgenbench_MMLU.sh)."""

GSM8K_PROMPT = "LongGenBench_GSM8K_prompt/LongGenBench_prompt.txt"
MMLU_PROMPT = "LongGenBench_MMLU_prompt/LongGenBench_prompt.json"
PROMPTS = RepositoryFolder(
    _REPOSITORY,
    _COMMIT,
    folder="data",
    tree="ed810cbe0103a0f195b2e54318435712f879c778",
    path=f"{FOLDER}/data",
    files=(
        GSM8K_PROMPT,
        MMLU_PROMPT,
        *(f"MMLU/data/test/{subject}_test.csv" for subject in SUBJECTS),
    ),
)
QUESTIONS = WebFile(
    "https://raw.githubusercontent.com/openai/grade-school-math/3101c7d5072418e28b9008a6636bde82a006892c"
    "/grade_school_math/data/test.jsonl",
    f"{FOLDER}/gsm8k_test.jsonl",
    blob="e4c2ff4942b9a78bd74f04141224c11e28d12dc9",
)
"""The test set in the authors' repository. The hub's data set `gsm8k` was made from it."""


def _script(name: str, blob: str) -> WebFile:
    address = f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/{name}"
    return WebFile(address, f"{FOLDER}/{name}", blob=blob)


GSM8K_SCRIPT = _script(
    "longgenbench_GSM8K_openai.py", "50314be536403d13fd667971c623c2b891b420a9"
)
MMLU_SCRIPT = _script(
    "longgenbench_MMLU_openai.py", "5956cbe1bb65b289d7bce7b30b570ea33af34736"
)
_SYSTEM = "Answer each question step by step"


def _load_gsm8k(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield prompts of 35 consecutive questions."""
    system = _read_system(root / GSM8K_SCRIPT.path)
    examples = (root / PROMPTS.path / GSM8K_PROMPT).read_text(encoding="utf-8")
    rows = JsonLines(root / QUESTIONS.path, {"question": str, "answer": str})
    numbered = iter(enumerate(rows))
    for number in range(task.sample(settings)):
        batch = []
        for _, row in islice(numbered, _GSM8K_TOGETHER):
            batch.append(row)
        if not batch:
            return
        # The examples have the numbers 1 to 8.
        asked = ""
        for index, row in enumerate(batch, 9):
            asked += f"Question_{index}:\n{row['question']}\n"
        user = f"Examples: \n{examples}\n\nFollowing Question: \n{asked}\n"
        yield _example(
            f"gsm8k-{number}", system, user, [row["answer"] for row in batch]
        )


def _load_mmlu(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield a prompt of 20 questions for each subject."""
    system = _read_system(root / MMLU_SCRIPT.path)
    examples = read_object(root / PROMPTS.path / MMLU_PROMPT)
    for subject in islice(SUBJECTS, task.sample(settings)):
        questions, answers = _read_subject(
            root / PROMPTS.path / f"MMLU/data/test/{subject}_test.csv"
        )
        asked = "".join(
            f"Question_{index}:\n{text}\n\n" for index, text in enumerate(questions, 6)
        )
        # First all questions of the worked examples, and then all answers (`batched_prompt`).
        pairs = []
        for part in examples[subject].split("\n\nQ: ")[1:]:
            pairs.append(part.split("\nA: "))
        solved = []
        for half, kind in enumerate(("Question", "Answer")):
            for number, pair in enumerate(pairs, 1):
                solved.append(f"{kind}_{number}:\n{pair[half]}\n\n")
        user = f"Examples: \n{''.join(solved)}Following Question: \n{asked}"
        # `format_subject` puts a space before each word.
        title = "".join(f" {word}" for word in subject.split("_"))
        yield _example(f"mmlu-{subject}", system.format(title), user, answers)


def _example(
    name: str,
    system: str,
    user: str,
    answers: list[str],
) -> Example:
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": user},
    ]
    return Example(
        id=name,
        fields={},
        references=answers,
        source="official",
        messages=messages,
    )


def _read_system(script: Path) -> str:
    """Return the system message in an official script: the only text that begins as it does."""
    try:
        nodes = ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        constants = set()
        for node in nodes:
            if isinstance(node, ast.Constant):
                constants.add(node.value)
        (text,) = [value for value in constants if str(value).startswith(_SYSTEM)]
    except (SyntaxError, ValueError) as error:
        raise InputError(
            f"{script} has no system message; fetch the file again"
        ) from error
    return str(text)


def _read_subject(path: Path) -> tuple[list[str], list[str]]:
    """Return the first questions of a subject and their answers (`format_batch_example`).

    pandas reads the file as in the official code: a column of numbers is printed as pandas prints them, and an empty
    cell or the word None as nan. A question with an empty line becomes several, and the answers move.
    """
    import pandas

    table: Any = pandas.read_csv(path, header=None)
    text = ""
    for row in range(len(table)):
        options = ""
        for option in range(table.shape[1] - 2):
            options += f"({'ABCD'[option]}) {table.iloc[row, option + 1]}"
        text += table.iloc[row, 0] + f"\n{options}\n\n"
    questions = f"{text}\n\n".split("\n\n")
    answers = table.iloc[:_MMLU_TOGETHER, table.shape[1] - 1]
    return questions[:_MMLU_TOGETHER], [str(answer) for answer in answers]


_ANSWER = re.compile(r"(?<=:\n)(.*?)(?=\n\n|$)", re.DOTALL)
_NUMBER = re.compile(r"\d*\.?\d+")
_LETTER = re.compile("A|B|C|D")
_OWN_LETTER = re.compile(r"\b[A-D]\b")


def score_gsm8k(record: ScorerInput) -> MetricValues:
    """Return the share of right answers among the answered questions, and over all questions."""
    answers = find_answers(record["prediction"])
    golds = record["references"]
    asked, right = _read_file(answers, golds, _same_number)
    mended = [_last_number(answer) is not None and _last_number(answer) == _last_number(gold)
              for answer, gold in zip(answers, golds, strict=False)]  # fmt: skip
    scores = {
        "answered": min(len(answers) / len(golds), 1.0),
        "accuracy_of_all": sum(mended) / len(golds),
    }
    # Without an answer, the official file has no line about the prompt.
    if asked:
        return {"accuracy": right / asked, **scores}
    return scores


def score_mmlu(record: ScorerInput) -> MetricValues:
    """Return the share of right answers over all questions.

    The official code asks again for the questions without an answer, and loses the other answers. Here they count, and
    questions without an answer are wrong.
    """
    answers = find_answers(record["prediction"])
    golds = record["references"]
    # The letter in `A_model` counts if the answer has none.
    _, right = _read_file(answers, golds, _has_same_letter)
    pairs = zip(answers, golds, strict=False)
    mended = []
    for answer, gold in pairs:
        mended.append(_OWN_LETTER.findall(answer)[-1:] == [gold])
    return {
        "accuracy": right / len(golds),
        "answered": min(len(answers) / len(golds), 1.0),
        "accuracy_of_all": sum(mended) / len(golds),
    }


def find_answers(text: str) -> list[str]:
    """Return the answers in a text: what stands between a colon at the end of a line and the next empty line."""
    answers = []
    for match in _ANSWER.findall("\n".join(text.split("Answer_"))):
        answers.append(match.strip())
    return answers


def _has_same_letter(answer: str, gold: str) -> bool:
    return bool(_LETTER.findall(answer)[-1] == _LETTER.findall(gold)[-1])


def _read_file(
    answers: Sequence[str],
    golds: Sequence[str],
    compare: Callable[[str, str], bool],
) -> tuple[int, int]:
    """Write the answers as the official file has them, read it, and return the numbers of questions and right answers.

    A line of an answer can look like the start of a part. The file's questions have no such line. They are left out.
    """
    pairs = zip(answers, golds, strict=False)
    text = ""
    for n, (answer, gold) in enumerate(pairs):
        text += f"Question: \nA_model:Q_{n}\n{answer}\nA_gold:\n{gold}\n\n"
    parts: dict[str, str | None] = {"A_model:": None, "A_gold:": None}
    asked = right = 0
    mode = ""

    def count() -> int:
        answer = parts["A_model:"]
        gold = parts["A_gold:"]
        return int(answer is not None and gold is not None and compare(answer, gold))

    # As Python reads a text file, only these ends of lines count: \n, \r and \r\n.
    for line in io.StringIO(text, newline=None):
        start = next(
            (start for start in ("Question:", *parts) if line.startswith(start)), ""
        )
        if start == "Question:":
            right += count()
            asked += 1
        mode = start or mode
        if mode in parts:
            parts[mode] = line if start else f"{parts[mode]}{line}"
    return asked, right + count()


def _same_number(answer: str, gold: str) -> bool:
    # The number in `A_model:Q_7` counts if the answer has none, and commas stay in the right answer.
    return _last_number(answer) == _NUMBER.findall(gold)[-1]


def _last_number(text: str) -> str | None:
    return next(iter(_NUMBER.findall(text.replace(",", ""))[::-1]), None)


_task = partial(Task, template=NO_TEMPLATE, **task_fields(__package__))

_GSM8K = _task(
    name="gsm8k",
    title="GSM8K",
    load=_load_gsm8k,
    score=score_gsm8k,
    num_samples=20,
    sources=lambda length: (PROMPTS, GSM8K_SCRIPT, QUESTIONS),
)
_MMLU = _task(
    name="mmlu",
    title="MMLU",
    load=_load_mmlu,
    score=score_mmlu,
    num_samples=len(SUBJECTS),
    sources=lambda length: (PROMPTS, MMLU_SCRIPT),
)

LONGGENBENCH_QA = read_benchmark(__package__, (_GSM8K, _MMLU))
