"""HELMET's prompt templates, byte for byte.

Source: princeton-nlp/HELMET at 4526dfb, data.py (load_json_kv, load_ruler, load_icl). Licence: MIT, Copyright (c)
2024 Princeton Natural Language Processing. The key-value prompt is that of nelson-liu/lost-in-the-middle (MIT); the
needle prompts are those of RULER (hsiehjackson/RULER, Apache-2.0) as HELMET words them.
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

ICL_USER = "Use the provided mapping from the text to label to assign a label to the text. Only output \"label: {{label}}\" and nothing else. \n\n{context}\n\n{question}"
ICL_PREFIX = "label:"
ICL_DEMO = "{text}\nlabel: "
