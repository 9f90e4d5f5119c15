"""HELMET's prompt templates, byte for byte.

Source: princeton-nlp/HELMET at 4526dfb, data.py (the load_ functions). Licence: MIT, Copyright (c) 2024 Princeton
Natural Language Processing. The key-value prompt is from nelson-liu/lost-in-the-middle (MIT), RULER's prompts are
from hsiehjackson/RULER (Apache-2.0), and InfiniteBench's from OpenBMB/InfiniteBench (MIT), as HELMET words them.
"""

# fmt: off
JSON_KV_USER = "{context}\n\nExtract the value corresponding to the specified key in the JSON object below.\n\n{demos}Key: {question}"
JSON_KV_PREFIX = "Corresponding value:"
JSON_KV_DEMO = "Key: {key}\nCorresponding value: {value}"

NIAH_USER = "A special magic {type_needle_v} is hidden within the following text. Make sure to memorize it. I will quiz you about the {type_needle_v} afterwards.\n{context}\nWhat is the special magic {type_needle_v} for {query} mentioned in the provided text?"
NIAH_PREFIX = "The special magic {type_needle_v} for {query} mentioned in the provided text is"
NIAH_MULTI_USER = "Some special magic {type_needle_v} are hidden within the following text. Make sure to memorize it. I will quiz you about the {type_needle_v} afterwards.\n{context}\nWhat are all the special magic {type_needle_v} for {query} mentioned in the provided text?"
NIAH_MULTI_PREFIX = "The special magic {type_needle_v} for {query} mentioned in the provided text are"
NIAH_NEEDLE = "One of the special magic {type_needle_v} for {key} is: {value}."

VT_USER = "{example}Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n{context}\nQuestion: Find all variables that are assigned the value {query} in the text above."
VT_PREFIX = "Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables are assigned the value {query}, they are:"
CWE_USER = "{example}Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones that appear most often.\n{context}\nQuestion: What are the 10 most common words in the above list?"
CWE_PREFIX = "Answer: The top 10 words that appear most often in the list are:"
FWE_USER = "Read the following coded text and track the frequency of each coded word. Find the three most frequently appeared coded words.\n{context}\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently appeared words in the above coded text?"
FWE_PREFIX = "Answer: According to the coded text above, the three most frequently appeared words are:"
RULER_QA_USER = "Answer the question based on the given documents. Only give me the answer and do not output any other words.\n\nThe following are given documents.\n\n{context}\n\nAnswer the question based on the given documents. Only give me the answer and do not output any other words.\n\nQuestion: {question}"
RULER_QA_PREFIX = "Answer:"

ICL_USER = "Use the provided mapping from the text to label to assign a label to the text. Only output \"label: {{label}}\" and nothing else. \n\n{context}\n\n{question}"
ICL_PREFIX = "label:"
ICL_DEMO = "{text}\nlabel: "

QA_USER = "Use the given documents to write a concise and short answer to the question. Write your answer in the following format:\nAnswer: [answer]\n\n{demos}{context}\n\nQuestion: {question}"
QA_PREFIX = "Answer:"
QA_PASSAGE = "Document (Title: {title}): {text}"
QA_DEMO = "{documents}\n\nQuestion: {question}\nAnswer: {answer}"

RERANK_USER = "You are provided with a list of documents, each indicated by their ID. Rank each document based on their relevance to the question in descending order from most relelvant to least relevant texts. Include all documents in the rankings. Write your answer using the unique IDs, with the following format:\nRanking: ID3 > ID1 > ID2\n\n{demos}{context}\n\nQuery: {question}"
RERANK_PREFIX = "Ranking:"
RERANK_PASSAGE = "[ID: {id}] Document: {text}"
RERANK_TITLED_PASSAGE = "[ID: {id}] Document (Title: {title}): {text}"
RERANK_DEMO = "{documents}\n\nQuery: {query}\nRanking: {ranking}\n\n"

CITE_USER = "{demo_text}{instruction}\n\nQuestion: {question}\n\n{context}"
CITE_PREFIX = "Answer:"

NARRATIVEQA_USER = "You are given a story, which can be either a novel or a movie script, and a question. Answer the question as concisely as you can, using a single phrase if possible.\n\n{demo}{context}\n\nQuestion: {question}"
NARRATIVEQA_PREFIX = "Answer:"
NARRATIVEQA_DEMOS = "For example:\n\n{demos}\n\nNow, use the following story to answer the question:\n\n"
NARRATIVEQA_DEMO = "Question: {question}\nAnswer: {answer}"
INFBENCH_QA_USER = "You are given a story and a question. Answer the question as concisely as you can, using a single phrase if possible.\n\n{demo}{context}\n\nQuestion: {question}"
INFBENCH_CHOICE_USER = "You are given a story and a question with multiple choices. Choose the best answer from the options provided. Only one of the following options is correct, output the answer using one single letter (A, B, C, or D). Don't say anything else.\n\n{demo}{context}\n\nQuestion: {question}\nOptions:\n{options}"
INFBENCH_PREFIX = "Answer:"
INFBENCH_SUM_USER = "You are given a book and you are tasked to summarize it. Write a summary of about 1000 to 1200 words. Only write about the plot and characters of the story. Do not discuss the themes or background of the book. Do not provide any analysis or commentary.\n\n{demo}{context}\n\nNow summarize the book."
INFBENCH_SUM_PREFIX = "Summary:"
INFBENCH_DEMOS = "For example:\n\n{demos}\n\nNow, read the following story:\n\n"
INFBENCH_QA_DEMO = "[story text]\nQuestion: {question}\nAnswer: {answer[0]}"
INFBENCH_CHOICE_DEMO = "[story text]\nQuestion: {question}\nOptions:\n{options}\nAnswer: {answer[0]}"
INFBENCH_SUM_DEMO = "[story text]\nSummary: {summary}"
INFBENCH_OPTIONS = "A. {}\nB. {}\nC. {}\nD. {}"

LEXSUM_USER = "You are given the legal documents in a civil rights lawsuit, and you are tasked to summarize the case. Write a concise summary of one paragraph (200 to 250 words). The summary should contain a short description of the background, the parties involved, and the outcomes of the case.\n\n{demo}Legal documents:\n{context}\n\nNow please summarize the case."
LEXSUM_PREFIX = "Summary:"
LEXSUM_DEMOS = "Example summaries:\n\n{demos}\n\nNow, write a summary of the following legal documents.\n"
LEXSUM_DEMO = "Summary: {summary}"
OMITTED = " ... [the rest of the text is omitted]"
