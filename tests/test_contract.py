"""Tests of what holds for every benchmark, task and run entry, whatever is added."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

import dacite
import pytest
import yaml
from helm.benchmark import run_spec
from helm.benchmark.config_registry import register_configs_from_directory
from helm.benchmark.metrics.metric import create_metric
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.presentation.run_entry import read_run_entries
from helm.benchmark.presentation.schema import Schema, validate_schema
from helm.benchmark.run_expander import RUN_EXPANDERS
from helm.benchmark.run_spec import get_run_spec_function
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.scenarios.scenario import create_scenario
from helm.common.object_spec import get_class_by_name, parse_object_spec

import helm_longctx.plugin  # noqa: F401  # what helm-run loads
from helm_longctx._version import VERSION
from helm_longctx.cli.tables import conf_files
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.style import HUGGING_FACE_CLIENT, RAW_TEXT_CLIENTS
from helm_longctx.results.leaderboard.schema import (
    all_sections,
    make_schema,
    suite_schema,
)
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric
from helm_longctx.tasks.entry import ARGUMENTS, OUTPUT_LIMITS, Entry, parse_entry
from helm_longctx.tasks.groups import CLOSED_BOOK
from helm_longctx.tasks.lengths import STANDARD, length_label
from helm_longctx.tasks.metric_names import CONDITIONS
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MAIN_METRIC
from tests.support.boards import make_entry_boards
from tests.support.tasks import page_of

PACKAGE = "helm_longctx"
SOURCE = Path(str(resources.files(PACKAGE)))


def lengths_of(benchmark: Benchmark) -> list[int | None]:
    """Return the lengths of all tasks, and the standard ones within the range of those that exist at any length."""
    if benchmark.axis is None:
        return [None]
    lengths = set(benchmark.lengths)
    if any(task.any_length for task in benchmark.tasks):
        lengths.update(filter(benchmark.axis.contains, STANDARD.values()))
    return sorted(lengths)


def entries_of(benchmark: Benchmark, category: Category) -> Iterator[str]:
    """Yield the arguments of every entry: the category and each of its tasks, at each length."""
    for length in lengths_of(benchmark):
        at = [f"length={length_label(length)}"] if length is not None else []
        if category.tasks_at(length):
            yield ",".join(at)
        for task in (*category.tasks, *category.variants):
            if task.exists_at(length):
                yield ",".join([*at, f"{benchmark.task_argument}={task.argument}"])


CATEGORIES = {
    name: (benchmark, category)
    for benchmark in BENCHMARKS
    for name, category in benchmark.entries.items()
}


@cache
def group_names() -> set[str]:
    """Return the names of all groups in the schema, which takes a tenth of a second."""
    return {
        group["name"] for group in make_schema(all_sections(BENCHMARKS))["run_groups"]
    }


@pytest.mark.parametrize("name", CATEGORIES)
def test_run_specs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry builds a run spec whose classes exist, whose groups are in the schema and whose metrics are known."""
    monkeypatch.setattr(
        Entry, "check_machine", lambda entry: None
    )  # what this machine lacks is no matter
    # HELM looks through its folder of run specs at each entry, which takes as long as all else.
    monkeypatch.setattr(run_spec, "discover_run_spec_functions", _discover)
    problems = {}
    for arguments in entries_of(*CATEGORIES[name]):
        try:
            check_run_spec(f"{name}:{arguments}".removesuffix(":"))
        except Exception as error:
            problems[arguments] = f"{type(error).__name__}: {error}"
    assert problems == {}


_discover = cache(run_spec.discover_run_spec_functions)


