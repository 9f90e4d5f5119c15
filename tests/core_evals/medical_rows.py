"""Fabricates rows for HELM's medical tasks where HELM looks before it downloads them, in the shape of the official data."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

COUNT = 4
"""Instances of each task."""

PULSES = range(61, 61 + COUNT)


def write_rows(task: str, folder: Path, out: Path) -> None:
    """Write the data of a task.

    Args:
        folder: where the command is started: the data sets of the hub are folders there.
        out: the output folder, in which HELM keeps what it downloads.
    """
    _WRITERS[task](folder if task in _OF_THE_HUB else out / "scenarios" / task)


def _write_csv(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _write_hub_set(
    folder: Path, config: str, split: str, rows: Iterable[dict[str, Any]]
) -> None:
    folder.mkdir(parents=True)
    (folder / f"{split}.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    files = f"configs:\n- config_name: {config}\n  data_files:\n  - split: {split}\n    path: {split}.jsonl\n"
    (folder / "README.md").write_text(f"---\n{files}---\n", encoding="utf-8")


def _medcalc_bench(folder: Path) -> None:
    rows = [
        {
            "Row Number": pulse,
            "Patient Note": f"A patient has a pulse of {pulse} beats.",
            "Question": "What is the patient's pulse in beats?",
            "Ground Truth Answer": str(pulse),
            "Category": "physical",
            "Lower Limit": str(pulse - 1),
            "Upper Limit": str(pulse + 1),
        }
        for pulse in PULSES
    ]
    _write_hub_set(folder / "ncbi/MedCalc-Bench", "default", "test", rows)


def _medhallu(folder: Path) -> None:
    # Each row is asked with both answers.
    rows = [
        {
            "Question": f"Is a pulse of {pulse} normal?",
            "Ground Truth": "It is.",
            "Knowledge": ["A pulse between 60 and 100 is normal."],
            "Hallucinated Answer": "It is fatal.",
        }
        for pulse in PULSES[: COUNT // 2]
    ]
    _write_hub_set(folder / "UTAustin-AIHealth/MedHallu", "pqa_labeled", "train", rows)


def _head_qa(folder: Path) -> None:
    answers = [{"aid": number, "atext": f"{number} beats"} for number in (1, 2, 3, 4)]
    rows = [
        {
            "name": "exam",
            "year": "2013",
            "category": "nursery",
            "qid": number,
            "qtext": f"How many beats are {number}?",
            "ra": number,
            "image": None,
            "answers": answers,
        }
        for number in (1, 2, 3, 4)
    ]
    _write_hub_set(folder / "dvilares/head_qa", "en", "test", rows)


def _medec(folder: Path) -> None:
    rows = [(f"0 The patient has a pulse of {pulse}.", 0, "NA", -1) for pulse in PULSES]
    header = ("Sentences", "Error Flag", "Corrected Sentence", "Error Sentence ID")
    _write_csv(folder / "medec_test.csv", header, rows)


def _medbullets(folder: Path) -> None:
    header = (
        "question",
        "opa",
        "opb",
        "opc",
        "opd",
        "ope",
        "answer_idx",
        "answer",
        "explanation",
    )
    rows = [
        (
            f"A pulse of {pulse} is",
            "low",
            "normal",
            "high",
            "none",
            "both",
            "B",
            "normal",
            "",
        )
        for pulse in PULSES
    ]
    _write_csv(folder / "medbullets_op5.csv", header, rows)


def _pubmed_qa(folder: Path) -> None:
    rows = {
        str(pulse): {
            "QUESTION": f"Is a pulse of {pulse} normal?",
            "CONTEXTS": ["A pulse between 60 and 100 is normal."],
            "LABELS": ["RESULTS"],
            "final_decision": "yes",
        }
        for pulse in PULSES
    }
    (folder / "data").mkdir(parents=True)
    (folder / "data/test_set.json").write_text(json.dumps(rows), encoding="utf-8")


def _race_based_med(folder: Path) -> None:
    rows = [
        (f"Is a pulse of {pulse} normal?", "It depends on race.", str(not pulse % 2))
        for pulse in PULSES
    ]
    _write_csv(folder / "race_based.csv", ("Question", "Response", "True/False"), rows)


def _ehr_sql(folder: Path) -> None:
    folder.mkdir(parents=True)
    table = "CREATE TABLE vitals\n(\npulse INT\n);\n"
    (folder / "eicu.sql").write_text(table, encoding="utf-8")
    with sqlite3.connect(folder / "eicu.sqlite") as database:
        database.execute(table)
        database.executemany(
            "INSERT INTO vitals VALUES (?)", [(pulse,) for pulse in PULSES]
        )
    rows = [
        {"question": f"How many pulses exceed {pulse}?", "query": _query(pulse)}
        for pulse in PULSES
    ]
    for split, chosen in (("train", []), ("valid", rows[:2]), ("test", rows[2:])):
        (folder / f"ehrsql_{split}.json").write_text(
            json.dumps(chosen), encoding="utf-8"
        )


def _query(pulse: int) -> str:
    return f"SELECT COUNT(*) FROM vitals WHERE pulse > {pulse}"


NOTE = "The patient has a pulse of {}.\nPLAN: Repeat the measurement in a week.\n"


def _mtsamples(folder: Path) -> None:
    # The module `sitecustomize`, which `write_stand_ins` writes, lists these files in the place of GitHub.
    folder.mkdir(parents=True)
    for pulse in PULSES:
        (folder / f"{pulse}.txt").write_text(NOTE.format(pulse), encoding="utf-8")


def _summaries() -> dict[str, Any]:
    return {
        "data": [
            {"src": f"My pulse is {pulse}.", "tgt": f"A pulse of {pulse}."}
            for pulse in PULSES
        ]
    }


def _aci_bench(folder: Path) -> None:
    folder.mkdir(parents=True)
    for part in ("train", "test_1", "test_2", "test_3"):
        content = _summaries() if part == "test_1" else {"data": []}
        (folder / f"aci_bench_{part}.json").write_text(
            json.dumps(content), encoding="utf-8"
        )


def _med_dialog(folder: Path) -> None:
    for subset in ("healthcaremagic", "icliniq"):
        (folder / subset).mkdir(parents=True)
        (folder / subset / "test.json").write_text(
            json.dumps(_summaries()), encoding="utf-8"
        )


def _medication_qa(folder: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in [
        ("Question", "Answer"),
        *((f"Is {pulse} mg too much?", "It is not.") for pulse in PULSES),
    ]:
        book.active.append(row)
    folder.mkdir(parents=True)
    book.save(folder / "MedInfo2019-QA-Medications.xlsx")


def _medi_qa(folder: Path) -> None:
    rows = [
        {
            "QUESTION": {
                "QID": str(pulse),
                "QuestionText": f"Is a pulse of {pulse} normal?",
                "AnswerList": [
                    {"Answer": {"ReferenceRank": 1, "AnswerText": "It is."}}
                ],
            }
        }
        for pulse in PULSES
    ]
    _write_hub_set(folder / "bigbio/mediqa_qa", "default", "test", rows)


def write_licensed(task: str, folder: Path) -> dict[str, Any]:
    """Write data of a task for which a licence is needed, and return the parameters in `extra` that name them."""
    return {"data_path": str(folder), **_LICENSED[task](folder)}


def _ehrshot(folder: Path) -> dict[str, Any]:
    import pandas

    for name in ("data", "metadata", "labels/guo_readmission"):
        (folder / name).mkdir(parents=True)
    days = pandas.to_datetime(["2020-01-01", "2020-01-02", "2020-01-09"])
    # The last event is after the prediction, so no prompt may have it.
    events = []
    for pulse in PULSES:
        codes = ["ICD10CM/I10", f"LOINC/{pulse}", "LATER"]
        for day, code in zip(days, codes, strict=True):
            events.append({"subject_id": pulse, "time": day, "code": code})
    pandas.DataFrame(events).to_parquet(folder / "data/data.parquet")
    splits = pandas.DataFrame({"subject_id": PULSES, "split": "held_out"})
    splits.to_parquet(folder / "metadata/subject_splits.parquet")
    labels = {
        "subject_id": PULSES,
        "prediction_time": pandas.Timestamp("2020-01-05"),
        "boolean_value": [pulse % 2 == 1 for pulse in PULSES],
    }
    path = folder / "labels/guo_readmission/labels.parquet"
    pandas.DataFrame(labels).to_parquet(path)
    return {"subject": "guo_readmission"}


def _medalign(folder: Path) -> dict[str, Any]:
    records = folder / "medalign_ehr_xml"
    records.mkdir(parents=True)
    instructions = ["instruction_id\tquestion\tperson_id"]
    answers = ["instruction_id\tannotator_num\tclinician_response"]
    for pulse in PULSES:
        text = f"<record><pulse>{pulse}</pulse></record>"
        (records / f"{pulse}.xml").write_text(text, encoding="utf-8")
        instructions.append(f"{pulse}\tWhat is the pulse?\t{pulse}")
        answers.append(f"{pulse}\tAnnotator_1\tThe pulse is {pulse}.")
    for name, rows in (
        ("clinician-reviewed-model-responses.tsv", instructions),
        ("clinician-instruction-responses.tsv", answers),
    ):
        (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return {"max_length": 2048}


def _n2c2(folder: Path) -> dict[str, Any]:
    (folder / "test").mkdir(parents=True)
    for pulse in PULSES:
        met = "met" if pulse % 2 else "not met"
        note = f"Record date: 2020-01-01\nThe patient has a pulse of {pulse}."
        text = f'<PatientMatching><TEXT>{note}</TEXT><TAGS><ABDOMINAL met="{met}"/></TAGS></PatientMatching>'
        (folder / f"test/{pulse}.xml").write_text(text, encoding="utf-8")
    return {"subject": "ABDOMINAL"}


def _clear(folder: Path) -> dict[str, Any]:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(("text", "result_human"))
    for pulse in PULSES:
        book.active.append((f"The patient has a pulse of {pulse}.", pulse % 2))
    folder.mkdir(parents=True)
    book.save(folder / "chronic_pain.xlsx")
    return {"condition": "chronic_pain"}


_LICENSED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ehrshot": _ehrshot,
    "medalign": _medalign,
    "n2c2_ct_matching": _n2c2,
    "clear": _clear,
}


def write_stand_ins(folder: Path) -> None:
    """Write modules for what HELM downloads: spaCy's English model, of which only the tokenizer is used, and the list of
    the notes of MTSamples."""
    info = folder / "en_core_web_sm-3.8.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: en_core_web_sm\nVersion: 3.8.0\n"
    )
    (folder / "en_core_web_sm.py").write_text(
        "import spacy\n\ndef load(**_):\n    return spacy.blank('en')\n"
    )
    write_encoding(folder)
    names = json.dumps([{"name": f"{pulse}.txt"} for pulse in PULSES])
    (folder / "sitecustomize.py").write_text(
        "import requests\n\nimport encoding\n\nreal = requests.get\n\ndef get(url, **options):\n"
        "    if not url.startswith('https://api.github.com/'):\n        return real(url, **options)\n"
        f"    reply = requests.Response()\n    reply.status_code, reply._content = 200, {names.encode()!r}\n"
        "    return reply\n\nrequests.get = get\n"
    )


def write_encoding(folder: Path) -> None:
    """Write modules that load an encoding of single bytes in the place of the one that tiktoken fetches."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "encoding.py").write_text(
        "import tiktoken\n\nranks = {bytes([byte]): byte for byte in range(256)}\n"
        "small = tiktoken.Encoding(\n    'cl100k_base', pat_str='.', mergeable_ranks=ranks, special_tokens={}\n)\n"
        "tiktoken.get_encoding = tiktoken.encoding_for_model = lambda name: small\n",
        encoding="utf-8",
    )
    (folder / "sitecustomize.py").write_text("import encoding\n", encoding="utf-8")


