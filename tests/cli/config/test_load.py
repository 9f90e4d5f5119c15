"""Tests of how run configurations are read, and of mistakes that are found before anything else is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.config.load import load_config
from helm_longctx.config.options import Options
from helm_longctx.config.schema import Endpoint, RunConfig
from helm_longctx.errors import InputError
from tests.support.configs import write

GOOD = """\
suite: 2026-11-22
tasks: [helmet_recall, aa_lcr]
lengths: [8k, 131072]
arguments: {num_samples: 4}
models:
  - longctx/lexical
  - name: my/llama
    url: http://localhost:8000/v1
    type: both
    api_key_env: MY_KEY
    headers: {X-Team: nlp, X-Api-Key: $GATEWAY_KEY}
    context: 128k
judge:
  judges: [openai/gpt-4o-2024-05-13]
  keys:
    gpt: MY_GPT_KEY
    claude: {client_id: ID, client_secret: SECRET, token_url: URL}
limits:
  max_cost: 25
parallelism: 16
"""

SECRET = "sk-proj-0123456789abcdefghij"
PLAIN_SECRET = "a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6"

MISTAKES = [
    (
        "suite: 2026-11-22",
        "siute: 2026-11-22",
        ":1: siute is not a key",
        "did you mean suite?",
    ),
    (
        "suite: 2026-11-22",
        "suite: [a]",
        ":1: suite=['a'] is invalid",
        "give a text; numbers",
    ),
    (
        "suite: 2026-11-22",
        "suite: a/b",
        ":1: suite='a/b' is invalid",
        "give a folder's name",
    ),
    (
        "suite: 2026-11-22",
        "suite:",
        ":1: suite=None is invalid",
        "give a text; numbers",
    ),
    (
        "suite: 2026-11-22",
        "suite: 2026",
        ":1: suite=2026 is invalid",
        "give a text; numbers and dates need quotes, as in '2026'",
    ),
    (
        "suite: 2026-11-22",
        'suite: "a\\0b"',
        ":1: suite='a\\x00b' is invalid",
        "give a folder's name of at most 255 bytes",
    ),
    (
        "suite: 2026-11-22",
        'suite: "a\\nb"',
        ":1: suite='a\\nb' is invalid",
        "without '/', line breaks and other control",
    ),
    (
        "suite: 2026-11-22",
        "suite: a\nsuite: b",
        ":2: suite is given twice",
        "each key once",
    ),
    ("suite: 2026-11-22", "\tsuite: a", ":1: the file is not YAML", "YAML"),
    ("suite: 2026-11-22", "suite: [a", ":2: the file is not YAML", "YAML"),
    (
        "[helmet_recall, aa_lcr]",
        "helmet_recall",
        ":2: tasks='helmet_recall' is invalid",
        "give a list: [helmet_recall]",
    ),
    ("[helmet_recall, aa_lcr]", "[]", ":2: tasks=[] is invalid", "at least one"),
    (
        "tasks: [helmet_recall, aa_lcr]\n",
        "",
        ":1: tasks is missing",
        "one of tasks, entries, conf_paths",
    ),
    (
        "tasks:",
        "entries: [aa_lcr]\ntasks:",
        ":2: entries is given together with tasks",
        "one of tasks",
    ),
    (
        "tasks:",
        "entries:",
        ":3: lengths belongs to tasks, not to entries",
        "lengths only with tasks",
    ),
    (
        "[helmet_recall, aa_lcr]",
        "[aa_lcr, helmet_recal]",
        ":2: tasks[1]: 'helmet_recal' is not a run entry",
        "did you mean helmet_recall?",
    ),
    (
        "[helmet_recall, aa_lcr]",
        "[aa_lcr, helmet:method]",
        ":2: tasks[1]: helmet: expected name=value, found 'method'",
        "",
    ),
    (
        "[helmet_recall, aa_lcr]",
        "[aa_lcr, 8]",
        ":2: tasks[1]=8 is invalid",
        "numbers and dates need quotes",
    ),
    ("8k", "9x", ":3: lengths[0]='9x' is invalid", "4k, 8k, 16k"),
    ("131072", "1.5", ":3: lengths[1]=1.5 is invalid", "or a whole number"),
    ("{num_samples: 4}", "[4]", ":4: arguments=[4] is invalid", "{name: value}"),
    (
        "num_samples: 4",
        "num_samples: [4]",
        ":4: arguments.num_samples=[4] is invalid",
        "a text, a number",
    ),
    (
        "  - longctx/lexical",
        "  - 5",
        ":6: models[0]=5 is invalid",
        "the keys name, url",
    ),
    (
        "name: my/llama",
        "name: my llama",
        ":7: models[1].name='my llama' is invalid",
        "ORGANIZATION/NAME",
    ),
    (
        "    url: http://localhost:8000/v1\n",
        "",
        ":7: models[1].url is missing",
        "the server's address",
    ),
    (
        "    type: both",
        "    typ: both",
        ":9: models[1].typ is not a key",
        "did you mean type?",
    ),
    (
        "type: both",
        "type: chta",
        ":9: models[1].type='chta' is invalid",
        "did you mean chat? Choose from chat, completions, both",
    ),
    (
        "MY_KEY",
        SECRET,
        ":10: models[1].api_key_env holds a secret",
        "the NAME of the variable",
    ),
    (
        "MY_KEY",
        PLAIN_SECRET,
        ":10: models[1].api_key_env is not the name of a variable",
        "such as MY_KEY",
    ),
    (
        "MY_KEY",
        "my-key",
        ":10: models[1].api_key_env is not the name of a variable",
        "such as MY_KEY",
    ),
    (
        "$GATEWAY_KEY",
        "hidden",
        ":11: models[1].headers.X-Api-Key has the name of a secret",
        "'X-Api-Key: $VAR'",
    ),
    (
        "X-Team: nlp",
        "X-Team: 5",
        ":11: models[1].headers.X-Team=5 is invalid",
        "give a text; numbers",
    ),
    (
        "context: 128k",
        "extra_body: {api_key: abc}",
        ":12: models[1].extra_body.api_key has the name of a secret",
        "headers",
    ),
    (
        "context: 128k",
        "context: many",
        ":12: models[1].context='many' is invalid",
        "a whole number",
    ),
    (
        "[openai/gpt-4o-2024-05-13]",
        "[auto, none]",
        ":14: judge.judges has 'auto' together",
        "'auto' alone",
    ),
    (
        "gpt: MY_GPT_KEY",
        "gtp: MY_GPT_KEY",
        ":16: judge.keys.gtp is not a key",
        "did you mean gpt? Choose from gpt, llama, claude",
    ),
    (
        "gpt: MY_GPT_KEY",
        f"gpt: {PLAIN_SECRET}",
        ":16: judge.keys.gpt is not the name of a variable",
        "MY_KEY",
    ),
    (
        "client_id: ID, ",
        "",
        ":17: judge.keys.claude.client_id is missing",
        "the NAME of the variable",
    ),
    (
        "max_cost: 25",
        "max_cost: 0",
        ":19: limits.max_cost=0 is invalid",
        "a number above 0",
    ),
    (
        "max_cost: 25",
        "max_cost: $25",
        ":19: limits.max_cost='$25' is invalid",
        "a valid number",
    ),
    (
        "max_cost: 25",
        "max_retries: -1",
        ":19: limits.max_retries=-1 is invalid",
        "a number from 0",
    ),
    (
        "parallelism: 16",
        "parallelism: true",
        ":20: parallelism=True is invalid",
        "a valid integer",
    ),
    (
        "parallelism: 16",
        "dry_run: maybe",
        ":20: dry_run='maybe' is invalid",
        "a valid boolean",
    ),
]


def test_a_configuration_is_read() -> None:
    """The values of a configuration have their types, and a date is a name like any other."""
    config = load_config(write(GOOD))
    assert (config.suite, config.lengths, config.limits.max_cost) == (
        "2026-11-22",
        ["8k", 131072],
        25.0,
    )
    assert isinstance(config.models[1], Endpoint)
    assert config.models[1].headers["X-Api-Key"] == "$GATEWAY_KEY"
    assert (
        config.source_map.locate(("models", 1, "type")) == "run.yaml:9: models[1].type"
    )


@pytest.mark.parametrize(("old", "new", "place", "allowed"), MISTAKES)
def test_mistakes(old: str, new: str, place: str, allowed: str) -> None:
    """A mistake gives one line with file, line, key, value and what is allowed, and without any secret."""
    assert GOOD.count(old) == 1 or old in ("8k", "tasks:", "MY_KEY")
    with pytest.raises(InputError) as caught:
        load_config(write(GOOD.replace(old, new, 1)))
    message = str(caught.value)
    assert message.startswith(f"run.yaml{place}")
    assert allowed in message.partition("; ")[2]
    assert "\n" not in message
    assert not any(
        secret in message for secret in (SECRET, PLAIN_SECRET, "hidden", "abc")
    )


def test_files_that_are_no_configuration() -> None:
    """A missing file, bytes, a list and an empty file are errors that say what to give."""
    with pytest.raises(
        InputError, match=r"^absent\.yaml: No such file or directory; give a YAML file"
    ):
        load_config(Path("absent.yaml"))
    Path("run.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"^run\.yaml:1: the file is not YAML"):
        load_config(Path("run.yaml"))
    for text in ("suite: &a [*a]", "suite: !!int x", "[" * 400):
        with pytest.raises(InputError, match=r"^run\.yaml:1: .*; (write|use) "):
            load_config(write(text))
    for text in ("[a]", ""):
        with pytest.raises(
            InputError,
            match=r"^run\.yaml:1: the file is not a mapping; write the keys suite",
        ):
            load_config(write(text))


def test_several_mistakes() -> None:
    """The first of several mistakes is explained, and the others are counted."""
    text = GOOD.replace("type: both", "type: chta").replace(
        "max_cost: 25", "max_cost: 0"
    )
    with pytest.raises(
        InputError, match=r"^run\.yaml:9: models\[1\]\.type.* \(and 1 more mistake\)$"
    ):
        load_config(write(text))


def test_options_replace_values_of_the_file() -> None:
    """Options are merged into the file's mappings, and a mistake in an option is named by the option."""
    names = {
        ("limits", "max_retries"): "--max-retries",
        ("parallelism",): "--parallelism",
    }
    values = {"limits": {"max_retries": 2}, "parallelism": 8}
    config = load_config(write(GOOD), Options(values, names))
    assert (config.limits.max_retries, config.limits.max_cost, config.parallelism) == (
        2,
        25.0,
        8,
    )
    with pytest.raises(
        InputError, match=r"^--parallelism=0 is invalid; give a number from 1"
    ):
        load_config(write(GOOD), Options({**values, "parallelism": 0}, names))


