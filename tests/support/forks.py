"""Runs tests in processes that are forks of this one, so that imports and the collection are made once for all of them.

`python -m pytest -p tests.support.forks --forks 3` gives each of three processes one module of tests after another. The
processes of pytest-xdist import and collect everything themselves, which takes 20 seconds of processor time in each one.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class _Started(NamedTuple):
    """Says that the test with this index begins."""

    index: int


class _Reported(NamedTuple):
    """The result of a phase of a test, as pytest serializes it."""

    data: dict[str, Any]


class _Warned(NamedTuple):
    """A warning, with the other arguments of pytest's hook."""

    warning_message: warnings.WarningMessage
    when: str
    nodeid: str
    location: tuple[str, int, str] | None


class _Free(NamedTuple):
    """Asks for the next module of tests."""


@dataclass
class _Worker:
    """A forked process.

    Attributes:
        connection: what it reports with.
        pid: its identifier.
        given: the indexes of the tests that it was given and that have not ended.
        current: the index of the test that runs.
    """

    connection: Connection
    pid: int
    given: deque[int] = field(default_factory=deque)
    current: int | None = None


_REPLACED = "tqdm_monitor"
"""The thread of tqdm, which starts another one in a fork."""

_shared_folder: Path | None = None


def shared_folder() -> Path | None:
    """Return the folder of temporary files that all processes share, if tests run in forks."""
    return _shared_folder


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--forks", type=int, default=0, help="run the tests in so many forks"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks, or let pytest run them in this process."""
    config = session.config
    count = config.getoption("forks")
    if count == 0 or session.testsfailed or config.option.collectonly:
        return None
    _Forks(session).run(count)
    return True


class _Forks:
    """Gives modules of tests to forked processes, and passes their reports on to pytest."""

    def __init__(self, session: pytest.Session):
        self._session = session
        self._hook = session.config.hook
        self._modules = deque(_group_by_module(session.items))
        self._workers: dict[Connection, _Worker] = {}
        self._started = 0

    def run(self, count: int) -> None:
        """Run all tests in so many processes."""
        _prepare(self._session.config)
        try:
            for _ in range(min(count, len(self._modules))):
                self._start_worker()
            while self._workers:
                self._receive_messages()
        finally:
            for worker in self._workers.values():
                os.kill(worker.pid, 9)
                os.waitpid(worker.pid, 0)

    def _start_worker(self) -> None:
        ours, theirs = Pipe()
        number = self._started
        self._started += 1
        pid = os.fork()
        if pid == 0:
            for connection in (ours, *self._workers):
                connection.close()
            _work_and_end(self._session, theirs, number)
        theirs.close()
        self._workers[ours] = _Worker(connection=ours, pid=pid)

    def _receive_messages(self) -> None:
        session = self._session
        for ready in wait(list(self._workers)):
            worker = self._workers[ready]  # type: ignore[index]
            try:
                message = worker.connection.recv()
            except (EOFError, ConnectionResetError):
                self._end_worker(worker)
            else:
                self._handle(worker, message)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)

    def _handle(self, worker: _Worker, message: object) -> None:
        match message:
            case _Free():
                indexes = self._modules.popleft() if self._modules else []
                worker.given.extend(indexes)
                worker.connection.send(indexes)
            case _Started(index=index):
                worker.current = index
                item = self._session.items[index]
                self._hook.pytest_runtest_logstart(
                    nodeid=item.nodeid, location=item.location
                )
            case _Reported(data=data):
                report = self._hook.pytest_report_from_serializable(
                    config=self._session.config, data=data
                )
                self._hook.pytest_runtest_logreport(report=report)
                if report.when == "teardown":
                    worker.given.popleft()
                    worker.current = None
            case _Warned():
                self._hook.pytest_warning_recorded.call_historic(
                    kwargs=message._asdict()
                )

    def _end_worker(self, worker: _Worker) -> None:
        """Forget a process that has ended. If a test has ended it, the test has failed, and another process goes on."""
        del self._workers[worker.connection]
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return
        if worker.current is None:
            raise self._session.Failed(f"a forked process has ended with status {code}")
        item = self._session.items[worker.given.popleft()]
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"{item.nodeid}: its process has ended with status {code}",
            when="call",
        )
        self._hook.pytest_runtest_logreport(report=report)
        if worker.given:
            self._modules.appendleft(list(worker.given))
        if self._modules:
            self._start_worker()


def _group_by_module(items: Sequence[pytest.Item]) -> Iterator[list[int]]:
    """Yield the indexes of the tests of each module."""
    indexes = range(len(items))
    for _, group in groupby(indexes, key=lambda index: items[index].path):
        yield list(group)


def _prepare(config: pytest.Config) -> None:
    """Make in this process what the forks share.

    Raises:
        pytest.UsageError: a thread runs, such as that of a server which a module of tests starts when it is imported. No fork
            has it.
    """
    global _shared_folder
    threads = {thread.name for thread in threading.enumerate()}
    threads -= {threading.main_thread().name, _REPLACED}
    if threads:
        raise pytest.UsageError(f"forks would lack threads: {', '.join(threads)}")
    _shared_folder = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture.is_globally_capturing():
        # Otherwise each fork would print again what was captured before it.
        capture.read_global_capture()
    sys.stdout.flush()
    sys.stderr.flush()


def _work_and_end(session: pytest.Session, connection: Connection, number: int) -> None:
    """Run tests in a fork, and end it without what its parent does at its end."""
    status = 1
    try:
        _separate(session.config, number)
        _run_tests(session, connection)
        status = 0
    except KeyboardInterrupt:
        # Ctrl-C also interrupts the parent, which says so.
        pass
    except BaseException:
        session.config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _separate(config: pytest.Config, number: int) -> None:
    """Give a fork its own temporary files and captured output, and let it print nothing."""
    assert _shared_folder is not None
    folder = _shared_folder / f"fork{number}"
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")


def _run_tests(session: pytest.Session, connection: Connection) -> None:
    hook = session.config.hook
    session.config.pluginmanager.register(_Sender(session.config, connection))
    indexes = _ask_for_indexes(connection)
    index = next(indexes, None)
    while index is not None:
        # Which fixtures end after a test depends on the next one.
        following = next(indexes, None)
        connection.send(_Started(index))
        hook.pytest_runtest_protocol(
            item=session.items[index],
            nextitem=None if following is None else session.items[following],
        )
        index = following


def _ask_for_indexes(connection: Connection) -> Iterator[int]:
    while True:
        connection.send(_Free())
        indexes = connection.recv()
        if not indexes:
            return
        yield from indexes


class _Sender:
    """Sends what pytest reports in a fork."""

    def __init__(self, config: pytest.Config, connection: Connection):
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send the result of a phase of a test."""
        data = self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report
        )
        self._connection.send(_Reported(data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Send a warning without what another process may not be able to read: its source, and a class of its own."""
        category = warning_message.category
        text = str(warning_message.message)
        if category.__module__ != "builtins":
            text = f"{category.__name__}: {text}"
            category = UserWarning
        portable = warnings.WarningMessage(
            message=category(text),
            category=category,
            filename=warning_message.filename,
            lineno=warning_message.lineno,
        )
        self._connection.send(
            _Warned(
                warning_message=portable, when=when, nodeid=nodeid, location=location
            )
        )
