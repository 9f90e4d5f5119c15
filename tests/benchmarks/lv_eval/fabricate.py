"""Fabricate LV-Eval's files, records and tokenizers, which are the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS, LENGTHS, Dataset
from tests.support.fabricate import words, write

ROWS = 6
HAN = "北京城市建立王国作家主要发明电影导演结束历史音乐学校医院森林科学公里年月的和是在《》，。？"
PHRASES = (
    "贝多芬",
    "克里斯汀穆基",
    "2020年",
    "David",
    "ΩMEGA",
    "<s>",
    "{x}",
    "\u2028",
    "3.14%",
    "𠮷野家",
    "ＡＢ",
    "\xa0",
)
RECORD = {"answer_keywords": "Lake"}


def build_lv_eval(root: Path) -> Path:
    """Write all eleven data sets at five lengths, with the same questions in another order at each length."""
    for dataset in DATASETS:
        questions = list(_questions(dataset))
        for number, length in enumerate(LENGTHS):
            rng = random.Random(f"{dataset.name} {length}")
            rows = [
                {**question, "context": _context(rng, dataset, 12 << number)}
                for question in questions
            ]
            if number % 2:
                rng.shuffle(rows)
            write(root / dataset.file(length), [_with_length(row) for row in rows])
    return root


def sentence(rng: random.Random, language: str, count: int) -> str:
    """Return nonsense in a language, with characters that a tokenizer or a template could misread."""
    if language == "en":
        return words(rng, count)
    parts = ["".join(rng.choices(HAN, k=rng.randint(1, 6))) for _ in range(count)]
    return "".join(
        rng.choice(PHRASES) if rng.random() < 0.1 else part for part in parts
    )


def _questions(dataset: Dataset) -> Iterator[dict[str, Any]]:
    rng = random.Random(dataset.name)
    repeated = dataset.name.startswith(
        "factrecall"
    )  # all of its rows share one question
    for number in range(ROWS):
        rng = random.Random(dataset.name) if repeated else rng
        answers = [
            sentence(rng, dataset.language, rng.randint(1, 8))
            for _ in range(1 + (number == 3 and not repeated))
        ]
        facts = [sentence(rng, dataset.language, 9) for _ in range(2)]
        row: dict[str, Any] = {
            "input": sentence(rng, dataset.language, 5) + "?",
            "answers": answers,
            "dataset": dataset.name,
            "language": dataset.language,
            "answer_keywords": None
            if dataset.scoring.names[0] == "rouge_l"
            else answers[0][:9],
        }
        if dataset.confusing:
            row["confusing_facts"] = str(facts) if number == 2 else facts
        if number == 1:
            row["all_classes"] = None
        yield row


def _context(rng: random.Random, dataset: Dataset, count: int) -> str:
    heading = "### Passage" if dataset.language == "en" else "### 文章"
    return "\n\n".join(
        f"{heading} {n}\n{sentence(rng, dataset.language, count)}" for n in (1, 2, 3)
    )


def _with_length(row: dict[str, Any]) -> dict[str, Any]:
    texts = (row["input"], row["context"], *row["answers"])
    return {
        **row,
        "length": sum(
            len(text if row["language"] == "zh" else text.split()) for text in texts
        ),
    }


ENGLISH_CASES: list[tuple[str, str | None]] = [
    ("For his services to **music**.", "services to music"),
    ("Martin began publishing her books as digital books in **2020**.", "2020"),
    ("**Increased** mechanical flexibility.", "Increased mechanical flexibility."),
    ("the who, which does", "and to of"),
    ("They were in 4 November 2003", "in in was 4 November 2003 with 2003"),
    ("Ludwig Beethoven", ""),
    ("A an the", None),
    ("Dürer's naïve café", "..."),
    ("yes", "the"),
    ("", "yes"),
    ("one two three four five", "one x y z w"),
]
CHINESE_CASES: list[tuple[str, str | None]] = [
    ("《毕业风暴》的导演是罗马尼亚导演**克里斯汀穆基**。", "克里斯汀穆基"),
    ("贝多芬", None),
    ("被世人广泛推崇为现代物理学奠基人的科学家", ""),
    ("的和是等在年可以", "主要 根据 可以"),
    ("《王国》在2003年11月4日建立", "2003年11月4日，《王国》"),
    ("ABC公司（北京）有限公司，共 1,024 人", "ABC公司 1,024人"),
    ("。", ""),
    ("北京", "。，、"),
    ("", "北京"),
    ("", ""),
    ("主要通过使用c语言，用于基于×方面的因素", "c ×"),
]
ROUGE_CASES = [reference for reference, _ in CHINESE_CASES] + [
    "3.14.15 北京。上海. 广州 ..", ". . .", "a.b.a.b", "城市 城市 建立 城市 王国 建立", "w0 w1 w2 w3. w4 w1",
]  # fmt: skip


def odd_outputs(rng: random.Random, answer: str) -> list[str]:
    """Return outputs that a tokenizer or a metric could misread."""
    half = len(answer) // 2
    return [
        "", " ", "\n", ".", "。", "…", answer, f" {answer}\n", answer.upper(), answer.lower(), f"**{answer}**", answer * 3,
        answer[:half], answer[half:], answer[::-1], " ".join(answer), f"Answer: {answer}", f"回答：{answer}。",
        f"The answer is {answer}, I think; it was not in the passage.", f"根据文章，{answer}是答案，主要在2020年。",
        f"{answer}. {answer}.", f"{answer}\u2028{answer}\x85x\x00", f"{answer}\u3000{answer}\ufeff",
        "I don't know", "文章中没有提到。", "the a an", "yes.", "2020", "Ⅷ ⑨ ﬁ İ ß ǅ", "🎼贝多芬🎼", "１２３ＡＢＣ",
        "a" * 300, "文" * 300, "城市建立" * 60, words(rng, 60), sentence(rng, "zh", 60),
        sentence(rng, "zh", 20) + answer + words(rng, 20), "\x00\t{}", "C++ c# .NET v1.0-beta_2 50%", "İstanbul'da ŞEHİR",
    ]  # fmt: skip


def score_records() -> list[dict[str, Any]]:
    """Return records for the metrics, each with a data set's name."""
    rng = random.Random(11)
    cases = [
        *(("loogle_SD_mixup", *case) for case in ENGLISH_CASES),
        *(("cmrc_mixup", *case) for case in CHINESE_CASES),
        *(("factrecall_en", *case) for case in ENGLISH_CASES[:3]),
        *(("factrecall_zh", *case) for case in CHINESE_CASES[:3]),
        *(("dureader_mixup", reference, None) for reference in ROUGE_CASES),
    ]
    records = [
        {
            "dataset": name,
            "prediction": output,
            "references": [reference, "2020"],
            "answer_keywords": keywords,
        }
        for name, reference, keywords in cases
        for output in odd_outputs(rng, reference)
    ]
    for count, other in (
        (988, 0),
        (989, 0),
        (990, 0),
        (2500, 0),
        (982, 6),
        (983, 6),
        (984, 6),
        (985, 6),
        (2500, 6),
    ):
        # The official recursion ends at about these lengths.
        prediction = " ".join(f"w{n}" for n in range(count))
        reference = (
            "w0 " + " ".join(f"v{n}" for n in range(other - 1)) if other else prediction
        )
        record = {
            "prediction": prediction,
            "references": [reference],
            "answer_keywords": None,
        }
        records.append({"dataset": "dureader_mixup", **record})
    return records


