"""Names of the report's pages with the answers of runs."""

import re

from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.reading import Result, Run
from helm_longctx.tasks.task import UNREAD


def page_name(run: Run) -> str:
    """Return the file of the page with a run's instances. The runs of one entry share it."""
    entry = run.shared_name
    # The name alone is not unique, because characters are replaced and its end can be cut.
    readable = re.sub(r"[^A-Za-z0-9]+", "-", entry).strip("-")[:80]
    return f"instances-{readable}-{digest(entry)[:6]}.html"


def link_unread(result: Result) -> str:
    """Return the address of a score's unread answers, empty if the score is of several run entries."""
    pages = {page_name(run) for run in result.runs}
    if len(pages) == 1:
        return f"{pages.pop()}#show={UNREAD}"
    return ""
