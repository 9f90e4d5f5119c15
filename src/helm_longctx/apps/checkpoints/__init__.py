"""Checkpoints: the scores of one training over its steps."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command(
            "checkpoints",
            f"{__name__}.sections:checkpoints",
            "Results",
            example="--suite lc",
        )
    ],
    pages=[
        ReportPage(
            "checkpoints",
            "Checkpoints",
            f"{__name__}.sections:checkpoint_sections",
            position=62,
        )
    ],
)
