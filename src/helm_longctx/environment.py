"""Reads settings from environment variables, and checks which packages are installed."""

from __future__ import annotations

import codecs
import locale
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

from helm_longctx.errors import InputError, PreconditionError

_PAGES = Path(__file__).with_name("pages")
"""The pages of the documentation in an installed package (setup.py). In a clone they are in `docs`."""

TIMEOUT = "HELM_LONGCTX_TIMEOUT"
DEFAULT_TIMEOUT = 1800.0
"""Seconds that a request may take with all its attempts. A million tokens take a server minutes to read."""

MEBIBYTE = 1 << 20

MAX_REPLY = "HELM_LONGCTX_MAX_REPLY"
DEFAULT_MAX_REPLY = 64.0
"""Mebibytes that a reply of a server may have after decompression."""

MAX_COST = "HELM_LONGCTX_MAX_COST"
"""Dollars that the requests of a process may cost; no limit if it is not set."""

EXTRAS = {
    "openai-tokens": ("tiktoken",),
    "local": ("gguf", "accelerate"),
    "judges": ("authlib", "genai_prices", "krippendorff"),
    "citations": ("google.protobuf", "sentencepiece"),
    "code": (
        "tree_sitter",
        *(
            f"tree_sitter_{name}"
            for name in ("cpp", "go", "java", "python", "rust", "typescript")
        ),
    ),
    "plot": ("vl_convert",),
    "pooling": ("choix",),
    "report": ("vl_convert",),
    "prices": ("genai_prices",),
    "ray": ("ray",),
    "retrieval": ("bm25s",),
    "similarity": ("sentence_transformers",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "tensorboard": ("tensorboard",),
    "trackio": ("trackio",),
}
"""The modules of each extra in setup.cfg. Tasks name the extras that they need (`Task.extras`).

scikit-learn and scipy, which come with crfm-helm, are left out. So are the packages of providers, which are in their
records (`models/apis/provider.py`)."""


_PINNED_TORCH = re.compile(r"torch\s*\(?==\s*([\d.]+)")

_CUDA = "libtorch_cuda.so"
"""A file that only torch's builds for CUDA have, and that torchvision's builds for CUDA name."""


def check_encoding() -> None:
    """Raise an `InputError` if text files are not read as UTF-8, as HELM and its files need it."""
    encoding = locale.getpreferredencoding(False)
    if codecs.lookup(encoding).name != "utf-8":
        raise InputError(
            f"the locale's encoding is {encoding}, in which HELM's files cannot be"
            " read; set PYTHONUTF8=1"
        )


def page_address(page: str) -> str:
    """Return where a page, such as `judges#keys`, is on this machine. The documentation has no site yet."""
    name, mark, anchor = page.partition("#")
    folder = _PAGES if _PAGES.is_dir() else Path(__file__).parents[2] / "docs"
    return f"{folder / name}.md{mark}{anchor}"


@dataclass(frozen=True)
class EnvironmentValues:
    """Values that come before environment variables, such as those of a configuration.

    HELM makes clients and annotators by the names of their classes, and passes no values of ours to them. So the
    settings of the work in progress are kept here, where they are read (`read_setting`).

    Args:
        values: by the name of the variable. An empty text hides the variable.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use the values while the block runs, besides those in use. The environment does not change."""
        global _in_use
        before = _in_use
        self.keep()
        try:
            yield
        finally:
            _in_use = before

    def keep(self) -> None:
        """Use the values from now on, besides those in use."""
        global _in_use
        _in_use = EnvironmentValues({**_in_use.values, **self.values})


_in_use = EnvironmentValues()


def settings_in_use() -> EnvironmentValues:
    """Return the settings of the work in progress."""
    return _in_use


def read_setting(name: str) -> str:
    """Return the value of a setting: of those in use, or else of the environment variable. Empty if there is neither."""
    value = _in_use.values.get(name)
    return os.environ.get(name, "") if value is None else value


def number_setting(name: str, default: float, whole: bool = False) -> float:
    """Return the number in an environment variable, or the default if it is not set or empty.

    Raises an `InputError` if it is not a number above 0, or not a whole number although `whole` is set.
    """
    value = read_setting(name) or str(default)
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6 or (whole and number % 1):
        raise InputError(
            f"{name}={value!r} is invalid; give a {'whole ' if whole else ''}number above 0"
        )
    return number


def request_timeout() -> float:
    """Return the seconds that a request may take, or raise an `InputError` if the variable has a wrong value."""
    return number_setting(TIMEOUT, DEFAULT_TIMEOUT)


def max_reply() -> int:
    """Return the most bytes of a decompressed reply, or raise an `InputError` if the variable has a wrong value."""
    return int(number_setting(MAX_REPLY, DEFAULT_MAX_REPLY) * MEBIBYTE)


def max_cost() -> float | None:
    """Return the limit in dollars, None for no limit, or raise an `InputError` if the variable has a wrong value."""
    return number_setting(MAX_COST, 1.0) if read_setting(MAX_COST) else None


def require(extra: str, purpose: str) -> None:
    """Raise an `InputError` that says how to install an extra, if it is missing, before calls cost money.

    Args:
        extra: the extra's name in setup.cfg.
        purpose: what needs the extra. The error starts with it.
    """
    require_modules(EXTRAS[extra], purpose, f"helm-longctx[{extra}]")


def require_modules(modules: Sequence[str], purpose: str, install: str) -> None:
    """Raise an `InputError` that says how to install modules, if one is missing.

    Args:
        purpose: what needs the modules. The error starts with it.
        install: what pip has to install.
    """
    if missing := [module for module in modules if not is_installed(module)]:
        raise PreconditionError(
            f"{purpose} needs {' and '.join(missing)}; install with: pip install '{install}'"
        )


def is_installed(module: str) -> bool:
    """Whether a module is installed. The module is not imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # raised if the parent package is missing
        return False


def explain_torchvision() -> str:
    """Return why torchvision does not fit torch; an empty text if it does, or if one of them is missing.

    The installed files are read, because importing the two takes seconds.
    """
    try:
        torch = distribution("torch")
        vision = distribution("torchvision")
    except PackageNotFoundError:
        return ""
    needs = next(
        filter(None, (_PINNED_TORCH.match(text) for text in vision.requires or [])),
        None,
    )
    if needs and needs[1] != torch.version.partition("+")[0]:
        return f"torchvision {vision.version} needs torch {needs[1]}, but torch {torch.version} is installed"
    library = Path(str(vision.locate_file("torchvision/_C.so")))
    needs_cuda = library.is_file() and _CUDA.encode() in library.read_bytes()
    if needs_cuda and not Path(str(torch.locate_file(f"torch/lib/{_CUDA}"))).is_file():
        return f"torchvision {vision.version} is built for CUDA, but torch {torch.version} is not"
    return ""


def dtype_argument() -> str:
    """Return the name that `from_pretrained` of the installed transformers has for the number type of the weights.

    It is `dtype` since 4.56. The oldest versions that HELM accepts know only `torch_dtype`, for which newer ones warn.
    """
    major, minor = version("transformers").split(".")[:2]
    return "dtype" if (int(major), int(minor)) >= (4, 56) else "torch_dtype"


def ignore_broken_torchvision() -> None:
    """Make transformers ignore a torchvision that cannot be imported. Text models do not need it.

    crfm-helm installs torchvision. Together with a CPU build of torch, the build from the package index fails on import
    ("operator torchvision::nms does not exist"), and transformers then imports no model and not all tokenizers.
    """
    from transformers.utils import import_utils

    try:
        import_module("torchvision")
    except ImportError:
        return
    except (RuntimeError, OSError):
        sys.modules["torchvision"] = None  # type: ignore[assignment]
        # Older versions of transformers store in a variable whether torchvision exists, newer ones in a cache.
        vars(import_utils)["_torchvision_available"] = False
        getattr(import_utils.is_torchvision_available, "cache_clear", lambda: None)()
