"""OOLONG's prompts. The instructions are part of the data, except the instructions of OOLONG-Pairs.

Source: the cards of the hub data sets oolongbench/oolong-synth and oolongbench/oolong-real (`INPUT`);
abertsch72/oolong at adbf1cb, src/eval/eval_script_batched.py (`SYSTEM`, MIT License); arXiv 2512.24601v2, appendix D.1
(`PAIR_QUESTION`, `PAIR_CONDITIONS`).
"""

INPUT = "{context}\n{question}"
"""The input by the cards."""

SYSTEM = "You are a helpful assistant."
"""The first part of the system message to APIs; the context is the second."""

PAIR_QUESTION = (
    "In the above data, list all pairs of user IDs (no duplicate pairs, list lower ID first) {condition}. Each of the"
    " questions can be labelled as one of the labels (the data does not provide the labels, you need to figure out the"
    " label from the semantics of the question): description and abstract concept, entity, human being, numeric value,"
    " location, abbreviation. In your answer, list all pairs in the format (user_id_1, user_id_2), separated by newlines."
)

PAIR_CONDITIONS = (
    "where both users have at least one instance with a numeric value or location",
    "where both users have at least one instance with an entity or human being",
    "where both users have at least one instance with a description and abstract concept or abbreviation",
    "where both users have at least one instance with a human being or location, and all instances that are a human"
    " being for both users must be after January 6, 2023",
    "where both users have at least one instance with an entity or numeric value, and all instances that are an entity"
    " for both users must be before March 15, 2023",
    "where both users have at least one instance with a location or abbreviation",
    "where both users have at least one instance with a description and abstract concept or numeric value, and all"
    " instances that are a numeric value for both users must be after February 1, 2023",
    "where both users have at least one instance with a human being or description and abstract concept",
    "where both users have at least one instance with an entity or location, and all instances that are a location for"
    " both users must be after April 10, 2023",
    "where both users have at least one instance with a numeric value or abbreviation, and all instances that are an"
    " abbreviation for both users must be before May 20, 2023",
    "such that one user has at least one instance with entity and one with abbreviation, and the other user has exactly"
    " one instance with entity",
    "such that one user has at least two instances with numeric value, and the other user has at least one instance"
    " with location and at least one instance with human being",
    "such that one user has exactly one instance with description and abstract concept, and the other user has at least"
    " one instance with abbreviation and at least one instance with entity",
    "such that one user has at least one instance with human being and at least one instance with numeric value, and the"
    " other user has exactly two instances with location",
    "such that one user has at least one instance with entity, at least one instance with location, and at least one"
    " instance with abbreviation, and the other user has exactly one instance with numeric value",
    "such that one user has at least one instance with description and abstract concept and at least one instance with"
    " human being, and the other user has at least two instances with entity and exactly one instance with abbreviation",
    "such that one user has exactly one instance with numeric value, and the other user has at least one instance with"
    " location and at least one instance with description and abstract concept",
    "such that one user has at least one instance with abbreviation and exactly one instance with human being, and the"
    " other user has at least one instance with entity and at least one instance with numeric value",
    "such that one user has at least two instances with location and at least one instance with entity, and the other"
    " user has exactly one instance with description and abstract concept and exactly one instance with abbreviation",
    "such that one user has at least one instance with numeric value and at least one instance with human being, and the"
    " other user has at least one instance with location, at least one instance with entity, and exactly one instance"
    " with abbreviation",
)
"""What the pairs of each question have in common."""
