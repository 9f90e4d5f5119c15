"""The prompt around a context and a question, and the judge's prompt. Both are our own."""

from helm_longctx.tasks import Template

# fmt: off
PROMPT = Template.whole("<documents>\n{context}\n</documents>\n\n{question}")
JUDGE = "Grade an answer to a question about documents that you do not see.\n\nQuestion:\n{question}\n\nReference answers:\n{references}\n\nAnswer to grade:\n{prediction}\n\nCriteria:\n{rubric}\n\nExplain the grade in one or two sentences. Then write a last line of the form\nGRADE: n\nwhere n is a whole number from 0 (no criterion is met) to 10 (all criteria are met)."
# fmt: on
