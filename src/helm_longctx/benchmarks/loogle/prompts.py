"""LooGLE's prompts by task, byte for byte except for the names of the fields, and its judge's.

Source: bigai-nlco/LooGLE at 6734382, config/task2prompt.json (where the fields are `input` and `Q`) and
Evaluation/llm_score.py. Licence: MIT, Copyright (c) 2023 BIGAI Natural Language and Conversational AI Lab.
"""

# fmt: off
PROMPTS = {
    **dict.fromkeys(("shortdep_qa", "longdep_qa"), "Please answer the question based on the long texts below. \n{context}\nQuestion: {question}\nAnswer: "),
    "longdep_summarization": "Please generate a summary of the below paper. \n{context}\n Summarization: ",
    "shortdep_cloze": "Please fill in the clozes based on the given long texts below. Each of the placeholder '<mask-n>' in the question could be an entity of Person, Location or Organiocation. The same masks represent the same entity. Output a json format answer, for example: {{'<mask-0>': 'Bob', '<mask-1>': 'Gorrosion Magazine','<mask-2>': 'Bethel Horizon'}}\n{context}\n Question: {question} What are the masked entities? \nAnswer:",
}
JUDGE_SYSTEM = "Given one question, there is a groundtruth and a predict_answer. Please decide whether they are the same or not in semantic. Please only output 'True' or 'False' ."
JUDGE = "Question: {question}\ngroudtruth = {reference}\npredict_answer = {answer}"
JUDGE_SUMMARY = "There is a groundtruth summary of a arxiv paper and a auto-generated summary .Please Compare generated summary with the goundtruth and evaluate the generated summary from the perspectives of information completeness, consistency, fluency, and grammar by giving a score within the range of 0 to 100. \nGroundtruth = {} \nGenerated = {} \nScore = "
# fmt: on
