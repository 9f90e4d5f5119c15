"""Comparisons of models on the questions that they share, and of a model's methods with its plain prompts."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command(
            "compare",
            f"{__name__}.sections:compare",
            "Results",
            example="openai/gpt-6-luna longctx/lexical --suite lc",
        )
    ],
    pages=[
        ReportPage(
            "comparison",
            "Comparison",
            f"{__name__}.sections:comparison_sections",
            position=60,
        )
    ],
)
