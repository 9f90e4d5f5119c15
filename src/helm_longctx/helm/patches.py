"""All changes of HELM: the function that each replaces, the reason, and a check that fails when HELM changes.

HELM has no extension points for these changes. `make_our_adapter` is applied when the package is imported, because HELM
must be able to make our adapter in processes that load no plugin. All other patches are applied when a run of ours is
built (`apply_patches`), so that a `helm-run` of other scenarios behaves as if this package were not installed.

A replacement calls HELM's own function for everything that is not ours. `Patch.apply` compares the parameters of HELM's
function with those that the replacement was written for, and raises an error if they differ.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
)
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import helm.common.general
import helm.common.request
import yaml
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ModelDeployment,
)
from helm.common.request import Request, RequestResult

from helm_longctx.data.yaml_files import parse_package_yaml
from helm_longctx.errors import InputError
from helm_longctx.helm.errors import refuse_runs
from helm_longctx.helm_api import check_records, refuse_helm
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.provider import ApiClient
from helm_longctx.models.apis.sending import OpensStore, store_watch
from helm_longctx.models.apis.transport import LimitedBody, guard_library
from helm_longctx.process_state import begin_work, is_idle
from helm_longctx.redaction.abbreviation import abbreviate_request, add_log_filter
from helm_longctx.redaction.logs import redact_logs, redact_uncaught, warn_once
from helm_longctx.redaction.origin import check_origin, is_direct
from helm_longctx.redaction.text import (
    redact,
    register_arguments,
    register_credentials,
    register_environment,
)
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.sample import Sample

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance
    from helm.benchmark.window_services.tokenizer_service import TokenizerService

_MARK = "is_of_helm_longctx"


@dataclass(frozen=True)
class Patch:
    """A function of HELM and its replacement.

    Args:
        owner: the function's module, or `module:Class`.
        parameters: the names of all parameters in order, on which the replacement relies.
        replacement: (HELM's function, and its arguments) → what the caller gets.
        of_runs: whether `apply_patches` applies it. In a user's process it has no effect between calls of ours.
    """

    owner: str
    name: str
    parameters: tuple[str, ...]
    replacement: Callable[..., Any]
    of_runs: bool = False

    def apply(self) -> bool:
        """Replace the function once, and return whether that was now; an `UnsupportedHelmError` if HELM's has changed."""
        module, _, cls = self.owner.partition(":")
        owner: Any = importlib.import_module(module)
        owner = getattr(owner, cls, None) if cls else owner
        # If the function is a static method, so must be the replacement. `getattr` would hide that.
        attribute = inspect.getattr_static(owner, self.name, None)
        if isinstance(attribute, staticmethod):
            theirs = attribute.__func__
        else:
            theirs = attribute
        if getattr(theirs, _MARK, False):
            return False
        if callable(theirs):
            there = tuple(inspect.signature(theirs).parameters)
        else:
            there = None
        if there != self.parameters:
            what = "is gone"
            if there is not None:
                what = (
                    f"takes {', '.join(there)} instead of {', '.join(self.parameters)}"
                )
            raise refuse_helm(f"{self.owner}.{self.name} {what}")

        @functools.wraps(theirs)
        def ours(*arguments: Any, **named: Any) -> Any:
            if self.of_runs and is_idle():
                return theirs(*arguments, **named)
            return self.replacement(theirs, *arguments, **named)

        setattr(ours, _MARK, True)
        is_static = isinstance(attribute, staticmethod)
        setattr(owner, self.name, staticmethod(ours) if is_static else ours)
        return True


_OF_RUNS: list[Patch] = []
"""The patches that `apply_patches` applies."""


def _replaces(
    owner: str,
    name: str,
    parameters: str = "",
    of_runs: bool = True,
) -> Callable[[Callable[..., Any]], Patch]:
    """Make a patch of the function below. It takes HELM's function and then its parameters.

    Args:
        parameters: the names of HELM's parameters, if the function below has others.
        of_runs: whether `apply_patches` applies it.
    """

    def make(replacement: Callable[..., Any]) -> Patch:
        names = (
            parameters.split() or list(inspect.signature(replacement).parameters)[1:]
        )
        patch = Patch(owner, name, tuple(names), replacement, of_runs)
        if of_runs:
            _OF_RUNS.append(patch)
        return patch

    return make


class _ClientInTheMaking(NamedTuple):
    """The deployment whose client HELM is making, and HELM's credentials."""

    deployment: str
    credentials: Mapping[str, Any]


client_in_the_making: ContextVar[_ClientInTheMaking | None] = ContextVar(
    "client_in_the_making", default=None
)
"""Set while HELM makes a client and the client's cache. HELM does not pass the deployment to a cache."""


_CLIENTS = "helm.clients.auto_client:AutoClient"
_OUR_CLIENTS = "helm_longctx.models.apis"
_VLLM_CLIENT = "helm.clients.vllm_client.VLLMClient"


@_replaces(
    "helm.benchmark.adaptation.adapters.adapter_factory:AdapterFactory",
    "get_adapter",
    of_runs=False,
)
def make_our_adapter(
    theirs: Any,
    adapter_spec: AdapterSpec,
    tokenizer_service: TokenizerService,
) -> Any:
    """HELM's factory is a fixed chain of ifs, so it cannot find an adapter of another package."""
    from helm_longctx.helm.adapter import LongContextAdapter
    from helm_longctx.tasks.entry import ADAPTER_METHOD

    make = LongContextAdapter if adapter_spec.method == ADAPTER_METHOD else theirs
    return make(adapter_spec, tokenizer_service)


@_replaces("helm.common.cache", "create_key_value_store")
def _open_our_store(theirs: Any, config: Any) -> AbstractContextManager[Any]:
    """HELM's function knows a fixed set of store configurations. Ours have a method `open_store`."""
    open_store: OpensStore = getattr(config, "open_store", None) or functools.partial(
        theirs, config
    )
    watch = store_watch.get()
    if watch:
        return watch(open_store, repr(config))
    return open_store()


@_replaces(_CLIENTS, "_get_client")
def _tell_whose_client(theirs: Any, self: Any, model_deployment_name: str) -> Any:
    """HELM's cache keys have the engine's name, and two deployments can share it. Our cache needs the deployment."""
    token = client_in_the_making.set(
        _ClientInTheMaking(model_deployment_name, self.credentials)
    )
    record = DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.get(model_deployment_name)
    if record is not None and record.client_spec.class_name == _VLLM_CLIENT:
        _take_tokenizers.apply()
    try:
        client = theirs(self, model_deployment_name)
        if not isinstance(client, ApiClient):
            _guard_client(client)
        return client
    finally:
        client_in_the_making.reset(token)


def _guard_client(client: Any) -> None:
    """Have the packages of providers send by our transport. They are attributes of HELM's clients."""
    attributes = getattr(client, "__dict__", {})
    for name, library in list(attributes.items()):
        guarded = guard_library(library)
        if guarded is not library:
            setattr(client, name, guarded)


_FIRST = "helm_longctx_first_address"
"""Attribute of a request of `requests`: the address of the POST from which redirects led to it."""


def _is_of_post(request: Any) -> bool:
    return request.method == "POST" or hasattr(request, _FIRST)


@_replaces("requests.sessions:SessionRedirectMixin", "rebuild_auth")
def _keep_posts_at_their_origin(
    theirs: Any,
    self: Any,
    prepared_request: Any,
    response: Any,
) -> None:
    """HELM's other clients post with `requests`, whose redirects take headers and prompts to any server."""
    if _is_of_post(response.request):
        first = getattr(response.request, _FIRST, response.request.url)
        check_origin(first, prepared_request.url)
        setattr(
            prepared_request, _FIRST, first
        )  # some redirects turn a POST into a GET
    theirs(self, prepared_request, response)


@_replaces("requests.adapters:HTTPAdapter", "send")
def _limit_posts(
    theirs: Any,
    self: Any,
    request: Any,
    stream: bool = False,
    timeout: Any = None,
    verify: Any = True,
    cert: Any = None,
    proxies: Any = None,
) -> Any:
    """`requests` reads replies of any size, and most of HELM's clients wait for them without a limit."""
    is_limited = _is_of_post(request) and not stream
    if is_limited and timeout is None:
        timeout = settings_in_use().request_timeout
    proxies = {} if _is_of_post(request) and is_direct(request.url) else proxies
    response = theirs(self, request, stream, timeout, verify, cert, proxies)
    response.raw = LimitedBody(response.raw) if is_limited else response.raw
    return response


@_replaces("helm.clients.auto_client", "provide_api_key")
def _need_no_credentials(
    theirs: Any,
    credentials: Mapping[str, Any],
    host_organization: str,
    model: str | None = None,
) -> Any:
    """HELM warns of a key that its credentials file lacks, but our clients read keys from environment variables."""
    record = DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.get(model or "")
    is_ours = record is not None and record.client_spec.class_name.startswith(
        f"{_OUR_CLIENTS}."
    )
    has_key = f"{host_organization}ApiKey" in credentials or model in credentials.get(
        "deployments", {}
    )
    if is_ours and not has_key:
        return None
    return theirs(credentials, host_organization, model)


@_replaces("helm.benchmark.runner", "downsample_eval_instances")
def _warn_of_subsamples(
    theirs: Any,
    instances: list[Instance],
    max_eval_instances: int,
    eval_splits: list[str],
) -> list[Instance]:
    """HELM's `-m` can draw a part of a benchmark's official sample, but published scores are of the whole sample."""
    subset: list[Instance] = theirs(instances, max_eval_instances, eval_splits)
    # Instances of other scenarios have no sample of ours and stay unchanged.
    if len(subset) == len(instances) or not Sample.is_in(instances[0].extra_data):
        return subset
    if not settings_in_use().draws_samples:
        helm_log.warning(
            f"-m {max_eval_instances} draws {len(subset)} of {len(instances)}"
            " instances, which are not the benchmark's sample; give -m 10000, or"
            " num_samples= for a smaller sample as the benchmark draws it"
        )
    drawn = {"drawn_from": len(instances)}
    return [
        replace(instance, extra_data={**(instance.extra_data or {}), **drawn})
        for instance in subset
    ]


@_replaces("helm.benchmark.runner:Runner", "run_all")
def _refuse_runs_in_one_line(theirs: Any, self: Any, run_specs: list[RunSpec]) -> None:
    """HELM's runner does not tell the scenario the model's tokenizer, and logs a traceback for each mistake."""
    from helm.benchmark.runner import Runner, RunnerError

    from helm_longctx.helm.truncation import with_deployments_tokenizer

    if type(self).run_one is not Runner.run_one:  # our runners, and HELM's for Slurm
        theirs(self, run_specs)
        return
    refusals: dict[str, str] = {}
    failure = None

    def run_one(spec: RunSpec) -> None:
        try:
            Runner.run_one(self, with_deployments_tokenizer(spec))
        except InputError as error:
            if self.exit_on_error:
                raise
            refusals[spec.name] = f"{spec.name}: {error}"
            if len(run_specs) > 1:
                helm_log.error(refusals[spec.name])

    self.run_one = run_one
    try:
        theirs(self, run_specs)
    except RunnerError as error:
        failure = error
    finally:
        del self.run_one
    if refusals:
        raise refuse_runs(refusals, len(run_specs), failure) from failure
    if failure:
        raise failure


@_replaces(_CLIENTS, "__init__")
def _register_credentials(
    theirs: Any,
    self: Any,
    credentials: Mapping[str, Any],
    file_storage_path: Any,
    cache_backend_config: Any,
) -> None:
    """The redaction must know the keys in HELM's credentials file before a client prints them."""
    register_credentials(credentials)
    theirs(self, credentials, file_storage_path, cache_backend_config)


@_replaces(_CLIENTS, "make_request")
def _redact_errors(theirs: Any, self: Any, request: Request) -> RequestResult:
    """HELM stores the error of a request in `scenario_state.json`, and a provider's error can contain the key."""
    result: RequestResult = theirs(self, request)
    if result.error:
        return replace(result, error=redact(result.error))
    return result


@_replaces("helm.benchmark.model_deployment_registry:ModelDeployment", "__post_init__")
def _register_arguments(theirs: Any, self: ModelDeployment) -> None:
    """The arguments of a deployment's client can contain keys."""
    register_arguments(self.client_spec.args)
    theirs(self)


@_replaces("helm.common.request:Request", "__repr__")
def _shorten_requests(theirs: Any, self: Request) -> str:
    """HELM puts whole requests into errors, with prompts of a megabyte and more."""
    return abbreviate_request(self)


@_replaces("helm.benchmark.run_expander:TemperatureRunExpander", "expand")
def _name_temperature(theirs: Any, self: Any, run_spec: RunSpec) -> list[RunSpec]:
    """HELM's expander leaves a run's name as it is, so a run at another temperature would pass for the same run."""
    from helm_longctx.tasks.entry import ADAPTER_METHOD
    from helm_longctx.tasks.run_names import add_argument

    specs: list[RunSpec] = theirs(self, run_spec)
    is_ours = run_spec.adapter_spec.method == ADAPTER_METHOD
    if not is_ours or self.value == run_spec.adapter_spec.temperature:
        return specs
    scenario = run_spec.scenario_spec
    # The protocol also has a temperature. Only this argument says that the run entry gives another one.
    scenario = replace(scenario, args={**scenario.args, "temperature": self.value})
    return [
        replace(
            spec,
            name=add_argument(spec.name, "temperature", f"{self.value:.12g}"),
            scenario_spec=scenario,
        )
        for spec in specs
    ]


_SUMMARIES = "helm.benchmark.metrics.summarization_metrics"


@_replaces("helm.benchmark.runner", "create_metric")
def _leave_out_pickles(theirs: Any, metric_spec: Any) -> Any:
    """The module of HELM's metric of summaries imports optional packages, so it is changed when it is imported."""
    metric = theirs(metric_spec)
    if _SUMMARIES in sys.modules:
        _leave_out_qafacteval.apply()
    return metric


@_replaces(f"{_SUMMARIES}:SummarizationMetric", "_load_qafacteval", of_runs=False)
def _leave_out_qafacteval(theirs: Any, self: Any, eval_cache_path: str) -> None:
    """HELM downloads and unpickles a table when all answers are there. It has only scores of published answers."""
    warn_once(
        "QAFactEval is left out: its table of published answers is a pickle, which HELM"
        " would download and run"
    )
    raise KeyError(
        "QAFactEval"
    )  # HELM's metric takes this for an answer that is not in the table


@_replaces(
    "helm.clients.openai_client:OpenAIClient", "_make_chat_raw_request", of_runs=False
)
def _send_seeds(theirs: Any, self: Any, request: Request) -> dict[str, Any]:
    """HELM's client for OpenAI's protocol sends no seed, but the requests of HELMET's judges have one."""
    raw: dict[str, Any] = theirs(self, request)
    seed = getattr(request, "seed", None)
    if seed is None:
        return raw
    return {**raw, "seed": seed}


# Applied when a deployment has that client, because the module imports the package `openai`.
@_replaces(
    "helm.clients.openai_client:OpenAIClient",
    "__init__",
    "self cache_config api_key org_id base_url reasoning_effort openai_model_name"
    " output_processor kwargs",
    of_runs=False,
)
def _take_tokenizers(
    theirs: Any,
    *args: Any,
    tokenizer: object = None,
    tokenizer_name: object = None,
    **kwargs: Any,
) -> None:
    """HELM's `VLLMClient` passes its tokenizer to this constructor. It gives it to the package `openai`."""
    theirs(*args, **kwargs)


@_replaces("helm.benchmark.run_spec_factory", "get_run_spec_function", of_runs=False)
def find_registered_first(theirs: Any, name: str) -> Any:
    """HELM imports all its run specs for any name. They import `datasets`, pandas and other large packages."""
    from helm.benchmark.run_spec import (
        _REGISTERED_RUN_SPEC_FUNCTIONS,
    )  # this module is imported while that one is

    return _REGISTERED_RUN_SPEC_FUNCTIONS.get(name) or theirs(name)


# Its module imports NLTK, so it is only applied where HELM would import that anyway.
@_replaces(
    "helm.benchmark.metrics.nltk_helper", "install_nltk_resources", of_runs=False
)
def install_nltk_quietly(theirs: Any) -> None:
    """HELM prints three lines of NLTK's for each process that cannot reach NLTK's server, whatever its metrics need."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        theirs()


class _SteadyClock:
    """The part of Python's module `time` with which HELM measures the seconds of requests.

    HELM subtracts two readings of the system's clock. If the clock is set back between them, the result is negative.
    This clock starts at the system's time and is never set.
    """

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def time(self) -> float:
        """Seconds since 1970."""
        return self._start + time.monotonic()


def has_our_adapter() -> bool:
    """Whether HELM's adapter factory knows our methods."""
    from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory

    return bool(getattr(AdapterFactory.get_adapter, _MARK, False))


def apply_patches() -> None:
    """Change HELM (caches, redaction, warnings, times), or raise an `UnsupportedHelmError`. Idempotent."""
    check_records()
    begin_work()
    # This comes before anything is logged.
    register_environment()
    redact_logs()
    redact_uncaught()
    add_log_filter()
    applied = []
    for patch in _OF_RUNS:
        if patch.apply():
            applied.append(patch)
    if _register_arguments in applied:
        for (
            deployment
        ) in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.values():  # those that exist already
            register_arguments(deployment.client_spec.args)
    if not isinstance(helm.common.request.time, _SteadyClock):
        helm.common.request.time = _SteadyClock()


def log_what_helm_prints() -> None:
    """Make HELM's look-up of credentials log what it prints. Then nobody need redirect a process's standard output."""
    helm.common.general.print = helm_log.info


def apply_seed_patch() -> None:
    """Make HELM's client for OpenAI's protocol, if it is installed, send seeds, or raise an `UnsupportedHelmError`."""
    # HELM's module for OpenAI can be imported only if the package `openai` is installed.
    if importlib.util.find_spec("openai") is not None:
        _send_seeds.apply()


def load_with_libyaml(file: TextIO) -> Any:
    """Read a YAML file of HELM's with libyaml, if PyYAML has it: in 0.3 seconds instead of 3."""
    return parse_package_yaml(file.read())


@contextmanager
def yaml_reader(load: Callable[[Any], Any]) -> Iterator[None]:
    """Make HELM read YAML files with another function while the block runs."""
    safe_load = yaml.safe_load
    yaml.safe_load = load  # type: ignore[assignment]
    try:
        yield
    finally:
        yaml.safe_load = safe_load


def apply_slurm_patch(module: str) -> None:
    """Make the jobs of HELM's Slurm runner load plugins, or raise an `UnsupportedHelmError`. Idempotent."""

    @_replaces("helm.benchmark.slurm_runner", "submit_slurm_job", of_runs=False)
    def submit_other_worker(
        theirs: Any,
        command: str,
        slurm_args: Mapping[str, Any],
    ) -> Any:
        return theirs(
            command.replace(" -m helm.benchmark.slurm_runner ", f" -m {module} "),
            slurm_args,
        )

    submit_other_worker.apply()
