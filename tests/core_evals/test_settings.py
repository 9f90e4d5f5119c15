"""Tests that requests of NeMo Evaluator become configurations of `helm-longctx run`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.common.object_spec import parse_object_spec

import helm_longctx.plugin  # noqa: F401  # registers models
from core_evals.helm_longctx.__main__ import main, write_run
from core_evals.helm_longctx.medical import INSTALL, MEDICAL
from core_evals.helm_longctx.settings import make_configuration, name_model
from helm_longctx.config.load import load_config
from helm_longctx.config.schema import RunConfig
from helm_longctx.errors import InputError
from tests.core_evals.asking import ask

JUDGES = [
    {"name": "nvidia/gpt4o-judge", "url": "http://localhost:1/v1"},
    {
        "name": "nvdev/llama-3.3-70b-instruct",
        "url": "http://localhost:2/v1",
        "api_key_env": "OWN_KEY",
    },
    {
        "name": "nvidia/claude-3-7-sonnet",
        "url": "http://localhost:3",
        "api": "anthropic",
    },
]


def list_entries(config: RunConfig) -> list[str]:
    """Return the run entries of a configuration as texts."""
    return [entry.text for entry in config.entries or []]


@pytest.fixture(autouse=True)
def no_judge_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.endswith("_JUDGE_API_KEY")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("changes", "entries"),
    [
        ({"task": "helmet_recall", "length": "8k"}, ["helmet_recall:length=8k"]),
        (
            {"task": "helmet_recall", "length": "8k, 16k"},
            ["helmet_recall:length=8k", "helmet_recall:length=16k"],
        ),
        (
            {"task": "ruler", "length": [8192], "subject": "vt"},
            ["ruler:length=8192,task=vt"],
        ),
        (
            {"task": "lv_eval", "length": "16k", "subject": "cmrc_mixup"},
            ["lv_eval:length=16k,dataset=cmrc_mixup"],
        ),
        (
            {
                "task": "aa_lcr",
                "style": "chat",
                "num_train_trials": 2,
                "max_new_tokens": 9,
            },
            ["aa_lcr:style=chat,repeats=2,num_output_tokens=9"],
        ),
        (
            {
                "task": "helmet_icl",
                "length": "8k",
                "arguments": {"num_samples": 5, "shots": 3},
            },
            ["helmet_icl:length=8k,num_samples=5,shots=3"],
        ),
        (
            {"task": "medcalc_bench", "num_output_tokens": 20},
            ["medcalc_bench:num_output_tokens=20"],
        ),
        ({"task": "medbullets", "num_train_trials": 3}, ["medbullets"]),
        (
            {"task": "med_dialog", "judge": "a/b"},
            [
                f"med_dialog:subset={source},jury_config_path=out/model_configs/judges.yaml"
                for source in ("healthcaremagic", "icliniq")
            ],
        ),
        (
            {"task": "med_dialog_icliniq", "judge": "a/b"},
            [
                "med_dialog:subset=icliniq,jury_config_path=out/model_configs/judges.yaml"
            ],
        ),
    ],
)
def test_entries(changes: dict[str, Any], entries: list[str]) -> None:
    """The parameters of a request become these run entries."""
    assert list_entries(make_configuration(ask(**changes))) == entries


def test_the_whole_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every parameter gets its key in a valid file of `helm-longctx run`, which has only the names of keys."""
    for name in ("GPT_JUDGE_API_KEY", "CLAUDE_JUDGE_API_KEY"):
        monkeypatch.setenv(name, "nvapi-secret-0123456789")
    limits = {
        "limit_samples": 7,
        "request_timeout": 60,
        "max_retries": 2,
        "parallelism": 3,
    }
    sampling = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_length": 32768,
        "tokenizer": "simple/tokenizer1",
    }
    target = {
        "api_key": "NGC_KEY",
        "interceptors": ["nvcf"],
        "url": "https://h/v2/nvcf/pexec/functions/1-2/",
    }
    asked = ask(
        tmp_path,
        target,
        task="helmet_longqa",
        length="8k",
        judge=JUDGES,
        **limits,
        **sampling,
    )
    path = write_run(asked)
    keys = [
        {"api_key_env": "GPT_JUDGE_API_KEY"},
        {},
        {"api_key_env": "CLAUDE_JUDGE_API_KEY"},
    ]
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert values.pop("suite").startswith(
        "helmet_longqa_8k_nvdev_meta-llama-3.3-70b-instruct_nvidia_gpt4o-judge_"
    )
    assert values == {
        "output_path": str(tmp_path),
        "local_path": str(tmp_path / "model_configs"),
        "entries": ["helmet_longqa:length=8k"],
        "models": [
            {
                "name": "nvdev/meta-llama-3.3-70b-instruct",
                "url": "https://h/v2/nvcf/pexec/functions/1-2/",
                "type": "chat",
                "model": "nvdev/meta/llama-3.3-70b-instruct",
                "api_key_env": "NGC_KEY",
                "extra_body": {"temperature": 0.5, "top_p": 0.9},
                "nvcf": True,
                "context": 32768,
                "tokenizer": "simple/tokenizer1",
            }
        ],
        "judge": {
            "judges": [judge | key for judge, key in zip(JUDGES, keys, strict=True)],
            "keys": {"gpt": "GPT_JUDGE_API_KEY", "claude": "CLAUDE_JUDGE_API_KEY"},
        },
        "limits": {"max_eval_instances": 7, "request_timeout": 60.0, "max_retries": 2},
        "parallelism": 3,
    }
    assert load_config(path).model_dump() == make_configuration(asked).model_dump()


