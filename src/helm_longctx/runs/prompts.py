"""The prompts of a run, whole and once: `prompts.zst` holds the texts, `prompts.json` says where each stands.

Prompts that share text follow each other, and the compressor looks back 32 MB, so that a book with forty questions or
a haystack at six depths takes the room of one. `zstd -dc prompts.zst` gives all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import zstandard

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.conversation import to_text

TEXTS, INDEX = "prompts.zst", "prompts.json"
_WINDOW_LOG = 25
_FRAME = 256 << 20
"""Bytes of text after which a new frame begins: what is read at most to get one prompt."""


def write_prompts(run_path: Path, prompts: Iterable[tuple[str, str]]) -> None:
    """Write a run's prompts. The index comes last: where there is one, the texts are those that it tells of.

    Args:
        prompts: (instance's name, prompt), in an order that puts alike ones together. Equal prompts are stored once.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=_WINDOW_LOG, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    index: dict[str, str] = {}
    places: dict[str, tuple[int, int, int]] = {}
    frame = start = 0
    (run_path / INDEX).unlink(missing_ok=True)
    with (run_path / TEXTS).open("wb") as file, compressor.stream_writer(file, closefd=False) as stream:
        for instance, prompt in prompts:
            index[instance] = name = digest(prompt)
            if name in places:
                continue
            if start >= _FRAME:
                stream.flush(zstandard.FLUSH_FRAME)
                frame, start = file.tell(), 0
            data = prompt.encode("utf-8", "surrogatepass")
            stream.write(data)
            places[name] = (frame, start, len(data))
            start += len(data)
    part = run_path / f"{INDEX}.part"
    part.write_bytes(orjson.dumps({"instances": index, "prompts": places}, option=orjson.OPT_INDENT_2))
    os.replace(part, run_path / INDEX)


def read_prompts(run_path: Path) -> Iterator[tuple[str, bytes]]:
    """Digest and UTF-8 text of each stored prompt, one in memory at a time; none where our runner stored none.

    Raises:
        ValueError: a text is not what was sent.
        OSError, KeyError, zstandard.ZstdError: a file is damaged otherwise.
    """
    if not (run_path / INDEX).is_file():
        return
    places = orjson.loads((run_path / INDEX).read_bytes())["prompts"]
    with (run_path / TEXTS).open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        for name, (_, _, size) in places.items():
            data = stream.read(size)
            if hashlib.sha256(data).hexdigest() != name:
                raise ValueError(f"{name} is damaged")
            yield name, data


def instance_names(prompts: Iterable[tuple[str, str | None, str]]) -> list[str]:
    """A name for each instance of a run: its id, unless instances with other prompts have the same id.

    Those get a number, and their sub-split: `q7#1:asqa`, `q7#2:qampari`.

    Args:
        prompts: (instance id, sub-split, digest of the prompt), in the data's order.
    """
    rows = list(prompts)
    numbers: dict[str, dict[str, int]] = {}
    for instance_id, _, sent in rows:
        same = numbers.setdefault(instance_id, {})
        same.setdefault(sent, len(same) + 1)
    return [
        f"{name}#{numbers[name][sent]}" + (f":{sub_split}" if sub_split else "") if len(numbers[name]) > 1 else name
        for name, sub_split, sent in rows
    ]


def full_prompt(run_path: Path, instance: str) -> str:
    """The prompt that was sent for an instance, as it was sent; of HELM's own runner's runs too.

    A conversation is the JSON of its messages.

    Args:
        instance: its id, or its name (see `instance_names`) where instances share an id.

    Raises:
        InputError: there is no such run, no such instance or several, a file is damaged, or the stored text is not what
            was sent.
    """
    if not (run_path / INDEX).is_file():
        return _stock_prompt(run_path, instance)
    name = _chosen(run_path, _parsed(run_path / INDEX)["instances"], instance)
    return stored_prompt(run_path, name, instance)


def stored_prompt(run_path: Path, sent: str, instance: str) -> str:
    """The prompt of which our runner sent this digest.

    Args:
        instance: is named where it is damaged.

    Raises:
        InputError: a file is damaged, or the stored text is not what was sent.
    """
    index = _parsed(run_path / INDEX)
    with suppress(OSError, KeyError, UnicodeError, zstandard.ZstdError):
        prompt = _text(run_path / TEXTS, *index["prompts"][sent])
        if digest(prompt) == sent:
            return prompt
    raise InputError(f"{run_path / TEXTS} is damaged: the prompt of {instance} is not what was sent")


def _text(path: Path, frame: int, start: int, size: int) -> str:
    with path.open("rb") as file:
        file.seek(frame)
        with zstandard.ZstdDecompressor().stream_reader(file) as stream:
            stream.seek(start)
            return stream.read(size).decode("utf-8", "surrogatepass")


def _stock_prompt(run_path: Path, name: str) -> str:
    path = run_path / "scenario_state.json"
    if not path.is_file():
        raise InputError(f"{run_path} is not the folder of a run that has begun")
    states = _parsed(path)["request_states"]
    names = instance_names(
        (state["instance"]["id"], state["instance"].get("sub_split"), digest(_asked(state))) for state in states
    )
    state = _chosen(run_path, dict(zip(names, states, strict=True)), name)
    prompt = _asked(state)
    sent = (state["instance"].get("extra_data") or {}).get("full_prompt", {}).get("sha256")
    if sent not in (None, digest(prompt)):
        raise InputError(f"{run_path / INDEX} is missing, and {path.name} holds {name} only in part")
    return prompt


def _asked(state: dict[str, Any]) -> str:
    return to_text(state["request"]["prompt"], state["request"].get("messages"))


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())  # orjson takes no lone surrogates
    except ValueError as error:
        raise InputError(f"{path} is not a whole file; make that run again") from error


def _chosen(run_path: Path, by_name: dict[str, Any], name: str) -> Any:
    if name in by_name:
        return by_name[name]
    if shared := [other for other in by_name if other.rpartition("#")[0] == name]:
        raise bad_argument(run_path.name, "instance", name, f"{', '.join(shared)}, which share this name")
    some = list(by_name)[:3]
    raise bad_argument(run_path.name, "instance", name, f"{', '.join(some)} … ({len(by_name)} in all)")
