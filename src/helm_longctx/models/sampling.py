"""Requests that say how the model draws the tokens of an answer, beyond what HELM's requests can say."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from helm.common.request import Request

Kind = TypeVar("Kind", bound=Request)


@dataclass(frozen=True)
class SampledRequest(Request):
    """A request with the parameters of sampling that HELM's own class lacks.

    Args:
        top_k, min_p, seed: see the protocol of the server; None sends none.
        asked: the parameters that the run entry gives. They are sent or the request fails, because an answer without
            them is an answer to another request.
    """

    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    asked: tuple[str, ...] = ()


def with_sampling(request: Request, arguments: Mapping[str, float], trial: int = 0) -> Request:
    """Add the arguments of a run entry to a request; return the same request if there are none.

    Args:
        arguments: from names in `tasks.entry.SAMPLING` to values. The temperature is in the request already.
        trial: the number of the repeat. Each repeat has a seed of its own.
    """
    if not arguments:
        return request
    names = {"sampling_seed": "seed"}
    given: dict[str, Any] = {names.get(name, name): value for name, value in arguments.items()}
    for name, more in (("seed", trial), ("top_k", 0)):
        if name in given:
            given[name] = int(given[name]) + more
    return with_fields(SampledRequest, request, **given, asked=tuple(given))


def with_fields(kind: type[Kind], request: Request, **others: Any) -> Kind:
    """Return a request of another class, with the fields of the given one that it has, too, and with others."""
    own = {
        field.name: getattr(request, field.name)
        for field in fields(kind)
        if hasattr(request, field.name)
    }
    return kind(**{**own, **others})


def asked_of(request: Request) -> tuple[str, ...]:
    """Return the parameters that the run entry of a request gives."""
    return getattr(request, "asked", ())
