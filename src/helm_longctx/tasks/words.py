"""The words that LongBench's and LV-Eval's metrics count in English and Chinese texts, and their F1 and ROUGE-L.

ROUGE-L is the package rouge 1.0.1's, without the package's recursion. Its "rouge-l" is the summary-level variant: it
splits a text into sentences at every full stop and counts each distinct word once. The result depends on which longest
common subsequence is chosen, so ties are broken as in the package.

Also the option that an answer chooses, and other measures of answers, as ∞Bench and SCBench compute them.

Source: THUDM/LongBench at 2e00731, LongBench/metrics.py, and infinigence/LVEval at 63e7ae9, metrics.py
(normalize_answer, normalize_zh_answer, f1_score, rouge_score); rouge 1.0.1, rouge_score.py; OpenBMB/InfiniteBench at
88b3daa, src/compute_scores.py, repeated in microsoft/MInference at fb56c91, scbench/compute_scores.py.
"""

from __future__ import annotations

import re
import string
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jieba import Tokenizer
    from rouge_score.rouge_scorer import RougeScorer

MOST_STEPS = 989
"""Most steps of the package's recursion through its table. When LV-Eval's evaluation.py calls the package, Python's
default limit of 1000 frames leaves this many. With more steps an error is raised, and the official score is then 0.
"""

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
    precision = shared / len(output)
    recall = shared / len(gold)
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
    # `Tokenizer.initialize` reads `jieba.cache` from the shared temporary folder. Another user or version may
    # have written it. Words must depend only on the installed dictionary, so the dictionary is loaded directly.
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # about pkg_resources and invalid escapes in jieba's source
        from jieba import Tokenizer

    tokenizer = Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@cache
def make_rouge(*kinds: str, stems: bool = False) -> RougeScorer:
    """Make a scorer of the package rouge_score for kinds such as `rougeL`, of words or of their stems."""
    # Imported late: it loads NLTK and scikit-learn. Commands without scores need not spend that second.
    from nltk.stem.porter import PorterStemmer
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenize import tokenize
    from rouge_score.tokenizers import Tokenizer

    class StemmingTokenizer(Tokenizer):
        """The scorer's tokenizer with `use_stemmer`. It keeps the stems: they take most of the time of a score."""

        stem = staticmethod(lru_cache(maxsize=2**16)(PorterStemmer().stem))

        def tokenize(self, text: str) -> list[str]:
            return list(tokenize(text, self))

    return RougeScorer([*kinds], tokenizer=StemmingTokenizer() if stems else None)


def rouge_l(prediction: str, reference: str, most_steps: int = MOST_STEPS) -> float:
    """Return what `find_rouge_l` returns; 0 where the package raises an error."""
    return find_rouge_l(prediction, reference, most_steps) or 0.0


def find_rouge_l(prediction: str, reference: str, most_steps: int) -> float | None:
    """Return the F1 of the distinct words in common subsequences; None where the package raises an error.

    Equal texts score 0.999999995, because the package adds 1e-8 to the denominator.

    Args:
        prediction, reference: words separated by white space.
        most_steps: number of steps after which the package's recursion fails.
    """
    counts = count_common(prediction, reference, most_steps)
    if counts is None:
        return None
    shared, given, wanted = counts
    precision = shared / given
    recall = shared / wanted
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def count_common(
    prediction: str,
    reference: str,
    most_steps: int,
) -> tuple[int, int, int] | None:
    """Count distinct words: in common subsequences of sentences, in the prediction, and in the reference.

    None where the package raises an error.
    """
    output = split_sentences(prediction)
    gold = split_sentences(reference)
    if not output or not gold:
        return None
    shared: set[str] = set()
    # Equal sentences have equal subsequences. An answer that repeats itself can have a quarter of a million sentences.
    for gold_words, given_words in product(_unique(gold), _unique(output)):
        common = _common_subsequence(gold_words, given_words, most_steps)
        if common is None:
            return None
        shared |= common
    # The words of all sentences are united before they are counted, so a word counts once in the whole text.
    output_words = set(chain.from_iterable(output))
    gold_words_in_all = set(chain.from_iterable(gold))
    return len(shared), len(output_words), len(gold_words_in_all)


def split_sentences(text: str) -> list[list[str]]:
    """Split a text into sentences of words.

    As in the package, a sentence of only white space has one empty word, and an empty sentence is omitted.
    """
    return [part.split() or [""] for part in text.split(".") if part]


def _unique(sentences: list[list[str]]) -> list[list[str]]:
    """Return each sentence once, in the order of the text."""
    return [list(words) for words in dict.fromkeys(map(tuple, sentences))]


