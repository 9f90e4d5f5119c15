"""Tests that no secret stays in a text, and that text without secrets is unchanged."""

from __future__ import annotations

import base64
import json
import logging
import string
import subprocess
import sys
import threading
import warnings
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.helm import errors
from helm_longctx.redaction.logs import redact_logs, redact_uncaught
from helm_longctx.redaction.text import (
    MARK,
    redact,
    register_arguments,
    register_credentials,
    register_environment,
    register_secret,
)

LETTERS = string.ascii_letters + string.digits
KEYS = [
    "sk-" + "a1B2" * 12,
    "sk-proj-Ab_1-" * 6,
    "sk-ant-api03-Ab_1-" + "x9" * 40,
    "sk-or-v1-" + "0f" * 32,
    "hf_" + "aB3" * 11 + "z",
    "AIza" + "Sy_-0" * 7,
    "AKIA" + "ABCD1234" * 2,
    "nvapi-" + "a_B-1" * 12,
    "xai-" + "aB1" * 26,
    "gsk_" + "aB1" * 17,
    "tgp_v1_" + "aB-1" * 10,
    "ghp_" + "aB1" * 12,
    "github_pat_" + "aB_1" * 20,
    "glpat-" + "aB-1" * 6,
    "xoxb-" + "123456-aB" * 4,
    "ya29." + "aB-1" * 10,
    "AQ." + "aB-1" * 10,
    "fw_" + "aB1" * 8,
    "dapi" + "0f" * 16,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
]
PLAIN = st.text(st.sampled_from(string.ascii_lowercase + " .,;\n()'\"ü€語"))
SECRETS = st.text(
    st.characters(min_codepoint=33, codec="utf-8"), min_size=8, max_size=60
).filter(
    lambda secret: secret == secret.strip() and len(secret) >= 8 and secret not in MARK
)


@given(
    before=PLAIN,
    key=st.sampled_from(KEYS),
    after=st.text(st.sampled_from(" \n'\")}<&")),
)
def test_keys_of_providers_are_found_anywhere(
    before: str, key: str, after: str
) -> None:
    """The key of a provider is redacted in any text, although it is not registered."""
    assert key[8:] not in redact(before + key + after)


@given(before=st.text(), secret=SECRETS, after=st.text())
def test_a_registered_secret_is_found_anywhere(
    before: str, secret: str, after: str
) -> None:
    """Any text can be a registered secret and is found anywhere, and a second redaction changes nothing."""
    register_secret(secret)
    clean = redact(before + secret + after)
    assert secret not in clean
    assert redact(clean) == clean


@given(before=st.binary(max_size=9), secret=SECRETS, after=st.binary(max_size=9))
def test_a_registered_secret_is_found_as_others_write_it(
    before: bytes, secret: str, after: bytes
) -> None:
    """A registered secret is found in addresses, JSON, Python's errors, and in base64 with other bytes around it."""
    register_secret(secret)
    for written in (
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps({"a": secret}),
        json.dumps(secret, ensure_ascii=False),
        repr([secret]),
    ):
        assert written.strip("[]{}\"'") not in redact(f"x{written}y")
    blob = before + secret.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        clean = redact(encode(blob).decode())
        assert MARK in clean
        assert len(clean.replace(MARK, "")) <= 4 * (len(before) + len(after)) / 3 + 8


