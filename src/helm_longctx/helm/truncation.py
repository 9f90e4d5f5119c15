"""Finds tokenizers, cuts prompts by them, and has them count the tokens of generated examples.

A prompt that is too long for its length or for the deployment's window is cut by the task's rule. HELMET cuts the end
of the context (`context_cutter`), LV-Eval the middle of the prompt (`middle_cutter`). Of a conversation the first user
turn is cut. Examples are counted with the tokenizer of `count_with`, or with the deployment's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import (
    ModelDeployment,
    get_model_deployment,
)
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import create_scenario
from helm.benchmark.tokenizer_config_registry import (
    TokenizerConfig,
    get_tokenizer_config,
)
from helm.common.object_spec import get_class_by_name

from helm_longctx.data.fetch import ensure
from helm_longctx.data.hub import HubFile
from helm_longctx.data.root import DataRoot
from helm_longctx.environment import ignore_broken_torchvision, require_modules
from helm_longctx.errors import InputError, shorten
from helm_longctx.helm_log import helm_log
from helm_longctx.models.fast_tokenizers import FILE, read_fast_tokenizer
from helm_longctx.models.registration import WORDS, WORDS_FOLDER
from helm_longctx.models.tokenizer_checks import check_size, check_speed
from helm_longctx.redaction.logs import warn_once
from helm_longctx.tasks.counting import (
    CharacterEncoding,
    make_codec,
    make_counter,
    read_tokenizer,
    remember_counts,
)
from helm_longctx.tasks.cutting import cutters
from helm_longctx.tasks.entry import ADAPTER_METHOD, Entry
from helm_longctx.tasks.prompt import FittedPrompt, Style
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings

CHAT_BUFFER = 100
"""Number of tokens that are reserved for the markup of a chat API (HELMET model_utils.py, buffer)."""

CHAT_HEADER = "Role: user\nContent: "
"""The text before a user turn when its tokens are counted (HELMET model_utils.py, OpenAIModel.prepare_inputs)."""

_MIDDLE = ("middle", "middle_joined", "context_middle")
"""The rules that cut the middle of a prompt or of its context."""

_SPECIAL_TOKENS = 8
"""Upper bound of the special tokens at the ends of a prompt. All other tokens have at least one byte of the text."""


def deployment_window(name: str) -> int | None:
    """Return the window of a HELM deployment in tokens, output included. Returns None if its file names no limit."""
    deployment = get_model_deployment(name)
    limits = (
        deployment.max_sequence_length,
        deployment.max_request_length,
        deployment.max_sequence_and_generated_tokens_length,
    )
    return min((limit for limit in limits if limit is not None), default=None)


@dataclass(frozen=True)
class Truncator:
    """Cuts prompts to a window, answer included, if there is one, by a tokenizer that is loaded when it is needed."""

    window: int | None
    tokenizer: Callable[[], Any]

    @staticmethod
    def for_deployment(name: str) -> Truncator:
        """Make the truncator from the limits and the tokenizer of a HELM deployment."""
        deployment = get_model_deployment(name)
        window = deployment_window(name)
        if window is not None and not deployment.tokenizer_name:
            about = f"deployment {name!r} has a window of {window} tokens and no tokenizer_name"
            named = "name a tokenizer in model_deployments.yaml (helm-longctx run: --tokenizer)"
            warn_once(
                f"{about}, so prompts are never cut; {named} to cut prompts that are too long"
            )
            window = None
        # `cache` loads the tokenizer once, and only if a prompt could be too long.
        return Truncator(window, cache(lambda: _tokenizer(deployment)))

    def check(self) -> None:
        """Load the tokenizer, if prompts are cut, or raise an `InputError`."""
        if self.window is not None:
            self.tokenizer()

    def fit(
        self,
        prompt: str,
        sample: Sample,
        max_tokens: int,
        style: Style,
        others: Sequence[str] = (),
    ) -> FittedPrompt:
        """Return the prompt, cut by the rule of its sample if it is too long.

        The rule `context_middle` leaves room for `others`, the other messages of a conversation. Raises a `NoRoomError`
        if the prompt is too long even without its context, and an `InputError` for no room or no tokenizer.
        """
        if self.window is None or sample.cut == "nothing":
            return FittedPrompt(prompt)
        limit = self._limit(sample, max_tokens, style)
        counted = _text_to_count(prompt, sample, style)
        texts = [counted, *others]
        # Most prompts need no tokenizer, because the number of bytes is an upper bound. A long prompt must be copied to
        # count them, but not to count characters.
        most = (
            len(text.encode("utf-8", "surrogatepass")) + _SPECIAL_TOKENS
            for text in texts
        )
        if sum(map(len, texts)) < limit and sum(most) <= limit:
            return FittedPrompt(prompt)
        if sample.cut == "context_middle":
            assert sample.context_span is not None
            start, end = sample.context_span
            fitted = self._cutters[sample.cut](
                *self._context_and_limit(prompt, sample, max_tokens, others)
            )
            return FittedPrompt(
                prompt[:start] + fitted.prompt + prompt[end:] if fitted.cut else prompt,
                fitted.cut,
            )
        if sample.cut in _MIDDLE:
            return self._around_middle(prompt, sample, limit)
        if sample.context_span is None:  # a conversation of which no part may be cut
            return FittedPrompt(prompt)
        # The header is counted with the prompt and then removed. It is never cut, because only the context is.
        header = len(counted) - len(prompt)
        span = [offset + header for offset in sample.context_span]
        fitted = self._without_end(counted, span, limit)
        return replace(fitted, prompt=fitted.prompt[header:] if fitted.cut else prompt)

    def excess(
        self,
        prompt: str,
        sample: Sample,
        max_tokens: int,
        style: Style,
        others: Sequence[str] = (),
    ) -> int:
        """Return the number of tokens by which a prompt is too long. Takes the arguments of `fit`."""
        if sample.cut == "context_middle":
            context, limit = self._context_and_limit(prompt, sample, max_tokens, others)
            return self._count(context) - limit
        return self._count(_text_to_count(prompt, sample, style)) - self._limit(
            sample, max_tokens, style
        )

    def _around_middle(
        self,
        prompt: str,
        sample: Sample,
        limit: int,
    ) -> FittedPrompt:
        fitted = self._cutters[sample.cut](prompt, limit)
        if fitted.cut and sample.question:
            # The last occurrence counts, because the context can contain the same words.
            needed = self._count(prompt[prompt.rfind(sample.question) :])
            if needed > limit // 2:
                raise InputError(
                    f"a window of {self.window} tokens is too small: cutting would keep"
                    f" {limit // 2} tokens of the prompt's end, but the question needs"
                    f" {needed}"
                )
        return fitted

    def _context_and_limit(
        self,
        prompt: str,
        sample: Sample,
        max_tokens: int,
        others: Sequence[str],
    ) -> tuple[str, int]:
        """Return the text whose middle can be cut, and the most tokens of it.

        What the official code reserves need not hold the text around it; then its request is too long.
        """
        assert sample.context_span is not None
        start, end = sample.context_span
        beside = sum(
            map(self._count, filter(None, (prompt[:start], prompt[end:], *others)))
        )
        room = sample.extend(reserved=max(sample.reserved, beside + max_tokens))
        return prompt[start:end], self._limit(room, max_tokens, "chat")

    def _limit(
        self,
        sample: Sample,
        max_tokens: int,
        style: Style,
    ) -> int:
        assert self.window is not None
        if sample.cut == "context_middle":
            # The official code counts the markup of the chat template with the context.
            limit = self.window - max(sample.reserved, max_tokens) - CHAT_BUFFER
        elif sample.cut in _MIDDLE:
            limit = self.window - max(cutters.RESERVED, max_tokens + CHAT_BUFFER)
        else:
            # The official code adds the thinking tokens to the output and to the length after the cut (eval.py:69).
            thinking = sample.thinking_tokens
            # A run expander can limit the output to fewer tokens than the thinking. Then that limit is the whole
            # budget.
            max_tokens -= thinking if max_tokens > thinking else 0
            buffer = CHAT_BUFFER if style == "chat" else 0
            limit = min(self.window, sample.length or self.window) - max_tokens - buffer
        if limit <= 0:
            raise InputError(
                f"a window of {self.window} tokens has no room for a prompt with"
                f" max_tokens={max_tokens}"
            )
        return int(limit)

    @cached_property
    def _count(self) -> Callable[[str], int]:
        return cutters.counter_with_special_tokens(self.tokenizer())

    @cached_property
    def _cutters(self) -> Mapping[str, cutters.MiddleCutter]:
        """The function that cuts a middle by each rule."""
        cutter = partial(cutters.middle_cutter, self.tokenizer())
        return {
            "middle": cutter(),
            "middle_joined": cutter(joins=True, evenly=False),
            "context_middle": cutter(joins=True),
        }

    @cached_property
    def _without_end(self) -> cutters.ContextCutter:
        return cutters.context_cutter(self.tokenizer())


def _text_to_count(prompt: str, sample: Sample, style: Style) -> str:
    if style == "chat" and sample.cut not in _MIDDLE:
        return CHAT_HEADER + prompt
    return prompt


def load_deployment_counter(name: str) -> Callable[[str], int] | None:
    """Return a function that counts tokens by the tokenizer of a deployment, if it can be loaded here."""
    deployment = get_model_deployment(name)
    if not deployment.tokenizer_name:
        return None
    try:
        return cutters.counter_with_special_tokens(_tokenizer(deployment))
    except InputError as error:
        helm_log.warning(f"tokens of {name} are estimated: {error}")
        return None


def _tokenizer(deployment: ModelDeployment) -> Any:
    assert deployment.tokenizer_name
    config = get_tokenizer_config(deployment.tokenizer_name)
    try:
        tokenizer = load_tokenizer(config) if config else None
    except InputError:
        raise
    except (
        Exception
    ) as error:  # each library raises another kind if a file or the network is missing
        raise InputError(
            f"deployment {deployment.name!r}: its tokenizer"
            f" {deployment.tokenizer_name!r} cannot be loaded ({type(error).__name__});"
            " it is needed to cut prompts to the deployment's window"
        ) from error
    if tokenizer is not None:
        return tokenizer
    kind = config.tokenizer_spec.class_name if config else "none"
    raise InputError(
        f"deployment {deployment.name!r}: tokenizer {deployment.tokenizer_name!r}"
        f" ({kind}) cannot be used to cut prompts; use {', '.join(_KINDS)}, or no"
        " tokenizer_name if no prompt is to be cut"
    )


def load_tokenizer(config: TokenizerConfig) -> Any:
    """Load a tokenizer of HELM's registry, if it can run in this process."""
    load = _KINDS.get(config.tokenizer_spec.class_name)
    return load(config) if load else None


