"""Checks which packages are installed, and knows where the pages of the documentation are."""

from __future__ import annotations

import codecs
import locale
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

from helm_longctx.errors import InputError, PreconditionError

_PAGES = Path(__file__).with_name("pages")
"""The pages of the documentation in an installed package (setup.py). In a clone they are in `docs`."""

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


def cache_folder() -> Path:
    """Return the folder in which things are kept for all runs of a user, beside the models of the hub."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "helm_longctx"


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
