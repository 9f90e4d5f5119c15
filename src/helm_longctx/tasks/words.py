"""Splits English and Chinese texts into the words that LongBench's and LV-Eval's metrics count.

Source: THUDM/LongBench at 2e00731, LongBench/metrics.py, and infinigence/LVEval at 63e7ae9, metrics.py
(normalize_answer, normalize_zh_answer, f1_score).
"""

from __future__ import annotations

import re
import string
import warnings
from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jieba import Tokenizer

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# The official list, unchanged: it has a closing 》 but no opening 《, and has the ASCII full stop twice.
_CHINESE_PUNCTUATION = str.maketrans(
    "",
    "",
    string.punctuation
    + "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    + "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏.",
)


def f1(output: Collection[str], gold: Collection[str]) -> float:
    """Return the F1 of two bags or sets of words; 0 if they share no word."""
    shared = sum((Counter(output) & Counter(gold)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(output), shared / len(gold)
    return (2 * precision * recall) / (precision + recall)


def english_words(text: str) -> list[str]:
    """Split an English text into lower-case words, without ASCII punctuation and articles."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def chinese_words(text: str) -> list[str]:
    """Split a Chinese text into words with jieba and normalize each. Empty words are dropped."""
    # The words are normalized after the split, because jieba splits at punctuation (metrics.py:127 to 131).
    return [word for word in map(normalize_chinese, cut(text)) if word]


def normalize_chinese(word: str) -> str:
    """Convert a word to lower case, and remove ASCII and Chinese punctuation and white space."""
    return "".join(word.lower().translate(_CHINESE_PUNCTUATION).split())


def cut(text: str) -> list[str]:
    """Split a text with jieba's exact mode: each character is in exactly one word."""
    return list(_jieba().cut(text))


@cache
def _jieba() -> Tokenizer:
    # `Tokenizer.initialize` reads `jieba.cache` from the shared temporary folder, which another user or version may
    # have written. Words must depend only on the installed dictionary, so the dictionary is loaded directly.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about pkg_resources and invalid escapes in jieba's source
        from jieba import Tokenizer

    tokenizer = Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer
