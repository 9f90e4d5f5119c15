"""HELM's own medical run entries that NVIDIA's fork of HELM offers. HELM runs them.

They have no length of ours; two of them take a `max_length` of their own.
"""

from importlib import import_module
from operator import attrgetter
from typing import NamedTuple


class _LicensedData(NamedTuple):
    """Data that HELM reads from a folder, and that nobody gets without a licence.

    Args:
        files: paths in the folder, also of folders. `{}` stands for the subject.
        access: who gives the data, and where to ask for them.
    """

    files: tuple[str, ...]
    access: str


class _Subjects(NamedTuple):
    """The tasks of a benchmark, of which a run entry takes one.

    Args:
        argument: name of the run entry's argument: `subject` or `condition`.
        module: module of HELM that lists them.
        path: where the module has the list, as `operator.attrgetter` reads it.
    """

    argument: str
    module: str
    path: str

    def load(self) -> list[str]:
        """Return the names of all subjects."""
        return list(attrgetter(self.path)(import_module(self.module)))


class MedicalTask(NamedTuple):
    """A run entry of HELM.

    Args:
        entry: name of the run entry.
        is_judged: whether a jury of language models scores the answers.
        subsets: allowed values of the entry's required argument `subset`; empty if it
            has no such argument.
        modules: modules that HELM imports only after requests are paid for.
        data: what the entry's required argument `data_path` has to contain.
        subjects: the values of the entry's required argument for a subject.
        takes_length: whether the entry takes `max_length`, in tokens of `cl100k_base`.
    """

    entry: str
    description: str
    is_judged: bool = False
    subsets: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    data: _LicensedData | None = None
    subjects: _Subjects | None = None
    takes_length: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """All modules that HELM itself does not require. HELM's metrics of judged tasks also need three."""
        if self.is_judged:
            return (*self.modules, "bert_score", "gin", "summ_eval")
        return self.modules


INSTALL = (
    "pip install 'crfm-helm[medhelm]' gin-config"
    " && pip install --no-deps summ-eval 'accelerate>=1.15'"
)
"""What installs all modules of the tasks.

HELM's extra `summarization` would also install blanc and pyemd, which summ-eval names and HELM does not use. They need
versions of torch and NumPy below 2. The extra `medhelm` takes accelerate to a version below 1, with which transformers
spreads no model over several GPUs. No medical task uses accelerate, so our extra `local` gets its version back.
"""

SPACY_MODEL = "en_core_web_sm"
"""The module that HELM's metrics of judged tasks otherwise download when all requests are paid for."""

_SCENARIOS = "helm.benchmark.scenarios"

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
    "ehrshot": MedicalTask(
        "ehrshot",
        "Predicting a clinical event from the codes of a long health record",
        modules=("pandas", "pyarrow", "tiktoken"),
        data=_LicensedData(
            files=(
                "data/data.parquet",
                "metadata/subject_splits.parquet",
                "labels/{}/labels.parquet",
            ),
            access=(
                "Stanford's research data use agreement"
                " (EHRSHOT_MEDS.zip at https://redivis.com/datasets/53gc-8rhx41kgt)"
            ),
        ),
        subjects=_Subjects(
            "subject", f"{_SCENARIOS}.ehrshot_scenario", "TASK_FULL_NAMES"
        ),
        takes_length=True,
    ),
    "medalign": MedicalTask(
        "medalign",
        "Clinicians' instructions about a long health record",
        is_judged=True,
        modules=("pandas", "tiktoken", "transformers"),
        data=_LicensedData(
            files=(
                "clinician-reviewed-model-responses.tsv",
                "clinician-instruction-responses.tsv",
                "medalign_ehr_xml",
            ),
            access=(
                "MedAlign's data use agreement (https://github.com/som-shahlab/medalign),"
                " which forbids APIs that are not HIPAA-compliant"
            ),
        ),
        takes_length=True,
    ),
    "n2c2_ct_matching": MedicalTask(
        "n2c2_ct_matching",
        "Whether a patient's notes meet a criterion of a clinical trial",
        data=_LicensedData(
            files=("test",),
            access=(
                "the n2c2 data use agreement"
                " (2018, track 1, at https://portal.dbmi.hms.harvard.edu)"
            ),
        ),
        subjects=_Subjects(
            "subject", f"{_SCENARIOS}.n2c2_ct_matching_scenario", "LONG_DEFINITIONS"
        ),
    ),
    "clear": MedicalTask(
        "clear",
        "Whether a note says that a patient has a history of a condition",
        modules=("pandas", "openpyxl"),
        data=_LicensedData(
            files=("{}.xlsx",),
            access=(
                "the authors at Stanford"
                " (https://www.nature.com/articles/s41746-024-01377-1)"
            ),
        ),
        subjects=_Subjects(
            "condition", f"{_SCENARIOS}.clear_scenario", "CLEARScenario.CONDITIONS"
        ),
    ),
}
"""The keys are the names in NeMo Evaluator, which NVIDIA's fork has, too. Its page names the last four, but does not list
them."""
