"""Reliability: how far the scores of a sample can be trusted, and what cut answers and known errors can change."""

from helm_longctx.apps.app import App, ReportPage

APP = App(
    pages=[
        ReportPage(
            "scrutiny",
            "Cut answers and errors",
            f"{__name__}.sections:scrutiny_sections",
            place=100,
        ),
        ReportPage(
            "reliability", "Reliability", f"{__name__}.sections:reliability_sections", place=110
        ),
    ]
)
