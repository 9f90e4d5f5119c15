"""Words: jieba's, and silently so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jieba
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.protocol.words import chinese_words, cut, english_words, normalize_chinese

TEXT = st.text(max_size=60) | st.text("北京城市建立王国abc12.，《 \n", max_size=40)


@given(TEXT)
def test_cut_is_jiebas(text: str) -> None:
    """The same words as the official call gives, none of the text lost."""
    assert cut(text) == list(jieba.cut(text, cut_all=False))
    assert "".join(cut(text)) == text


def test_jieba_starts_in_silence(tmp_path: Path) -> None:
    """Nothing on standard error, no cache file left for others or read from them."""
    (tmp_path / "jieba.cache").write_bytes(b"not jieba's")
    code = "from helm_longctx.protocol.words import cut; assert cut('贝多芬是谁') == ['贝多芬', '是', '谁']"
    command = [sys.executable, "-W", "always::UserWarning", "-c", code]
    done = subprocess.run(command, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]


def test_normalizing() -> None:
    """Case, punctuation and articles go; of the Chinese marks 《 stays, as in the official list."""
    assert english_words("The cat's  A-list, AN\tan") == ["cats", "alist"]
    assert normalize_chinese(" 《ABC》。\u3000") == "《abc"
    assert chinese_words("《王国》，ABC。") == ["《", "王国", "abc"]
