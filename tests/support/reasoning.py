"""Outputs of models whose reasoning stands before the answer, each in the marks of a family."""

from __future__ import annotations

from helm_longctx.tasks.reasoning import BARE_HARMONY, HARMONY, TABLE

REASONING = "Look for it. Is it ZZ99YY88?"


def outputs(answer: str, reasoning: str = REASONING) -> dict[str, str]:
    """Return outputs by what is special in them. Each has an answer, and reasoning or empty marks before it."""
    rows = [
        marks
        for marks in TABLE
        if marks.part == "reasoning" and marks is not BARE_HARMONY
    ]
    texts = {}
    for marks in rows:
        name = f"{marks.family}: {marks.opening!r}"
        texts[name] = f"{marks.opening}{reasoning}{marks.closing}{answer}"
        texts[f"{name} with lines"] = (
            f"\n{marks.opening}\n{reasoning}\n{marks.closing}\n\n{answer}\n"
        )
        texts[f"{name} without reasoning"] = f"{marks.opening}{marks.closing}{answer}"
        if marks.is_prefilled and marks is not HARMONY:
            texts[f"{name} in the prompt"] = f"{reasoning}{marks.closing}\n{answer}"
    start = "<|start|>assistant"
    analysis = f"<|channel|>analysis<|message|>{reasoning}<|end|>"
    comment = (
        "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{}<|call|>"
    )
    final = "<|channel|>final<|message|>"
    think = f"<think>\n{reasoning}\n</think>\n"
    return {
        **texts,
        "harmony": f"{analysis}{start}{final}{answer}<|return|>",
        "harmony, whole": f"{start}{analysis}{start}{final}{answer}",
        "harmony, two analyses": f"{analysis}{start}{analysis}{start}{final}{answer}<|end|>",
        "harmony with a call": f"{analysis}{start}{comment}{start}{final}{answer}",
        "harmony in a format": f"{analysis}{start}<|channel|>final <|constrain|>text<|message|>{answer}",
        "harmony without an end": f"<|channel|>analysis<|message|>{reasoning}{start}{final}{answer}",
        "harmony, final alone": f"{final}{answer}<|return|>",
        "harmony without a channel": f"analysis<|message|>{reasoning}<|end|>{start}{final}{answer}",
        "harmony, header in the prompt": f"{reasoning}<|end|>{start}{final}{answer}<|return|>",
        "bare harmony": f"analysis{reasoning}assistantfinal{answer}",
        "bare harmony with lines": f"\nanalysis\n{reasoning}\nassistantfinal\n{answer}\n",
        "bare harmony, comment": f"analysis{reasoning}assistantcommentaryWell.assistantfinal{answer}",
        "Hunyuan A13B": f"{think}<answer>\n{answer}\n</answer>",
        "Ernie 4.5": f"{think}\n<response>\n{answer}\n</response>\n",
        "GLM-4.5V": f"{think}<|begin_of_box|>{answer}<|end_of_box|>",
        "Marco-o1": f"<Thought>\n{reasoning}\n</Thought>\n<Output>\n{answer}\n</Output>",
        "Reflection": f"<thinking>{reasoning}</thinking>\n<output>{answer}</output>",
        "R1-Zero": f"<think>{reasoning}</think> <answer>{answer}</answer>",
        "Cohere R7B": f"<|START_THINKING|>{reasoning}<|END_THINKING|><|START_RESPONSE|>{answer}<|END_RESPONSE|>",
        "Cohere 4": f"{reasoning}<|END_THINKING|><|START_TEXT|>{answer}<|END_TEXT|>",
        "Cohere 4, no reasoning": f"<|START_TEXT|>{answer}<|END_TEXT|>",
        "Kimi K3": (
            f"<|open|>think<|sep|>{reasoning}<|close|>think<|sep|><|open|>response<|sep|>{answer}"
            "<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
        ),
        "Inkling": (
            f"<|message_model|><|content_thinking|>{reasoning}<|end_message|><|message_model|><|content_text|>{answer}"
            "<|end_message|><|content_model_end_sampling|>"
        ),
        "Muse": f"to=self<|message|>{reasoning}<|eom|>{start} to=user<|message|>{answer}<|eot|>",
        "Solar": f"<|think|>{reasoning}<|end|><|begin|>assistant<|content|>{answer}<|end|>",
        "Apriel": f"Here are my reasoning steps:\n{reasoning}\n[BEGIN FINAL RESPONSE]\n{answer}\n[END FINAL RESPONSE]",
        "OpenThoughts": (
            f"<|begin_of_thought|>{reasoning}<|end_of_thought|>\n\n<|begin_of_solution|>{answer}<|end_of_solution|>"
        ),
        "Gemma 4": f"<|channel>thought\n{reasoning}<channel|>{answer}<turn|>",
        "two blocks": f"[THINK]{reasoning}[/THINK]\n[THINK]{reasoning}[/THINK]{answer}</s>",
        "two families": f"<think></think><|channel|>analysis<|message|>{reasoning}<|end|>{answer}",
    }