@given(st.text(st.sampled_from(string.ascii_lowercase + string.digits + " .,:/-_\n")))
def test_text_without_secrets_is_unchanged(text: str) -> None:
    """Words, numbers and file names without a secret are unchanged."""
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Bearer of bad news, a basic misunderstanding, a token economy, the key: love, password: none",
        "task-oriented-dialogue-systems-evaluation risk-averse disk-based hf_hub_download_retries",
        "Using host_organization api key defined in credentials.conf: openaiApiKey",
        "http://127.0.0.1:8000/v1/chat?max_tokens=128000 git@github.com ssh://git@host/path",
        "eyJ is how base64 of JSON begins; AKIA and AIza begin keys; **bold** ***",
        "max_tokens: 12345678, api_key=None, num_tokens=123456789",
        "task-or-question risk-or-benefits ask-internationalization task-json_kv-length-128k xoxo-lovelettersxoxo",
        'GET /v1/models?limit=12345678&after=gpt-4o-2024-05-13, {"key": "0123456789", "tokens": 123456789}',
        "Authorization: missing. Authorization required; the authorization=optional token: abcdefgh1",
        "",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Logs and answers that speak of keys without telling one are unchanged."""
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
        ("authorization: BEARER 0123456789", "authorization: BEARER [redacted]"),
        (
            "{'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='}",
            "{'Authorization': 'Basic [redacted]'}",
        ),
        ("https://user:hunter2@host:80/x", "https://[redacted]@host:80/x"),
        ("mongodb://u:p4ss%20w@db/x", "mongodb://[redacted]@db/x"),
        (
            "Incorrect API key provided: sk-abcd1234****wxyz.",
            "Incorrect API key provided: [redacted].",
        ),
        ("Your key is 0123abcd********wxyz.", "Your key is [redacted]."),
        ("Your key is 0123abcd********", "Your key is [redacted]"),
        ("Your key 'a.key-0123****' is wrong", "Your key '[redacted]' is wrong"),
        ("Your key is ********wxyz", "Your key is [redacted]"),
        ("?api_key=0123456789&x=1", "?api_key=[redacted]&x=1"),
        (
            "https://host/v1beta/models?alt=sse&key=AbCd-0123456 HTTP",
            "https://host/v1beta/models?alt=sse&key=[redacted] HTTP",
        ),
        (
            "/x?subscription-key=0123456789&sig=a%2Fb12345",
            "/x?subscription-key=[redacted]&sig=[redacted]",
        ),
        (
            "X-API-KEY: 0123456789\nX-Api-Key: 9876543210",
            "X-API-KEY: [redacted]\nX-Api-Key: [redacted]",
        ),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
            "AWS_SECRET_ACCESS_KEY=[redacted]",
        ),
        (
            "Authorization: 0123456789, authorization: Token 0123456789",
            "Authorization: [redacted], authorization: Token [redacted]",
        ),
        (
            "'Authorization': 'Bearer abcdefghij'",
            "'Authorization': 'Bearer [redacted]'",
        ),
        (
            r'{"body": "{\"api_key\": \"0123456789\"}"}',
            r'{"body": "{\"api_key\": \"[redacted]\"}"}',
        ),
        (
            '{"token": "abcdefgh1", "secret": "abcdefgh1"}',
            '{"token": "[redacted]", "secret": "[redacted]"}',
        ),
        (
            '{"access_token": "0123456789", "n": 1}',
            '{"access_token": "[redacted]", "n": 1}',
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY----- end",
            "[redacted] end",
        ),
    ],
)
def test_forms_of_secrets(text: str, clean: str) -> None:
    """Only the secret is replaced, and the text around it stays."""
    assert redact(text) == clean


@pytest.mark.parametrize("sign", ["*", "***", "*****wxyz", "...", "…", "...wxyz"])
def test_beginnings_of_registered_secrets(sign: str) -> None:
    """The beginning of a value in use is removed if a server quotes it with stars or dots in the place of its end."""
    register_secret("my-team.secret-0123-abcd-wxyz")
    for start in ("my-t", "my-team.secret-0123"):
        assert (
            redact(f"401: the key={start}{sign}, is wrong")
            == f"401: the key={MARK}, is wrong"
        )
        assert redact(f'{{"key": "{start}{sign}"}}') == f'{{"key": "{MARK}"}}'
    assert (
        redact("Loading the data... my-x... **my-x** *my-t of it*")
        == "Loading the data... my-x... **my-x** *my-t of it*"
    )


def test_a_short_value_is_no_secret() -> None:
    """A short value such as `EMPTY`, which vLLM's clients send, is no secret, because it would make holes in words."""
    register_secret("EMPTY")
    assert redact("EMPTY LINES ARE EMPTY") == "EMPTY LINES ARE EMPTY"


def test_what_is_registered() -> None:
    """The values of variables and credentials with telling names, and the keys of deployments, are registered."""
    register_environment(
        {
            "SOME_API_KEY": "env-key-0001",
            "DB_PASSWORD": "env-pass-0001",
            "HOME": "/home/somebody",
        }
    )
    register_credentials(
        {
            "openaiApiKey": "file-key-0001",
            "openaiBaseUrl": "http://gateway.example",
            "deployments": {"a/b": "deployment-key-0001"},
            "hubs": {"authToken": "nested-token-0001", "n": 3},
        }
    )
    shown = "/home/somebody http://gateway.example"
    hidden = (
        "env-key-0001 env-pass-0001 file-key-0001 deployment-key-0001 nested-token-0001"
    )
    assert redact(f"{shown} {hidden}") == " ".join([shown, *[MARK] * 5])


def test_arguments_of_clients() -> None:
    """Keys by name, headers that gateways invent, and secrets in addresses are registered from arguments at any depth."""
    register_arguments(
        {
            "api_key": "argument-key-1",
            "base_url": "https://me:pass%20word-1@gateway.example/v1?code=query-code-1&api-version=2026-01-01",
            "default_headers": {
                "Authorization": "Bearer header-token-1",
                "X-Team": "header-team-1",
                "anthropic-version": "2023-06-01",
            },
            "default_query": {"subscription-key": "query-key-1"},
            "options": [{"auth": {"user": "nested-user-1", "list": ["nested-item-1"]}}],
            "end_of_text_token": "<|endoftext|>",
            "openai_model_name": "a-model-name",
            "timeout": 600,
        }
    )
    shown = "https://gateway.example/v1?api-version=2026-01-01 2023-06-01 <|endoftext|> a-model-name Bearer"
    hidden = "argument-key-1 query-code-1 header-token-1 header-team-1 query-key-1 nested-user-1 nested-item-1"
    assert redact(f"{shown} {hidden}") == " ".join([shown, *[MARK] * 7])
    assert redact("(pass word-1)(pass%20word-1)") == f"({MARK})({MARK})"


