"""Subsets: the fewest tasks that order published models as the whole benchmark does."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command(
            "subset",
            f"{__name__}.command:subset",
            "Tasks and data",
            example="helmet --price 0.1",
        )
    ]
)