def check_run_spec(entry: str) -> None:
    """Build the run spec of an entry, and check its parts."""
    (spec,) = construct_run_specs(
        parse_object_spec(f"{entry}{',' if ':' in entry else ':'}model=longctx/lexical")
    )
    scenario = create_scenario(spec.scenario_spec)
    assert scenario.get_metadata().name == spec.groups[0]
    names = {
        metadata.name
        for metric in spec.metric_specs
        for metadata in create_metric(metric).get_metadata()
    }
    assert MAIN_METRIC in names
    assert set(spec.groups) <= group_names()
    settings = scenario.entry.settings
    assert spec.adapter_spec.max_tokens == max(
        task.output_tokens(settings) for task in scenario.entry.tasks
    )
    judged = any(task.has_judge for task in scenario.entry.tasks)
    assert [a.class_name for a in spec.annotators or []] == (
        [scenario.entry.category.judge] if judged else []
    )
    assert all(
        issubclass(get_class_by_name(a.class_name), JudgeAnnotator)
        for a in spec.annotators or []
    )


def test_clients_whose_form_is_known_exist() -> None:
    """The HELM clients that the style rule names exist in HELM."""
    for name in (*RAW_TEXT_CLIENTS, HUGGING_FACE_CLIENT):
        module, _, cls = name.rpartition(".")
        source = Path(str(resources.files("helm"))).parent / (
            module.replace(".", "/") + ".py"
        )
        assert f"\nclass {cls}(" in source.read_text(), name


def test_no_argument_is_a_run_expander() -> None:
    """No argument of ours has the name of a run expander, because HELM would take the argument for it."""
    assert not {
        *ARGUMENTS,
        *(benchmark.task_argument for benchmark in BENCHMARKS),
    } & set(RUN_EXPANDERS)
    # The error about other names of this limit sends users to HELM's.
    assert "num_output_tokens" in RUN_EXPANDERS
    assert not {*OUTPUT_LIMITS} & set(RUN_EXPANDERS)


def test_task_names_and_groups_are_unique() -> None:
    """No two tasks share a name, and no task has a category's or a length's name, so that groups are distinct."""
    for benchmark in BENCHMARKS:
        names = [
            *(task.name for task in benchmark.tasks),
            *(c.name for c in benchmark.categories),
            *STANDARD,
            CLOSED_BOOK,
        ]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_table_is_consistent(benchmark) -> None:
    """Every row has a headline among its metrics or says why it has none, data at each length, and sizes that grow."""
    for task in benchmark.tasks:
        assert set(task.headline) <= set(task.metrics)
        assert bool(task.headline) != bool(task.unscored)
        assert not (
            task.check_machine
            and any(task in category.tasks for category in benchmark.categories)
        )
        sizes = [task.sizes[length] for length in sorted(task.sizes)]
        assert sizes == sorted(sizes)
        assert task.any_length or all(
            task.sources(length) for length in task.sizes or [None]
        )
        assert bool(benchmark.axis) == bool(task.sizes)
    assert find_metric_faults(benchmark) == []


def find_metric_faults(benchmark: Benchmark) -> list[str]:
    """Return what is wrong with the descriptions of a benchmark's metrics, with a line for each fault."""
    returned = {name for task in benchmark.tasks for name in task.metrics}
    described = [metric.name for metric in benchmark.metrics]
    return [
        *(f"{name} has no description" for name in sorted(returned - set(described))),
        *(
            f"{name} is described, but no task returns it"
            for name in sorted(set(described) - returned)
        ),
        *(
            f"{name} is described twice"
            for name in sorted(set(described))
            if described.count(name) > 1
        ),
        *(
            f"{m.name} has an empty text"
            for m in benchmark.metrics
            if not (m.title and m.description)
        ),
        *(
            f"{name} is a name of ours"
            for name in sorted(set(described) & {MAIN_METRIC, *CONDITIONS})
        ),
    ]