def test_credentials_with_an_address() -> None:
    """The key in an address of HELM's credentials file is registered."""
    register_credentials(
        {"openaiBaseUrl": "https://gateway.example/v1?key=address-key-1"}
    )
    assert redact("address-key-1") == MARK


SECRET = "a-secret-of-the-log-tests"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    register_secret(SECRET)
    before = logging.getLogRecordFactory()
    redact_logs()
    redact_logs()
    caplog.set_level(logging.DEBUG)
    yield caplog
    logging.setLogRecordFactory(before)


def test_logs(log: pytest.LogCaptureFixture) -> None:
    """Secrets are redacted in log messages, in their arguments, also wrong ones, and in the stack."""
    logger = logging.getLogger("anything")
    logger.info(f"message {SECRET}")
    logger.info("argument %s %d", {"header": SECRET}, 3)
    logger.info("too few %s %s", SECRET)
    logger.info("harmless %s", "argument")
    logger.info("stack", stack_info=True)
    assert SECRET not in log.text
    assert f"argument {{'header': '{MARK}'}} 3" in log.text
    assert log.records[3].args == ("argument",)


def test_tracebacks_in_logs(log: pytest.LogCaptureFixture) -> None:
    """Secrets are redacted in logged tracebacks, also in the exceptions that caused an exception."""
    logger = logging.getLogger("anything")
    try:
        try:
            raise ValueError(f"first {SECRET}")
        except ValueError as error:
            raise RuntimeError("second") from error
    except RuntimeError:
        logger.exception("it failed")
    assert f"ValueError: first {MARK}" in log.text
    assert "RuntimeError: second" in log.text
    assert SECRET not in log.text
    try:
        raise ValueError("harmless")
    except ValueError:
        logger.exception("it failed")
    assert log.records[-1].exc_info[0] is ValueError


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redact in Python's own hooks for exceptions and warnings, and restore them after the test."""
    register_secret(SECRET)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    redact_uncaught()
    redact_uncaught()


@pytest.mark.usefixtures("hooks")
@pytest.mark.parametrize("installed", [True, False])
def test_uncaught_exceptions(
    installed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Secrets are redacted in what Python prints of an uncaught exception, and bad input is one line in helm-run."""
    if installed:
        errors.install_excepthook()
    for error in (ValueError(SECRET), KeyError("harmless")):
        sys.excepthook(type(error), error, None)
    errors._excepthook(errors.InputError, errors.InputError(f"argument {SECRET}"), None)
    printed = capsys.readouterr().err
    assert (
        printed
        == f"ValueError: {MARK}\nKeyError: 'harmless'\nhelm-longctx: error: argument {MARK}\n"
    )


class Unclosable:
    def __del__(self) -> None:
        raise ValueError(f"in a destructor {SECRET}")


def fail(message: str) -> None:
    raise ValueError(message)


@pytest.mark.usefixtures("hooks")
def test_uncaught_exceptions_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """Secrets are redacted in exceptions of threads and destructors."""
    for message in (f"in a thread {SECRET}", "harmless"):
        thread = threading.Thread(target=fail, args=(message,), name="the thread")
        thread.start()
        thread.join()
    Unclosable()
    printed = capsys.readouterr().err
    assert SECRET not in printed
    assert f"ValueError: in a thread {MARK}\n" in printed
    assert f"ValueError: in a destructor {MARK}\n" in printed
    assert (
        "Exception in thread the thread:" in printed
    )  # Python's own words where there is nothing to hide


@pytest.mark.usefixtures("hooks")
def test_warnings() -> None:
    """Secrets are redacted in warnings as Python prints and logs them."""
    text = warnings.formatwarning(f"said {SECRET}", UserWarning, "file.py", 3, "line")
    assert text == f"file.py:3: UserWarning: said {MARK}\n  line\n"


def test_formats_of_providers_are_loaded_late() -> None:
    """The package imports no client, and the first text is redacted with the providers' formats even without their packages."""
    code = """
import sys
from helm_longctx.redaction.text import redact
late = "helm_longctx.models.apis.client" not in sys.modules
print(late, redact("sk-ant-api03-0123456789 sk-proj-0123456789 sk-or-0123456789"))
print({"anthropic", "httpx", "httpx2", "openai"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "True [redacted] [redacted] [redacted]",
        "set()",
    ]
