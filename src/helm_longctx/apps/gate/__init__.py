"""Gates: whether a candidate deployment is worse than a base, on identical requests."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command(
            "gate",
            f"{__name__}.command:gate",
            "Before and during runs",
            example="my/bf16 my/fp8 --tasks helmet_rag --length 8k,32k --max-drop 2",
        )
    ]
)