def test_a_metric_without_a_description_is_found() -> None:
    """The check finds a missing description, an unused one, a repeated one and an empty one."""
    task = replace(BENCHMARKS[0].tasks[0], metrics=("a", "b", "depth"))
    described = tuple(
        Metric(name, name.upper(), text)
        for name, text in (("b", ""), ("c", "C."), ("c", "C."))
    )
    made_up = Benchmark(
        "x",
        "X",
        "",
        "r",
        1,
        "u",
        (Category("", "X", (task,)),),
        (*described, Metric("depth", "D", "D.")),
    )
    assert find_metric_faults(made_up) == [
        "a has no description",
        "c is described, but no task returns it",
        "c is described twice",
        "b has an empty text",
        "depth is a name of ours",
    ]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_comparability_is_told_twice_alike(benchmark) -> None:
    """The comparability number in run specs is the one in the folder's README."""
    readme = (SOURCE.parent / page_of(benchmark)).read_text(encoding="utf-8")
    assert f"**Comparability {benchmark.comparability}.**" in readme
    name, category = next(iter(benchmark.entries.items()))
    arguments = next(entries_of(benchmark, category))
    (spec,) = construct_run_specs(
        parse_object_spec(f"{name}:{arguments},model=longctx/null".replace(":,", ":"))
    )
    assert spec.scenario_spec.args["comparability"] == benchmark.comparability
    assert spec.metric_specs[0].args["package"] == VERSION


@pytest.mark.parametrize(
    "entries",
    [
        (),
        ("helmet_recall:task=json_kv,length=8k",),
        ("helmet_recall:length=10000",),
        ("helmet_rag:context=none,length=8k", "helmet_ruler:length=4k"),
        (
            "aa_lcr",
            "longproc:length=0.5k",
            "longproc:task=pseudo_to_code,length=2k",
            "mrcr:needles=2,length=8k",
        ),
    ],
)
def test_schema_is_valid(entries: tuple[str, ...]) -> None:
    """HELM accepts the whole schema and one cut to a suite's groups, which has only these groups and the tables that show them."""
    raw = (
        suite_schema(make_entry_boards(*entries))
        if entries
        else make_schema(all_sections(BENCHMARKS))
    )
    groups = {
        name for entry in entries for name in parse_entry(BENCHMARKS, entry).groups
    }
    schema = dacite.from_dict(Schema, raw)
    assert [
        str(m)
        for m in validate_schema(schema, strict=False)
        if m.severity.value == "error"
    ] == []
    # A category without a name can also be the table of all categories at its length.
    leaves = {group.name for group in schema.run_groups if group.metric_groups}
    assert leaves == (groups or leaves)
    assert all(set(group.subgroups) <= leaves for group in schema.run_groups)


def test_helm_reads_the_conf_files(tmp_path: Path) -> None:
    """Each file has run entries that exist, and each benchmark has a file for each length whose data is published."""
    for name, text in conf_files(BENCHMARKS).items():
        (tmp_path / name).write_text(text)
        entries = read_run_entries([str(tmp_path / name)]).entries
        assert entries
        assert all(
            get_run_spec_function(entry.description.split(":")[0]) for entry in entries
        )
    names = {
        f"{benchmark.name}_{length_label(length)}.conf"
        for benchmark in BENCHMARKS
        for length in benchmark.lengths
    }
    # Their questions or texts are the user's.
    names -= {
        f"{name}_{label}.conf" for name in ("any_jsonl", "ppl") for label in STANDARD
    }
    # The publisher does not serve these lengths.
    names -= {"corpusqa_4m.conf", "corpusqa_10m.conf"}
    assert names <= {path.name for path in tmp_path.iterdir()}


def test_deployments_are_known_to_helm() -> None:
    """HELM registers the package's model files, and every deployment has a client class."""
    register_configs_from_directory(str(SOURCE / "models"))
    for row in yaml.safe_load((SOURCE / "models/model_deployments.yaml").read_text())[
        "model_deployments"
    ]:
        deployment = get_model_deployment(row["name"])
        assert "." in deployment.client_spec.class_name


def test_the_plugin_and_a_run_load_nothing_heavy() -> None:
    """Neither the plugin, which every helm-run of this environment loads, nor a run of ours loads scikit-learn or torch."""
    code = """
import sys, helm.benchmark.run
before = set(sys.modules)
import helm_longctx.plugin, helm_longctx.runner
from helm.benchmark.metrics.metric import create_metric
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.helm.run_specs import make_entry_spec
from helm_longctx.tasks.entry import parse_entry
list(map(create_metric, make_entry_spec(parse_entry(BENCHMARKS, "lv_eval:length=16k")).metric_specs))
print(set(sys.modules) - before)
"""
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    heavy = "sklearn torch transformers datasets scipy nltk pandas jieba tree_sitter tiktoken"
    assert not set(heavy.split()) & set(re.findall(r"'([^']*)'", loaded))


