"""The task model. Authors of benchmarks import everything that they need from here.

The names in `__all__` are public and stable; docs/adding-a-benchmark.md describes them. Everything else can change with
any release. No module here imports HELM or names a benchmark.
"""

from helm_longctx.errors import InputError
from helm_longctx.protocol.baseline import Baseline
from helm_longctx.protocol.benchmark import Benchmark, Category, Metric, Published
from helm_longctx.protocol.lengths import INPUT_TOKENS, STANDARD, Axis
from helm_longctx.protocol.prompt import FollowUp, Message, Prompt
from helm_longctx.protocol.shapes import TEXT, TEXTS, Shape
from helm_longctx.protocol.task import Example, Record, Scores, Settings, Task, Variant
from helm_longctx.protocol.template import NO_TEMPLATE, Template
from helm_longctx.sources.hub import HubDataset, HubFile, HubZip
from helm_longctx.sources.jsonl import JsonArray, JsonLines
from helm_longctx.sources.release import PinnedFile, Release, ReleaseFile
from helm_longctx.sources.repository import RepositoryFolder
from helm_longctx.sources.root import DataRoot
from helm_longctx.sources.web import WebFile
from helm_longctx.sources.wheel import WheelFile

__all__ = [
    "INPUT_TOKENS",
    "NO_TEMPLATE",
    "STANDARD",
    "TEXT",
    "TEXTS",
    "Axis",
    "Baseline",
    "Benchmark",
    "Category",
    "DataRoot",
    "Example",
    "FollowUp",
    "HubDataset",
    "HubFile",
    "HubZip",
    "InputError",
    "JsonArray",
    "JsonLines",
    "Message",
    "Metric",
    "PinnedFile",
    "Prompt",
    "Published",
    "Record",
    "Release",
    "ReleaseFile",
    "RepositoryFolder",
    "Scores",
    "Settings",
    "Shape",
    "Task",
    "Template",
    "Variant",
    "WebFile",
    "WheelFile",
]
