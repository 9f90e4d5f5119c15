"""Files of other programs: exports of a suite, and imports of results and answers."""

from helm_longctx.apps.app import App, Command

APP = App(
    commands=[
        Command(
            "export",
            f"{__name__}.command:export",
            "Results",
            example="--suite lc --format lm-eval --to results",
        ),
        Command(
            "import",
            f"{__name__}.command:import_results",
            "Results",
            example="HELMET/output/Llama-3.1-8B --suite lc --model meta/llama-3.1-8b",
        ),
    ]
)