def _common_subsequence(
    gold: list[str],
    output: list[str],
    most_steps: int,
) -> set[str] | None:
    """Return the words of the longest common subsequence that the package finds, or None if its recursion is too deep."""
    if set(gold).isdisjoint(output):
        # In a table of zeros the package goes left, one step for each word of the output.
        return set() if len(output) <= most_steps else None
    # The lengths of the longest common subsequences of all pairs of prefixes. Words become numbers, so that NumPy can
    # compare a whole row at once.
    numbers = {word: number for number, word in enumerate(output)}
    columns = np.array([numbers[word] for word in output])
    table = np.zeros((len(gold) + 1, len(output) + 1), np.int32)
    for row, word in enumerate(gold):
        matched = np.where(columns == numbers.get(word, -1), table[row, :-1] + 1, 0)
        # A cell is never less than its left neighbour, hence the running maximum.
        np.maximum.accumulate(
            np.maximum(table[row, 1:], matched), out=table[row + 1, 1:]
        )
    words: set[str] = set()
    row = len(gold)
    column = len(output)
    for _ in range(most_steps + 1):
        if not row or not column:
            return words
        if gold[row - 1] == output[column - 1]:
            words.add(gold[row - 1])
            row = row - 1
            column = column - 1
        # The package goes left if both neighbours are equal. Going up would find as many words, but different ones.
        elif table[row - 1, column] > table[row, column - 1]:
            row -= 1
        else:
            column -= 1
    return None


_MARKS = re.compile(r"""[\n"'.,?!{}]""")
_LONG_WORD = re.compile(r"\w{5,}")
_STARTS = ("answer is:", "answer:", "answer is", "option is")


def find_choice(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right option; `answers` are its text and its letter."""
    text = output.strip()
    if not text or text[0] in "ABCD":
        return bool(text) and text[0] in answers
    if text in answers:
        return True
    text = tidy(_MARKS, text)
    follows = follows_start(text, _STARTS, answers)
    if follows is not None:
        return follows
    # A word such as BC ends the search for a letter, too, as in the official code.
    return next((word for word in text.split() if word in "ABCD"), None) in answers


def nearest_choice(text: str, choices: Sequence[str]) -> int:
    """Return the number of the first choice with the largest share of its long words in a text, for baselines."""
    present = set(_LONG_WORD.findall(text.lower()))
    shares = []
    for choice in choices:
        words = _LONG_WORD.findall(choice.lower())
        shares.append(sum(word in present for word in words) / max(len(words), 1))
    return shares.index(max(shares))


def find_last_between(
    text: str,
    opening: re.Pattern[str],
    closing: re.Pattern[str],
) -> str | None:
    """Return the text between the last pair of marks, without white space at its ends, or None if there is none.

    It is what a pattern of both marks finds, but that one's time is quadratic in a text of marks that do not close.
    """
    between = None
    position = 0
    while start := opening.search(text, position):
        end = closing.search(text, start.end())
        if end is None:
            break
        between = text[start.end() : end.start()].strip()
        position = end.end()
    return between


def tidy(marks: re.Pattern[str], text: str) -> str:
    """Replace marks by spaces, and several spaces by one."""
    return re.sub(" +", " ", marks.sub(" ", text))


def follows_start(
    text: str,
    starts: Sequence[str],
    answers: Sequence[str],
) -> bool | None:
    """Return whether an answer stands after the first of `starts` that the text has, or None if it has none."""
    start = next((start for start in starts if start in text), None)
    if start is None:
        return None
    # The character after the start is skipped, whatever it is. An empty answer would follow only if there is one.
    rest = text.partition(start)[2]
    return bool(rest) and rest[1:].startswith(tuple(answers))


def best_character_f1(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of the Chinese characters with the best answer. Of a text, each character is an answer."""
    characters = normalize_chinese(output)
    return max(f1(characters, normalize_chinese(text)) for text in answers)


def rouge_l_sum(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of ROUGE-Lsum with the best answer, without stemming."""
    return float(
        make_rouge("rougeLsum").score_multi(answers, output)["rougeLsum"].fmeasure
    )


_MARKUP = re.compile(r"[*_`]")


@cache
def _letter_patterns(letters: str) -> tuple[re.Pattern[str], ...]:
    """Return the plain forms in which an answer names one of some capital letters, the clearest form first.

    After a word such as "answer", a letter counts only if no word follows it: "the answer is A dog" names none.
    """
    letter = f"([{letters}])"
    return (
        re.compile(rf"\\boxed\{{\s*(?:\\text\{{\s*)?\(?{letter}\b"),
        re.compile(
            rf"(?i:\b(?:answer|option|choice)\b[^\n.:]{{0,20}}?[:\s])\s*\(?{letter}(?=\s*(?:$|[\n).:,;\]]))"
        ),
        re.compile(rf"^[^\S\n]*\(?{letter}\s*(?:[).:,]|$)", re.MULTILINE),
        re.compile(rf"\({letter}\)"),
    )


def find_plain_letter(output: str, letters: str) -> str | None:
    """Return the option that an answer names in a plain form, or None if it names none.

    The forms are a box, `answer: B`, a line that starts with `B` and a mark, and `(B)`. The last occurrence of the clearest
    form counts. Marks of Markdown are ignored. Lenient metrics use it beside the official parsers.

    Args:
        letters: the capital letters of the options, such as `ABCD`.
    """
    text = _MARKUP.sub("", output)
    for pattern in _letter_patterns(letters):
        matches = pattern.findall(text)
        if matches:
            return str(matches[-1])
    return None