def _hugging_face(config: TokenizerConfig) -> Any:
    """Load a tokenizer of Hugging Face, without transformers if its files say everything about it."""
    arguments = {
        "pretrained_model_name_or_path": config.name,
        **config.tokenizer_spec.args,
    }

    def load() -> Any:
        ignore_broken_torchvision()
        theirs = get_class_by_name(config.tokenizer_spec.class_name)
        # HELM locks a tokenizer while it is used. Here only functions that change nothing are called.
        with theirs.get_tokenizer(
            helm_tokenizer_name=config.name, **arguments
        ) as tokenizer:
            return tokenizer

    name = arguments["pretrained_model_name_or_path"]
    check_size(f"tokenizer {config.name}", Path(name) / FILE)
    revision = arguments.get("revision")
    is_plain = arguments.keys() <= {
        "pretrained_model_name_or_path",
        "revision",
        "trust_remote_code",
    }
    fast = read_fast_tokenizer(name, load, revision) if is_plain else None
    tokenizer = fast or load()
    # The tokenizer that is part of this package is known to be fast enough.
    if name != WORDS_FOLDER:
        check_speed(tokenizer, name)
    return tokenizer


def _tiktoken(config: TokenizerConfig) -> Any:
    require_modules(("tiktoken",), f"tokenizer {config.name}", "helm-longctx[openai]")
    import tiktoken

    return tiktoken.get_encoding(config.name.split("/")[-1])


