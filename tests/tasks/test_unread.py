"""Tests of what scorers cannot read, and of the lenient metrics beside official parsers that refuse plain forms."""

from __future__ import annotations

import pytest

from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.task import ScorerInput, Task

NODES = {"references": ["a1", "b2"]}
LETTER = {"references": ["B"]}
TEXT = {"answer": "AbC123xyza poem about tea", "random_string_to_prepend": "AbC123xyz"}
SPAM = {"references": ["spam"], "answer_type": "ANSWER_TYPE.LABEL"}
SEVEN = {"references": ["7"], "answer_type": "ANSWER_TYPE.NUMERIC"}
MORE = {"references": ["more common than"], "answer_type": "ANSWER_TYPE.COMPARISON"}
FUNCTION = {"references": ["parse_line", "B"]}


def find_task(benchmark: str, name: str) -> Task:
    """Return a task of a benchmark."""
    return find_benchmark(benchmark).task(name)


@pytest.mark.parametrize(
    ("benchmark", "task", "record", "readable", "unreadable"),
    [
        ("longbench_v2", "0shot", LETTER, "The correct answer is (C)", "B"),
        ("longhealth", "task1", LETTER, "The correct answer is C: no", "The correct answer is B."),
        ("graphwalks", "bfs", NODES, "So\nFinal Answer: []", "Final Answer: [a1, b2]\nDone."),
        ("mrcr", "2needle", TEXT, "AbC123xyz another poem", "\n\nAbC123xyza poem about tea"),
        ("mrcr_v2", "2needle", {"answer": "AbC123xyzAbC a poem"}, "So: AbC123xyzAbC no", "a poem"),
        ("oolong", "agnews", SPAM, "Label: ham", "I believe that there are more of them"),
        ("oolong", "dnd", SEVEN, r"It is \boxed{8}", "There were seven of them."),
        ("oolong", "user_pairs", {"references": ["1", "2"]}, "(1, 3)", "I found no pairs."),
        ("infinite_bench", "longbook_choice_eng", FUNCTION, "Answer: C", "it is the third one"),
        ("infinite_bench", "code_debug", FUNCTION, "C", "the function that reads a line"),
        ("infinite_bench", "passkey", {"references": ["12345"]}, "999", "no key was hidden"),
        ("infinite_bench", "math_find", {"references": ["3"]}, "The number is 4", "none"),
        ("infinite_bench", "code_run", {"references": ["3"]}, "The value is 4", "It is 3, I think"),
        ("longcodebench", "qa", LETTER, "Final Answer: C", "The second one."),
        ("flenqa", "pir", {"references": ["True"]}, "It is false.", "I cannot tell."),
        ("gsm_infinite", "medium", {"references": ["3"]}, "Answer: 4.", "I give up"),
        ("ada_leval", "stackselect", {"references": ["A3"], "num_choice": 5}, "A4", "the best one"),
        ("ada_leval", "textsort", {"order": [1, 2, 3, 4]}, "Answer: [4, 3, 2, 1]", "no idea"),
        ("babilong", "qa1", {"references": ["kitchen"], "question": "Where?"}, "garden", "outside"),
        ("helmet", "msmarco", {"references": []}, "3 > 1", "The second passage."),
        ("ruler2", "mk_niah_hard", LETTER, r"\boxed{C}", "the second one"),
        ("leval", "tpo", LETTER, "C", "the second one"),
        ("leval", "gsm100", {"references": ["7"]}, "The answer is 8", "I cannot tell"),
        ("leval", "sci_fi", {"references": ["True"]}, "false", "I cannot tell"),
        ("helmet", "nq", {"references": ["tea"]}, "coffee", " \n"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)  # fmt: skip
def test_what_a_scorer_can_read(
    benchmark: str, task: str, record: ScorerInput, readable: str, unreadable: str
) -> None:
    """An answer in the required form is read although it is wrong, and one without it is unread although it is right."""
    unread_task = find_task(benchmark, task)
    assert unread_task.can_read({"references": [], **record, "prediction": readable})
    assert not unread_task.can_read(
        {"references": [], **record, "prediction": unreadable}
    )


def test_every_task_reads_any_text() -> None:
    """No task's reader fails for an odd answer or a record without further fields, and none reads an empty answer."""
    for benchmark in BENCHMARKS:
        for task in benchmark.tasks:
            for text in (
                "",
                " \n",
                "7",
                "\x00",
                "(" * 50,
                "]" * 50,
                "Answer:",
                "ă" * 500,
            ):
                is_read = task.can_read({"prediction": text, "references": ["7"]})
                assert isinstance(is_read, bool), task.name
                assert not (is_read and not text.strip()), task.name


@pytest.mark.parametrize(
    ("benchmark", "task", "official", "lenient", "record", "plain_forms"),
    [
        (
            "longbench_v2", "0shot", "accuracy", "accuracy_lenient", LETTER,
            ("B", "(B)", "**B**", "Answer: B", "The answer is B.", "B) the second", r"\boxed{B}", "The correct answer is:\nB"),
        ),
        (
            "longhealth", "task1", "accuracy", "accuracy_lenient", LETTER,
            ("The correct answer is B.", "The correct answer is **B**: yes", "B: yes", "(B)", "Answer: B"),
        ),
        (
            "graphwalks", "bfs", "f1", "f1_lenient", NODES,
            ("Final Answer: [a1, b2]\nI hope this helps.", "**Final Answer:** [a1, b2]", "Final Answer:\n[a1,\n b2]", "The nodes are [a1, b2].", "Final Answer: ['a1', 'b2']\n```"),
        ),
        (
            "oolong", "agnews", "credit", "credit_lenient", SPAM,
            ("Label: Spam", "Label: spam (note: by far)", "Let me see.\n\nAnswer: 'spam'.\nHope this helps: bye", "Both are many, so it is\nspam."),
        ),
        (
            "oolong", "agnews", "credit", "credit_lenient", SEVEN,
            ("Answer: 7 times", "There are\n7", "Answer: **7** (counted by hand: yes)"),
        ),
        (
            "infinite_bench", "code_debug", "accuracy", "accuracy_lenient", FUNCTION,
            ("I looked.\nThe wrong function is `parse_line`.", "I think it is (B), and I am sure."),
        ),
    ],
    ids=["longbench_v2", "longhealth", "graphwalks", "oolong", "oolong_number", "infinite_bench"],
)  # fmt: skip
def test_plain_forms(
    benchmark: str,
    task: str,
    official: str,
    lenient: str,
    record: ScorerInput,
    plain_forms: tuple[str],
) -> None:
    """A right answer in a plain form is wrong for the official parser, and right for the lenient metric beside it."""
    unread_task = find_task(benchmark, task)
    assert lenient in unread_task.metrics
    assert lenient not in unread_task.headline
    assert find_benchmark(benchmark).metric(lenient).description
    for text in plain_forms:
        scores = unread_task.scores({**record, "prediction": text})
        assert scores[official] < 1, text
        assert scores[lenient] == 1, text


@pytest.mark.parametrize(
    ("benchmark", "task", "lenient", "record", "wrong"),
    [
        ("longbench_v2", "0shot", "accuracy_lenient", {"references": ["A"]}, "The answer is A dog"),
        ("longbench_v2", "0shot", "accuracy_lenient", LETTER, "The correct answer is (C), not (B)"),
        ("longhealth", "task1", "accuracy_lenient", LETTER, "I would say C: not B"),
        ("graphwalks", "bfs", "f1_lenient", NODES, "Final Answer: [c3]"),
        ("oolong", "agnews", "credit_lenient", SPAM, "Label: ham"),
        ("oolong", "agnews", "credit_lenient", MORE, "ham is less common than spam"),
        ("infinite_bench", "code_debug", "accuracy_lenient", FUNCTION, "C. other_function"),
    ],
)  # fmt: skip
def test_lenient_metrics_still_refuse_wrong_answers(
    benchmark: str, task: str, lenient: str, record: ScorerInput, wrong: str
) -> None:
    """A lenient metric reads more forms, and a wrong answer stays wrong."""
    assert (
        find_task(benchmark, task).scores({**record, "prediction": wrong})[lenient] == 0
    )
