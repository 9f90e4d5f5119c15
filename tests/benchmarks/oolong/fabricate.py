"""Fabricates OOLONG's rows, the same on every machine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.oolong.data import (
    DATASET,
    LABELLED_TEXT,
    TEXT,
    find_real_rows,
    find_synth_rows,
)
from helm_longctx.benchmarks.oolong.data import LABELS as PAIR_LABELS
from helm_longctx.benchmarks.oolong.tasks import OOLONG, TEST, VALIDATION
from tests.support.fabricate import words, write

RECORD = {"references": ["12"], "answer_type": "ANSWER_TYPE.NUMERIC"}
LABELS = ("ham", "spam", "sci/tech")
_LINES = 14


def build_oolong(root: Path) -> Path:
    """Write the rows of all lengths."""
    for task in OOLONG.tasks:
        for length in task.sizes if task.name in ("agnews", "spam") else ():
            split = "test" if task.name in TEST else "validation"
            for column in (TEXT, LABELLED_TEXT):
                source = find_synth_rows(length, split, column)
                rows = [
                    row
                    for row in synth_rows(length, split)
                    if row["context_len"] == length
                ]
                write(
                    root / source.path,
                    [{name: row[name] for name in source.columns} for row in rows],
                )
    for length in OOLONG.task("dnd").sizes:
        source = find_real_rows(length)
        rows = [row for row in real_rows() if len(row["episodes"]) == source.value]
        write(
            root / source.path,
            [{name: row[name] for name in source.columns} for row in rows],
        )
    return root


def synth_rows(length: int, split: str = "test") -> list[dict[str, Any]]:
    """Return rows of each data set of a split, in the columns of the hub's files, with questions of each kind."""
    names = TEST if split == "test" else VALIDATION
    windows = [
        (name, 10000 * number + text)
        for number, name in enumerate(names)
        for text in range(1 + (name == DATASET))
    ]
    return [
        row for name, window in windows for row in _rows_of_window(name, window, length)
    ]


def _rows_of_window(name: str, window: int, length: int) -> list[dict[str, Any]]:
    rng = random.Random(f"oolong {name} {length}" + f" {window}" * (name == DATASET))
    lines = (
        [_make_pair_line(rng) for _ in range(60)]
        if name == DATASET
        else [_make_line(rng) for _ in range(_LINES)]
    )
    head = f"The following lines contain {len(lines)} texts: {words(rng, 6)} {{x}}.\n\n"
    plain = "\n".join(
        f"Date: {day:%b %d, %Y} || User: {user} || Instance: {text}"
        for day, user, text, _ in lines
    )
    labelled = "\n".join(
        f"{line} || Label: {label[3]}"
        for line, label in zip(plain.split("\n"), lines, strict=True)
    )
    end = f"\n\nRecall: {words(rng, 4)}."
    return [
        {
            "id": 100_000_000 + length + number % 5,
            "context_len": length,
            "dataset": name,
            TEXT: head + plain + end,
            LABELLED_TEXT: head + labelled + end,
            "question": question,
            "task_group": "counting",
            "task": "TASK_TYPE.MOST_FREQ",
            "answer": answer,
            "answer_type": f"ANSWER_TYPE.{kind}",
            "input_subset": "False",
            "num_labels": len(LABELS),
            "context_window_id": window,
        }
        for number, (question, answer, kind) in enumerate(
            _questions(lines, PAIR_LABELS if name == DATASET else LABELS)
        )
    ]


def _make_line(rng: random.Random) -> tuple[date, int, str, str]:
    day = date(2023, 1, 5) + timedelta(days=rng.choice((0, 0, 1, 40)))
    return (
        day,
        rng.choice((44436, 44436, 44436, 101, 202)),
        words(rng, 5),
        rng.choices(LABELS, (5, 3, 2))[0],
    )


def _make_pair_line(rng: random.Random) -> tuple[date, int, str, str]:
    day = date(2023, 1, 1) + timedelta(days=rng.randrange(180))
    return day, rng.randrange(95, 115), words(rng, 5), rng.choice(PAIR_LABELS)


def _questions(
    lines: list[tuple[date, int, str, str]], names: Sequence[str]
) -> list[tuple[str, str, str]]:
    days, users, _, labels = (Counter(column) for column in zip(*lines, strict=True))
    counts = Counter({label: labels[label] for label in names})
    best = [label for label in names if counts[label] == max(counts.values())]
    difference = counts["ham"] - counts["spam"]
    word = (
        "more common than"
        if difference > 0
        else "less common than"
        if difference
        else "same frequency as"
    )
    day = days.most_common(1)[0][0]
    user = users.most_common(1)[0][0]
    form = "Give your final answer in the form"
    user_form = f"{form} 'User: [X]', where [X] is the user ID."
    return [
        (
            f"In the above data, which of the labels is the most common? {form} 'Label: answer' where answer is one of the"
            f" labels: {', '.join(names)}.",
            str(best),
            "LABEL",
        ),
        (
            "In the above data, how many data points should be classified as label 'spam'? Give your final answer in the"
            " form 'Answer: number'.",
            f"[{counts['spam']}]",
            "NUMERIC",
        ),
        (
            "In the above data, is label 'ham' more common, less common, or the same frequency as label 'spam'?"
            f" {form} 'Answer: ham is [X] spam', where [X] is 'more common than', 'less common than', or 'same frequency"
            " as'.",
            f"['{word}']",
            "COMPARISON",
        ),
        (
            f"In the above data, which user is represented most often? {user_form}",
            f"[{user}]",
            "USER",
        ),
        (
            f"For the following question, only consider the subset of users with IDs {user}. Among these users, which"
            f" user is represented most often? {user_form}",
            f"[{user}]",
            "USER",
        ),
        (
            f"In the above data, which date is represented most often? {form} 'Date: [X]', where [X] is the date in the"
            " format MM/DD/YYYY.",
            f"[datetime.date({day.year}, {day.month}, {day.day})]",
            "DATE",
        ),
        (
            f"In which month did the label 'ham first occur more often than the label 'spam'? {form} 'Answer: [month]"
            " [year]', where [month] is the name of the month.",
            "['January 2023']",
            "MONTH_YEAR",
        ),
    ]


