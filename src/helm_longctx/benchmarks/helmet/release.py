"""HELMET's repository and release, at the commit that prompts and metrics follow."""

from __future__ import annotations

from helm_longctx.sources.release import PinnedFile, Release, ReleaseFile

COMMIT = "4526dfbdc512bd9ff721da336bff4e3e75ecfd27"
REVISION = f"princeton-nlp/HELMET@{COMMIT[:7]}"
RELEASE = Release("princeton-nlp/HELMET", setting="HELM_LONGCTX_HELMET_REPO", folder="helmet")
REPOSITORY = f"https://raw.githubusercontent.com/princeton-nlp/HELMET/{COMMIT}"


def released(path: str) -> ReleaseFile:
    """A file of the release archive, by its path in the archive's `data` folder."""
    return ReleaseFile(RELEASE, f"helmet/{path}")


def pinned(path: str, sha256: str) -> PinnedFile:
    """A file of HELMET's repository."""
    return PinnedFile(f"helmet/{path}", f"{REPOSITORY}/{path}", sha256)
