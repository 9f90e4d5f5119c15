"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock
from helm.benchmark import model_deployment_registry as registry
from helm.benchmark.model_metadata_registry import ALL_MODELS_METADATA
from helm.benchmark.tokenizer_config_registry import ALL_TOKENIZER_CONFIGS
from hypothesis import settings as hypothesis_settings

from helm_longctx.__main__ import ALLOCATIONS
from helm_longctx.data.root import DataRoot
from helm_longctx.models.apis import oauth, rates
from helm_longctx.redaction import logs, text
from helm_longctx.run_settings import MIRROR
from tests.support import punkt, quick_files
from tests.support.commands import Command
from tests.support.fabricate import SHARED_MIRROR, build_mirror

if TYPE_CHECKING:
    from selenium import webdriver

BASELINES = ("longctx/lexical", "longctx/null")

REGISTRIES: tuple[list[Any], ...] = (
    registry.ALL_MODEL_DEPLOYMENTS,
    ALL_MODELS_METADATA,
    ALL_TOKENIZER_CONFIGS,
)

# Machines differ, and the first example of a test pays for imports. The examples of a commit are always the same, so that
# a failure belongs to a change; `HELM_LONGCTX_NEW_EXAMPLES=1 pytest` draws others, and twice as many.
NEW_EXAMPLES = os.environ.get("HELM_LONGCTX_NEW_EXAMPLES") == "1"
hypothesis_settings.register_profile(
    "project",
    deadline=None,
    derandomize=not NEW_EXAMPLES,
    max_examples=100 if NEW_EXAMPLES else 50,
)
hypothesis_settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    """Give this process and those that it starts a punkt model, which HELM's metrics else download when they are imported."""
    # The collection makes millions of objects that stay. Garbage collections, which visit them again and again, took
    # half of its time. Later ones are as rare as in our command.
    gc.disable()
    gc.set_threshold(ALLOCATIONS)
    # A shell lets its background programs ignore SIGINT, and so would all programs that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = tempfile.TemporaryDirectory(prefix="nltk_data")
    config.add_cleanup(folder.cleanup)
    # NLTK reads the variable when it is imported. `tests.mutants` has imported it before.
    os.environ["NLTK_DATA"] = folder.name
    if "nltk" in sys.modules:
        sys.modules["nltk"].data.path.insert(0, folder.name)
    punkt.write_model(Path(folder.name))
    quick_files.replace_parsers()


def pytest_collection_finish() -> None:
    """Leave what the collection made out of garbage collections, each of which would visit millions of its objects."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def own_workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep fixtures of modules away from `prod_env` and `benchmark_output` of a user, who runs the tests in a clone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("workplace"))
        yield


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a mirror folder with fabricated data, which no test may change."""
    # All workers share one folder, because making it takes ten seconds.
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    if SHARED_MIRROR in os.environ:
        shared = Path(os.environ[SHARED_MIRROR])
    with FileLock(shared / "mirror.lock"):
        if not (shared / "mirror").exists():
            build_mirror(shared / "mirror.part").rename(shared / "mirror")
    return DataRoot(shared / "mirror", mirror=True)


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Return a callable that runs `helm-longctx` in this process, and keeps what it printed."""
    return Command(monkeypatch, capsysbinary)


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing in the plots of reports that a test does not look at. A drawing takes a tenth of a second."""
    import vl_convert

    svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda *spec, **options: svg)
    monkeypatch.setattr(vl_convert, "vegalite_to_pdf", lambda *spec, **options: b"%PDF")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Yield the headless Chromium of this process."""
    from tests.e2e.browser import start_chromium

    with start_chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(chromium: webdriver.Chrome) -> webdriver.Chrome:
    """Return the Chromium with a tab that no other module has used."""
    earlier = chromium.current_window_handle
    chromium.switch_to.new_window("tab")
    own = chromium.current_window_handle
    chromium.switch_to.window(earlier)
    chromium.close()
    chromium.switch_to.window(own)
    return chromium


@pytest.fixture(scope="module", autouse=True)
def own_baselines() -> Iterator[None]:
    """Forget after a module what its tests registered for the baselines, because HELM takes a model's last deployment."""
    before = set(registry.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT)
    yield
    for deployment in list(registry.ALL_MODEL_DEPLOYMENTS):
        if (
            deployment.name not in before
            and deployment.name != deployment.model_name
            and deployment.model_name in BASELINES
        ):
            registry.ALL_MODEL_DEPLOYMENTS.remove(deployment)
            registry.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(deployment.name, None)


@pytest.fixture(scope="session")
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the paths of new empty folders. One takes a tenth of the time of `tmp_path`, which lists all earlier folders."""
    base = tmp_path_factory.mktemp("folders")
    return map(_make_folder, (base / str(number) for number in itertools.count()))


def _make_folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def fresh_process(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    own_folders: Iterator[Path],
) -> Iterator[None]:
    """Start every test as a new process would start, whatever earlier tests and their modules' fixtures did.

    It has no mirror, no secrets to redact, and a folder of its own, which is `tmp_path` if the test asks for that. This is
    one fixture, because each one costs a tenth of a millisecond in each of 11,000 tests.
    """
    monkeypatch.setattr(text, "_forms", ())
    monkeypatch.delenv(MIRROR, raising=False)
    has_folder = "tmp_path" in request.fixturenames
    monkeypatch.chdir(
        request.getfixturevalue("tmp_path") if has_folder else next(own_folders)
    )
    _forget_servers()
    lengths = [len(entries) for entries in REGISTRIES]
    root = logging.getLogger()
    handlers = list(root.handlers)
    level = root.level
    _reset_loggers()
    yield
    _reset_loggers()
    root.handlers = handlers
    _set_level(root, level)
    _shorten_registries(lengths)
    # No later test may write to the closed standard error of the test that imported NLTK.
    punkt.keep_standard_error()


def _forget_servers() -> None:
    """Forget what earlier tests found out about servers, because the system gives their ports again.

    Also forget which warnings were logged, each of which is logged once in a process.
    """
    rates.pace.cache_clear()
    oauth.token_source.cache_clear()
    logs.warn_once.cache_clear()
    client = sys.modules.get("helm_longctx.judging.keys.client")
    if client is not None:
        client._found.clear()


def _shorten_registries(lengths: Sequence[int]) -> None:
    """Remove the entries that a test repeats in HELM's lists.

    Each of HELM's commands adds about 1,000 entries to them, and each run entry searches them several times.
    """
    for entries, length in zip(REGISTRIES, lengths, strict=True):
        if len(entries) > length:
            last = {
                entry.name: entry for entry in reversed(entries)
            }  # HELM takes a model's last deployment
            entries[:] = reversed(last.values())


def _reset_loggers() -> None:
    """Leave loggers as Python makes them.

    HELM's commands set levels, stop the propagation to pytest's handlers, and add a handler that would go on to write
    to a test's closed output.
    """
    for name in ("helm", "helm_longctx", "helm_longctx.runner.batches"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
        _set_level(logger, logging.NOTSET)


def _set_level(logger: logging.Logger, level: int) -> None:
    if (
        logger.level != level
    ):  # because each change makes all loggers forget what they have found out
        logger.setLevel(level)
