"""Requests that say how the model draws the tokens of an answer, beyond what HELM's requests can say."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from helm_longctx.helm_api import Request
from helm_longctx.tasks.request_settings import Sampling

_Kind = TypeVar("_Kind", bound=Request)


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


def with_sampling(request: Request, sampling: Sampling, trial: int = 0) -> Request:
    """Add what a run entry says of sampling to a request; return the same request if that is nothing.

    Args:
        trial: the number of the repeat. Each repeat has a seed of its own.
    """
    given: dict[str, Any] = dict(sampling.items())
    if not given:
        return request
    if sampling.sampling_seed is not None:
        given["seed"] = given.pop("sampling_seed") + trial
    return with_fields(SampledRequest, request, **given, asked=tuple(given))


def with_fields(kind: type[_Kind], request: Request, **others: Any) -> _Kind:
    """Return a request of another class, with the fields of the given one that it has, too, and with others."""
    own = {}
    for field in fields(kind):
        if hasattr(request, field.name):
            own[field.name] = getattr(request, field.name)
    return kind(**{**own, **others})


def asked_of(request: Request) -> tuple[str, ...]:
    """Return the parameters that the run entry of a request gives."""
    return getattr(request, "asked", ())