@cache
def real_rows() -> tuple[dict[str, Any], ...]:
    """Return rows in the columns of the hub's file of transcripts, for each number of episodes."""
    rows = []
    for count in OOLONG.task("dnd").sizes.values():
        rng = random.Random(f"dnd {count}")
        episodes = [
            f"[START OF EPISODE]\nMATT: {words(rng, 9)} roll\nSAM: {words(rng, 4)} {{}}\n[END OF EPISODE]"
        ] * count
        text = f"Put the answer in \\boxed{{}}. {words(rng, 9)}\n\n" + "\n\n".join(
            episodes
        )
        questions = [
            ("Total number of rolls across all the episodes?", str(count)),
            ("What is the first spell cast? é", "Fire Bolt"),
            (
                "List the spells. Return a comma separated list.",
                "Fire Bolt, Shield, Shield",
            ),
        ]
        for question, answer in questions:
            rows.append(
                {
                    "id": f"{count}-{'x' if answer[0] == 'F' else 'y'}",
                    "context_window_id": f"window {count}",
                    TEXT: text,
                    "question": question,
                    "answer": answer,
                    "question_type": "multidoc_rolls",
                    "episodes": list(range(count)),
                    "campaign": "campaign1",
                }
            )
    return tuple(rows)


def score_cases() -> list[dict[str, Any]]:
    """Return outputs with the columns of a row that the official code reads. `synth` says which scorer."""
    synth = [
        ("['spam']", "LABEL"), ("['sci/tech', 'ham']", "LABEL"), ("['True']", "LABEL"), ("[44436]", "USER"), ("[12]", "NUMERIC"),
        ("['12']", "NUMERIC"), ("[0]", "NUMERIC"), ("['more common than']", "COMPARISON"), ("['the same frequency']", "COMPARISON"),
        ("['less common']", "COMPARISON"), ("[datetime.date(2023, 1, 5)]", "DATE"), ("[datetime.date(2024, 12, 31)]", "DATE"),
        ("['January 2023']", "MONTH_YEAR"), ("['description and abstract concept']", "LABEL"), ("['x']", "NUMERIC"), ("['2023']", "DATE"),
    ]  # fmt: skip
    real = [
        "12",
        "0",
        "-3",
        "Fire Bolt",
        "Fire Bolt, Shield, Shield",
        "a,b",
        ",",
        "1, 2",
        " 7 ",
        "1_000",
        "Hunter's Mark",
    ]
    return [
        *(
            {
                "synth": True,
                "answer": answer,
                "answer_type": f"ANSWER_TYPE.{kind}",
                "output": output,
            }
            for answer, kind in synth
            for output in _synth_outputs()
        ),
        *(
            {"synth": False, "answer": answer, "answer_type": "", "output": output}
            for answer in real
            for output in _real_outputs(answer)
        ),
    ]


def _synth_outputs() -> list[str]:
    plain = [
        "spam", "Spam", "12", "13", "9", "-5", " 12", "12.0", "1_2", "١٢", "9" * 400, "9" * 5000, "44436", "true", "True", "01/05/2023",
        "January 5, 2023", "5 Jan 2023", "2023-01-05", "2023-01-05T00:00", "12/31/2024", "1/5/23", "Jan 2023", "2023", "January 2023",
        "20230105", "2023-01-05 10 PM", "2023-01-05 UTC", "more common than", "more common", "ham is more common than spam", "same frequency",
        "the same frequency", "ham is the same frequency as spam", "less common than", "ham is less common before 2023", "sci/tech", "[12]",
        "**12**", "[spam]", "'spam'", "spam.", "description and abstract concept", "", " ", "x y z", "12 cats", "99999999999999999999999", "None",
        "31/12/2024", "Dec 31 2024 00:00",
    ]  # fmt: skip
    forms = [
        "{}",
        "Answer: {}",
        "Label: {}",
        "**User: [{}]**",
        "Date: {}\n",
        "I think: no: {}",
        "After long thought I conclude {}",
        "{}: x",
    ]
    blank = [
        "",
        " " * 30,
        ":",
        "::",
        "\n" * 25 + ":",
        "Answer:",
        "Label: [spam]\n\n",
        "12:00",
        "Date: 2023-01-05 00:00:00",
    ]
    return [form.format(text) for form in forms for text in plain] + blank


def _real_outputs(answer: str) -> list[str]:
    texts = [answer, answer.upper(), f" {answer} ", "12", "13", "0", "-3", "Shield", "Shield, Fire Bolt", "b, a, c", "", "9" * 400, "9" * 5000,
             "1,2", "7", "fire bolt", "١٢", "1000", "12.5", "a,"]  # fmt: skip
    forms = ["{}", "\\boxed{{{}}}", "\\boxed{{\\text{{{}}}}}", "So \\boxed{{{{{}}}}} then \\boxed{{1}}", "boxed{{{}}}", "\\boxed{{\\textbf{{{}}}}}",
             "\\boxed {}", "Answer: $\\boxed{{{}}}$."]  # fmt: skip
    return [form.format(text) for form in forms for text in texts]
