"""Verification: scores published outputs of real models again, and compares the scores with the printed ones."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command("verify", f"{__name__}.command:verify", "Results", example="all"),
    ]
)
