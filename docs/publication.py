"""Says in all places how to install the package, before its first release and after it.

`IS_PUBLISHED` is the only setting. `make reference` writes the words that belong to it into README, the first run, the
pages about NeMo Evaluator and servers, and the action.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

IS_PUBLISHED = False
"""Whether the package index has a release, and the repository's address exists."""

ROOT = Path(__file__).parents[1]


class Words(NamedTuple):
    """Words of a file before the first release and after it."""

    file: str
    before: str
    after: str


WORDS = (
    Words(
        "README.md",
        "helm-longctx is not published yet: no package index has it. Get the repository, and in its folder:\n",
        "helm-longctx is on PyPI:\n",
    ),
    Words(
        "README.md",
        "    pip install '.[report,openai]'\n    helm-longctx demo\n",
        "    pip install 'helm-longctx[report,openai]'\n    helm-longctx demo\n",
    ),
    Words(
        "README.md",
        "Wherever the documentation has `pip install 'helm-longctx[…]'`, use `pip install '.[…]'` in this folder until"
        " the first release. With make:\n",
        "In a clone of the repository, with make:\n",
    ),
    Words(
        "docs/quickstart.md",
        "    pip install '.[report,openai]'  # in the folder of the repository: not published yet\n"
        "    helm-longctx doctor\n",
        "    pip install 'helm-longctx[report,openai]'\n    helm-longctx doctor\n",
    ),
    Words(
        "docs/eval-factory.md",
        "    pip install '.[eval-factory,openai]'  # in the folder of the repository: not published yet\n",
        "    pip install 'helm-longctx[eval-factory,openai]'\n",
    ),
    Words(
        "docs/serving.md",
        "A workflow for last night's build (not published yet: `OWNER/helm-longctx` is a copy of the repository for your"
        " workflows):\n",
        "A workflow for last night's build:\n",
    ),
    Words(
        "docs/serving.md",
        "      - run: pip install './helm-longctx[openai]'  # a clone, or the wheel that `make release` builds\n",
        "      - run: pip install 'helm-longctx[openai]'\n",
    ),
    Words(
        "docs/serving.md",
        "      - uses: OWNER/helm-longctx@main\n",
        "      - uses: helm-longctx/helm-longctx@main\n",
    ),
    Words(
        "docs/serving.md",
        "| `package` | | what pip installs; if empty, the checkout of the action |\n",
        "| `package` | `helm-longctx[report,openai]` | what pip installs |\n",
    ),
    Words(
        "action.yml",
        '    description: What pip installs; if empty, the checkout of this action\n    default: ""\n',
        "    description: What pip installs\n    default: helm-longctx[report,openai]\n",
    ),
)


def write_words(root: Path = ROOT, is_published: bool = IS_PUBLISHED) -> None:
    """Write the words that belong to the setting in the place of the others.

    Raises:
        ValueError: a file has neither.
    """
    for words in WORDS:
        path = root / words.file
        text = path.read_text(encoding="utf-8")
        old, new = words.before, words.after
        if not is_published:
            old, new = new, old
        if new and new in text:
            continue
        if not old or text.count(old) != 1:
            raise ValueError(
                f"{words.file} has neither {words.before!r} nor {words.after!r}"
            )
        path.write_text(text.replace(old, new), encoding="utf-8")
