"""Tests of what a configuration runs, and of mistakes that are found before anything is sent."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.run import build_parser

from helm_longctx.config.load import load_config
from helm_longctx.config.plan import Plan, make_plan
from helm_longctx.config.settings import make_settings
from helm_longctx.config.shared import fill_registries
from helm_longctx.config.source_map import SourceMap
from helm_longctx.errors import InputError
from helm_longctx.helm.command_line import make_run_specs
from helm_longctx.models.baselines import lexical
from helm_longctx.models.endpoints.files import add_entries, find_entries
from helm_longctx.run_settings import TIMEOUT, TRIES, find_credentials, settings_in_use
from helm_longctx.tasks.entry_data import digest_own_files
from helm_longctx.tasks.task import Task
from tests.judging.token_server import CLIENT_ID, CLIENT_SECRET, serve_tokens
from tests.models.endpoints.scripted import CHAT, TEXT, Route, Scripted, scripted
from tests.support.configs import write
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

GOOD = """\
tasks: [helmet_recall, aa_lcr]
lengths: [8k]
arguments: {num_samples: 4}
models:
  - longctx/lexical
  - name: my/tiny
    url: URL
    api_key_env: MY_KEY
    headers: {X-Key: $MY_KEY}
judge:
  judges: [openai/gpt-4o-2024-05-13]
  keys:
    gpt: MY_KEY
