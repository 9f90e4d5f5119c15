"""What identifies a model that is an object: a digest of a function's code, or of a model's weights and tokenizer."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.models.local.folders import digest_folder

PLAIN = (str, bytes, int, float, bool, type(None))
"""Types whose values a digest covers. A list or a mapping may change while a function is asked."""

_SAMPLES = 64
"""Values of each tensor that a digest covers one by one, besides the sum of all bits."""

_DIGITS = 16

_CALL = "__call__"


def describe_function(function: Any) -> dict[str, Any]:
    """Return what identifies a function: digests of its code, and of what it closes over where that is plain data.

    Functions that it calls count if they are of its own module. No value is in it, because one can be a key.
    """
    values = _Values()
    code = "".join(values.describe(function))
    return {
        "code": _digest(code),
        **{name: _digest(text) for name, text in values.closed.items()},
    }


class _Values:
    """Describes functions, each once.

    Attributes:
        closed: what functions close over, by `closure NAME` or `global NAME`.
    """

    def __init__(self) -> None:
        self.closed: dict[str, str] = {}
        self._seen: set[int] = set()

    def describe(self, value: Any) -> Iterator[str]:
        """Yield the parts of a description of a callable object."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, functools.partial):
            yield repr([_plain(argument) for argument in value.args])
            yield repr(
                {name: _plain(argument) for name, argument in value.keywords.items()}
            )
            yield from self.describe(value.func)
        elif isinstance(value, types.MethodType):
            yield from self._describe_fields(value.__self__)
            yield from self.describe(value.__func__)
        elif isinstance(value, types.FunctionType):
            yield from self._describe_function(value)
        elif isinstance(called := _find_call(value), types.FunctionType):
            yield from self._describe_fields(value)
            yield from self.describe(called)
        else:
            yield f"{type(value).__module__}.{getattr(value, '__qualname__', type(value))}"

    def _describe_fields(self, owner: Any) -> Iterator[str]:
        for name, value in sorted(getattr(owner, "__dict__", {}).items()):
            if isinstance(value, PLAIN):
                self.closed[f"field {name}"] = _plain(value)
        yield type(owner).__qualname__

    def _describe_function(self, function: types.FunctionType) -> Iterator[str]:
        yield from _describe_code(function.__code__)
        yield repr([_plain(value) for value in function.__defaults__ or ()])
        yield repr(
            {
                name: _plain(default)
                for name, default in (function.__kwdefaults__ or {}).items()
            }
        )
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                value = cell.cell_contents
            except ValueError:  # it has no value yet
                continue
            yield from self._describe_value(f"closure {name}", value)
        for name in sorted(_used_names(function.__code__)):
            value = function.__globals__.get(name)
            is_plain = isinstance(value, PLAIN) and value is not None
            if is_plain or getattr(value, "__module__", None) == function.__module__:
                yield from self._describe_value(f"global {name}", value)

    def _describe_value(self, name: str, value: Any) -> Iterator[str]:
        if isinstance(value, (*PLAIN, tuple, frozenset)):
            self.closed[name] = _plain(value)
        elif isinstance(
            value, types.FunctionType | types.MethodType | functools.partial
        ):
            yield from self.describe(value)


def _find_call(value: Any) -> Any:
    """Return the function that runs when an object is called."""
    return getattr(type(value), _CALL, None)


def _describe_code(code: types.CodeType) -> Iterator[str]:
    """Yield what a function does, without the numbers of its lines."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _describe_code(constant)
        else:
            yield _plain(constant)


def _used_names(code: types.CodeType) -> set[str]:
    """Return the names that a function and those inside of it look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _used_names(constant)
    return names


def _plain(value: Any) -> str:
    """Return the text of plain data; of other data only its type."""
    if isinstance(value, tuple):
        return repr([_plain(part) for part in value])
    if isinstance(value, frozenset):
        return repr(sorted(_plain(part) for part in value))
    if isinstance(value, PLAIN):
        return repr(value)
    return type(value).__qualname__


def describe_loaded(model: Any, tokenizer: Any) -> dict[str, Any]:
    """Return digests of a loaded model's weights and settings, and of its tokenizer with the chat template."""
    settings = getattr(model, "generation_config", None)
    described = {"weights": digest_weights(model)}
    if settings is not None:
        described["generation_config"] = _digest(str(settings))
    return described | describe_tokenizer(tokenizer)


def describe_tokenizer(tokenizer: Any) -> dict[str, Any]:
    """Return digests of a tokenizer of transformers and of its chat template; of a folder, of its files."""
    if tokenizer is None:
        return {}
    if not hasattr(tokenizer, "encode"):
        folder = Path(tokenizer)
        return {
            "tokenizer": digest_folder(folder) if folder.is_dir() else str(tokenizer)
        }
    backend = getattr(tokenizer, "backend_tokenizer", None)
    described = {} if backend is None else {"tokenizer": _digest(backend.to_str())}
    template = getattr(tokenizer, "chat_template", None)
    if template is None:
        return described
    return {**described, "chat_template": _digest(str(template))}


def digest_weights(model: Any) -> str:
    """Return a digest of a model's tensors. It reads each once, on the tensor's device, and copies a few values.

    It is the same on every device.
    """
    import torch

    tensors = [*model.named_parameters(), *model.named_buffers()]
    parts = []
    for name, tensor in tensors:
        kind = f"{name} {tuple(tensor.shape)} {tensor.dtype}"
        if tensor.device.type == "meta" or not tensor.numel():
            parts.append(kind)
            continue
        with torch.no_grad():
            # Sums of bits do not depend on the order, as sums of real numbers do.
            flat = tensor.detach().contiguous().reshape(-1)
            bits = _view_bits(flat)
            total = int(bits.sum(dtype=torch.int64))
            step = max(1, bits.numel() // _SAMPLES)
            samples = bits[::step].cpu().tolist()
        parts.append(f"{kind} {total} {samples}")
    return _digest("\n".join(parts))


def _view_bits(flat: Any) -> Any:
    """Return a flat tensor's bits as whole numbers."""
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return flat.view(kinds.get(flat.element_size(), torch.uint8))


def find_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two identities, or nothing if there was none before."""
    if not before:
        return []
    plain: dict[str, Any] = orjson.loads(orjson.dumps(now, default=str))
    names: Iterable[str] = [*plain, *(name for name in before if name not in plain)]
    changed = []
    for name in names:
        if name not in _NOTES and plain.get(name) != before.get(name):
            changed.append(name)
    return changed


RESUMED = "resumed"
"""Key of an identity for what had changed when a call went on anyway."""

_NOTES = (RESUMED,)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
