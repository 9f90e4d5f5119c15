"""`models`: list the deployments that come with the package. `models add`: write one for an endpoint.

`models convert`: make a local model from a GGUF file.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from helm_longctx.config.shared import (
    READY,
    LocalPath,
    fill_registries,
    without_helms_log,
)
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.models.apis.provider import client_provider, providers
from helm_longctx.models.endpoints.files import (
    DEPLOYMENTS,
    LISTS,
    add_entries,
    find_entries,
)
from helm_longctx.redaction.text import SECRET_ARGUMENT
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import BENCHMARKS, first_entry

app = typer.Typer(add_completion=False, invoke_without_command=True)

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
"""Allowed names: they can stand in a run entry, and HELM can split them at the slash."""

_ServedName = Annotated[
    str | None,
    typer.Option(
        help="Name of the model on the server. [default: found by NAME in the server's list]"
    ),
]
_Kind = Annotated[
    str | None,
    typer.Option(
        "--type",
        help="Form of requests: chat, completions or both. [default: all that the server answers]",
    ),
]
_ContextLength = Annotated[
    str | None,
    typer.Option(
        help="Context window in tokens, e.g. 128k. [default: the window that the server reports]"
    ),
]
_TokenizerName = Annotated[
    str | None,
    typer.Option(
        help="Tokenizer: hub name, folder, or name in HELM. [default: the tokenizer of the model]"
    ),
]


@app.callback()
def models(
    context: typer.Context,
    copy_to: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Copy the files to this folder, to edit them."
        ),
    ] = None,
) -> None:
    """List the deployments that come with the package and the folder with their files, or add your own."""
    if context.invoked_subcommand:
        return
    if copy_to:
        if existing := [name for name in LISTS if (copy_to / name).exists()]:
            raise InputError(
                f"--copy-to={str(copy_to)!r} already has {', '.join(existing)}; name another folder"
            )
        copy_to.mkdir(parents=True, exist_ok=True)
        for name in LISTS:
            shutil.copyfile(READY / name, copy_to / name)
        print(f"Wrote {', '.join(LISTS)} to {copy_to}", file=sys.stderr)
    folder = copy_to or READY
    baselines = (
        ("longctx/lexical", "none (finds words)"),
        ("longctx/null", "none (a constant answer)"),
    )
    rows = [
        *((name, about, "", "any") for name, about in baselines),
        *list_deployments(folder),
    ]
    print_table(text_table("Deployments", ("model", "server", "key", "window"), rows))
    print(f"helm-longctx run … --local-path {folder}")


def list_deployments(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, server, key variable and window of each deployment in a folder."""
    rows = read_yaml(folder / DEPLOYMENTS)[LISTS[DEPLOYMENTS]]
    for row in rows:
        client = row["client_spec"]["class_name"]
        arguments = row["client_spec"].get("args", {})
        provider = client_provider(client)
        host = provider.host if provider else "this process"
        variable = provider.key_variable if provider else ""
        # A user's own address never gets a provider's key from the environment.
        if "base_url" in arguments:
            host = urlsplit(arguments["base_url"]).netloc
            variable = ""
        window = str(row.get("max_sequence_length", "any"))
        yield row["name"], host, arguments.get("api_key_env", variable), window


