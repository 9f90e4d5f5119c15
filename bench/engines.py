"""Compares servers that have the weights of `local/smollm2-135m-instruct` with our client, answer by answer.

    python bench/engines.py http://localhost:8101/v1=NAME http://localhost:8102/v1=/path/to/folder

Each argument is an address and the model's name on the server. Three short prompts are sent greedily, each as a chat
and as a completion. The script prints the answers, and the numbers of prompt tokens. docs/models.md explains the
differences.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

PROMPTS = (
    "The colour of room 12 is red. The colour of room 31 is blue. What is the colour of room 31?",
    "What is the capital of France?",
    "List three animals:\n\n1.",
)
FORMS = ("chat", "completion")
TOKENS = 12


def ask_server(address: str, model: str, form: str, prompt: str) -> tuple[str, int]:
    """Return a server's answer, and the number of prompt tokens that it counts."""
    body: dict[str, Any] = {"model": model, "max_tokens": TOKENS, "temperature": 0}
    body |= {"messages": [{"role": "user", "content": prompt}]} if form == "chat" else {"prompt": prompt}
    url = f"{address}/{'chat/completions' if form == 'chat' else 'completions'}"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        reply = json.load(response)
    choice = reply["choices"][0]
    return choice["message"]["content"] if form == "chat" else choice["text"], reply["usage"]["prompt_tokens"]


def ask_ours() -> dict[tuple[str, str], tuple[str, int]]:
    """Return our client's answers and numbers of prompt tokens, by form and prompt."""
    from helm.common.cache import BlackHoleCacheConfig
    from helm.common.request import Request

    from helm_longctx.models.apis.usage import usage_of
    from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient
    from helm_longctx.models.local.packaged import SMOLLM2, PackagedTokenizer

    config = BlackHoleCacheConfig()
    client = LongContextHuggingFaceClient(config, PackagedTokenizer(config, "bench/smollm2", SMOLLM2), SMOLLM2)
    found = {}
    for prompt in PROMPTS:
        for form in FORMS:
            chat: dict[str, Any] = {"messages": []} if form == "chat" else {}
            request = Request(
                "bench/m", "bench/m", prompt=prompt, temperature=0, max_tokens=TOKENS, stop_sequences=[], **chat
            )
            result = client.make_request(request)
            usage = usage_of(result)
            found[form, prompt] = result.completions[0].text, usage.input_tokens if usage else 0
    return found


def main() -> None:
    """Print our answers, and for each server which of its answers differ."""
    ours = ask_ours()
    for (form, _), (text, tokens) in ours.items():
        print(f"ours  {form:10} {tokens:3} prompt tokens  {text!r}", flush=True)
    for argument in sys.argv[1:]:
        address, _, model = argument.partition("=")
        for (form, prompt), (text, tokens) in ours.items():
            theirs, counted = ask_server(address, model, form, prompt)
            verdict = "equal" if theirs == text else "differs"
            print(
                f"{address}  {form:10} {counted:3} ({counted - tokens:+}) prompt tokens  {verdict}  {theirs!r}",
                flush=True,
            )


if __name__ == "__main__":
    main()
