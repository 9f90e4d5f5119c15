"""Tests of run entries: what is accepted, and what every mistake says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helm.benchmark.run_spec import get_run_spec_function

import helm_longctx.plugin  # noqa: F401  # registers the run entries
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import ARGUMENTS, parse_entry
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark, read_entries
from helm_longctx.tasks.task import EVERY_TASK


def test_whole_category() -> None:
    """An entry without a task runs the category; its groups are the group of the category and of each task."""
    entry = parse_entry(BENCHMARKS, "helmet_recall:length=131072")
    assert [task.name for task in entry.tasks] == [
        "json_kv",
        "ruler_niah_mk_2",
        "ruler_niah_mk_3",
        "ruler_niah_mv",
    ]
    assert entry.groups[:2] == ["helmet_recall_128k", "helmet_json_kv_128k"]
    assert entry.description == "helmet_recall:length=128k"
    assert entry.title == "HELMET Recall 128k"


def test_every_benchmark_is_a_name_for_run_entries() -> None:
    """Each benchmark that `list` prints stands for run entries, a name of both kinds is the run entry, and arguments stay."""
    for benchmark in BENCHMARKS:
        names = {written.name for written in read_entries(benchmark.name)}
        assert names <= set(benchmark.entries), benchmark.name
    texts = {
        "helmet2:length=8k": [
            "helmet2_recall:length=8k",
            "helmet2_ruler:length=8k",
            "helmet2_graphwalk:length=8k",
            "helmet2_longbenchv2:length=8k",
        ],
        "oneruler:language=de,length=8k": ["oneruler_de:length=8k"],
        "oolong": ["oolong"],
        "mmlu:subject=anatomy": ["mmlu:subject=anatomy"],
    }
    for text, expected in texts.items():
        assert [written.text for written in read_entries(text)] == expected


def test_every_argument() -> None:
    """All arguments reach the settings, and the description names the given ones in a fixed order."""
    text = "helmet_icl:style=chat,length=8K,task=nlu,seed=7,shots=12,num_samples=5,protocol=current,labels=natural_label"
    entry = parse_entry(BENCHMARKS, text)
    s = entry.settings
    assert (s.length, s.seed, s.shots, s.num_samples, s.request.style, s.protocol, s.labels) == (
        8192, 7, 12, 5, "chat", "current", "natural_label",
    )  # fmt: skip
    assert entry.description == (
        "helmet_icl:task=nlu,length=8k,shots=12,seed=7,num_samples=5,style=chat,protocol=current,labels=natural_label"
    )
    assert entry.title == "HELMET NLU 8k"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown run entry ''; choose from aa_lcr"),
        ("helmet", "unknown run entry 'helmet'"),
        ("helmet_recall", "length is missing; give any number of tokens"),
        ("helmet_icl", "length is missing; give one of 4k, 8k"),
        ("helmet_recall:", "expected name=value, found ''"),
        ("helmet_recall:8k", "expected name=value, found '8k'"),
        ("helmet_recall:length=", "expected name=value, found 'length='"),
        ("helmet_recall:length=8k,length=16k", "length is given twice"),
        (
            "helmet_recall:length=8k,lenght=8k",
            "unknown argument lenght='8k'; did you mean length? Choose from task, length",
        ),
        ("helmet_recall:length=8k,model=a/b", "unknown argument model='a/b'"),
        ("helmet_recall:length=eight", "length='eight' is invalid; give 4k"),
        ("helmet_recall:length=2k", "length='2k' is invalid"),
        ("helmet_recall:length=2m", "length='2m' is invalid"),
        ("helmet_icl:length=10000", "length='10000' is invalid; give one of 4k, 8k"),
        (
            "helmet_recall:length=8k,task=nq",
            "task='nq' is invalid; choose from json_kv, ruler_niah_mk_2",
        ),
        (
            "helmet_icl:length=8k,task=json_kv",
            "task='json_kv' is invalid; choose from trec_coarse",
        ),
        (
            "helmet_recall:length=8k,shots=-1",
            "shots='-1' is invalid; give a whole number from 0",
        ),
        ("helmet_recall:length=8k,shots=two", "shots='two' is invalid"),
        ("helmet_recall:length=8k,shots=1.5", "shots='1.5' is invalid"),
        (
            "helmet_recall:length=8k,truncation=left",
            "truncation='left' is invalid; choose from auto, error",
        ),
        ("helmet_recall:length=8k,seed=x", "seed='x' is invalid"),
        ("helmet_recall:length=8k,seed=99999999999", "seed='99999999999' is invalid"),
        (
            "helmet_recall:length=8k,num_samples=0",
            "num_samples='0' is invalid; give a whole number from 1",
        ),
        (
            "helmet_recall:length=8k,style=raw",
            "style='raw' is invalid; choose from auto, chat, completion",
        ),
        (
            "helmet_rag:length=8k,protocol=v2",
            "protocol='v2' is invalid; choose from paper, current",
        ),
        (
            "helmet_rag:length=8k,protocol=api",
            "protocol='api' is invalid; choose from paper, current",
        ),
        (
            "lv_eval:length=16k,protocol=current",
            "protocol='current' is invalid; choose from paper, api",
        ),
        ("ada_leval_tsort:length=12k", "length='12k' is invalid"),
        ("mrcr_v2:needles=8_upto,length=8k", "length='8k' is invalid"),
        (
            "infinite_bench:scorer=2023",
            "scorer='2023' is invalid; choose from 2024-08, 2024-06",
        ),
        (
            "longproc:task=travel_planning,length=0.5k",
            "length='0.5k' is invalid; give ",
        ),
        (
            "longproc:task=pseudo_to_code,length=8k",
            "length='8k' is invalid; give ",
        ),
        ("longproc:task=countdown,length=1k", "length='1k' is invalid; give "),
        ("longproc:task=sudoku,length=2k", "task='sudoku' is invalid; choose from"),
        ("helmet_recal:length=8k", "; did you mean helmet_recall?"),
        (
            "helmet_recall:length=8k,num_sample=8",
            "unknown argument num_sample='8'; did you mean num_samples? Choose from task, ",
        ),
        (
            "helmet_recall:length=8k,max_tokens=9",
            "unknown argument max_tokens='9'; HELM's limit of outputs is num_output_tokens=",
        ),
        ("helmet_recall:length=8k, model=a/b", "a space around the argument ' model'"),
        (
            "helmet_recall:length=8k,num_samples=4294967295",
            "give a whole number from 1 to 10000",
        ),
        (
            "helmet_icl:length=8k,shots=4294967295",
            "give a whole number from 0 to 100000",
        ),
        (
            "helmet_icl:length=8k,labels=names",
            "labels='names' is invalid; choose from integer, natural_label",
        ),
        (
            f"helmet_recall:length=8k,task={'x' * 5000}",
            "…' is invalid; choose from json_kv",
        ),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    """Each mistake ends in one line that names the argument and the value, and says what to give."""
    with pytest.raises(InputError) as caught:
        parse_entry(BENCHMARKS, text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lv_eval:length=16k,shots=7",
            "; choose from dataset, length, num_samples",
        ),
        ("lv_eval:length=16k,seed=3", "seed='3' is not an argument"),
        (
            "helmet_recall:length=8k,protocol=paper",
            "protocol='paper' is not an argument",
        ),
        (
            "helmet_recall:length=8k,labels=natural_label",
            "labels='natural_label' is not an argument",
        ),
        ("helmet_rag:length=8k,judge=none", "judge='none' is not an argument"),
        ("longbench_v2:scorer=2024-06", "scorer='2024-06' is not an argument"),
        ("helmet_recall:length=8k,context=none", "context='none' is not an argument"),
        (
            "helmet_recall:task=ruler_niah_mv,length=8k,shots=1",
            "shots='1' is not an argument of ruler_niah_mv",
        ),
        (
            "helmet_ruler:length=8k,shots=0",
            "; choose from task, length, seed, num",
        ),
        (
            "helmet_cite:task=asqa_nocite,length=8k,judge=none",
            "judge='none' is not an argument of asqa_nocite",
        ),
    ],
)
def test_an_argument_that_changes_nothing_is_refused(text: str, message: str) -> None:
    """An argument that has no effect on the tasks is refused whatever its value, and the line names valid arguments."""
    with pytest.raises(InputError) as caught:
        parse_entry(BENCHMARKS, text)
    assert message in str(caught.value)


def test_an_argument_of_some_tasks_applies_to_them() -> None:
    """A category takes an argument that only some of its tasks take."""
    assert (
        parse_entry(BENCHMARKS, "helmet_recall:length=8k,shots=1").settings.shots == 1
    )
    assert (
        parse_entry(BENCHMARKS, "helmet_longqa:length=8k,judge=none").settings.judge
        == "none"
    )


def test_every_task_names_arguments_that_there_are() -> None:
    """The arguments of every task exist, and do not repeat the arguments that all tasks have."""
    for benchmark in BENCHMARKS:
        for task in benchmark.tasks:
            assert set(task.arguments) <= {
                "seed",
                "shots",
                "labels",
                "context",
                "judge",
                "count_with",
                "depth",
                "path",
                "texts",
                "chats",
            }
            assert set(EVERY_TASK) < set(ARGUMENTS)
            assert "paper" in task.variants


@pytest.mark.parametrize(
    ("text", "tasks", "groups"),
    [
        ("mrcr:length=128k,needles=2", ["2needle"], ["mrcr_128k", "mrcr_2needle_128k"]),
        (
            "longproc:length=0.5k,task=countdown",
            ["countdown"],
            ["longproc_0.5k", "longproc_countdown_0.5k"],
        ),
        ("aa_lcr", ["questions"], ["aa_lcr", "aa_lcr_questions"]),
    ],
)
def test_other_axes(text: str, tasks: list[str], groups: list[str]) -> None:
    """Entries of benchmarks with other arguments and units of lengths, or without lengths, are read."""
    entry = parse_entry(BENCHMARKS, text)
    assert ([task.name for task in entry.tasks], entry.groups) == (tasks, groups)


def test_a_category_runs_the_tasks_that_exist_at_a_length() -> None:
    """A category runs its tasks that exist at a length, and a named task must exist at it."""
    short, long = (
        parse_entry(BENCHMARKS, f"longproc:length={length}")
        for length in ("0.5k", "8k")
    )
    assert [len(short.tasks), len(long.tasks)] == [4, 5]
    assert "pseudo_to_code" not in [task.name for task in long.tasks]
    assert (short.max_tokens, long.max_tokens) == (1024, 10240)
    with pytest.raises(
        InputError, match=r"length='0.5k' is invalid; give one of 2k, 8k"
    ):
        parse_entry(BENCHMARKS, "longproc:task=travel_planning,length=0.5k")
    with pytest.raises(
        InputError, match=r"needles='3' is invalid; choose from 2, 4, 8"
    ):
        parse_entry(BENCHMARKS, "mrcr:needles=3,length=8k")
    with pytest.raises(InputError, match="AA-LCR has no lengths"):
        parse_entry(BENCHMARKS, "aa_lcr:length=8k")


@pytest.mark.parametrize(
    ("judge", "suffix"),
    [
        ("auto", ""),
        ("none", ""),
        ("openai/gpt-4o-2024-05-13", ""),
        ("azure/gpt-4o-2024-05-13", ""),
        ("vllm/judge", "_judged_by_vllm--judge"),
        ("vllm--judge", "_judged_by_vllm--judge~a7cfe5bd"),
        ("a/b+openai/gpt-4o-2024-05-13", "_judged_by_a--b+openai--gpt-4o-2024-05-13"),
    ],
)
def test_groups_of_another_judge(judge: str, suffix: str) -> None:
    """Scores by another judge than the official one have their own groups; tasks without a judge do not."""
    groups = parse_entry(BENCHMARKS, f"helmet_longqa:length=8k,judge={judge}").groups
    assert groups == [
        f"helmet_longqa_8k{suffix}",
        f"helmet_narrativeqa_8k{suffix}",
        "helmet_infbench_qa_8k",
        "helmet_infbench_choice_8k",
    ]


def test_another_nli_model() -> None:
    """Citations by another NLI model, or by the official model at another revision, have their own groups."""
    tasks = parse_entry(BENCHMARKS, "helmet_cite:length=8k").tasks
    (official,) = {task.official_judge for task in tasks if task.official_judge}
    for judge, suffix in (
        (official, ""),
        (f"{official}@main", f"_judged_by_{official}@main".replace("/", "--")),
    ):
        assert (
            parse_entry(BENCHMARKS, f"helmet_cite:length=8k,judge={judge}").groups[0]
            == f"helmet_cite_8k{suffix}"
        )


def test_groups_of_a_large_jury() -> None:
    """The groups of a large jury have names that fit into file names, and two juries never share a group."""
    judges = ["+".join(f"host{n}/model-{n}" for n in range(size)) for size in (30, 31)]
    groups = {
        parse_entry(BENCHMARKS, f"helmet_longqa:length=8k,judge={judge}").groups[0]
        for judge in judges
    }
    assert len(groups) == 2
    assert max(map(len, groups)) < 120


def test_lengths_of_tasks_of_both_kinds() -> None:
    """If one task of a category is generated at any length, the category accepts all these lengths."""
    category = find_benchmark("ruler").categories[0]
    tasks = (
        category.tasks[0],
        replace(category.tasks[1], any_length=False, sizes={4096: 4096, 2**30: 2**30}),
    )
    benchmark = replace(
        find_benchmark("ruler"), categories=(replace(category, tasks=tasks),)
    )
    with pytest.raises(
        InputError, match=r"give any number of tokens of .+ to 16m, 1024m"
    ):
        parse_entry([benchmark], f"{next(iter(benchmark.entries))}:length=2000")


def test_an_argument_selects_the_category() -> None:
    """`oneruler:language=de` is the run entry `oneruler_de`, whose name runs have as before."""
    arguments = "task=cwe,length=8k,count_with=longctx/words"
    entry = parse_entry(BENCHMARKS, f"oneruler:language=de,{arguments}")
    assert entry == parse_entry(BENCHMARKS, f"oneruler_de:{arguments}")
    assert entry.description == f"oneruler_de:{arguments}"
    function = get_run_spec_function("oneruler")
    assert function
    spec = function(language="de", task="cwe", length="8k", count_with="longctx/words")
    assert spec.name == entry.description.replace("/", "_")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("oneruler:length=8k", "oneruler: language is missing; choose from zh, cs"),
        (
            "oneruler:language=german,length=8k",
            "oneruler: language='german' is invalid; choose from",
        ),
        ("oneruler_de:language=de,length=8k", "unknown argument language='de'"),
    ],
)
def test_mistakes_in_the_argument_of_a_category(text: str, message: str) -> None:
    """An argument that is missing, or names no category, is refused with the categories."""
    with pytest.raises(InputError, match=re.escape(message)):
        parse_entry(BENCHMARKS, text)


def test_lists_show_one_entry_for_all_categories() -> None:
    """A benchmark whose argument selects the category has one run entry in lists."""
    assert find_benchmark("oneruler").shown_entries == ["oneruler:language=…"]
