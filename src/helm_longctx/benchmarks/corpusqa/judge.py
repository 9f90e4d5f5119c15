"""CorpusQA's judge as HELM's annotator."""

from helm_longctx.benchmarks.corpusqa.tasks import CORPUSQA
from helm_longctx.judging.answer_judge import make_annotator

EquivalenceAnnotator = make_annotator(*CORPUSQA.tasks)
