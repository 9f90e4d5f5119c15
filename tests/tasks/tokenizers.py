"""Small tokenizers of every common kind, which are trained when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
LINES = [
    "The king of the northern town built a bridge in 1987, didn't he?",
    "It's the first school near the river; they've 12345678 books.",
    "北京城市建立于1987年，王国的作家和导演。",
    "音乐学校、医院与森林，科学公里！",
    "Ein schöner Fluß für Łódź, naïve café; Москва и река.",
    "def f(x):\n    return x * 2  # twice\n\n",
] * 5
PARTS = [
    *LINES[:6], " ", "  ", "\n", "\n\n", "\t", " the", " a", "'s", "12345678", "987", "<s>", "</s>", " <mask>", "<|end of turn|>",
    "<unk>", "word" * 9, "字" * 40, "。", "，", "\u3000", "é", "e\u0301", "\u0301" * 5, "ﬁ", "Ⅷ", "🎼", "👩‍👩‍👧", "한국어", "ไทย", "\x00", "\xa0", '"', "▁", "Ġ",
]  # fmt: skip
SPECIAL = ["<unk>", "<s>", "</s>", "<|end of turn|>"]


def gpt_2() -> Tokenizer:
    """Byte-level BPE with its own pattern and no special tokens at the ends."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _trained(
        tokenizer,
        trainers.BpeTrainer,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )


def claude() -> Tokenizer:
    """The tokenizer of `gpt_2` after NFKC."""
    tokenizer = gpt_2()
    tokenizer.normalizer = normalizers.NFKC()
    return tokenizer


def roberta() -> Tokenizer:
    """The tokenizer of `gpt_2` with a space before a text, tokens around it, and a mask that takes the space before it."""
    tokenizer = gpt_2()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


def llama_3() -> Tokenizer:
    """Byte-level BPE behind a pattern that groups digits by three."""
    tokenizer = _behind(Tokenizer(models.BPE()), LLAMA_3)
    tokenizer.decoder = decoders.ByteLevel()
    _trained(
        tokenizer,
        trainers.BpeTrainer,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def deepseek() -> Tokenizer:
    """Byte-level BPE in which every number of up to three digits is one token, without special tokens around a text."""
    tokenizer = _behind(Tokenizer(models.BPE()), LLAMA_3)
    numbers = (
        f"{number:0{length}}" for length in (1, 2, 3) for number in range(10**length)
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*LINES[:3], *numbers], trainer)
    return tokenizer


def llama_2() -> Tokenizer:
    """BPE over whole texts with a space before them, and bytes for unknown characters."""
    vocabulary = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = Tokenizer(models.BPE(unk_token="<unk>"))
    words.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    words.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    words.train_from_iterator(
        LINES[:3], trainers.BpeTrainer(vocab_size=400, show_progress=False)
    )
    learned = [
        token
        for token, _ in sorted(words.get_vocab().items(), key=lambda item: item[1])
    ]
    numbers = {
        token: number
        for number, token in enumerate(dict.fromkeys([*vocabulary, *learned]))
    }
    merges = _merges(learned)
    tokenizer = Tokenizer(
        models.BPE(
            numbers, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    tokenizer.normalizer = words.normalizer
    spaces = decoders.Replace("▁", " ")
    strip = decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence(
        [spaces, decoders.ByteFallback(), decoders.Fuse(), strip]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def across_words() -> Tokenizer:
    """BPE over whole lines, whose tokens contain spaces, so that few texts can be divided."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    return _trained(tokenizer, trainers.BpeTrainer)


def t5() -> Tokenizer:
    """Unigram behind Metaspace, with a token at the end."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    _trained(tokenizer, trainers.UnigramTrainer, unk_token="<unk>")
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", end)]
    )
    return tokenizer


def whole_unigram() -> Tokenizer:
    """Unigram over whole texts, whose best path is not known from parts."""
    tokenizer = t5()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return tokenizer


def bert() -> Tokenizer:
    """WordPiece in lower case."""
    tokenizer = Tokenizer(
        models.WordPiece(unk_token="<unk>", max_input_chars_per_word=20)
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    _trained(tokenizer, trainers.WordPieceTrainer)
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    return tokenizer


def by_spaces() -> Tokenizer:
    """A tokenizer of the words between spaces."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Strip(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _trained(tokenizer, trainers.WordLevelTrainer)


def fixed_length() -> Tokenizer:
    """A tokenizer that splits by the distance from the start, so that parts tell nothing."""
    return _behind(gpt_2(), r"[\s\S]{1,7}")


def quotations() -> Tokenizer:
    """A tokenizer that keeps quotations whole, so that parts do not tell whether a mark opens or closes one."""
    return _behind(gpt_2(), r"\"[^\"]*\"|[^\"\s]+|\s+")


KINDS: tuple[Callable[[], Tokenizer], ...] = (
    gpt_2, claude, roberta, llama_3, llama_2, across_words, t5, whole_unigram, bert, by_spaces, fixed_length, quotations,
)  # fmt: skip
EACH = pytest.mark.parametrize("kind", [make.__name__ for make in KINDS])


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    """Return a tokenizer by its name. It is made once."""
    return {make.__name__: make for make in KINDS}[kind]()


def _behind(tokenizer: Tokenizer, pattern: str) -> Tokenizer:
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    bytes_of = pre_tokenizers.ByteLevel(False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    return tokenizer


def _trained(tokenizer: Tokenizer, trainer: type, **settings: object) -> Tokenizer:
    tokenizer.train_from_iterator(
        LINES,
        trainer(
            vocab_size=600, special_tokens=SPECIAL, show_progress=False, **settings
        ),
    )
    return tokenizer


def _merges(tokens: list[str]) -> list[tuple[str, str]]:
    """Return for each token of several characters the first two earlier tokens that make it."""
    known: set[str] = set()
    merges = []
    for token in tokens:
        halves = ((token[:n], token[n:]) for n in range(1, len(token)))
        if pair := next((pair for pair in halves if known.issuperset(pair)), None):
            merges.append(pair)
        known.add(token)
    return merges