_KINDS: Mapping[str, Callable[[TokenizerConfig], Any]] = {
    "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer": _hugging_face,
    "helm_longctx.models.local.packaged.PackagedTokenizer": _hugging_face,
    "helm.tokenizers.tiktoken_tokenizer.TiktokenTokenizer": _tiktoken,
    "helm.tokenizers.simple_tokenizer.SimpleTokenizer": lambda config: (
        CharacterEncoding()
    ),
}


def settings_with_tokenizer(entry: Entry, root: DataRoot) -> Settings:
    """Return an entry's settings with the tokenizer of `count_with`, or raise an `InputError`."""
    name = entry.settings.count_with
    if not name:
        return entry.settings
    if name == WORDS:
        return replace(entry.settings, **_read_words(root))
    tokenizer = _find_tokenizer(name, root)
    return replace(
        entry.settings, counter=make_counter(tokenizer), codec=make_codec(tokenizer)
    )


@cache
def _read_words(root: DataRoot) -> Mapping[str, Any]:
    """Return counter and codec of the tokenizer that is part of this package, which does not change.

    Runs of several models draw the same samples, so the counts of their texts are remembered.
    """
    tokenizer = _find_tokenizer(WORDS, root)
    return {
        "counter": remember_counts(make_counter(tokenizer)),
        "codec": make_codec(tokenizer),
    }


