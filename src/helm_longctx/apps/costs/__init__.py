"""Score and cost: what each model and method costs beside its score, and which ones no other one beats."""

from helm_longctx.apps.app import App, ReportPage

APP = App(
    pages=[
        ReportPage(
            "costs",
            "Score and cost",
            f"{__name__}.sections:cost_sections",
            position=115,
        )
    ]
)
