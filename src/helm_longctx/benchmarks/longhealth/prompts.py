"""LongHealth's prompts, byte for byte.

Source: TIO-IKIM/CLUE at 2de4314, eval/eval_LongHealth.py (MIT License, Copyright (c) 2024 Amin Dada, Marie Bauer, Amanda
Butler Contreras, Osman Alperen Koraş, Constantin Marc Seibold, Kaleb E Smith, Jens Kleesiek). It has them from
kbressem/LongHealth (Apache License 2.0).
"""

# fmt: off
SYSTEM = "\nYou are a highly skilled and detail-oriented assistant, specifically trained to assist medical professionals in interpreting and extracting key information from medical documents. Your primary responsibility will be to analyze discharge letters from hospitals. When you receive one or more of these letters, you will be expected to carefully review the contents and accurately answer multiple-choice questions related to these documents. \n\nYour answers should be:\n1. Accurate: Make sure your answers are based on the information provided in the letters.\n2. Concise: Provide brief and direct answers without unnecessary elaboration.\n3. Contextual: Consider the context and specifics of each question to provide the most relevant information.\n\nRemember, your job is to streamline the physician's decision-making process by providing them with accurate and relevant information from discharge summaries. Efficiency and reliability are key.\n"
TEMPLATE = "\n--------------BEGIN DOCUMENTS--------------\n\n{documents}\n\n--------------END DOCUMENTS--------------\n\n{question_text}\n{options}\n\nPlease answer using the following format:\n1. Begin your answer with the phrase \"The correct answer is\".\n2. State the letter of the correct option (e.g., A, B, C, D, E).\n3. Follow the letter with a colon and the exact text of the option you chose.\n4. Make sure your answer is a single, concise sentence.\n\nFor example, if the correct answer to a question is option C, and the text for C is 'Acute Bronchitis', your answer should be: \n'The correct answer is C: Acute bronchitis.'\n"
SEPARATOR = "\n\n--------------\n\n"
COUNTED_SEPARATOR = "\n\n-------------- NEW DOCUMENT --------------\n\n"
UNKNOWN = "Question cannot be answered with provided documents"
# fmt: on
