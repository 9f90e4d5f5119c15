"""Tests of what publishes the package: workflows, the action, the container, and the scripts of a release."""

from __future__ import annotations

import configparser
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm_longctx._version import VERSION
from helm_longctx.cli.main import load_parser
from helm_longctx.environment import page_address

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PIP = re.compile(r"^(?:RUN | +)(pip install .*)$", re.MULTILINE)


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def setup() -> configparser.ConfigParser:
    """Return setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def steps(workflow: Path) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    return [
        step
        for job in yaml.safe_load(workflow.read_text())["jobs"].values()
        for step in job["steps"]
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_each_step_is_a_target(workflow: Path) -> None:
    """Each step of a workflow that runs something is a target of the Makefile, so that nothing exists only there."""
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    commands = [shlex.split(step["run"]) for step in steps(workflow) if "run" in step]
    assert commands
    assert [
        words for words in commands if words[0] != "make" or words[1] not in targets
    ] == []


@pytest.mark.parametrize(
    "path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.stem
)
def test_actions_are_pinned(path: Path) -> None:
    """Actions of others are pinned by their commit, except PyPA's, which names a branch for each major version."""
    used = re.findall(r"uses: (\S+)", path.read_text())
    others = [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)]
    assert set(others) <= {"pypa/gh-action-pypi-publish@release/v1"}
    assert used


def test_the_workflow_tests_the_supported_pythons() -> None:
    """The workflow tests on Linux and macOS each version of Python that setup.cfg names."""
    matrix = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]["pythons"][
        "strategy"
    ]["matrix"]
    classifiers = setup()["metadata"]["classifiers"]
    assert matrix["python"] == re.findall(
        r"Python :: (3\.\d+)$", classifiers, re.MULTILINE
    )
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]


def test_one_recipe() -> None:
    """The container and the action install as the README's recipe does, which `make release` tries."""
    recipe = read("README.md").split("## Start")[1].split("\n\nYou need")[0]
    torch, package = PIP.findall(recipe)
    container = PIP.findall(read("Containerfile"))
    action = PIP.findall(read("action.yml"))
    assert container == [
        torch,
        package.replace("'.[", '"$(echo /tmp/*.whl)[').replace("'", '"'),
    ]
    default = yaml.safe_load(read("action.yml"))["inputs"]["package"]["default"]
    # Until an index has the package, README and action install it from the folder of the repository.
    checkout = 'pip install "${PACKAGE:-$GITHUB_ACTION_PATH[report,openai]}"'
    assert action == [torch, checkout]
    assert package == "pip install '.[report,openai]'"
    assert default == ""
    script = read(".ci/release")
    assert '"$1/bin/pip" install --quiet "$2[report,openai]"' in script
    assert torch.startswith("pip install torch==")


def test_one_setting_says_how_to_install_the_package(tmp_path: Path) -> None:
    """All places say what the setting says, and switching it to a release and back changes all and loses nothing."""
    publication = runpy.run_path(str(ROOT / "docs/publication.py"))
    before = {}
    for words in publication["WORDS"]:
        copy = tmp_path / words.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        before[copy] = read(words.file)
        copy.write_text(before[copy], encoding="utf-8")
        assert words.before in before[copy]
    write = publication["write_words"]
    write(tmp_path, False)
    assert {path: path.read_text(encoding="utf-8") for path in before} == before
    write(tmp_path, True)
    for path in before:
        text = path.read_text(encoding="utf-8")
        assert "not published yet" not in text
        assert text != before[path]
    write(tmp_path, False)
    assert {path: path.read_text(encoding="utf-8") for path in before} == before


def test_the_composition_runs_a_command() -> None:
    """The command beside the vLLM server has valid options, and asks that server for the model that it serves."""
    services = yaml.safe_load(read("compose.yaml"))["services"]
    words = shlex.split(services["longctx"]["command"])
    command = load_parser().commands[words[0]]
    values = command.make_context("run", words[1:]).params
    assert values["model_url"] == "http://vllm:8000/v1"
    assert values["model_name"] == services["vllm"]["command"][1]


