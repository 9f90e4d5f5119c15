"""Says where sources come from: the publisher's page, the revision, and by what the content is checked."""

from __future__ import annotations

import re
from typing import NamedTuple

from helm_longctx.data.bucket import BucketFile
from helm_longctx.data.fetch import Source
from helm_longctx.data.hub import HubDataset, HubFile, HubRows, HubZip
from helm_longctx.data.release import PinnedFile, ReleaseFile
from helm_longctx.data.repository import RepositoryFolder
from helm_longctx.data.sentence_model import SentenceModel
from helm_longctx.data.web import WebFile
from helm_longctx.data.wheel import WheelFile

NEWEST = "the newest commit at the download, which is recorded"

HUB_CHECK = "the hub's SHA-256"

_GITHUB = re.compile(r"https://(?:raw|media)\.githubusercontent\.com/(?:media/)?([^/]+/[^/]+)/([^/]+)/")

_HUB = re.compile(r"https://huggingface\.co/datasets/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/")


class Origin(NamedTuple):
    """Where a source comes from.

    Args:
        page: address of the publisher's page.
        revision: what is fetched of it.
        check: the value with which the content is compared, or who states that value.
    """

    page: str
    revision: str
    check: str


def find_origin(source: Source) -> Origin:
    """Return where a source comes from.

    Raises:
        TypeError: the source is of an unknown kind.
    """
    match source:
        case ReleaseFile():
            return Origin(_hub(source.release.repo), f"{source.release.archive}, {NEWEST}", HUB_CHECK)
        case HubDataset() | HubZip():
            repo = source.repo_id if isinstance(source, HubDataset) else source.repo
            return Origin(_hub(repo), NEWEST, HUB_CHECK)
        case HubFile():
            page = _hub(source.repo) if source.kind == "dataset" else f"https://huggingface.co/{source.repo}"
            check = f"SHA-256 {source.sha256}" if source.sha256 else HUB_CHECK
            return Origin(page, source.commit[:7] or NEWEST, check)
        case HubRows():
            return Origin(_hub(source.repo), source.commit[:7], HUB_CHECK)
        case RepositoryFolder():
            return Origin(f"https://github.com/{source.repo}", source.commit[:7], f"git tree {source.tree}")
        case WheelFile():
            return Origin(f"https://pypi.org/project/{source.project}/", source.version, f"SHA-256 {source.sha256}")
        case SentenceModel():
            return Origin(f"https://pypi.org/project/{source.project}/", source.version, "SHA-256 of each file")
        case BucketFile():
            page = f"https://console.cloud.google.com/storage/browser/{source.bucket}"
            return Origin(page, "the newest generation at the download, which is recorded", "the bucket's MD5")
        case PinnedFile():
            return _of_address(source.url, f"SHA-256 {source.sha256}")
        case WebFile():
            return _of_address(source.url, f"git blob {source.blob}" if source.blob else "nothing")
    raise TypeError(f"{type(source).__name__} is no known kind of source")


def _hub(repo: str) -> str:
    return f"https://huggingface.co/datasets/{repo}"


def _of_address(url: str, check: str) -> Origin:
    """Return the origin of a file on a server: the repository at GitHub or on the hub, or the folder of the file."""
    if match := _GITHUB.match(url):
        repo, revision = match.groups()
        is_commit = re.fullmatch("[0-9a-f]{40}", revision)
        return Origin(f"https://github.com/{repo}", revision[:7] if is_commit else f"branch {revision}", check)
    if match := _HUB.match(url):
        return Origin(_hub(match["repo"]), match["revision"][:7], check)
    return Origin(url.rpartition("/")[0], "the file at the address", check)
