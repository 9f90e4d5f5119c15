"""Draws Vega-Lite specifications into files."""

from __future__ import annotations

from pathlib import Path

from helm_longctx.documents.plots import THEMES, Spec

SCALE = 2.0
"""Pixels of a PNG for each unit of a plot."""


def write_picture(spec: Spec, path: Path) -> None:
    """Draw a plot with its data into a file. The extension selects the format: `.png`, `.svg` or `.pdf`."""
    import vl_convert

    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec, config=THEMES["light"]), encoding="utf-8")
    elif path.suffix == ".pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(spec, config=THEMES["light"]))
    else:
        path.write_bytes(vl_convert.vegalite_to_png(spec, scale=SCALE, config=THEMES["light"]))
