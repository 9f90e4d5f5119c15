"""LongGenBench's judge as HELM's annotator."""

from helm_longctx.benchmarks.longgenbench.tasks import LONGGENBENCH
from helm_longctx.judging.answer_judge import make_annotator

CheckAnnotator = make_annotator(*LONGGENBENCH.tasks)
