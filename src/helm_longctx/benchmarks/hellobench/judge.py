"""HelloBench's judge as HELM's annotator."""

from helm_longctx.benchmarks.hellobench.tasks import HELLOBENCH
from helm_longctx.judging.answer_judge import make_annotator

ChecklistAnnotator = make_annotator(*HELLOBENCH.tasks)
