"""The effective-context file: what was measured of a model's context, for programs that choose how much to send.

`certify` and `export --format effective-context` write it. Its JSON schema is docs/reference/effective-context.schema.json.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from helm_longctx.writing import replace_file

FILE = "effective-context.json"

FORMAT: Literal["helm-longctx/effective-context/1"] = "helm-longctx/effective-context/1"


class _Part(BaseModel):
    """A part of the file. Unknown fields are refused, and values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MeasuredLength(_Part):
    """A score at a length."""

    length: int = Field(ge=0, description="Tokens, as the benchmark counts them.")
    score: float = Field(description="The task's headline metric, mostly from 0 to 1.")
    low: float | None = Field(description="Lower end of the score's interval.")
    high: float | None = Field(description="Upper end of the score's interval.")
    level: float = Field(
        gt=0,
        lt=1,
        description="Confidence level of the interval.",
    )
    questions: int = Field(ge=0, description="Questions with an answer.")
    failed: int = Field(
        ge=0, description="Requests without an answer. They are in no score."
    )
    is_effective: bool | None = Field(
        description="Whether the length is effective by the rule; null if it is open."
    )
    caveats: list[str] = Field(
        description="Why the score is not comparable. Empty if it is."
    )
    measured_on: date


class MeasuredTask(_Part):
    """A task at several lengths."""

    task: str = Field(description="Run entry and task, or the kind of a certificate.")
    protocol: str = Field(description="What the prompts and the metric follow.")
    unit: str = Field(description="What a length counts.")
    rule: str = Field(description="When a length is called effective.")
    effective_tokens: int | None = Field(
        description="The longest length that is effective for sure; null if none is."
    )
    lengths: list[MeasuredLength]


class CertifiedLength(_Part):
    """The verdict of a certificate."""

    claim: int = Field(gt=0, description="The claimed length in tokens.")
    holds: bool | None = Field(
        description="Whether it is effective; null if it is open."
    )
    effective_tokens: int | None
    not_effective_tokens: int | None
    error: float = Field(description="Largest probability of a wrong verdict.")
    stands_on: list[str] = Field(description="The kinds that decide.")


class EffectiveContext(_Part):
    """What was measured of the context of one model."""

    format: Literal["helm-longctx/effective-context/1"] = FORMAT
    model: str = Field(description="The deployment that was asked.")
    made_by: str = Field(description="The program that wrote the file.")
    certificate: CertifiedLength | None
    tasks: list[MeasuredTask]


def longest_effective(lengths: list[MeasuredLength]) -> int | None:
    """Return the longest length that is effective for sure."""
    effective = []
    for measured in lengths:
        if measured.is_effective:
            effective.append(measured.length)
    return max(effective, default=None)


def write_effective_context(content: EffectiveContext, path: Path) -> None:
    """Write the file."""
    replace_file(path, content.model_dump_json(indent=1).encode(), b"\n")


def effective_context_schema() -> str:
    """Return the JSON schema as it is published."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **EffectiveContext.model_json_schema(),
    }
    return json.dumps(schema, indent=1) + "\n"
