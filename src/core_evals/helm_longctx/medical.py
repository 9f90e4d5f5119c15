"""HELM's own medical run entries that NVIDIA's fork of HELM offers. HELM runs them; they have no length."""

from typing import NamedTuple


class MedicalTask(NamedTuple):
    """A run entry of HELM.

    Args:
        entry: name of the run entry.
        is_judged: whether a jury of language models scores the answers.
        subsets: allowed values of the entry's required argument `subset`; empty if it has no such argument.
        modules: modules that HELM imports only after requests are paid for.
    """

    entry: str
    description: str
    is_judged: bool = False
    subsets: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """All modules that HELM itself does not require. HELM's metrics of judged tasks also need two."""
        return (
            (*self.modules, "bert_score", "summ_eval")
            if self.is_judged
            else self.modules
        )


INSTALL = "crfm-helm[medhelm,summarization]"
"""What pip has to install for all modules of the tasks."""

SPACY_MODEL = "en_core_web_sm"
"""The module that HELM's metrics of judged tasks otherwise download when all requests are paid for."""

_DIALOGS = "One-sentence summaries of conversations between patients and doctors"

MEDICAL: dict[str, MedicalTask] = {
    "medcalc_bench": MedicalTask(
        "medcalc_bench", "Computing a medical value from a patient's note"
    ),
    "medec": MedicalTask(
        "medec", "Finding and correcting errors in medical narratives"
    ),
    "head_qa": MedicalTask("head_qa", "Multiple-choice questions of biomedical exams"),
    "medbullets": MedicalTask(
        "medbullets", "Multiple-choice questions in the style of the USMLE"
    ),
    "pubmed_qa": MedicalTask(
        "pubmed_qa", "Yes, no or maybe: questions about abstracts of PubMed"
    ),
    "ehr_sql": MedicalTask("ehr_sql", "SQL queries for questions about health records"),
    "race_based_med": MedicalTask(
        "race_based_med",
        "Finding race-based bias in medical answers",
        modules=("docx",),
    ),
    "medhallu": MedicalTask(
        "medhallu", "Telling factual from hallucinated medical answers"
    ),
    "mtsamples_replicate": MedicalTask(
        "mtsamples_replicate", "Treatment plans from clinical notes", True
    ),
    "mtsamples_procedures": MedicalTask(
        "mtsamples_procedures", "Treatment plans for medical procedures", True
    ),
    "aci_bench": MedicalTask("aci_bench", "Clinical notes from conversations", True),
    "medication_qa": MedicalTask(
        "medication_qa",
        "Consumers' questions about medication",
        True,
        modules=("openpyxl",),
    ),
    "medi_qa": MedicalTask("medi_qa", "Consumers' health questions", True),
    "med_dialog": MedicalTask(
        "med_dialog", _DIALOGS, True, ("healthcaremagic", "icliniq")
    ),
    "med_dialog_healthcaremagic": MedicalTask(
        "med_dialog", f"{_DIALOGS}: HealthCareMagic", True, ("healthcaremagic",)
    ),
    "med_dialog_icliniq": MedicalTask(
        "med_dialog", f"{_DIALOGS}: iCliniq", True, ("icliniq",)
    ),
}
"""The keys are the names in NeMo Evaluator, which NVIDIA's fork has, too."""