BASE = {
    "_version",
    "environment",
    "errors",
    "failures",
    "helm_api",
    "helm_log",
    "interruptions",
    "locks",
    "parts",
    "process_state",
    "run_settings",
    "writing",
}
"""Modules at the top. They import each other and HELM, and no room."""

_ROOMS = {
    "redaction": "",
    "data": "",
    "documents": "data redaction",
    "tasks": "data redaction",
    "models": "data redaction tasks",
    "runs": "models redaction tasks",
    "helm": "data models redaction tasks",
    "judging": "data helm models redaction tasks",
    "benchmarks": "data helm judging redaction tasks",
    "results": "data documents helm redaction runs tasks",
    "runner": "data documents helm judging models redaction results runs tasks",
    "plugin": "helm models tasks",
    "config": "data documents helm judging models plugin redaction results runner runs tasks",
    "apps": "config data documents helm judging models redaction results runner runs tasks",
    "evaluation": "apps config documents models plugin redaction results runner runs tasks",
    "cli": "apps config data documents helm models redaction results runner runs tasks",
}
ROOMS = {room: set(names.split()) for room, names in _ROOMS.items()}
"""What each room imports besides `BASE`, as docs/architecture.md has it, from the lowest to the highest."""

NO_HELM = ("benchmarks/*/**", "data", "redaction", "results/statistics", "tasks")
"""Folders that import nothing of HELM. In a benchmark, only `judge.py` may, since HELM calls it."""


def test_imports_go_one_way() -> None:
    """Each room imports exactly what the table allows, and only rooms above it in the table."""
    imported: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in SOURCE.rglob("*.py"):
        if (room := room_of(path)) in ROOMS:
            imported[room] |= {
                name.split(".")[1]
                for name in imports(path)
                if name.startswith("helm_longctx.")
            }
    order = list(ROOMS)
    assert {room: names - BASE - {room} for room, names in imported.items()} == ROOMS
    assert all(
        set(order[: order.index(room)]) >= allowed for room, allowed in ROOMS.items()
    )


@pytest.mark.parametrize("folder", NO_HELM)
def test_rooms_without_helm(folder: str) -> None:
    """Data, tasks, statistics and benchmarks import nothing of HELM, so that another host than HELM can use them."""
    paths = [
        path
        for folder_or_file in SOURCE.glob(folder)
        for path in (
            [folder_or_file]
            if folder_or_file.suffix == ".py"
            else folder_or_file.rglob("*.py")
        )
    ]
    assert paths
    for path in paths:
        if path.name != "judge.py":
            names = [
                name
                for name in imports(path)
                if name.split(".")[0] == "helm" or name.startswith(f"{PACKAGE}.helm")
            ]
            assert names == [], path


def test_a_benchmark_imports_no_other() -> None:
    """A benchmark's folder imports no other benchmark, so that it can be moved to a package of its own."""
    for path in SOURCE.glob("benchmarks/*/**/*.py"):
        name = path.relative_to(SOURCE).parts[1]
        others = [
            module
            for module in imports(path)
            if module.startswith(f"{PACKAGE}.benchmarks.")
        ]
        assert [other for other in others if other.split(".")[2] != name] == [], path


def test_nothing_imports_an_analysis() -> None:
    """Only commands and `evaluate` import analyses, and no analysis imports another, so that each is a folder that can go or come."""
    for path in SOURCE.rglob("*.py"):
        room, *rest = path.relative_to(SOURCE).parts
        own = (
            f"{PACKAGE}.apps.{rest[0]}"
            if room == "apps" and rest[1:]
            else f"{PACKAGE}.apps.app"
        )
        others = [
            module for module in imports(path) if module.startswith(f"{PACKAGE}.apps.")
        ]
        allowed = (own, f"{PACKAGE}.apps.app")
        assert (
            room in ("cli", "evaluation")
            or [other for other in others if not other.startswith(allowed)] == []
        ), path


