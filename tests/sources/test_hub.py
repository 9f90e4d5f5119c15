"""Hub data sets over a real local HTTP server, through huggingface_hub itself."""

from __future__ import annotations

import io
import json
from pathlib import Path

import datasets
import huggingface_hub.constants
import pytest

from helm_longctx.errors import InputError
from helm_longctx.sources import hub as sources_hub
from helm_longctx.sources.hub import HubDataset, ensure, label_names
from helm_longctx.sources.root import DataRoot
from tests.sources.hub_server import COMMIT, Hub, serve

SECRET = "hf_secretsecretsecret"
DATASET = HubDataset("org/letters", {"train": 700, "test": 3}, config="plus")


def parquet(rows: int) -> bytes:
    """A parquet file as the hub's conversion has it, label names in its schema."""
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["a", "bé"])})
    table = datasets.Dataset.from_dict(
        {"text": [f"text {n} 文\n" * 20 for n in range(rows)], "label": [n % 2 for n in range(rows)]}, features=features
    )
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


TRAIN_0, TRAIN_1, TEST = parquet(400), parquet(300), parquet(3)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A hub with one data set, and huggingface_hub pointed at it."""
    files = {
        "plus/train/0001.parquet": TRAIN_1,
        "plus/train/0000.parquet": TRAIN_0,
        "plus/test/0000.parquet": TEST,
        "other/test/0000.parquet": b"not for us",
    }
    with serve(Hub({"org/letters": files})) as served:
        point_at(monkeypatch, served.url, tmp_path)
        yield served


def point_at(monkeypatch: pytest.MonkeyPatch, url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    monkeypatch.setattr(
        huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)


def root(tmp_path: Path, mirror: bool = False) -> DataRoot:
    (tmp_path / "data").mkdir(exist_ok=True)
    return DataRoot(tmp_path / "data", mirror)


def refused(tmp_path: Path, dataset: HubDataset = DATASET) -> str:
    """The one line that a failing fetch ends in; nothing half-written may stay, and no token may show."""
    with pytest.raises(InputError) as caught:
        ensure(dataset, root(tmp_path), "fetch it")
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert not list((tmp_path / "data").rglob("*.part"))
    assert not list((tmp_path / "data").rglob("features.json"))
    return message


def test_rows_labels_and_source_are_kept(hub: Hub, tmp_path: Path) -> None:
    """A fetched data set has its rows in order, its label names and a record of where it came from."""
    folder = ensure(DATASET, root(tmp_path), "fetch it")
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["text"].split(" ")[1] for row in rows] == [str(n) for n in (*range(400), *range(300))]
    assert rows[1]["label"] == 1
    assert label_names(folder, "label") == ["a", "bé"]
    source = json.loads((folder / "source.json").read_text())
    assert source["commit"] == COMMIT
    assert source["rows"] == {"train": 700, "test": 3}
    assert sorted(source["files"]) == ["plus/test/0000.parquet", "plus/train/0000.parquet", "plus/train/0001.parquet"]


def test_what_is_there_is_not_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    """The second call makes no request."""
    ensure(DATASET, root(tmp_path), "fetch it")
    made = len(hub.requests)
    ensure(DATASET, root(tmp_path), "fetch it")
    assert len(hub.requests) == made > 0


def test_a_mirror_is_never_filled(hub: Hub, tmp_path: Path) -> None:
    """With a mirror folder the error names files, folder and command, and nothing is asked of the hub."""
    with pytest.raises(InputError, match=r"lacks hub/org__letters/plus/train.jsonl.*get it with: fetch it"):
        ensure(DATASET, root(tmp_path, mirror=True), "fetch it")
    assert hub.requests == []


def test_a_cut_download_is_taken_up_again(hub: Hub, tmp_path: Path) -> None:
    """A connection that breaks in the middle costs nothing but the rest of the file."""
    hub.cut = 1
    folder = ensure(DATASET, root(tmp_path), "fetch it")
    assert (folder / "train.jsonl").read_text(encoding="utf-8").count("\n") == 700


def test_wrong_content_is_refused(hub: Hub, tmp_path: Path) -> None:
    """Content that is not what the hub's digest says is refused."""
    hub.etag = "0" * 64
    assert "SHA-256" in refused(tmp_path)


def test_wrong_number_of_rows_is_refused(hub: Hub, tmp_path: Path) -> None:
    """Another release than the benchmark's is refused."""
    message = refused(tmp_path, HubDataset("org/letters", {"train": 699, "test": 3}, config="plus"))
    assert "has 700 rows, expected 699" in message


def test_missing_split_is_named(hub: Hub, tmp_path: Path) -> None:
    """A split that the conversion lacks is named."""
    assert "no split 'dev'" in refused(tmp_path, HubDataset("org/letters", {"dev": 3}, config="plus"))


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_a_hub_that_refuses(hub: Hub, tmp_path: Path, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any refusal ends in one line."""
    hub.status = status
    assert "hub data set org/letters" in refused(tmp_path)


def test_unknown_repository(hub: Hub, tmp_path: Path) -> None:
    """A repository that is not there is named, with the way to log in."""
    assert "set HF_TOKEN" in refused(tmp_path, HubDataset("org/none", {"train": 1}))


def test_unreadable_parquet(hub: Hub, tmp_path: Path) -> None:
    """A file that is not parquet is refused."""
    hub.repos["org/letters"]["plus/test/0000.parquet"] = b"PAR1 nonsense PAR1"
    assert "cannot be read" in refused(tmp_path)


def test_no_hub_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a network the error offers a mirror folder."""
    point_at(monkeypatch, "http://127.0.0.1:9", tmp_path)
    assert "HELM_LONGCTX_DATA" in refused(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"label": 3}', '{"label": [1]}', '{"features": {"label": {}}}'])
def test_malformed_features(tmp_path: Path, text: str) -> None:
    """Any malformed `features.json` ends in one line that names it."""
    (tmp_path / "features.json").write_text(text)
    with pytest.raises(InputError, match=r"features\.json"):
        label_names(tmp_path, "label")


def test_both_forms_of_features(tmp_path: Path) -> None:
    """Label names are read from a plain mapping and from the hub's own description."""
    (tmp_path / "features.json").write_text('{"features": {"label": {"names": ["x"], "_type": "ClassLabel"}}}')
    assert sources_hub.label_names(tmp_path, "label") == ["x"]
