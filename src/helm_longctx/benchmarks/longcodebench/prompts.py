"""What NeMo Gym adds to LongCodeQA's prompts. Those are in the data.

Source: NVIDIA-NeMo/Gym at 07d6b0d, benchmarks/longcodebench/prepare.py. Licence: Apache License 2.0, Copyright (c) 2025
NVIDIA CORPORATION & AFFILIATES.
"""

# fmt: off
POSTFIX = "\n\nThe last line of your response should be in the following format: 'Answer: \\boxed{A/B/C/D}' (e.g. 'Answer: \\boxed{A}')."
# fmt: on
