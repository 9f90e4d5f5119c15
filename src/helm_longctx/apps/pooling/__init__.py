"""All questions of all benchmarks in one analysis."""

from helm_longctx.apps.app import App, ReportPage

APP = App(
    pages=[
        ReportPage(
            "all-instances",
            "All instances",
            f"{__name__}.sections:pooling_sections",
            position=200,
            whole=True,
        )
    ]
)
