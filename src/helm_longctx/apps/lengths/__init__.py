"""Scores by length, by the depth of the relevant text, and by the difficulty of generated tasks."""

from helm_longctx.apps.app import App, ReportPage

APP = App(
    pages=[
        ReportPage(
            "length", "Length", f"{__name__}.curves:length_sections", position=10
        ),
        ReportPage(
            "heat", "Heat tables", f"{__name__}.curves:heat_sections", position=20
        ),
        ReportPage("depth", "Depth", f"{__name__}.curves:depth_sections", position=30),
        ReportPage(
            "complexity", "Complexity", f"{__name__}.curves:sweep_sections", position=40
        ),
    ]
)
