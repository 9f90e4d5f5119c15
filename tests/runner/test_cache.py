"""Tests that HELM's request cache has no prompts, and that answers cached by HELM's runner are not used."""

from __future__ import annotations

from pathlib import Path

from helm.benchmark.runner import Runner
from helm.common.cache import Cache, SqliteCacheConfig, get_all_from_sqlite

from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.cache import DigestCacheBackendConfig, DigestStore
from tests.runner.making import ENTRY, CachedClient, make_run

ENTRY += "test/cached"


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    """A second run sends nothing, and its cache has no prompt."""
    make_run(tmp_path, ENTRY)
    asked = list(CachedClient.asked)
    assert len(asked) == 12
    make_run(tmp_path, ENTRY)
    assert CachedClient.asked == asked
    assert (
        sum(path.stat().st_size for path in (tmp_path / "cache").iterdir())
        < sum(map(len, asked)) / 4
    )
    assert all(
        list(key) == ["sha256"]
        for key, _ in get_all_from_sqlite(str(tmp_path / "cache/test.sqlite"))
    )


def test_what_the_stock_runner_cached_is_not_used(tmp_path: Path) -> None:
    """Answers that HELM's runner cached are not used, because they do not name the server, and both runners share a folder."""
    for entry in (ENTRY, ENTRY.replace("8k", "4k")):
        for runner in (Runner, LongContextRunner, Runner, LongContextRunner):
            make_run(tmp_path, entry, runner)
    assert len(CachedClient.asked) == 2 * (12 + 12)


def test_a_disabled_cache_stays_disabled(tmp_path: Path) -> None:
    """With `--disable-cache` a second run sends everything again, and nothing is cached."""
    for _ in range(2):
        make_run(tmp_path, ENTRY, cache=False)
    assert len(CachedClient.asked) == 24
    assert not list((tmp_path / "cache").glob("*.sqlite"))


def test_helms_own_caches_are_as_they_were(tmp_path: Path) -> None:
    """The patch changes only our caches, whose rows are in the same files as HELM's."""
    theirs = Cache(SqliteCacheConfig(str(tmp_path / "a.sqlite")))
    ours = Cache(DigestCacheBackendConfig(str(tmp_path)).get_cache_config("a"))
    make_run(tmp_path, ENTRY)  # the hook is there now
    assert theirs.get({"prompt": "p"}, lambda: {"text": "1"}) == ({"text": "1"}, False)
    assert list(get_all_from_sqlite(str(tmp_path / "a.sqlite"))) == [
        ({"prompt": "p"}, {"text": "1"})
    ]
    assert ours.get({"prompt": "p"}, lambda: {"text": "2"}) == ({"text": "2"}, False)
    assert ours.get({"prompt": "p"}, lambda: {"text": "3"}) == ({"text": "2"}, True)
    with DigestStore(str(tmp_path / "a.sqlite")) as store:
        assert [store.contains({"prompt": name}) for name in "pq"] == [True, False]
    with DigestStore(str(tmp_path / "a.sqlite"), "server") as store:
        assert not store.contains({"prompt": "p"})