@pytest.mark.parametrize(
    ("status", "unsure", "ends"),
    [(0, "fail", 0), (1, "fail", 1), (2, "fail", 2), (3, "fail", 3), (3, "pass", 0)],
)
def test_the_action_ends_as_the_gate(
    status: int, unsure: str, ends: int, tmp_path: Path
) -> None:
    """The action's script gives the gate its inputs word by word, shows what it prints, and ends with its status."""
    (script,) = (
        step["run"]
        for step in yaml.safe_load(read("action.yml"))["runs"]["steps"]
        if step.get("id") == "gate"
    )
    program = tmp_path / "bin/helm-longctx"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {status}\n')
    program.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "BASE": "a/b", "CANDIDATE": "c/d; touch x",
        "ARGUMENTS": "--subset ci", "LOCAL_PATH": "my files", "UNSURE": unsure,
        "GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == ends
    given = [
        "gate",
        "a/b",
        "c/d; touch x",
        "--local-path",
        "my files",
        "--subset",
        "ci",
    ]
    assert done.stdout.splitlines() == given
    assert (tmp_path / "output").read_text() == f"status={status}\n"
    assert "c/d; touch x" in (tmp_path / "summary").read_text()
    assert not (tmp_path / "x").exists()


def test_the_action_comments(tmp_path: Path) -> None:
    """The action's comment has the verdict and the end of what the gate printed, and its words run nothing."""
    (step,) = (
        step
        for step in yaml.safe_load(read("action.yml"))["runs"]["steps"]
        if step.get("id") == "comment"
    )
    program = tmp_path / "bin/gh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >given\n')
    program.chmod(0o755)
    (tmp_path / "gate.txt").write_text(
        "x" * 70_000 + "\nlength  drop\n4k  6 points\nWORSE\n"
    )
    environment = {
        **os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "NUMBER": "12", "STATUS": "1",
        "BASE": "a/b", "CANDIDATE": "c/d; touch x", "GITHUB_REPOSITORY": "me/it", "GITHUB_RUN_ID": "7",
        "GITHUB_SERVER_URL": "https://github.com",
    }  # fmt: skip
    subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=True
    )
    given = [
        "api",
        "repos/me/it/issues/12/comments",
        "-F",
        "body=@comment.md",
        "--silent",
    ]
    assert (tmp_path / "given").read_text().splitlines() == given
    comment = (tmp_path / "comment.md").read_text()
    assert comment.startswith("Gate of c/d; touch x against a/b: **worse**\n```text\n")
    assert comment.endswith("\nWORSE\n```\nhttps://github.com/me/it/actions/runs/7\n")
    assert len(comment) < 65_536
    assert not (tmp_path / "x").exists()


