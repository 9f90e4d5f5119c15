"""LoCoMo's judges as HELM's annotators, one for each prompt."""

from helm_longctx.benchmarks.locomo.tasks import LOCOMO
from helm_longctx.judging.answer_judge import make_annotator

(
    Mem0Annotator,
    Mem02026Annotator,
    ZepAnnotator,
    LongMemEvalAnnotator,
    StrictAnnotator,
) = (
    make_annotator(LOCOMO.task(f"judged_{name}"))
    for name in ("mem0", "mem0_2026", "zep", "longmemeval", "strict")
)