def with_deployments_tokenizer(spec: RunSpec) -> RunSpec:
    """Return a run spec whose scenario counts with the deployment's tokenizer, or raise an `InputError`.

    HELM makes the scenario without the deployment, so the name is put into the scenario's arguments, if the entry names
    none. The spec of a run of HELM's own scenario is returned unchanged.
    """
    if spec.adapter_spec.method != ADAPTER_METHOD:
        return spec
    entry = create_scenario(spec.scenario_spec).entry
    if entry.settings.count_with or not any(
        "count_with" in task.arguments for task in entry.tasks
    ):
        return spec
    name = get_model_deployment(spec.adapter_spec.model_deployment).tokenizer_name
    if not name:
        raise InputError(
            f"{entry.name}: deployment {spec.adapter_spec.model_deployment!r} has no"
            " tokenizer_name; give count_with="
            " with the name or the folder of a tokenizer, or count_with=longctx/words,"
            " which downloads nothing"
            " (helm-longctx run: --argument count_with=NAME; helm_longctx.evaluate:"
            " tokenizer= with the model's"
            " tokenizer, or arguments={'count_with': NAME})"
        )
    scenario = spec.scenario_spec
    return replace(
        spec,
        scenario_spec=replace(scenario, args={**scenario.args, "count_with": name}),
    )


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
        except InputError:
            raise
        except Exception as error:  # each library raises another kind if a file or the network is missing
            raise InputError(
                f"count_with={config.name!r} cannot be loaded ({type(error).__name__});"
                " give a tokenizer whose files are on this machine or can be"
                " downloaded, or longctx/words, which downloads nothing"
            ) from error
        if tokenizer is None:
            raise InputError(
                f"count_with={config.name!r} does not run in this process; give"
                " count_with= with another tokenizer, such as longctx/words"
            )
        return tokenizer
    file = Path(name) / FILE
    if file.is_file():
        return _read_file(name, file)
    # Names on the hub are `org/name`. Without this check, the hub would be asked for a misspelled folder.
    if name.count("/") != 1:
        raise InputError(
            f"count_with={shorten(name)} is not a tokenizer; give a tokenizer of HELM,"
            " the name of a model on the hub, or a folder with tokenizer.json"
        )
    source = HubFile(
        name,
        FILE,
        f"tokenizers/{name.replace('/', '__')}/{FILE}",
        kind="model",
    )
    ensure([source], root, f"the same command, with a login that can read {name}")
    return _read_file(name, root / source.path)


def _read_file(name: str, file: Path) -> Any:
    """Read the tokenizer of `count_with`, and check that long texts do not stall it."""
    check_size(f"count_with={shorten(name)}", file)
    tokenizer = read_tokenizer(file)
    check_speed(tokenizer, str(file))
    return tokenizer