def test_judges_whose_tokens_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge with an address gets the tokens of its family if they are set, also if a key is set, and names of keys win."""
    for name in ("API_KEY", "CLIENT_ID", "CLIENT_SECRET"):
        monkeypatch.setenv(f"GPT_JUDGE_{name}", "nvapi-secret-0123456789")
    monkeypatch.setenv("GPT_JUDGE_TOKEN_URL", "https://h/token")
    config = make_configuration(ask(task="helmet_longqa", length="8k", judge=JUDGES))
    names = [(judge.api_key_env, judge.token_env) for judge in config.judge.judges]
    assert names == [(None, "GPT_JUDGE"), ("OWN_KEY", None), (None, None)]
    monkeypatch.setenv("MY_KEY", "nvapi-secret-0123456789")
    asked = ask(
        task="helmet_longqa", length="8k", judge=JUDGES, gpt_judge_api_key="MY_KEY"
    )
    assert make_configuration(asked).judge.judges[0].api_key_env == "MY_KEY"


def test_a_medical_task_whose_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package that HELM would miss after all requests are paid for is named in one line before anything is sent."""
    task = MEDICAL["race_based_med"]
    assert task.needs == ("docx",)
    assert MEDICAL["aci_bench"].needs == ("bert_score", "gin", "summ_eval")
    monkeypatch.setitem(
        MEDICAL, "race_based_med", task._replace(modules=("no_such_module",))
    )
    with pytest.raises(SystemExit) as ended:
        main(json.dumps(dict(ask(tmp_path, task="race_based_med")), default=str))
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert (
        "config.params.task='race_based_med' needs no_such_module; install with: pip install"
        in told
    )
    assert "pip install --no-deps summ-eval" in told
    assert not list(tmp_path.iterdir())


def test_a_judged_medical_task_without_spacys_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model that HELM's metrics would download at the end is asked for before anything is sent."""
    monkeypatch.setattr(
        "core_evals.helm_longctx.__main__._require_modules", lambda _: None
    )
    monkeypatch.setattr("core_evals.helm_longctx.__main__.SPACY_MODEL", "no_such_model")
    with pytest.raises(SystemExit) as ended:
        main(json.dumps(dict(ask(tmp_path, task="aci_bench")), default=str))
    assert ended.value.code == 2
    assert (
        "'aci_bench' needs a model of spaCy; install it with: python -m spacy download"
        in capsys.readouterr().err
    )
    assert not list(tmp_path.iterdir())


def test_results_are_not_mixed() -> None:
    """Another length, model, judge or task in the same folder gets its own suite, and other limits do not."""
    suite = make_configuration(ask(task="helmet_longqa", length="8k")).suite
    assert suite == "helmet_longqa_8k_nvdev_meta-llama-3.3-70b-instruct"
    changes = (
        {"length": "16k"},
        {"judge": "a/b"},
        {"task": "helmet_rag"},
        {"arguments": {"seed": 1}},
    )
    others = [
        make_configuration(
            ask(**{"task": "helmet_longqa", "length": "8k", **change})
        ).suite
        for change in changes
    ]
    others.append(
        make_configuration(
            ask(target={"model_id": "a/b"}, task="helmet_longqa", length="8k")
        ).suite
    )
    assert len({suite, *others}) == len(others) + 1
    limits = {"limit_samples": 5, "parallelism": 1, "max_retries": 0}
    assert (
        make_configuration(ask(task="helmet_longqa", length="8k", **limits)).suite
        == suite
    )