limits: {max_retries: 2}
"""

OAUTH = "{client_id: MY_KEY, client_secret: MY_KEY, token_url: ABSENT}"

SELECTION = "tasks: [helmet_recall, aa_lcr]\nlengths: [8k]\narguments: {num_samples: 4}"
"""The part of `GOOD` that says what is run."""

MISTAKES = [
    (
        "helmet_recall,",
        "helmet_recal,",
        ":1: tasks[0]: 'helmet_recal' is not a run entry",
        "did you mean helmet_recall?",
    ),
    (
        "helmet_recall,",
        "'helmet_recall:task',",
        ":1: tasks[0]: helmet_recall: expected name=value",
        "",
    ),
    (
        "helmet_recall,",
        "'helmet_recall:task=kv',",
        ":1: tasks[0]: helmet_recall: task='kv' is invalid",
        "json_kv",
    ),
    (
        "[8k]",
        "[8k, 2k]",
        ":2: lengths[1]: helmet_recall: length='2k' is invalid",
        "from 4k to 1m",
    ),
    (
        "lengths: [8k]\n",
        "",
        ":1: lengths is missing, and helmet_recall has lengths",
        "[8k, 128k]",
    ),
    (
        "helmet_recall, ",
        "",
        ":2: lengths is given, but no task has lengths",
        "leave it out",
    ),
    (
        "num_samples: 4",
        "num_samples: few",
        ":3: arguments.num_samples: helmet_recall: num_samples='few'",
        "a whole",
    ),
    (
        "helmet_recall,",
        "'helmet_recall:num_samples=few',",
        ":1: tasks[0]: helmet_recall: num_samples='few'",
        "a whole",
    ),
    (
        "num_samples: 4",
        "num_sampels: 4",
        ":3: arguments.num_sampels is an argument that none",
        "did you mean num_samples",
    ),
    (
        "num_samples: 4",
        "style: caht",
        ":3: arguments.style: helmet_recall: style='caht'",
        "did you mean chat?",
    ),
    (
        "num_samples: 4",
        "labels: integer",
        ":3: arguments.labels is an argument that none of the tasks takes",
        "shots",
    ),
    (
        SELECTION,
        "conf_paths: [absent.conf]",
        ":1: conf_paths[0]: 'absent.conf': No such file",
        "",
    ),
    (
        SELECTION,
        "entries:\n  - medcalc_bench:versoin=1",
        ":2: entries[0]: medcalc_bench: unknown argument versoin",
        "did you mean version?",
    ),
    (
        SELECTION,
        "entries: ['aa_lcr:model=no/such']",
        ":1: entries[0]: 'no/such' is not a model",
        "HELM's models",
    ),
    (
        "longctx/lexical",
        "longctx/lexikal",
        ":5: models[0]: 'longctx/lexikal' is not a model",
        "did you mean longctx/lexical",
    ),
    (
        "url: URL",
        "url: ftp://h",
        ":6: models[1]: endpoint: url='ftp://h' is invalid",
        "http://",
    ),
    ("url: URL", "url: 'http://u:p@h'", ":7: models[1].url holds a secret", "the NAME"),
    (
        "url: URL",
        "url: URL\n    nvcf: true",
        ":6: models[1]: client_spec.args: base_url=",
        "a function's address",
    ),
    (
        "url: URL",
        "url: URL\n    tokenizer: no-such-folder/x",
        ":6: models[1]: tokenizer='no-such-folder/x' cannot",
        "",
    ),
    (
        "api_key_env: MY_KEY",
        "api_key_env: ABSENT",
        ":6: models[1]: the environment variable ABSENT is not set",
        "",
    ),
    (
        "$MY_KEY",
        "$ABSENT",
        ":6: models[1]: the environment variable ABSENT is not set",
        "",
    ),
    (
        "longctx/lexical",
        "{name: my/tiny, url: URL}",
        ":6: models[1]: 'my/tiny' is given twice",
        "each name once",
    ),
    (
        "name: my/tiny",
        "name: my/other",
        ":6: models[1]: 'my/other' is in prod_env/model_deployments.yaml",
        "another name",
    ),
    (
        "openai/gpt-4o-2024-05-13",
        "openai/gtp-4o",
        ":11: judge.judges[0]: judge='openai/gtp-4o': HELM has no",
        "auto",
    ),
    (
        "gpt: MY_KEY",
        "gpt: ABSENT",
        ":13: judge.keys.gpt=ABSENT: this environment variable is not set",
        "set it, or name another one",
    ),
    (
        "gpt: MY_KEY",
        f"gpt: {OAUTH}",
        ":13: judge.keys.gpt.token_url=ABSENT: this environment variable",
        "set it, or name another one",
    ),
    (
        "  keys:\n    gpt: MY_KEY\n",
        "",
        ":11: judge.judges[0]: judge=openai/gpt-4o-2024-05-13 needs a key",
        "GPT_JUDGE",
    ),
    (
        "max_retries: 2",
        "max_cost: 5",
        ":14: limits.max_cost=5 needs the prices of",
        "limits.prices",
    ),
    ("max_retries: 2", "prices: absent.yaml", ":14: limits.prices: ", ""),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Yield a server that must not be asked."""
    with serve(lexical.answer) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def registries() -> None:
    """Fill HELM's registries as the command does."""
    fill_registries(Path("prod_env"))


def plan(text: str, server: Server | Scripted) -> Plan:
    """Make the plan of a configuration."""
    config = load_config(write(text.replace("URL", server.address)))
    with make_settings(config).use():
        return make_plan(config)


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key, and register a model of a former run."""
    monkeypatch.setenv("MY_KEY", "secret-of-the-test")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    client = {
        "class_name": "helm_longctx.models.apis.OpenAIClient",
        "args": {"base_url": "http://elsewhere/v1"},
    }
    add_entries(
        Path("prod_env"),
        {"model_deployments.yaml": {"name": "my/other", "client_spec": client}},
    )


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(("old", "new", "place", "allowed"), MISTAKES)
def test_mistakes(old: str, new: str, place: str, allowed: str, server: Server) -> None:
    """A mistake gives one line with file, line, key, value and what is allowed, sends nothing, and writes no file of HELM."""
    assert old in GOOD
    before = Path("prod_env/model_deployments.yaml").read_text()
    with pytest.raises(InputError) as caught:
        plan(GOOD.replace(old, new, 1), server)
    message = str(caught.value)
    assert message.startswith(f"run.yaml{place}")
    assert allowed in message
    assert "\n" not in message
    assert "secret-of-the-test" not in message
    assert server.calls == []
    assert Path("prod_env/model_deployments.yaml").read_text() == before


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("{temperature: 0.6, top_p: 0.9}", None),
        ("{top_p: 0.9, temperature: 0.6}", None),
        (
            "{top_p: 0.9}",
            "arguments.top_p: top_p=0.9 has no effect at a temperature of 0",
        ),
        ("{temperature: 0.6, top_p: 7}", "arguments.top_p"),
    ],
)
def test_arguments_are_checked_together(arguments: str, error: str | None) -> None:
    """Arguments that are valid only beside others are accepted beside them, and an error names the wrong one."""
    text = f"""suite: sampled
