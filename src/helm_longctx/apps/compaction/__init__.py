"""Compaction: what a compactor of transcripts loses."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command(
            "compaction",
            f"{__name__}.command:compaction",
            "Before and during runs",
            example="session.jsonl --compactor compact --model openai/gpt-5-mini --dry-run",
        )
    ]
)
