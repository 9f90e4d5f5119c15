"""Placeholders in texts of LongBench v2."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.longbench_v2 import prompts as prompts_of
from helm_longctx.benchmarks.longbench_v2.tasks import COT, LETTERS, PATH
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longbench_v2.fabricate import rows
from tests.support.fabricate_words import write

TEXTS = st.lists(
    st.sampled_from(
        [
            "$COT$",
            "$Q$",
            "$C_A$",
            "$C_D$",
            "$DOC$",
            "$",
            "COT$",
            "{question}",
            " a",
            "\n",
        ]
    )
).map("".join)
FIELDS = {
    "context": "$DOC$",
    "question": "$Q$",
    **{letter: f"$C_{letter}$" for letter in LETTERS},
}


@given(st.fixed_dictionaries(dict.fromkeys(FIELDS, TEXTS)), TEXTS)
def test_placeholders_in_texts(texts: dict[str, str], reasoning: str) -> None:
    """Placeholders in texts are replaced one after the other in the whole prompt, as in the official code, and `$COT$`
    comes last."""
    row = {
        **rows(1)[0],
        **texts,
        **{f"choice_{letter}": texts[letter] for letter in LETTERS},
    }
    write(Path(PATH), [row])
    (example,) = COT.load(COT, Settings(None), DataRoot(Path(), mirror=True))
    assert example.follow_up
    prompts = (COT.prompt(example).user_turn, example.follow_up.prompt(reasoning))
    for template, prompt in zip(
        (prompts_of.COT, prompts_of.COT_ANSWER), prompts, strict=True
    ):
        wanted = template.format(**FIELDS, reasoning="$COT$")
        for name, placeholder in FIELDS.items():
            wanted = wanted.replace(placeholder, texts[name].strip())
        assert prompt == (
            wanted
            if template == prompts_of.COT
            else wanted.replace("$COT$", reasoning.strip())
        )