models: [openai/gpt-4o-2024-05-13]
tasks: ["helmet_recall:task=json_kv"]
lengths: [8k]
arguments: {arguments}
"""
    config = load_config(write(text))
    with make_settings(config).use():
        if error is None:
            (spec,) = make_plan(config).specs
            assert spec.adapter_spec.temperature == 0.6
        else:
            with pytest.raises(InputError, match=error):
                make_plan(config)


def test_a_name_that_no_folder_can_have() -> None:
    """A run whose name is longer than a folder's name may be is refused before anything is sent."""
    folder = Path("a" * 120) / ("b" * 120)
    folder.mkdir(parents=True)
    (folder / "questions.jsonl").write_text(
        '{"context": "a", "question": "b", "answers": ["c"]}'
    )
    text = f"""suite: s
models: [openai/gpt-4o-2024-05-13]
entries: ["any_jsonl:path={folder},length=4k"]
"""
    config = load_config(write(text))
    with (
        make_settings(config).use(),
        pytest.raises(InputError, match="bytes, and at most 240 are allowed"),
    ):
        make_plan(config)


def test_own_files_are_read_once_for_an_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan reads the user's own files once for each run entry, and not when it is checked."""
    folder = Path("own")
    folder.mkdir()
    (folder / "questions.jsonl").write_text(
        '{"context": "a", "question": "b", "answers": ["c"]}'
    )
    digests = []

    def count(tasks: Iterable[Task], path: str | None) -> str | None:
        digest = digest_own_files(tasks, path)
        digests.append(digest)
        return digest

    monkeypatch.setattr("helm_longctx.helm.run_specs.digest_own_files", count)
    text = f"""suite: s
models: [longctx/lexical]
tasks: ["any_jsonl:path={folder}"]
lengths: [4k, 8k]
arguments: {{temperature: 0.5}}
dry_run: true
"""
    config = load_config(write(text))
    with make_settings(config).use():
        specs = make_plan(config).specs
    assert len(specs) == len(digests) == 2
    for spec, digest in zip(specs, digests, strict=True):
        assert digest is not None
        assert spec.scenario_spec.args["files"] == digest


@pytest.mark.usefixtures("ready")
def test_an_error_of_a_server_names_the_files_key() -> None:
    """The error has the model's place in the file and the file's key, not an option of another command."""
    with (
        scripted({}, key="another") as server,
        pytest.raises(
            InputError,
            match=r"^run.yaml:6: models\[1\]: api_key_env='MY_KEY': .* refuses the key",
        ),
    ):
        plan(GOOD, server)
    options = SourceMap(
        options={
            ("models", 0, "url"): "--model-url",
            ("models", 0, "name"): "--model-name",
        }
    )
    assert (
        str(options.error(("models", 0), ": model='absent'"))
        == "--model-url: model='absent'"
    )