def test_an_sdist_is_the_same_everywhere(tmp_path: Path) -> None:
    """Archives of the same files that were made at other times, by other users and in another order become equal."""
    files = {"p/a.py": b"x = 1\n", "p/run": b"#!/bin/sh\n"}
    for name, seconds, user, order in (
        ("one", 1, "ann", 1),
        ("two", 999_999_999, "bob", -1),
    ):
        with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as archive:
            for path in [*files][::order]:
                member = tarfile.TarInfo(path)
                member.size = len(files[path])
                member.mtime = seconds
                member.uname = user
                member.uid = seconds
                member.mode = 0o770 if path == "p/run" else 0o600 + seconds % 2 * 0o044
                archive.addfile(member, io.BytesIO(files[path]))
        command = [
            sys.executable,
            ROOT / ".ci/reproduce.py",
            tmp_path / f"{name}.tar.gz",
        ]
        subprocess.run(
            command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        )
    one, two = ((tmp_path / f"{name}.tar.gz").read_bytes() for name in ("one", "two"))
    assert one == two
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        assert {member.name: (member.mode, member.mtime) for member in archive} == {
            "p/a.py": (0o644, 1_700_000_000),
            "p/run": (0o755, 1_700_000_000),
        }
        assert {name: archive.extractfile(name).read() for name in files} == files  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tag", "changelog", "told"),
    [
        (f"v{VERSION}", f"## [{VERSION}] - 2026-12-01\n", ""),
        (
            f"v{VERSION}",
            "## [Unreleased]\n",
            f"CHANGELOG.md has no section [{VERSION}]\n",
        ),
        (
            "v0.0.1",
            "",
            f"the tag v0.0.1 does not name the version {VERSION} of src/helm_longctx/_version.py\n",
        ),
    ],
)
def test_a_tag_names_the_version(
    tag: str, changelog: str, told: str, tmp_path: Path
) -> None:
    """A release starts only if its tag is the version of the package, and the changelog has this version."""
    for path in (".ci/check-tag", "src/helm_longctx/_version.py"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(read(path))
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    done = subprocess.run(
        ["bash", tmp_path / ".ci/check-tag", tag],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1 if told else 0, told)


def test_one_address() -> None:
    """The metadata and the site name the same address of the documentation, and no code names it, which has no owner yet."""
    urls = dict(
        line.split(" = ")
        for line in setup()["metadata"]["project_urls"].strip().splitlines()
    )
    assert f"site_url: {urls['Documentation']}\n" in read("mkdocs.yml")
    code = [
        path
        for path in (ROOT / "src").rglob("*.py")
        if "readthedocs" in path.read_text(encoding="utf-8")
    ]
    assert code == []


def test_pages_that_errors_name_exist() -> None:
    """Each page and anchor that an error names is in the documentation."""
    source = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {
        name
        for text in source
        for name in re.findall(r"""page_address\(["']([\w/#-]+)["']\)""", text)
    }
    assert {"judges", "judges#keys", "running", "reference/data"} <= named
    for name in named:
        path, _, anchor = page_address(name).partition("#")
        heads = re.findall(
            r"^#+ (.*)", Path(path).read_text(encoding="utf-8"), re.MULTILINE
        )
        assert not anchor or anchor in {
            re.sub(r"[^\w-]+", "-", head.lower()).strip("-") for head in heads
        }, name


def test_the_wheel_has_the_pages(tmp_path: Path) -> None:
    """A package that is built has all pages, links between files lead to files of it, and errors name these pages."""
    built = tmp_path / "built"
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "egg_info",
        "--egg-base",
        str(tmp_path),
        "build_py",
        "-d",
        str(built),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    pages = built / "helm_longctx/pages"
    of_clone = {
        path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")
    }
    assert {path.relative_to(pages) for path in pages.rglob("*.md")} == of_clone
    links = [
        (page, link)
        for page in pages.rglob("*.md")
        for link in re.findall(r"\]\(([^)#\s:]+\.md)", page.read_text())
    ]
    assert len(links) > 100
    assert [
        f"{page}: {link}" for page, link in links if not (page.parent / link).is_file()
    ] == []
    code = "from helm_longctx.environment import page_address; print(page_address('judges#keys'))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=built,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == f"{pages / 'judges.md'}#keys\n"


def test_the_description_has_only_absolute_links(tmp_path: Path) -> None:
    """The description in the metadata has no relative link, and its links into the repository lead to files at the tag."""
    names = "setup.py setup.cfg pyproject.toml README.md LICENSE NOTICE src/helm_longctx/_version.py"
    for path in names.split():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    (tmp_path / "metadata").mkdir()
    build = "from setuptools.build_meta import prepare_metadata_for_build_wheel as make; make('metadata')"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (metadata,) = tmp_path.glob("metadata/*/METADATA")
    header, _, text = metadata.read_text(encoding="utf-8").partition("\n\n")
    assert "Description-Content-Type: text/markdown" in header
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", text)
    assert [
        target for target in targets if not target.startswith(("https://", "#"))
    ] == []
    inside = re.compile(
        rf"{re.escape(setup()['metadata']['url'])}/(?:blob|raw)/v{re.escape(VERSION)}/([^#]+)"
    )
    paths = [match[1] for match in map(inside.match, targets) if match]
    relative = re.findall(r"\]\((?!https?://|#)[^)]+\)", read("README.md"))
    assert len(paths) == len(relative) > 30
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_zenodo_has_the_citation() -> None:
    """What Zenodo stores agrees with CITATION.cff, and both name the version's license and authors."""
    zenodo = json.loads(read(".zenodo.json"))
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (zenodo["title"], zenodo["license"]) == (
        citation["title"],
        citation["license"],
    )
    assert zenodo["creators"] == citation["authors"]
    assert setup()["metadata"]["author"] == citation["authors"][0]["name"]
    assert citation["version"] == VERSION