_OF_THE_HUB: dict[str, Callable[[Path], None]] = {
    "medcalc_bench": _medcalc_bench,
    "medhallu": _medhallu,
    "head_qa": _head_qa,
    "medi_qa": _medi_qa,
}

_WRITERS: dict[str, Callable[[Path], None]] = {
    **_OF_THE_HUB,
    "medec": _medec,
    "medbullets": _medbullets,
    "pubmed_qa": _pubmed_qa,
    "race_based_med": _race_based_med,
    "ehr_sql": _ehr_sql,
    "mtsamples_replicate": _mtsamples,
    "mtsamples_procedures": _mtsamples,
    "aci_bench": _aci_bench,
    "med_dialog": _med_dialog,
    "medication_qa": _medication_qa,
}


class Expected(NamedTuple):
    """Args: an answer that a model gives to all questions of a task, and the value that a statistic then has."""

    answer: str
    statistic: str
    value: float


EXPECTED = {
    # The limits around the right value also accept the next one.
    "medcalc_bench": Expected(str(PULSES[0]), "medcalc_bench_accuracy", 0.5),
    "race_based_med": Expected("A", "exact_match", 0.5),
    "medec": Expected("CORRECT", "medec_error_flag_accuracy", 1),
    "medbullets": Expected("B", "exact_match", 1),
    "pubmed_qa": Expected("A", "exact_match", 1),
    "medhallu": Expected("0", "exact_match", 0.5),
    "head_qa": Expected("A", "exact_match", 0.25),
    "ehr_sql": Expected(_query(PULSES[0]), "ehr_sql_execution_accuracy", 0.25),
    "ehrshot": Expected("A", "exact_match", 0.5),
    "n2c2_ct_matching": Expected("A", "exact_match", 0.5),
    "clear": Expected("B", "exact_match", 0.5),
}
