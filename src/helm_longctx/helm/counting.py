"""Finds the tokenizer that counts the tokens of generated examples: the one of `count_with`, or the deployment's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import create_scenario
from helm.benchmark.tokenizer_config_registry import get_tokenizer_config

from helm_longctx.data.fetch import ensure
from helm_longctx.data.hub import HubFile
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, shorten
from helm_longctx.helm.truncation import Truncator, load_tokenizer
from helm_longctx.tasks.counting import make_codec, make_counter, read_tokenizer
from helm_longctx.tasks.entry import Entry, is_our_method
from helm_longctx.tasks.task import Settings


def settings_with_tokenizer(entry: Entry, root: DataRoot) -> Settings:
    """Return an entry's settings with the tokenizer of `count_with`, or raise an `InputError`."""
    name = entry.settings.count_with
    if not name:
        return entry.settings
    tokenizer = _find_tokenizer(name, root)
    return replace(entry.settings, counter=make_counter(tokenizer), codec=make_codec(tokenizer))


def with_deployments_tokenizer(spec: RunSpec) -> RunSpec:
    """Return a run spec whose scenario counts with the deployment's tokenizer, or raise an `InputError`.

    HELM makes the scenario without the deployment, so the name is put into the scenario's arguments, if the entry names
    none. The spec of a run of HELM's own scenario is returned unchanged.
    """
    if not is_our_method(spec.adapter_spec.method):
        return spec
    entry = create_scenario(spec.scenario_spec).entry
    if entry.settings.count_with or not any("count_with" in task.arguments for task in entry.tasks):
        return spec
    name = get_model_deployment(spec.adapter_spec.model_deployment).tokenizer_name
    if not name:
        raise InputError(
            f"{entry.name}: deployment {spec.adapter_spec.model_deployment!r} has no tokenizer_name; give count_with="
            " with the name or the folder of a tokenizer, or count_with=longctx/words, which downloads nothing"
            " (helm-longctx run: --argument count_with=NAME; helm_longctx.evaluate: tokenizer= with the model's"
            " tokenizer, or arguments={'count_with': NAME})"
        )
    scenario = spec.scenario_spec
    return replace(spec, scenario_spec=replace(scenario, args={**scenario.args, "count_with": name}))


def check_tokenizers(entry: Entry, deployment: str, root: DataRoot) -> None:
    """Load the tokenizers that count and cut an entry's prompts, or raise an `InputError`."""
    if entry.settings.count_with:
        _find_tokenizer(entry.settings.count_with, root)
    if any(task.cut != "nothing" for task in entry.tasks):
        Truncator.for_deployment(deployment).check()


def _find_tokenizer(name: str, root: DataRoot) -> Any:
    """Load a tokenizer from HELM's registry, from a folder, or from the hub, in this order."""
    # HELM's registry comes first, because a deployment's `tokenizer_name` is a name in it.
    if config := get_tokenizer_config(name):
        try:
            tokenizer = load_tokenizer(config)
        except Exception as error:  # each library raises another kind if a file or the network is missing
            raise InputError(
                f"count_with={config.name!r} cannot be loaded ({type(error).__name__}); give a tokenizer whose files"
                " are on this machine or can be downloaded, or longctx/words, which downloads nothing"
            ) from error
        if tokenizer is None:
            raise InputError(
                f"count_with={config.name!r} does not run in this process; give count_with= with another tokenizer,"
                " such as longctx/words"
            )
        return tokenizer
    if (Path(name) / "tokenizer.json").is_file():
        return read_tokenizer(Path(name) / "tokenizer.json")
    # Names on the hub are `org/name`. Without this check, the hub would be asked for a misspelled folder.
    if name.count("/") != 1:
        raise InputError(
            f"count_with={shorten(name)} is not a tokenizer; give a tokenizer of HELM, the name of a model on the"
            " hub, or a folder with tokenizer.json"
        )
    file = HubFile(name, "tokenizer.json", f"tokenizers/{name.replace('/', '__')}/tokenizer.json", kind="model")
    ensure([file], root, f"the same command, with a login that can read {name}")
    return read_tokenizer(root / file.path)
