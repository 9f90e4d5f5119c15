"""Lets processes that are forked from the tests draw plots.

vl-convert draws in threads of the process. A forked process has no threads of its parent, so it would wait for them
without end if the parent has drawn before.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import vl_convert

CODE = """
import json, sys, vl_convert
arguments, options = json.load(sys.stdin)
drawn = getattr(vl_convert, sys.argv[1])(*arguments, **options)
sys.stdout.buffer.write(drawn.encode() if isinstance(drawn, str) else drawn)
"""
"""A program that calls a function of vl-convert with arguments in JSON."""


def has_drawn() -> bool:
    """Return whether this process has the threads of vl-convert; True if that is not known."""
    tasks = Path("/proc/self/task")
    return not tasks.exists() or any(
        (task / "comm").read_text().startswith("V8") for task in tasks.iterdir()
    )


def draw_in_new_processes() -> None:
    """Replace vl-convert's functions by ones that call them in a new process. This is for forked processes."""
    for name in (
        "javascript_bundle",
        "vegalite_to_pdf",
        "vegalite_to_png",
        "vegalite_to_svg",
    ):
        setattr(vl_convert, name, partial(draw, name))


def draw(name: str, *arguments: Any, **options: Any) -> str | bytes:
    """Call a function of vl-convert in a new process."""
    text = json.dumps([arguments, options]).encode()
    done = subprocess.run(
        [sys.executable, "-c", CODE, name], input=text, capture_output=True, check=False
    )
    if done.returncode:
        raise ValueError(done.stderr.decode())
    return done.stdout if name.endswith(("pdf", "png")) else done.stdout.decode()