@app.command("add")
def add(
    name: Annotated[
        str, typer.Argument(help="Name for run entries, such as my/llama.")
    ],
    url: Annotated[
        str,
        typer.Option(help="Address of the server, such as http://localhost:8000/v1."),
    ],
    model: _ServedName = None,
    api: Annotated[
        str, typer.Option(help=f"Protocol of the server: {' or '.join(providers())}.")
    ] = "openai",
    kind: _Kind = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the key.")
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option(
            help="Start of the names of an OAuth client's variables: NAME for NAME_CLIENT_ID etc."
        ),
    ] = None,
    context: _ContextLength = None,
    tokenizer: _TokenizerName = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="HTTP header, such as 'X-Team: nlp' or 'X-Key: $VAR'."),
    ] = None,
    nvcf: Annotated[
        bool,
        typer.Option(
            "--nvcf", help="Treat --url as a function in NVIDIA Cloud Functions."
        ),
    ] = False,
    local_path: LocalPath = Path("prod_env"),
    replace_entries: Annotated[
        bool, typer.Option("--replace", help="Replace entries of the same name.")
    ] = False,
) -> None:
    """Ask a server what it offers, and write the files that HELM needs to the local path."""
    from helm_longctx.models.endpoints.probe import probe
    from helm_longctx.models.endpoints.registration import (
        find_gaps,
        find_tokenizer,
        load_tokenizer,
        make_entries,
    )

    _check_name("models add", name)
    tokens = parse_length(context, "--context") if context else None
    # The tokenizer is loaded first, so that a wrong name costs no request. HELM must know the names in its registry.
    if tokenizer:
        fill_registries(READY)
    chosen = load_tokenizer(tokenizer) if tokenizer else None
    with without_helms_log():
        endpoint = probe(
            url,
            name=name,
            model=model,
            api=api,
            kind=kind,
            headers=_headers(header or []),
            api_key_env=api_key_env,
            token_env=token_env,
            nvcf=nvcf,
        )
    endpoint = replace(endpoint, context=tokens or endpoint.context)
    if chosen is None:
        try:
            chosen = find_tokenizer(endpoint.source, endpoint.model)
        except InputError as error:
            print(f"note: {error}")
    files = add_entries(
        local_path, make_entries(endpoint, name, chosen), replace_entries
    )
    print(f"{endpoint.url}: {endpoint.model} answers {' and '.join(endpoint.routes)}")
    print(
        f"context: {endpoint.context or 'unknown'}; tokenizer: {chosen.name if chosen else 'none'}"
    )
    if endpoint.refused:
        print(
            f"the server refuses these parameters of HELM: {', '.join(endpoint.refused)}"
        )
    for gap in find_gaps(endpoint, chosen, BENCHMARKS):
        print(f"note: {gap}")
    _print_next(name, files, local_path)


@app.command("convert")
def convert(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="GGUF file with the weights of a language model."
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            file_okay=False, help="New folder for safetensors weights and tokenizer."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="Name for run entries, such as my/llama. With it, a deployment is written."
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(help="Number type of the weights: float32, bfloat16 or float16."),
    ] = "float32",
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Tokenizer: hub name or folder. [default: the tokenizer in the file]"
        ),
    ] = None,
    local_path: LocalPath = Path("prod_env"),
    replace_entries: Annotated[
        bool, typer.Option("--replace", help="Replace entries of the same name.")
    ] = False,
) -> None:
    """Convert a GGUF file into a folder that local models can be loaded from, and check the result.

    The command compares each tensor with the file's, checks the tokenizer, and measures how well the model predicts
    plain English. If a check fails, there is no folder.
    """
    from helm_longctx.models.local import gguf

    if name is not None:
        _check_name("models convert", name)
        if find_entries(local_path, name) and not replace_entries:
            raise InputError(
                f"{local_path} already has {name!r}; choose another name, or give --replace"
            )
    with without_helms_log():
        converted = gguf.convert(file, to, dtype, tokenizer)
    print(
        f"{to}: {converted.tensors} tensors of {dtype}, each equal to the file's;"
        f" {converted.tokens} tokens"
    )
    print(
        f"plain English: {converted.loss:.1f} nats per token (a blind guess: {converted.guess:.1f})"
    )
    print(
        f"context: {converted.window or 'unknown'}; chat template:"
        f" {'yes' if converted.can_chat else 'no'}"
    )
    if name is not None:
        from helm_longctx.models.endpoints.registration import make_local_entries

        entries = make_local_entries(to, name, converted.window, converted.can_chat)
        _print_next(name, add_entries(local_path, entries, replace_entries), local_path)


def _check_name(command: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise bad_argument(
            command,
            "NAME",
            name,
            "ORGANIZATION/NAME of letters, digits, '.', '_' and '-'",
        )


def _print_next(name: str, files: Sequence[Path], local_path: Path) -> None:
    print(f"Wrote {', '.join(map(str, files))}")
    where = "" if local_path == Path("prod_env") else f" --local-path {local_path}"
    print(
        f"helm-longctx run --suite first --model {name} --tasks {first_entry()} --length 8k{where}"
    )


def _headers(lines: Sequence[str]) -> dict[str, str]:
    """Parse headers. A secret is given as the name of a variable, because the files must not contain keys."""
    headers = {}
    for line in lines:
        name, _, value = (part.strip() for part in line.partition(":"))
        if not name or not value:
            raise bad_argument("models add", "header", name, "'NAME: VALUE'")
        if SECRET_ARGUMENT.search(name) and "$" not in value:
            raise bad_argument(
                "models add",
                "header",
                name,
                f"'{name}: $VAR', since its value is a secret",
            )
        headers[name] = value
    return headers
