"""Tests of texts on pages."""

from __future__ import annotations

from helm_longctx.documents.site import _join_numbers


def test_no_line_ends_before_a_percent_sign() -> None:
    """A number and its percent sign stay together, and other spaces stay as they are."""
    text = _join_numbers("better with 95 % certainty, by 3.2 % of A %")
    assert (
        text
        == "better with 95\N{NO-BREAK SPACE}% certainty, by 3.2\N{NO-BREAK SPACE}% of A %"
    )
