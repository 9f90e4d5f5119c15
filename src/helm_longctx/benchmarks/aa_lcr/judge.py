"""AA-LCR's judges as HELM's annotators."""

from helm_longctx.benchmarks.aa_lcr.tasks import AA_LCR
from helm_longctx.judging.answer_judge import make_annotator

VerdictAnnotator, VerdictAnnotator11 = map(make_annotator, AA_LCR.tasks)