def test_merged_parts_and_flow_style_have_lines() -> None:
    """A value that YAML merges from elsewhere is at the line of the mapping around it."""
    text = "x: 1\n"
    common = "models:\n  - &a {name: my/a, url: http://h, type: chta}\n  - <<: *a\n    name: my/b\ntasks: [aa_lcr]\n"
    with pytest.raises(InputError, match=r"^run\.yaml:2: models\[0\]\.type='chta'"):
        load_config(write(common))
    with pytest.raises(InputError, match=r"^run\.yaml:1: x is not a key"):
        load_config(write(text + common))


def test_the_schema_forbids_other_keys() -> None:
    """Editors complain about the keys that loading refuses, and show what each key means."""
    schema = RunConfig.model_json_schema()
    assert schema["additionalProperties"] is False
    assert all(
        part["additionalProperties"] is False for part in schema["$defs"].values()
    )
    properties = [
        schema["properties"],
        *(part["properties"] for part in schema["$defs"].values()),
    ]
    assert all(
        value.get("description") for part in properties for value in part.values()
    )


def test_a_configuration_can_be_written_again() -> None:
    """A dumped configuration has the texts of which its typed values were made, and is read to an equal one."""
    model = {"url": "http://localhost:1", "context": 32768}
    values = {
        "tasks": ["helmet", "oneruler:language=de"],
        "lengths": ["8k"],
        "limits": {"stop_when": "width=2.5"},
    }
    named = {**values, "models": [{"name": "mine", **model}]}
    config = load_config(None, Options(named))
    dumped = config.model_dump(mode="json", exclude_defaults=True)
    assert dumped == {**values, "models": [{"name": "endpoint/mine", **model}]}
    assert load_config(None, Options(dumped)) == config


