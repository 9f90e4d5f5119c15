"""Compares `evaluate` with the pipeline of kvpress, called without it, on RULER's needles: answers and scores.

    pip install kvpress==0.5.5                                   # in an environment of its own, with this package
    python -m bench.local.press --questions 4 --length 4k
    python -m bench.local.press --questions 2 --count-with BYTES       # 4,096 bytes, for a folder with a tokenizer of bytes

The model is `packaged/smollm2-135m-instruct` in float32. Questions are the same; kvpress's own evaluation scores with
RULER's `string_match_all`, which is written out here.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from typing import Any

RATIOS = (0.0, 0.5, 0.9)


def main() -> None:
    """Print a row for each compression."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="niah_single_1")
    parser.add_argument("--length", default="4k")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument(
        "--count-with",
        help="The tokenizer that measures prompts; the model's by default.",
    )
    options = parser.parse_args()

    from helm_longctx.environment import ignore_broken_torchvision

    ignore_broken_torchvision()
    import torch
    from kvpress import KnormPress, KVPressTextGenerationPipeline
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import helm_longctx as lc
    from helm_longctx.models.local.packaged import SMOLLM2, find_model

    folder = find_model(SMOLLM2)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pipe = KVPressTextGenerationPipeline(model=model, tokenizer=tokenizer)
    prompts: dict[str, lc.Prompt] = {}

    def compress(ratio: float) -> Callable[[lc.Prompt], str]:
        press = KnormPress(compression_ratio=ratio)

        def answer(prompt: lc.Prompt) -> str:
            prompts[prompt.id] = prompt
            made = pipe(
                prompt.context,
                question=prompt.question,
                press=press,
                max_new_tokens=prompt.max_tokens,
            )
            return str(made["answer"])

        return answer

    with tempfile.TemporaryDirectory() as output:
        result = lc.evaluate(
            [compress(ratio) for ratio in RATIOS],
            f"ruler:task={options.task}",
            options.length,
            tokenizer=tokenizer,
            num_samples=options.questions,
            name=[f"knorm-{ratio:g}" for ratio in RATIOS],
            arguments={"count_with": options.count_with}
            if options.count_with
            else None,
            output_path=output,
        )
        print(result)
        for ratio in RATIOS:
            rows = result.answers[
                result.answers.model == f"python/knorm-{ratio:g}"
            ].set_index("instance")
            own = []
            scores = []
            for number, prompt in prompts.items():
                given = {
                    "question": prompt.question,
                    "max_new_tokens": prompt.max_tokens,
                }
                own.append(
                    str(
                        pipe(
                            prompt.context,
                            press=KnormPress(compression_ratio=ratio),
                            **given,
                        )["answer"]
                    )
                )
                gold = rows.references[number].split(" | ")
                scores.append(
                    sum(answer.lower() in own[-1].lower() for answer in gold)
                    / len(gold)
                )
            same = sum(
                rows.answer[number] == answer
                for number, answer in zip(prompts, own, strict=True)
            )
            mean = sum(scores) / len(scores)
            print(
                f"{ratio}: {same} of {len(own)} answers equal; evaluate {rows.score.mean():.3f}, kvpress {mean:.3f}"
            )


if __name__ == "__main__":
    main()
