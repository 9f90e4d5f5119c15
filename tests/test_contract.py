"""What holds for every benchmark, task and run entry, whatever is added."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from graphlib import TopologicalSorter
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path

import dacite
import pytest
import yaml
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
from helm_longctx.benchmarks import BENCHMARKS, GROUP
from helm_longctx.helm.annotator import JudgeAnnotator
from helm_longctx.helm.style import HUGGING_FACE_CLIENT, RAW_TEXT_CLIENTS
from helm_longctx.protocol.benchmark import Benchmark, Category, Metric
from helm_longctx.protocol.entry import ARGUMENTS, CLOSED_BOOK, Entry
from helm_longctx.protocol.lengths import STANDARD, length_label
from helm_longctx.protocol.metric_names import CONDITIONS
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.report.confs import conf_files
from helm_longctx.report.schema import make_schema

SOURCE = Path(str(resources.files("helm_longctx")))


def entries_of(benchmark: Benchmark, category: Category) -> Iterator[str]:
    """The arguments of every entry: the category and each of its tasks, at each length."""
    for length in sorted({*STANDARD.values(), *benchmark.lengths}) if benchmark.axis else [None]:
        at = [f"length={length_label(length)}"] if length else []
        if category.tasks_at(length):
            yield ",".join(at)
        for task in (*category.tasks, *category.variants):
            if task.exists_at(length):
                yield ",".join([*at, f"{benchmark.task_argument}={task.argument}"])


ENTRIES = [
    f"{name}:{arguments}".removesuffix(":")
    for benchmark in BENCHMARKS
    for name, category in benchmark.entries.items()
    for arguments in entries_of(benchmark, category)
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_run_specs(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry builds a run spec whose classes exist, whose groups are in the schema and whose metrics are known."""
    monkeypatch.setattr(Entry, "check_machine", lambda entry: None)  # what this machine lacks is no matter
    (spec,) = construct_run_specs(parse_object_spec(f"{entry}{',' if ':' in entry else ':'}model=longctx/lexical"))
    scenario = create_scenario(spec.scenario_spec)
    assert scenario.get_metadata().name == spec.groups[0]
    names = {metadata.name for metric in spec.metric_specs for metadata in create_metric(metric).get_metadata()}
    assert MAIN_METRIC in names
    schema = {group["name"] for group in make_schema(BENCHMARKS)["run_groups"]}
    assert set(spec.groups) <= schema
    settings = scenario.entry.settings
    assert spec.adapter_spec.max_tokens == max(task.output_tokens(settings) for task in scenario.entry.tasks)
    judged = any(task.has_judge for task in scenario.entry.tasks)
    assert [a.class_name for a in spec.annotators or []] == ([scenario.entry.category.judge] if judged else [])
    assert all(issubclass(get_class_by_name(a.class_name), JudgeAnnotator) for a in spec.annotators or [])


def test_clients_whose_form_is_known_exist() -> None:
    """The HELM clients that the style rule names are HELM's."""
    for name in (*RAW_TEXT_CLIENTS, HUGGING_FACE_CLIENT):
        module, _, cls = name.rpartition(".")
        source = Path(str(resources.files("helm"))).parent / (module.replace(".", "/") + ".py")
        assert f"\nclass {cls}(" in source.read_text(), name


def test_no_argument_is_a_run_expander() -> None:
    """HELM would take an argument of ours that has a run expander's name."""
    assert not {*ARGUMENTS, *(benchmark.task_argument for benchmark in BENCHMARKS)} & set(RUN_EXPANDERS)


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
        assert not (task.check_machine and any(task in category.tasks for category in benchmark.categories))
        sizes = [task.sizes[length] for length in sorted(task.sizes)]
        assert sizes == sorted(sizes)
        assert task.any_length or all(task.sources(length) for length in task.sizes or [None])
        assert bool(benchmark.axis) == bool(task.sizes)
    assert find_metric_faults(benchmark) == []


def find_metric_faults(benchmark: Benchmark) -> list[str]:
    """What is wrong with the descriptions of a benchmark's metrics, a line for each fault."""
    returned = {name for task in benchmark.tasks for name in task.metrics}
    described = [metric.name for metric in benchmark.metrics]
    return [
        *(f"{name} has no description" for name in sorted(returned - set(described))),
        *(f"{name} is described, but no task returns it" for name in sorted(set(described) - returned)),
        *(f"{name} is described twice" for name in sorted(set(described)) if described.count(name) > 1),
        *(f"{m.name} has an empty text" for m in benchmark.metrics if not (m.title and m.description)),
        *(f"{name} is a name of ours" for name in sorted(set(described) & {MAIN_METRIC, *CONDITIONS})),
    ]


