"""The HTTP library of the installed `openai`, so that the tests run with every version."""

from __future__ import annotations

from typing import Any

import openai

from helm_longctx.models.apis.transport import http_library

HTTP: Any = http_library(openai)
