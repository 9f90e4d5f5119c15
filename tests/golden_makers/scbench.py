"""Write golden.json, which has the official code's requests and scores on the fabricated data.

    pip install --no-deps --target SITE tree_sitter==0.21.3 tree_sitter_languages==1.10.2 tempdir
    python -m tests.golden_makers scbench --official FOLDER --site SITE

FOLDER: a checkout of microsoft/MInference at fb56c91. Its scbench/run_scbench.py runs as a whole, in a process of its own for
each case; there the data, the tokenizer and vLLM are the fabricated ones. The hub's metric `rouge` is the package rouge_score,
called as that metric calls it.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import json, os, runpy, sys, types
from pathlib import Path
from unittest.mock import MagicMock
from tests.benchmarks.scbench.fabricate import (
    CASES, MODES, NAMES, WHOLE, ChatTokenizer, Replies, fingerprint, function_cases, rows, score_cases)

official, site = sys.argv[1:]
sys.path[:0] = [official + "/scbench", site]
for name in ("torch", "torch.profiler", "transformers", "transformers.cache_utils", "transformers.modeling_outputs",
             "transformers.utils", "transformers.utils.import_utils", "minference", "datasets", "vllm", "args", "evaluate"):
    sys.modules[name] = MagicMock()
sys.modules["torch"].Tensor = type("Tensor", (), {})
sys.modules["transformers.utils.import_utils"]._is_package_available = lambda name: name == "vllm"

class Rouge:
    def compute(self, predictions, references, use_aggregator):
        from rouge_score.rouge_scorer import RougeScorer
        scorer = RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=False, tokenizer=None)
        (output,), (answer,) = predictions, references
        return {key: [score.fmeasure] for key, score in scorer.score(answer, output).items()}
sys.modules["evaluate"].load = lambda name: Rouge()
sys.modules["vllm"].SamplingParams = lambda temperature, max_tokens: max_tokens

def run(task, mode, seed, length):
    data, tokenizer, asked = rows(task, seed), ChatTokenizer(markup=length == WHOLE), []
    replies = Replies(data)
    class LLM:
        def __init__(self, **settings): pass
        def generate(self, prompt_token_ids, sampling_params):
            prompt = tokenizer.decode(prompt_token_ids)
            asked.append(fingerprint(prompt, sampling_params))
            return [types.SimpleNamespace(outputs=[types.SimpleNamespace(text=replies.reply(prompt))])]
    sys.modules["vllm"].LLM = LLM
    sys.modules["transformers"].AutoTokenizer.from_pretrained = lambda name, **options: tokenizer
    sys.modules["datasets"].load_dataset = lambda name, config, split: data
    sys.modules["args"].parse_args = lambda: types.SimpleNamespace(
        model_name_or_path="m", max_seq_length=length, task="scbench_" + task, topk=-1, starting_layer=-1,
        same_context_different_query=mode == "multi_request", topk_dims_file_path=None, use_sparq=False,
        attn_type="vllm", is_search=False, kv_type="dense", trust_remote_code=None, kv_cache_cpu=False,
        kv_cache_cpu_device="cpu", tensor_parallel_size=1, hyper_param={}, disable_golden_context=False,
        output_dir="results", use_llmlingua=False, max_turns=5, num_eval_examples=-1, verbose=False, rewrite=True,
        start_example_id=0, use_chat_template=True, data_dir="data")
    os.system("rm -rf results")
    runpy.run_path(official + "/scbench/run_scbench.py", run_name="__main__")
    (summary,) = Path("results").rglob("*_summary.txt")
    return {"asked": asked, "scores": summary.read_text().strip().split(str(length) + ",")[1].split(",")}

golden, out = {"runs": {}}, sys.stdout
sys.stdout = open(os.devnull, "w")
for length, seed in CASES:
    for task in NAMES:
        for mode in MODES:
            golden["runs"][f"{task} {mode} {length} {seed}"] = run(task, mode, seed, length)
import compute_scores, repo_qa_utils
def score(kind, answer, output):
    name = compute_scores.Multiturnbench_to_Infinitebench.get(kind, kind)
    try:
        return compute_scores.get_score_one(output, answer, name, "m")
    except OverflowError:
        return "OverflowError"
golden["scores"] = [score(*case) for case in score_cases()]
def score_function(lang, name, functions, output):
    needles = [{"name": name, "needle": code} for name, code in functions]
    verdict, _, similarity = repo_qa_utils.needle_evaluator(output, {"func_name": name}, needles, lang, False)
    return [verdict.value == "best_match" and similarity >= 0.8, similarity]
golden["functions"] = [score_function(*case) for case in function_cases()]
sys.stdout = out
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/scbench", run_official(OFFICIAL, *parse_folders("official", "site"))
    )


if __name__ == "__main__":
    main()
