"""The task model. Authors of benchmarks import everything that they need from here.

The names in `__all__` are public and stable; docs/adding-a-benchmark.md describes them. Everything else can change with
any release. No module here imports HELM or names a benchmark.
"""

from helm_longctx.data.hub import HubDataset, HubFile, HubZip
from helm_longctx.data.jsonl import FileRow, JsonArray, JsonLines, Types
from helm_longctx.data.release import PinnedFile, Release, ReleaseFile
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import RepositoryFolder, WebFile
from helm_longctx.data.wheel import WheelFile
from helm_longctx.errors import InputError
from helm_longctx.tasks.benchmark import (
    Benchmark,
    Category,
    Erratum,
    Metric,
    Terms,
    read_benchmark,
    read_errata,
    task_fields,
)
from helm_longctx.tasks.generated_text import draw_lines, insert_lines
from helm_longctx.tasks.judgement import Judgement
from helm_longctx.tasks.lengths import (
    INPUT_TOKENS,
    STANDARD,
    Axis,
    sizes_in_tokens,
)
from helm_longctx.tasks.methods.memory import make_memory_method
from helm_longctx.tasks.methods.method import Method, Question
from helm_longctx.tasks.prompt import (
    NO_TEMPLATE,
    FollowUp,
    Message,
    RenderedPrompt,
    Template,
)
from helm_longctx.tasks.publications import Published
from helm_longctx.tasks.task import (
    TEXT,
    TEXTS,
    Baseline,
    Example,
    MetricValues,
    Reasoning,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Variant,
    are_all,
    is_number,
    is_text,
    is_whole,
)

__all__ = [
    "INPUT_TOKENS", "NO_TEMPLATE", "STANDARD", "TEXT", "TEXTS", "Axis", "Baseline", "Benchmark", "Category",
    "DataRoot", "Erratum", "Example", "FileRow", "FollowUp", "HubDataset", "HubFile", "HubZip", "InputError",
    "JsonArray", "JsonLines", "Judgement", "Message", "Method", "Metric", "MetricValues", "PinnedFile", "Published",
    "Question", "Reasoning", "Release", "ReleaseFile", "RenderedPrompt", "RepositoryFolder", "ScorerInput", "Settings",
    "Shape", "Task", "Template", "Terms", "Types", "Variant", "WebFile", "WheelFile", "are_all", "draw_lines",
    "insert_lines", "is_number", "is_text", "is_whole", "make_memory_method", "read_benchmark", "read_errata",
    "sizes_in_tokens", "task_fields",
]  # fmt: skip
