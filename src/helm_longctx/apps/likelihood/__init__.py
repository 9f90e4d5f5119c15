"""Likelihood: log-probabilities of gold answers with and without the context, and of texts by position."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command(
            "likelihood",
            f"{__name__}.sections:likelihood",
            "Results",
            example="--suite lc",
        )
    ],
    pages=[
        ReportPage(
            "likelihood",
            "Likelihood",
            f"{__name__}.sections:likelihood_sections",
            position=62,
            whole=True,
        )
    ],
)
