"""Checks of judges: against known verdicts, with each other, and with people."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command(
            "judge-check",
            f"{__name__}.command:judge_check",
            "Judges",
            example="--judge openai/gpt-6-luna",
        ),
        Command(
            "judge-agreement",
            f"{__name__}.command:judge_agreement",
            "Judges",
            example="--judged benchmark_output/runs/lc",
        ),
    ]
)