@pytest.mark.parametrize(
    ("served", "name"),
    [
        ("gpt-4", "endpoint/gpt-4"),
        ("a/b", "a/b"),
        ("nvdev/meta/llama:70b", "nvdev/meta-llama-70b"),
        ("/m/x/", "m/x"),
    ],
)
def test_names_of_models(served: str, name: str) -> None:
    """The name that a server gives to its model becomes a name of HELM's form."""
    assert name_model(served) == name


@pytest.mark.parametrize(
    ("changes", "target", "error"),
    [
        (
            {"task": "helmet_recal"},
            {},
            r"config\.params: task='helmet_recal' is invalid; did you mean helmet_recall",
        ),
        (
            {"task": "medec", "length": "8k"},
            {},
            r"config\.params\.extra\.length='8k': HELM's medec does not take it",
        ),
        (
            {"task": "medec", "data_path": "d"},
            {},
            r"config\.params\.extra\.data_path='d': HELM's medec",
        ),
        (
            {"task": "ruler", "condition": "x"},
            {},
            r"config\.params\.extra: condition='x' is invalid; .*subject",
        ),
        (
            {"task": "ruler", "subset": "x"},
            {},
            r"config\.params\.extra: subset='x' is invalid; .*subject",
        ),
        (
            {"task": "helmet_rag", "length": "8k", "parallelism": 0},
            {},
            r"^config\.params\.parallelism=0 is invalid",
        ),
        (
            {"task": "medec", "limit_samples": 0.5},
            {},
            r"^config\.params\.limit_samples=0\.5 is invalid",
        ),
        (
            {"task": "medec", "request_timeout": -1},
            {},
            r"^config\.params\.request_timeout=-1 is invalid",
        ),
        (
            {"task": "medec"},
            {"type": "embedding"},
            r"^target\.api_endpoint\.type='embedding' is invalid",
        ),
        (
            {"task": "medec"},
            {"api_key": "sk-proj-0123456789abcdefghij"},
            r"^target\.api_endpoint\.api_key ",
        ),
        (
            {"task": "medec"},
            {"interceptors": ["reasoning"]},
            r"mode='client' is invalid; .*server with reasoning",
        ),
        (
            {"task": "medec", "num_train_trials": 2},
            {"mode": "server"},
            r"all repeats of a question get the same answer; set use_caching=false",
        ),
        (
            {"task": "medec", "num_output_tokens": 1, "max_new_tokens": 2},
            {},
            r"extra\.num_output_tokens=1 and config\.params\.max_new_tokens=2 differ",
        ),
    ],
)
def test_mistakes(
    changes: dict[str, Any], target: dict[str, Any], error: str, tmp_path: Path
) -> None:
    """One line names the wrong parameter as NeMo Evaluator calls it, no file is written, and no key is printed."""
    with pytest.raises(InputError, match=error) as caught:
        write_run(ask(tmp_path / "out", target, **changes))
    assert "sk-proj" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_repeats_of_medical_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message says that repeats, which NVIDIA's examples set, have no effect for tasks without demonstrations in HELM."""
    write_run(ask(tmp_path, task="medec", num_train_trials=3))
    assert "num_train_trials=3 has no effect" in capsys.readouterr().err


def test_mistakes_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong parameter ends the command with status 2 and one line."""
    with pytest.raises(SystemExit, match="2"):
        main(json.dumps(ask(task="x")))
    assert capsys.readouterr().err.startswith(
        "helm-longctx: error: config.params: task='x' is invalid"
    )


SUBJECTS = {
    "ehrshot": {"subject": "guo_readmission"},
    "medalign": {},
    "n2c2_ct_matching": {"subject": "ABDOMINAL"},
    "clear": {"condition": "chronic_pain"},
}
"""A subject of each task whose data need a licence."""


def make_folder(name: str, folder: Path) -> dict[str, Any]:
    """Make a folder that seems to have a task's data, and return the parameters in `extra` that name it."""
    data = MEDICAL[name].data
    assert data
    for file in data.files:
        path = folder / file.format(*SUBJECTS[name].values())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return {"data_path": str(folder), **SUBJECTS[name]}


