"""Compares the name of the model in a reply with the name that was sent.

A server may answer with a model that was not asked for: a fallback, a smaller one, or whatever it has loaded.
"""

from __future__ import annotations

import re

from helm.common.request import RequestResult

from helm_longctx.models.apis.usage import model_of, sent_of

_LATEST = re.compile(r"[-:]latest$")

_SNAPSHOT = re.compile(r"[-@:](\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3})$")
"""The end of a snapshot's name: a date such as 2024-08-06, 20240806, 2407 or 0613, or a version such as 001."""


def find_other_model(result: RequestResult) -> str | None:
    """Return the name in a reply if it belongs to another model than the one that was asked for, or else None."""
    asked, replied = sent_of(result).get("model"), model_of(result)
    if not isinstance(asked, str) or replied is None or is_same_model(asked, replied):
        return None
    return replied


def is_same_model(asked: str, replied: str) -> bool:
    """Whether two names can belong to one model.

    Capitals and a provider's prefix (`openai/`, `models/`) do not count. A name without a date, or with `latest`,
    stands for each of its snapshots. Two different snapshots are two models.
    """
    first, second = _bare_name(asked), _bare_name(replied)
    return first in (second, _SNAPSHOT.sub("", second)) or second == _SNAPSHOT.sub("", first)


def _bare_name(name: str) -> str:
    return _LATEST.sub("", name.lower().rstrip("/").rpartition("/")[2])
