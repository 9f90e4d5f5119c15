"""A hook of mkdocs: the addresses of pages that were merged lead to the sections that have their text now."""

from pathlib import Path
from typing import Any

MOVED = {
    "api-clients": "models/#api-clients",
    "batch": "scale/#batches",
    "citations": "judges/#citations",
    "formats": "results/#export",
    "gated-tokenizers": "models/#gated-tokenizers",
    "judge-a-summary": "own-questions/#4-let-a-judge-grade",
    "judge-check": "judges/#check-a-judge",
    "keys": "judges/#keys",
    "leaderboard": "results/#leaderboard",
    "local-models": "models/#local-models",
    "my-endpoint": "models/#add-a-server",
    "offline": "data/#offline-mirror",
    "report": "results/#report",
    "run-config": "running/#run-configurations",
    "run-folder": "running/#files-of-a-run",
    "truncation": "fidelity/#prompts-that-are-too-long",
}
"""Old pages, and the pages and sections to which they lead."""

PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=../{0}"><a href="../{0}">Moved</a>'


def on_post_build(config: Any) -> None:
    """Write a page at each old address that opens the new one.

    Args:
        config: mkdocs' configuration, of which `site_dir` is read.
    """
    for old, new in MOVED.items():
        folder = Path(config["site_dir"]) / old
        folder.mkdir()
        (folder / "index.html").write_text(PAGE.format(new), encoding="utf-8")