@pytest.mark.parametrize(
    ("name", "changes", "entries"),
    [
        (
            "ehrshot",
            {"max_length": 4096, "num_output_tokens": 1000},
            [
                "ehrshot:subject=guo_readmission,data_path=DATA,max_length=4096,num_output_tokens=1000"
            ],
        ),
        (
            "n2c2_ct_matching",
            {"subject": "ABDOMINAL, CREATININE"},
            [
                "n2c2_ct_matching:subject=ABDOMINAL,data_path=DATA",
                "n2c2_ct_matching:subject=CREATININE,data_path=DATA",
            ],
        ),
        (
            "clear",
            {"condition": None, "subject": "chronic_pain"},
            ["clear:condition=chronic_pain,data_path=DATA"],
        ),
        (
            "medalign",
            {"max_length": 2048, "judge": "a/b"},
            [
                "medalign:data_path=DATA,jury_config_path=out/model_configs/judges.yaml,max_length=2048"
            ],
        ),
    ],
)
def test_entries_of_licensed_tasks(
    name: str, changes: dict[str, Any], entries: list[str], tmp_path: Path
) -> None:
    """The parameters of the fork's page reach HELM's run entries, and a length of an entry is not the model's window."""
    extra = make_folder(name, tmp_path) | changes
    config = make_configuration(ask(task=name, **extra))
    folder = str(tmp_path.resolve())
    assert list_entries(config) == [entry.replace("DATA", folder) for entry in entries]
    assert config.models[0].context is None


@pytest.mark.parametrize(
    ("name", "changes", "error"),
    [
        (
            "ehrshot",
            {"data_path": None},
            r"extra\.data_path is missing: ehrshot reads it, and the data need a licence: Stanford's .*redivis",
        ),
        (
            "ehrshot",
            {"subject": "guo_icu"},
            r"data_path='.*': labels/guo_icu/labels\.parquet is missing; the data need a licence",
        ),
        (
            "ehrshot",
            {"subject": "guo_readmision"},
            r"subject='guo_readmision' is invalid; did you mean guo_readmission",
        ),
        ("ehrshot", {"subject": None}, r"extra\.subject is missing; choose from new_"),
        (
            "clear",
            {"condition": None},
            r"extra\.condition is missing; choose from alco",
        ),
        (
            "clear",
            {"subject": "homelessness"},
            r"extra\.condition='chronic_pain' and config\.params\.extra\.subject='homelessness' differ",
        ),
        (
            "medalign",
            {"subject": "x"},
            r"extra\.subject='x': HELM's medalign does not take it",
        ),
        (
            "medalign",
            {"data_path": "nowhere"},
            r"clinician-reviewed-model-responses\.tsv is missing; .* forbids APIs that are not HIPAA",
        ),
        (
            "n2c2_ct_matching",
            {"condition": "x"},
            r"extra\.condition='x': HELM's n2c2_ct_matching does not take it",
        ),
    ],
)
def test_mistakes_in_licensed_tasks(
    name: str, changes: dict[str, Any], error: str, tmp_path: Path
) -> None:
    """One line names what is missing or wrong, and who gives the data, before any file is written."""
    extra = make_folder(name, tmp_path / "data") | changes
    with pytest.raises(InputError, match=error):
        write_run(ask(tmp_path / "out", task=name, **extra))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", MEDICAL)
def test_medical_run_specs(name: str, tmp_path: Path) -> None:
    """HELM builds each medical run, and the jury of a judged one has the three judges with their deployments."""
    task = MEDICAL[name]
    extra: dict[str, Any] = {"judge": JUDGES} if task.is_judged else {}
    if task.data:
        extra |= make_folder(name, tmp_path / "licensed")
    path = write_run(ask(tmp_path, task=name, **extra))
    entries = list_entries(load_config(path))
    assert len(entries) == max(1, len(task.subsets))
    for entry in entries:
        (spec,) = construct_run_specs(
            parse_object_spec(
                f"{entry}{',' if ':' in entry else ':'}model=longctx/lexical"
            )
        )
        jury = [
            annotator.args["annotator_models"]
            for annotator in spec.annotators or []
            if "annotator_models" in (annotator.args or {})
        ]
        wanted = dict(
            zip(
                ("gpt", "llama", "claude"),
                (judge["name"] for judge in JUDGES),
                strict=True,
            )
        )
        deployments = [
            {label: model.model_deployment for label, model in models.items()}
            for models in jury
        ]
        assert deployments == ([wanted] if task.is_judged else [])


def test_a_judged_medical_task_needs_judges(tmp_path: Path) -> None:
    """A judged medical task without named judges is an error that says so."""
    with pytest.raises(
        InputError, match=r"judge='auto' is invalid; .* Stanford Health Care"
    ):
        write_run(ask(tmp_path, task="aci_bench"))


def test_what_the_error_installs_is_what_the_page_says() -> None:
    """The error and the page name the same commands, which give the extra `local` its accelerate back."""
    root = Path(__file__).parents[2]
    page = (root / "docs/eval-factory.md").read_text(encoding="utf-8")
    for command in INSTALL.split(" && "):
        assert f"    {command}\n" in page
    requirement = INSTALL.rpartition("'accelerate")[2].strip("'")
    assert f"accelerate{requirement}\n" in (root / "setup.cfg").read_text()
