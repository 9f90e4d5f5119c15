"""Correlations: which tasks order models alike, what scores have to do with properties of models, judges with rules."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command(
            "correlations",
            f"{__name__}.command:correlations",
            "Results",
            example="helmet --models instruct",
        )
    ],
    pages=[
        ReportPage(
            "tasks", "Correlations", f"{__name__}.sections:task_sections", position=70
        ),
        ReportPage(
            "models", "Models", f"{__name__}.sections:model_sections", position=80
        ),
        ReportPage(
            "judged",
            "Judged scores",
            f"{__name__}.sections:judged_sections",
            position=90,
        ),
    ],
)
