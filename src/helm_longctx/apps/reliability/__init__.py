"""Reliability: what cut answers and known errors can change in scores."""

from helm_longctx.apps.app import App, ReportPage

APP = App(
    pages=[
        ReportPage(
            "scrutiny",
            "Cut answers and errors",
            f"{__name__}.sections:scrutiny_sections",
            position=100,
        ),
    ]
)