@pytest.mark.usefixtures("ready")
def test_a_dry_run(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run sends and writes nothing and needs no key, and the commands that it prints do the same runs."""
    monkeypatch.delenv("MY_KEY")
    planned = plan(GOOD + "dry_run: true\n", server)
    assert server.calls == []
    assert not Path("prod_env/model_metadata.yaml").exists()
    add, run = planned.commands()
    url = shlex.quote(server.address)
    header = "--header 'X-Key: $MY_KEY'"
    assert (
        add
        == f"helm-longctx models add my/tiny --url {url} --api-key-env MY_KEY --local-path prod_env {header}"
    )
    assert run.startswith('HELM_LONGCTX_TRIES=3 GPT_JUDGE_API_KEY="$MY_KEY" helm-run ')
    words = shlex.split(run.replace("\\\n", ""))
    args = build_parser().parse_args(words[words.index("helm-run") + 1 :])
    specs = make_run_specs(
        args.run_entries,
        [],
        args.models_to_run,
        args.suite,
        args.max_eval_instances,
        Path(args.output_path),
    )
    assert [spec.name for spec in specs] == [spec.name for spec in planned.specs]
    assert {spec.name for spec in specs} == {
        f"{entry},model={model}"
        for entry in (
            "helmet_recall:length=8k,num_samples=4",
            "aa_lcr:num_samples=4,judge=openai_gpt-4o-2024-05-13",
        )
        for model in ("longctx_lexical", "my_tiny")
    }


@pytest.mark.usefixtures("ready")
def test_judges_judge_what_they_can(server: Server) -> None:
    """Judges grade what they can, citations keep their NLI model, and an argument of the entry overrides the list of judges.

    Where the model writes nothing, nothing is judged.
    """
    entries = (
        "entries: ['helmet_cite:length=8k', 'helmet_summ:length=8k', 'aa_lcr:judge=none', 'ruler:length=8k',"
        " 'aa_lcr:metric=likelihood']\n"
    )
    rest = "models: [longctx/lexical]\njudge: {judges: [%s]}\ndry_run: true\n"
    jury = plan(
        entries + rest % "openai/gpt-4o-2024-05-13, openai/gpt-4.1-2025-04-14", server
    )
    names = "judge=openai/gpt-4o-2024-05-13+openai/gpt-4.1-2025-04-14"
    assert [entry.text for entry in jury.entries] == [
        "helmet_cite:length=8k",
        f"helmet_summ:{names},length=8k",
        "aa_lcr:judge=none",
        "ruler:length=8k",
        "aa_lcr:metric=likelihood",
    ]
    nobody = plan(entries + rest % "none", server)
    assert [entry.text for entry in nobody.entries][:2] == [
        "helmet_cite:judge=none,length=8k",
        "helmet_summ:judge=none,length=8k",
    ]


@pytest.mark.usefixtures("ready")
def test_keys_of_judges_are_used_while_the_runs_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A named variable replaces the variables of the judge's family while the runs are made, and these return afterwards."""
    monkeypatch.setenv("GPT_JUDGE_CLIENT_ID", "of-another-gateway")
    config = load_config(
        write(
            GOOD.replace(
                "max_retries: 2",
                "max_retries: 2, max_cost: 1234.567, request_timeout: 60",
            )
        )
    )
    before = dict(os.environ)
    with make_settings(config).use():
        settings = settings_in_use()
        assert (settings.max_cost, settings.request_timeout) == (1234.567, 60)
        assert settings.tries == 3
        assert find_credentials("GPT_JUDGE").api_key == "secret-of-the-test"
        assert find_credentials("GPT_JUDGE").client_id == ""
        assert dict(os.environ) == before
    assert find_credentials("GPT_JUDGE").client_id == "of-another-gateway"
    assert find_credentials("GPT_JUDGE").api_key == ""


@pytest.mark.usefixtures("ready")
def test_no_retries_differ_from_retries_that_are_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A 0 in the configuration comes before the environment, which says what the configuration leaves out."""
    monkeypatch.setenv(TRIES, "9")
    monkeypatch.setenv(TIMEOUT, "70")
    for limits, tries in (("max_retries: 0", 1), ("request_timeout: 70", 9)):
        config = load_config(write(GOOD.replace("max_retries: 2", limits)))
        settings = make_settings(config)
        assert (settings.tries, settings.request_timeout) == (tries, 70)


GATEWAY = """\
entries: ['aa_lcr:num_samples=4']
models: [{name: my/tiny, url: URL, model: tiny}, {name: my/other, url: URL, model: other, token_env: MY_GATE}]
judge: {judges: [{name: gate/gpt-judge, url: URL, model: judge}, {name: gate/llama-judge, url: URL, model: llama}]}
"""


def test_tokens_from_the_first_request_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models and judges given by address have tokens of their own clients in all requests, the first probe included."""
    with serve_tokens() as tokens, serve(lexical.answer) as gateway:
        for prefix in ("OPENAI", "MY_GATE", "GPT_JUDGE", "LLAMA_JUDGE"):
            values = {
                "CLIENT_ID": CLIENT_ID,
                "CLIENT_SECRET": CLIENT_SECRET,
                "TOKEN_URL": f"{tokens.url}/token",
            }
            for name, value in (values | {"SCOPE": prefix}).items():
                monkeypatch.setenv(f"{prefix}_{name}", value)
        gateway.accepts = lambda key: key.removeprefix("Bearer ") in tokens.tokens
        plan(GATEWAY, gateway)
    assert [body["scope"] for body in tokens.asked] == [
        "OPENAI",
        "MY_GATE",
        "GPT_JUDGE",
        "LLAMA_JUDGE",
    ]
    used = {
        call.body["model"]: call.key.removeprefix("Bearer ") for call in gateway.calls
    }
    assert used == dict(
        zip(("tiny", "other", "judge", "llama"), tokens.tokens, strict=True)
    )
    assert all(call.fault is None for call in gateway.calls)
    files = "".join(
        path.read_text(encoding="utf-8") for path in Path("prod_env").iterdir()
    )
    assert not any(token in files for token in tokens.tokens)


def test_a_client_whose_variables_are_not_set(server: Server) -> None:
    """The start of the names of variables that are not set is refused before anything is sent."""
    text = "entries: ['aa_lcr:num_samples=4']\nmodels: [{name: my/tiny, url: URL, token_env: ABSENT}]\n"
    with pytest.raises(
        InputError,
        match=r"models\[0\]: the environment variable ABSENT_TOKEN_URL is not set",
    ):
        plan(text, server)
    assert not server.calls


@pytest.mark.parametrize("variables", [{}, {"GPT_JUDGE_API_KEY": "sk-wrong-1234"}])
def test_a_judge_without_a_key(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a judge's server needs a key, the error names the variables that can have it, or the variable with a wrong key."""
    for name in ("OPENAI_API_KEY", "GPT_JUDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    text = re.sub("models: .*", "models: [longctx/lexical]", GATEWAY)
    with serve(lexical.answer) as gateway:
        gateway.accepts = lambda key: key == "Bearer sk-right"
        with pytest.raises(InputError) as error:
            plan(text, gateway)
    allowed = "gpt-judge needs a key, but none is set; set GPT_JUDGE_API_KEY, GATE_API_KEY, GPT_JUDGE_CLIENT_ID with"
    refused = f"judge=gate/gpt-judge: {gateway.address} refuses GPT_JUDGE_API_KEY"
    assert (refused if variables else allowed) in str(error.value)
    assert "sk-wrong-1234" not in str(error.value)
    assert {call.key for call in gateway.calls} == (
        {"Bearer sk-wrong-1234"} if variables else {""}
    )


def test_ready_deployments_are_models(server: Server) -> None:
    """HELM knows the deployments of the package without files in the local path."""
    names = ["vllm/llama-3.1-8b-instruct", "openai/gpt-6-luna"]
    text = f"tasks: [aa_lcr]\nmodels: [{', '.join(names)}]\njudge: {{judges: [none]}}\n"
    planned = plan(text, server)
    assert [spec.adapter_spec.model_deployment for spec in planned.specs] == names
    assert (
        get_model_deployment(names[1]).client_spec.class_name
        == "helm_longctx.models.apis.OpenAIClient"
    )
    assert not Path("prod_env").exists()


def test_a_known_endpoint_is_not_asked_again() -> None:
    """A second plan uses the entries of the first one and sends nothing, while a changed description is asked for again."""
    text = "tasks: [helmet_recall]\nlengths: [8k]\nmodels:\n  - {name: tiny, url: URL, context: 32k}\n"
    with serve(lexical.answer, models={"tiny": Model()}) as own:
        (spec,) = plan(text, own).specs
        assert spec.adapter_spec.model_deployment == "endpoint/tiny"
        asked = [call.path for call in own.calls]
        assert sorted(asked) == ["/v1/chat/completions", "/v1/completions"]
        plan(text, own)
        assert len(own.calls) == len(asked)
        plan(text.replace("32k", "64k"), own)
        assert len(own.calls) == 2 * len(asked)
    assert (
        "max_sequence_length: 65536"
        in Path("prod_env/model_deployments.yaml").read_text()
    )


@pytest.mark.parametrize("chats", [True, False])
def test_run_specs_follow_from_what_the_server_answers(chats: bool) -> None:
    """HELM's instructions for models that chat are in a run of its own scenario only if the new server chats."""
    name = f"my/{'chat' if chats else 'base'}"
    # HELM looks at the model, so it must be the first argument.
    entry = f"medcalc_bench:model={name},follow_format_instructions=instruct"
    text = f"entries: ['{entry}']\nmodels: [{{name: {name}, url: URL, model: m}}]\n"
    routes: dict[str, Route] = {"/v1/completions": TEXT}
    if chats:
        routes["/v1/chat/completions"] = CHAT
    with scripted(routes) as server:
        (spec,) = plan(text, server).specs
    assert bool(spec.adapter_spec.global_prefix) == chats


def test_a_server_at_a_new_address(caplog: pytest.LogCaptureFixture) -> None:
    """A server that was started again at another port is the same deployment, unless it has another model."""
    text = "tasks: [helmet_recall]\nlengths: [8k]\nmodels:\n  - {name: endpoint/mine, url: URL}\n"
    caplog.set_level("INFO")
    with serve(lexical.answer, models={"tiny": Model()}) as old:
        plan(text, old)
    with serve(lexical.answer, models={"tiny": Model()}) as new:
        plan(text, new)
    assert (
        f"endpoint/mine has moved from {old.address}/v1 to {new.address}/v1"
        in caplog.text
    )
    path = Path("prod_env/model_deployments.yaml")
    before = path.read_text()
    assert new.address in before
    assert old.address not in before
    with (
        serve(lexical.answer, models={"large": Model()}) as other,
        pytest.raises(
            InputError,
            match=rf"'endpoint/mine' was the model 'tiny' of {new.address}/v1, but .* has 'large'; give",
        ),
    ):
        plan(text, other)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("key", "value"),
    [("context: 32k", "max_sequence_length: 32768"), ("type: chat", "form: chat")],
)
def test_an_endpoint_is_asked_again_without_a_key(key: str, value: str) -> None:
    """The value of a removed key leaves the file, and the shorter mapping is asked for only once."""
    text = f"tasks: [helmet_recall]\nlengths: [8k]\nmodels:\n  - {{name: my/tiny, url: URL, {key}}}\n"
    path = Path("prod_env/model_deployments.yaml")
    with serve(lexical.answer, models={"tiny": Model()}) as own:
        plan(text, own)
        asked = len(own.calls)
        assert value in path.read_text()
        for _ in range(2):
            plan(text.replace(f", {key}", ""), own)
            assert len(own.calls) == 2 * asked
    assert value not in path.read_text()


def test_a_deployment_that_no_mapping_made_is_kept() -> None:
    """A deployment from the user's file keeps its own values where the mapping says nothing, and its server is not asked."""
    text = "tasks: [helmet_recall]\nlengths: [8k]\nmodels:\n  - {name: my/tiny, url: URL%s}\n"
    folder = Path("prod_env")
    with serve(lexical.answer, models={"tiny": Model()}) as own:
        plan(text % ", context: 32k", own)
        asked = len(own.calls)
        files = find_entries(folder, "my/tiny")
        del files["model_deployments.yaml"]["made_from"]
        add_entries(folder, files, replace=True)
        plan(text % "", own)
        assert len(own.calls) == asked
    assert find_entries(folder, "my/tiny") == files