def test_the_page_on_architecture_is_true() -> None:
    """The page on architecture has the same table of rooms as this test, and the modules that it names exist."""
    page = (SOURCE.parents[1] / "docs/architecture.md").read_text(encoding="utf-8")
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    assert {
        row[0].strip("`"): set(re.findall(r"`([\w.]+)`", row[2])) for row in table
    } == ROOMS
    named = [name for name in re.findall(r"`([\w/]+\.py)`", page) if name != "judge.py"]
    folders = (SOURCE, SOURCE.parents[1] / "tests")
    missing = [
        name
        for name in named
        if not any((folder / name).is_file() for folder in folders)
    ]
    assert missing == []


def room_of(path: Path) -> str:
    """Return the folder or module at the top of the package."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, at its top or when a function is called."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from helm_longctx import errors` imports a module, `from helm_longctx.errors import InputError` a name.
            yield from (
                (f"{node.module}.{a.name}" for a in node.names)
                if "." not in node.module
                else (node.module,)
            )


def test_generic_folders_name_no_benchmark() -> None:
    """No room except `benchmarks` names a benchmark outside docstrings, comments and help."""
    names = "|".join(benchmark.name for benchmark in BENCHMARKS)
    # Not inside of a word: `TooLongError` is no name of OOLONG.
    named_anywhere = re.compile(f"(?<![A-Za-z])(?i:{names})|{names.title()}")
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] != "benchmarks":
            # Keys of Perplexity start with a name, too, and a field of OpenAI's protocol is one.
            named = {
                text
                for text in words(path)
                if named_anywhere.search(
                    re.sub("pplx-|(?<!:)tool_calls(?!:)", "", text)
                )
            }
            assert not named, path


def words(path: Path) -> Iterator[str]:
    """Return every name and text of a module, without docstrings and the help of commands and of keys in files."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    told = [node.value for node in nodes if isinstance(node, ast.Expr)]
    told += [
        node.value
        for node in nodes
        if isinstance(node, ast.keyword)
        and node.arg in ("help", "description", "example")
    ]
    left_out = {
        id(descendant)
        for node in told
        if isinstance(node, ast.Constant)
        for descendant in ast.walk(node)
    }
    for node in nodes:
        texts = (
            getattr(node, field, None)
            for field in ("id", "attr", "arg", "name", "module", "value")
        )
        yield from (
            text for text in texts if isinstance(text, str) and id(node) not in left_out
        )


PUBLISHED = {
    "helmet_recall": "json_kv ruler_niah_mk_2 ruler_niah_mk_3 ruler_niah_mv",
    "helmet_rag": "nq triviaqa hotpotqa popqa",
    "helmet_icl": "trec_coarse trec_fine banking77 clinic150 nlu",
    "helmet_cite": "asqa qampari",
    "helmet_rerank": "msmarco",
    "helmet_longqa": "narrativeqa infbench_qa infbench_choice",
    "helmet_summ": "infbench_sum multi_lexsum",
    "lv_eval": "hotpotwikiqa_mixup loogle_SD_mixup loogle_CR_mixup loogle_MIR_mixup multifieldqa_en_mixup "
    "multifieldqa_zh_mixup factrecall_en factrecall_zh cmrc_mixup lic_mixup dureader_mixup",
}
"""The tasks of the published tables by run entry. A score of the entry is the mean over these, now and later."""


@pytest.mark.parametrize("entry", PUBLISHED)
def test_published_tasks_are_fixed(entry: str) -> None:
    """The tasks of a published category are fixed, because a further one would change the mean that others published."""
    category = next(
        benchmark.entries[entry]
        for benchmark in BENCHMARKS
        if entry in benchmark.entries
    )
    assert " ".join(task.name for task in category.tasks) == PUBLISHED[entry]
