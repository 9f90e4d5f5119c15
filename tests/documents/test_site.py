"""Tests of texts on pages."""

from __future__ import annotations

from pathlib import Path

import pytest
import vl_convert

from helm_longctx.documents import site
from helm_longctx.documents.site import _join_numbers


def test_no_line_ends_before_a_percent_sign() -> None:
    """A number and its percent sign stay together, and other spaces stay as they are."""
    text = _join_numbers("better with 95 % certainty, by 3.2 % of A %")
    assert (
        text
        == "better with 95\N{NO-BREAK SPACE}% certainty, by 3.2\N{NO-BREAK SPACE}% of A %"
    )


def test_the_script_of_plots_is_made_once_for_all_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Later processes read the script from the user's cache, and make it again if the file is damaged or of another version."""
    made: list[str] = []

    def bundle(embed: str) -> str:
        made.append(embed)
        return f"draw();\n// {len(made)}"

    def make() -> str:
        site.make_plot_script.cache_clear()  # as in another process
        return site.make_plot_script()

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setattr(site, "cache_folder", lambda: tmp_path / "cache")
    try:
        assert [make(), make()] == ["draw();\n// 1"] * 2
        (kept,) = (tmp_path / "cache").iterdir()
        kept.write_bytes(kept.read_bytes()[:-1])
        assert [make(), make()] == ["draw();\n// 2"] * 2
        monkeypatch.setattr(site, "version", lambda name: "0.0.1")
        assert [make(), make()] == ["draw();\n// 3"] * 2
        (tmp_path / "file").touch()
        monkeypatch.setattr(site, "cache_folder", lambda: tmp_path / "file")
        assert make() == "draw();\n// 4"  # a cache that cannot be written
    finally:
        site.make_plot_script.cache_clear()
