"""Tests of the log of HELM's commands."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest
from helm.common.hierarchical_logger import hlog

from helm_longctx.helm_log import helm_log


def test_messages_of_helm_and_of_this_package_are_in_one_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both write to the logger `helm`, a block indents what is in it, and a record names the place that has written it."""
    logger = logging.getLogger("helm")
    logger.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.INFO, "helm"):
            hlog("HELM's message")
            with suppress(KeyError), helm_log.block("3 requests"):
                helm_log.warning("100 % failed")
                raise KeyError
            helm_log.info("after the block")
    finally:
        logger.removeHandler(caplog.handler)
    records = {record.getMessage(): record for record in caplog.records}
    assert {"HELM's message", "3 requests {", "after the block"} <= records.keys()
    warning = records["  100 % failed"]
    assert warning.levelno == logging.WARNING
    assert Path(warning.pathname) == Path(__file__)
    assert any(message.startswith("} [0.") for message in records)