WINDOWS = (2, 3, 7, 16, 33, 100, 301, 500, 1001, 100_000)


def truncation_prompts() -> list[str]:
    """Return one prompt of each template, with special tokens and long characters in it."""
    prompts = []
    for dataset in DATASETS:
        rng = random.Random(dataset.name)
        context = f"<s> a </s> {_context(rng, dataset, 60)} <|begin|>🎼🎼é\u0301 "
        prompts.append(
            dataset.prompt.format(
                context=context, input=sentence(rng, dataset.language, 6)
            )
        )
    return prompts


def tokenizers() -> dict[str, Tokenizer]:
    """Return two small tokenizers, of GPT's and of Llama's kind, both with a token that begins every text."""
    return {"byte_level": _byte_level(), "metaspace": _metaspace()}


def _byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [
        ("t", "h"),
        ("th", "e"),
        ("Ġ", "t"),
        ("Ġ", "a"),
        ("i", "n"),
        ("o", "n"),
        ("a", "n"),
        ("e", "s"),
        ("æ", "ĸ"),
    ]
    vocabulary = ["<|begin|>", *alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(
        models.BPE({token: n for n, token in enumerate(vocabulary)}, merges)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _with_special_tokens(tokenizer, ["<|begin|>"])


def _metaspace() -> Tokenizer:
    letters = ["▁", *(chr(n) for n in range(33, 127)), *"，。？《》北京城市的和是é"]
    merges = [
        ("▁", "t"),
        ("h", "e"),
        ("▁t", "he"),
        ("▁", "a"),
        ("i", "n"),
        ("e", "s"),
        ("▁", "▁"),
        ("北", "京"),
        ("城", "市"),
    ]
    vocabulary = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256))]
    vocabulary += [*letters, *("".join(pair) for pair in merges)]
    model = models.BPE(
        {t: n for n, t in enumerate(vocabulary)},
        merges,
        unk_token="<unk>",
        byte_fallback=True,
        fuse_unk=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
        prepend_scheme="first", split=False
    )
    spaces = decoders.Replace("▁", " ")
    strip = decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence(
        [spaces, decoders.ByteFallback(), decoders.Fuse(), strip]
    )
    return _with_special_tokens(tokenizer, ["<unk>", "<s>", "</s>"], first="<s>")


def _with_special_tokens(
    tokenizer: Tokenizer, special: list[str], first: str | None = None
) -> Tokenizer:
    first = first or special[0]
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", special_tokens=[(first, tokenizer.token_to_id(first))]
    )
    return tokenizer
