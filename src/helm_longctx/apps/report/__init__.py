"""The report: the pages of all analyses, the leaderboard, and pages to look into runs."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command("report", f"{__name__}.build:report", "Results", example="--suite lc")
    ],
    pages=[
        ReportPage(
            "",
            "Leaderboard",
            f"{__name__}.leaderboard:leaderboard_sections",
            position=0,
        )
    ],
)
