"""Reported numbers: the protocols of releases, and the comparison of runs with what releases report."""

from helm_longctx.apps.app import App, ReportPage

APP = App(
    pages=[
        ReportPage(
            "reported",
            "Reported",
            f"{__name__}.reproduction:reported_sections",
            position=50,
        )
    ]
)
