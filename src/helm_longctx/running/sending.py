"""Sending a request through HELM's client of a deployment: how long it may take, and what is tried again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from helm.clients.client import Client
from helm.common.context import Context
from helm.common.request import Request, RequestResult
from tenacity import RetryCallState, Retrying, retry_if_exception, retry_if_result, stop_after_attempt
from tenacity import wait_exponential_jitter as wait_longer_each_time

from helm_longctx.errors import InputError, shorten
from helm_longctx.judging.calls import limited
from helm_longctx.redaction.text import redacted
from helm_longctx.running.failures import Failure, failure_of
from helm_longctx.settings import number_setting

TIMEOUT, DEFAULT_TIMEOUT = "HELM_LONGCTX_TIMEOUT", 1800.0
"""Seconds that a request may take, with all that is tried: a million tokens take minutes to read, and may queue."""

WAIT, DEFAULT_WAIT = "HELM_LONGCTX_WAIT", 5.0
"""Seconds before a request is sent for the second time; doubled before each further time."""

LONGEST_WAIT = 80.0
"""Seconds."""

TRIES = 6
"""How often a request is sent that fails for the time being; over as long a time as with HELM's own retries."""
