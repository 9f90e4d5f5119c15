"""Write golden.json, which has the official code's prompts and scores on the fabricated data.

    python -m tests.golden_makers longgenbench_qa --official FOLDER

FOLDER: a checkout of Dominic789654/LongGenBench at 9845864. Both scripts run as a whole; the model and the data are the
fabricated ones. The official system messages must equal ours, but are not written, because the repository has no license.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import contextlib, io, json, os, random, re, sys, types
from pathlib import Path
from types import SimpleNamespace as Space
sys.path.insert(0, sys.argv[1])
official_folder = Path(sys.argv[1])
from helm_longctx.benchmarks.longgenbench_qa import tasks
from tests.benchmarks.longgenbench_qa.fabricate import answer, gsm8k_rows, write_data
from tests.support.official import digest

rng = random.Random(7)
rows = gsm8k_rows(rng)
write_data(Path("data"), rng)
for path in list(Path("data/MMLU/data/test").iterdir()):  # the official code reads the other examples in vain
    dev = Path("data/MMLU/data/dev", path.name.replace("_test", "_dev"))
    dev.parent.mkdir(exist_ok=True)
    dev.write_bytes(path.read_bytes())
state = Space()

class Client:
    def __init__(self, **given):
        self.chat = Space(completions=Space(create=self.create))
    def close(self): pass
    def create(self, messages, max_tokens, temperature, model, seed=None):
        assert (max_tokens, temperature) == (4096, 0)
        system, user = [each["content"] for each in messages]
        name = re.search(r"about {2}(.*)\\.\\n\\n$", system)
        title = " " + name[1] if name else ""
        assert system == state.system.format(title), system
        state.asked.append(user)
        text = answer(state.rng, *state.span)
        state.outputs.append(text)
        usage = Space(prompt_tokens=1, completion_tokens=1)
        return Space(choices=[Space(message=Space(content=text))], usage=usage)

class Done:
    def __init__(self, value): self.value = value
    def result(self): return self.value

class InTurn:
    def __init__(self, max_workers): pass
    def __enter__(self): return self
    def __exit__(self, *error): pass
    def submit(self, function, *arguments):
        return Done(function(*arguments))

for name, values in {"openai": {"OpenAI": Client}, "tqdm": {"tqdm": lambda each, **given: each}, "datasets": {
    "load_dataset": lambda *names: {"test": {key: [row[key] for row in rows] for key in rows[0]}}}}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)
import longgenbench_GSM8K_openai as gsm8k
import longgenbench_MMLU_openai as mmlu
for module in (gsm8k, mmlu):
    module.ThreadPoolExecutor, module.as_completed = InTurn, list
    module.OpenAI = Client

def run(module, script, seed, span, **given):
    state.rng, state.span, state.asked, state.outputs = random.Random(seed), span, [], []
    state.system = tasks._read_system(official_folder / script)
    Path("out").mkdir(exist_ok=True)
    args = Space(api_key="", model="m", api_endpoint="", output_path="out/text", **given)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        module.main(args)
    return printed.getvalue()

golden = {"gsm8k": [], "mmlu": []}
for seed in range(60):
    span = [(35, 40), (0, 35), (35, 35)][seed % 3]
    printed = run(gsm8k, "longgenbench_GSM8K_openai.py", seed, span, k=35, question_limit=80,
                  prompt_path="data/" + tasks.GSM8K_PROMPT)
    counts = re.search(r"num_q (\\d+) correct (\\d+)", printed)
    golden["gsm8k"].append([digest(state.asked), int(counts[1]), int(counts[2])])
for seed in range(40):
    printed = run(mmlu, "longgenbench_MMLU_openai.py", seed, (20, 24), k=20, data_dir="data/MMLU/data", ntrain=5)
    golden["mmlu"].append([digest(state.asked), int(re.search(r"Total correct: +(\\d+)", printed)[1])])
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/longgenbench_qa", run_official(OFFICIAL, *parse_folders("official"))
    )


if __name__ == "__main__":
    main()
