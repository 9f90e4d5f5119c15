"""The judges of HELM's medical run entries, in the form of HELM's `judges.yaml`."""

from collections import Counter
from pathlib import Path

import yaml

from core_evals.helm_longctx.medical import MEDICAL
from core_evals.helm_longctx.settings import JURY, family_name
from helm_longctx.config.schema import RunConfig
from helm_longctx.errors import InputError
from helm_longctx.writing import replace_file

_JUDGED = {task.entry for task in MEDICAL.values() if task.is_judged}


def write_jury(config: RunConfig, folder: Path) -> None:
    """Write the file that the entries of a configuration name as their jury, if they are judged.

    Raises:
        InputError: the entries are judged, and no judge is named.
    """
    asked: set[str] = set()
    for text in config.entries or []:
        asked.update(written.name for written in text.entries)
    if asked.isdisjoint(_JUDGED):
        return
    names = config.judge.names
    if names in (["auto"], ["none"]):
        raise InputError(
            f"config.params.extra.judge={names[0]!r} is invalid; give one or several judges,"
            " because HELM's default jury is only for Stanford Health Care"
        )
    seen: Counter[str] = Counter()
    judges = []
    for name in names:
        family = family_name(name)
        seen[family] += 1
        label = family if seen[family] == 1 else f"{family}_{seen[family]}"
        judges.append({"name": label, "model": name, "model_deployment": name})
    content = yaml.safe_dump({"judges": judges}, sort_keys=False)
    replace_file(folder / JURY, content.encode())