def test_a_metric_without_a_description_is_found() -> None:
    """The check fails for a benchmark that lacks a description, has one too many, one twice or an empty one."""
    task = replace(BENCHMARKS[0].tasks[0], metrics=("a", "b", "depth"))
    described = tuple(Metric(name, name.upper(), text) for name, text in (("b", ""), ("c", "C."), ("c", "C.")))
    made_up = Benchmark(
        "x", "X", "", "r", 1, "u", (Category("", "X", (task,)),), (*described, Metric("depth", "D", "D."))
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
    """The number in run specs is the one in the folder's README."""
    (point,) = (point for point in entry_points(group=GROUP) if point.load() is benchmark)
    readme = (resources.files(point.module) / "README.md").read_text(encoding="utf-8")
    assert f"**Comparability {benchmark.comparability}.**" in readme
    name, category = next(iter(benchmark.entries.items()))
    arguments = next(entries_of(benchmark, category))
    (spec,) = construct_run_specs(parse_object_spec(f"{name}:{arguments},model=longctx/null".replace(":,", ":")))
    assert spec.scenario_spec.args["comparability"] == benchmark.comparability
    assert spec.metric_specs[0].args["package"] == VERSION


@pytest.mark.parametrize(
    "groups",
    [
        None,
        {"helmet_recall_8k", "helmet_json_kv_8k"},
        {"helmet_recall_10000"},
        {"helmet_closed_rag_8k", "helmet_ruler_4k"},
        {"aa_lcr", "aa_lcr_questions", "longproc_0.5k", "longproc_pseudo_to_code_2k", "mrcr_2needle_8k"},
    ],
)
def test_schema_is_valid(groups: set[str] | None) -> None:
    """HELM accepts the schema, whole or cut to a suite's groups; a cut one has only these and what shows them."""
    raw = make_schema(BENCHMARKS, groups)
    schema = dacite.from_dict(Schema, raw)
    assert [str(m) for m in validate_schema(schema, strict=False) if m.severity.value == "error"] == []
    leaves = {group.name for group in schema.run_groups if not group.subgroups}
    assert leaves == (groups if groups is not None else leaves)
    assert all(set(group.subgroups) <= leaves for group in schema.run_groups)


def test_conf_files_are_up_to_date() -> None:
    """The run-entry files are what the table gives (helm-longctx confs run_specs), and HELM reads them."""
    folder = SOURCE / "config/run_specs"
    assert {path.name: path.read_text() for path in folder.glob("*")} == conf_files(BENCHMARKS)
    for path in folder.glob("*.conf"):
        for entry in read_run_entries([str(path)]).entries:
            assert get_run_spec_function(entry.description.split(":")[0])


def test_deployments_are_known_to_helm() -> None:
    """The package's model files register, and every deployment's classes exist."""
    register_configs_from_directory(str(SOURCE / "config"))
    for row in yaml.safe_load((SOURCE / "config/model_deployments.yaml").read_text())["model_deployments"]:
        deployment = get_model_deployment(row["name"])
        assert "." in deployment.client_spec.class_name


def test_the_plugin_and_a_run_load_nothing_heavy() -> None:
    """Every helm-run of this environment loads the plugin, and our runs its metrics: neither loads scikit-learn or torch."""
    code = """
import sys, helm.benchmark.run
before = set(sys.modules)
import helm_longctx.plugin, helm_longctx.running
from helm.benchmark.metrics.metric import create_metric
from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.helm.run_specs import make_entry_spec
from helm_longctx.protocol.entry import parse_entry
list(map(create_metric, make_entry_spec(parse_entry(BENCHMARKS, "lv_eval:length=16k")).metric_specs))
print(set(sys.modules) - before)
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {
        "sklearn",
        "torch",
        "transformers",
        "datasets",
        "scipy",
        "nltk",
        "pandas",
        "jieba",
        "tree_sitter",
        "tiktoken",
    }
    assert not heavy & set(re.findall(r"'([^']*)'", loaded))


BASE = {"environment", "errors", "failures", "helm_json", "locks", "sandbox", "_version"}
"""Modules beside the rooms. They import each other and HELM, and no room."""

ROOMS: dict[str, set[str]] = {
    "sources": set(),
    "redaction": set(),
    "statistics": set(),
    "protocol": {"sources"},
    "judging": {"apis", "helm.patches", "protocol", "redaction", "statistics"},
    "benchmarks": {"protocol"},
    "helm.patches": {"helm", "protocol", "redaction"},
    "helm": {"apis", "benchmarks", "helm.patches", "judging", "protocol", "redaction", "sources"},
    "runs": {"protocol", "redaction"},
    "running": {
        *("apis", "benchmarks", "helm", "helm.patches", "judging", "protocol", "redaction", "runs"),
        *("sources", "statistics"),
    },
    "apis": {"redaction"},
    "endpoints": {"apis", "protocol", "redaction"},
    "config": {"apis", "endpoints", "helm", "judging", "protocol", "redaction", "running"},
    "batching": {"apis", "helm", "judging", "redaction", "running", "runs"},
    "scaling": {"apis", "helm", "helm.patches", "running", "runs"},
    "models": {"benchmarks", "protocol"},
    "report": {"benchmarks", "protocol", "runs", "sources", "statistics"},
    "pages": {"protocol", "redaction", "report", "runs", "statistics"},
    "formats": {"benchmarks", "helm", "protocol", "redaction", "report", "runs", "sources", "statistics"},
    "plugin": {"benchmarks", "helm", "models"},
    "cli": {
        *("apis", "batching", "benchmarks", "config", "endpoints", "formats", "helm", "judging"),
        *("helm.patches", "models"),
        *("plugin", "pages", "protocol", "redaction", "report", "running", "runs", "scaling", "sources", "statistics"),
    },
}
"""What each room imports besides `BASE`, as docs/architecture.md has it. `benchmarks` is the registry alone."""

SUITE = {"protocol", "judging", "redaction", "sources"}
"""What the folder of a benchmark imports; its `judge.py` also imports `helm`, since HELM calls it."""

NO_HELM = {"sources", "statistics", "protocol", "benchmarks"}
"""Rooms that import nothing of HELM, and neither does a suite but in its `judge.py`."""


def test_imports_go_one_way() -> None:
    """Each room imports what the table above allows; loaders, prompts and scorers import no HELM."""
    for path in SOURCE.rglob("*.py"):
        room, imported = room_of(path), set(imports(path))
        suite = path.relative_to(SOURCE).parts[1:-1] if room == "benchmarks" else ()
        if room in ("__init__", "__main__"):
            continue
        others = {room_of_module(name) for name in imported if name.startswith("helm_longctx.")} - BASE - {room}
        judge = path.name == "judge.py"
        allowed = SUITE | ({"helm"} if judge else set()) if suite else ROOMS.get(room, set())
        assert others <= allowed, path
        if suite:
            assert not any(name.startswith("helm_longctx.benchmarks") for name in imported - of_suite(suite[0])), path
        if room in NO_HELM and not judge:
            assert not any(name.partition(".")[0] == "helm" for name in imported), path


def test_the_page_on_architecture_is_true() -> None:
    """Its table of rooms is the one above, and the modules that it names exist."""
    page = (SOURCE.parents[1] / "docs/architecture.md").read_text(encoding="utf-8")
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    assert {row[0].strip("`"): set(re.findall(r"`([\w.]+)`", row[2])) for row in table} == ROOMS
    named = re.findall(r"`([\w/]+\.py)`", page)
    assert [name for name in named if not (SOURCE / name).is_file() and name != "judge.py"] == []


def of_suite(name: str) -> set[str]:
    """Modules that a benchmark's folder may import of `helm_longctx.benchmarks`: its own."""
    folder = SOURCE / "benchmarks" / name
    modules = {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in folder.rglob("*.py")}
    return {f"helm_longctx.{module.removesuffix('.__init__')}" for module in modules}


def test_rooms_import_each_other_in_no_circle() -> None:
    """No room is imported by a room that it imports, be it through others, when Python loads them."""
    graph: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        suite = "/".join(path.relative_to(SOURCE).parts[:2]) if path.parent != SOURCE / "benchmarks" else "benchmarks"
        room = suite if room_of(path) == "benchmarks" else room_of(path)
        modules = [name for name in imports(path, deferred=False) if name.startswith("helm_longctx.")]
        graph.setdefault(room, set()).update({room_of_module(name) for name in modules} - {room_of(path)})
    assert list(TopologicalSorter(graph).static_order())


def room_of(path: Path) -> str:
    """The room of a file; `helm/patches.py`, which every room that needs HELM changed can use, is one by itself."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "helm.patches" if parts == ("helm", "patches") else parts[0]


def room_of_module(name: str) -> str:
    """The room of `helm_longctx.…`."""
    return "helm.patches" if name.startswith("helm_longctx.helm.patches") else name.split(".")[1]


def imports(path: Path, deferred: bool = True) -> Iterator[str]:
    """Modules that a file imports, with `deferred` also those that it imports only when a function is called."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if deferred else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from helm_longctx import errors` imports a module, `from helm_longctx.errors import InputError` a name.
            yield from (f"{node.module}.{a.name}" for a in node.names) if "." not in node.module else (node.module,)


def test_generic_folders_name_no_benchmark() -> None:
    """No room but `benchmarks` names a benchmark, but in docstrings, comments and help."""
    benchmarks = {benchmark.name for benchmark in BENCHMARKS}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] != "benchmarks":
            named = {text for text in words(path) if any(name in text.lower() for name in benchmarks)}
            assert not named, path


def words(path: Path) -> Iterator[str]:
    """Every name and text of a module but docstrings, and the help of commands and of keys in files."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    told = [node.value for node in nodes if isinstance(node, ast.Expr)]
    told += [
        node.value for node in nodes if isinstance(node, ast.keyword) and node.arg in ("help", "description", "example")
    ]
    left_out = {id(each) for node in told if isinstance(node, ast.Constant) for each in ast.walk(node)}
    for node in nodes:
        texts = (getattr(node, field, None) for field in ("id", "attr", "arg", "name", "module", "value"))
        yield from (text for text in texts if isinstance(text, str) and id(node) not in left_out)


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
    """A further task belongs in `Category.variants`: in `tasks` it would change the mean that others published."""
    category = next(benchmark.entries[entry] for benchmark in BENCHMARKS if entry in benchmark.entries)
    assert " ".join(task.name for task in category.tasks) == PUBLISHED[entry]
