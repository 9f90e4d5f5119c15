"""Certificates: the longest length at which a model answers as well as at a short one."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command(
            "certify",
            f"{__name__}.command:certify",
            "Before and during runs",
            example="--model-url http://127.0.0.1:8000/v1 --claim 128k --dry-run",
        )
    ]
)
