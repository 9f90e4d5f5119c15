"""Reported numbers: runs by the protocol of a release, and the comparison with what it reports."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command(
            "reproduce",
            f"{__name__}.command:reproduce",
            "Before and during runs",
            example='"deepseek mrcr 1m mmr" --model-url http://127.0.0.1:8000/v1',
        )
    ],
    pages=[ReportPage("reported", "Reported", f"{__name__}.sections:reported_sections", place=50)],
)
