"""Tests that text is cut into jieba's words without output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jieba
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.tasks.words import (
    chinese_words,
    cut,
    english_words,
    normalize_chinese,
)

TEXT = st.text(max_size=60) | st.text("北京城市建立王国abc12.，《 \n", max_size=40)


@given(TEXT)
def test_cut_is_jiebas(text: str) -> None:
    """The words equal the words of the official call, and no text is lost."""
    assert cut(text) == list(jieba.cut(text, cut_all=False))
    assert "".join(cut(text)) == text


def test_jieba_starts_in_silence(tmp_path: Path) -> None:
    """jieba prints nothing on standard error, and neither writes nor reads a cache file."""
    (tmp_path / "jieba.cache").write_bytes(b"not jieba's")
    code = "from helm_longctx.tasks.words import cut; assert cut('贝多芬是谁') == ['贝多芬', '是', '谁']"
    command = [sys.executable, "-W", "always::UserWarning", "-c", code]
    done = subprocess.run(
        command,
        env={"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]


def test_normalizing() -> None:
    """Normalizing removes case, punctuation and articles, but keeps the Chinese mark 《 like the official list."""
    assert english_words("The cat's  A-list, AN\tan") == ["cats", "alist"]
    assert normalize_chinese(" 《ABC》。\u3000") == "《abc"
    assert chinese_words("《王国》，ABC。") == ["《", "王国", "abc"]
