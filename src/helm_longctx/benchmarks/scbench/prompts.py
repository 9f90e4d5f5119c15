"""SCBench's prompts, byte for byte, and its output budgets.

Source: microsoft/MInference at fb56c91, scbench/eval_utils.py: `multiturn_templates` (`FIRST`), `multiturn_templates_scdq`
(`SHARED`, and the question where it has one), `multiturn_follow_up_templates_in_chat_tempate` (`QUESTIONS`), the texts in
`create_multiturn_prompt`, and `DATA_NAME_TO_MAX_NEW_TOKENS`. Licence: MIT, Copyright (c) Microsoft Corporation.
"""

# fmt: off
SHARED = {
    **dict.fromkeys(("prefix_suffix", "vt", "many_shot", "summary", "summary_with_needles", "repoqa_and_kv"), "{context}"),
    "kv": "Extract the value corresponding to the specified key in the JSON object below.\n\n{context}",
    "repoqa": "Based on the function description and code context, please retrieve and repeat the exact described function from the code context in a code block wrapped by ```:\n\n{context}",
    "qa_eng": "Read the book and answer the question. Be very concise in your answer.\n\n{context}",
    "qa_chn": "阅读以下书籍然后回答问题。\n\n{context}",
    "choice_eng": "Read the book and answer the question.\n\n{context}",
    "mf": "{prefix}\n\n{context}",
}
"""What all requests on a context begin with, if each is of its own. A question follows without a separator."""
QUESTIONS = {
    **dict.fromkeys(SHARED, "{input}"),
    "qa_eng": "Question: {question}\nAnswer:",
    "qa_chn": "问题：{question}\n答案：",
    "choice_eng": "Question: {question}\nA. {OPTION_A}\nB. {OPTION_B}\nC. {OPTION_C}\nD. {OPTION_D}\n\nThe the correct answer is",
    "mf": "{prefix}\n\n{input}",
}
"""The later turns of a conversation, and the question of a request of its own."""
FIRST = {name: f"{shared}\n\n{QUESTIONS[name]}" for name, shared in SHARED.items()}
FIRST["mf"] = "{prefix}\n\n{context}\n\n{input}"
"""The first turn of a conversation."""
MATH_QUESTION = "What is {target}?"
"""What stands before a question of `mf`."""
ANSWER_STARTS = {"summary": "This paper"}
"""How the official code starts the answers after the first one."""
BUDGETS = {
    "kv": {"scbench_kv": 150},
    "prefix_suffix": {"scbench_prefix_suffix": 150},
    "vt": {"scbench_vt": 30},
    "repoqa": {"scbench_repoqa": 1024},
    "qa_eng": {"scbench_qa_eng": 40},
    "qa_chn": {"scbench_qa_chn": 40},
    "choice_eng": {"scbench_choice_eng": 40},
    "many_shot": {"scbench_many_shot": 10},
    "mf": {"scbench_mf": 5},
    "summary": {"scbench_summary": 200},
    "summary_with_needles": {"scbench_summary": 800, "scbench_passkey": 15},
    "repoqa_and_kv": {"scbench_repoqa": 1024, "scbench_kv": 80},
}
"""The output budgets in tokens, by the kind of question. Of two kinds the questions take turns."""
# fmt: on