def test_the_example_of_the_docs_is_read() -> None:
    """The example of the documentation has every key of the schema except those that exclude others, and the explained values."""
    page = (Path(__file__).parents[3] / "docs/running.md").read_text(encoding="utf-8")
    text = page.partition('```yaml title="run.yaml"\n')[2].partition("```")[0]
    config = load_config(write(text))
    assert RunConfig.model_fields.keys() - config.model_fields_set == {
        "entries",
        "conf_paths",
        "protocols",
    }
    assert config.limits.model_fields_set == type(config.limits).model_fields.keys()
    assert config.limits.max_cost == 25


@settings(max_examples=30)
@given(
    start=st.integers(0, len(GOOD)),
    size=st.integers(0, 40),
    new=st.text(max_size=8) | st.sampled_from("{[:&*!|>%@`\t"),
)
def test_any_text_is_read_or_refused_in_one_line(
    start: int, size: int, new: str
) -> None:
    """Any change of a file's text gives a configuration, or one line that names the file."""
    message = refusal(GOOD[:start] + new + GOOD[start + size :])
    assert message is None or (message.startswith("run.yaml:") and "\n" not in message)


def refusal(text: str) -> str | None:
    """Load a configuration, and return the message of the error or None."""
    try:
        load_config(write(text))
    except InputError as error:
        return str(error)
    return None
