"""Memory systems: what they keep of long conversations, between no context and the whole one, by one reader."""

from helm_longctx.apps.app import App, Command, ReportPage

APP = App(
    commands=[
        Command(
            "memory",
            f"{__name__}.sections:memory",
            "Results",
            example="--suite memory",
        )
    ],
    pages=[
        ReportPage(
            "memory",
            "Memory systems",
            f"{__name__}.sections:memory_sections",
            position=116,
            whole=True,
        )
    ],
)
