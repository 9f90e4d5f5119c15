"""Faulty benchmarks, providers and methods of other packages, as modules with entry points that Python finds in a folder."""

from __future__ import annotations

from pathlib import Path

from tests.extending.guide import Guide

GOOD = {
    "benchmarks": "from mystery import BENCHMARK as PLUGIN",
    "providers": "from acme import PROVIDER as PLUGIN",
    "methods": "from question_first import METHOD as PLUGIN",
}
"""The plug-in of each guide, which works."""

_AT_IMPORT = {
    "exits": "import sys\nsys.exit()",
    "exits_with_status": "raise SystemExit(3)",
    "ends_generator": "raise GeneratorExit",
    "raises_base": "raise BaseException('all')",
    "cancelled": "import asyncio\nraise asyncio.CancelledError",
    "syntax": "PLUGIN = (",
    "missing_package": "import no_such_package",
    "recursion": "def f(): f()\nf()",
    "assertion": "assert False",
    "unprintable": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "long_error": "raise RuntimeError('line\\n' * 5000)",
    "prints": "print('not a result')\nraise ImportError",
    "nothing": "",
    "none": "PLUGIN = None",
    "text": "PLUGIN = 'benchmark'",
    "number": "PLUGIN = 5",
    "list": "PLUGIN = []",
    "module": "import json as PLUGIN",
    "function": "def PLUGIN(): pass",
    "lies": "class Lie:\n    def __getattr__(self, name): raise SystemExit(name)\nPLUGIN = Lie()",
}
"""Modules whose import or whose object is wrong, whatever the kind of plug-in."""

_BENCHMARKS = {
    "class": "PLUGIN = Benchmark",
    "no_categories": "PLUGIN = make(categories=None)",
    "empty_categories": "PLUGIN = make(categories=())",
    "empty_category": "PLUGIN = make(categories=(replace(B.categories[0], tasks=()),))",
    "list_of_categories": "PLUGIN = make(categories=list(B.categories))",
    "category_is_text": "PLUGIN = make(categories=('all',))",
    "task_is_none": "PLUGIN = make(categories=(replace(B.categories[0], tasks=(None,)),))",
    "no_title": "PLUGIN = make(title=None)",
    "title_number": "PLUGIN = make(title=5)",
    "no_description": "PLUGIN = make(description=None)",
    "no_revision": "PLUGIN = make(revision=None)",
    "comparability_text": "PLUGIN = make(comparability='1')",
    "no_url": "PLUGIN = make(url=None)",
    "name_none": "PLUGIN = make(name=None)",
    "name_empty": "PLUGIN = make(name='')",
    "name_line_break": "PLUGIN = make(name='a\\nb')",
    "name_path": "PLUGIN = make(name='../a')",
    "name_entry": "PLUGIN = make(name='a:b=c,d')",
    "entry_taken": "PLUGIN = make(name='helmet_recall')",
    "entry_of_helm": "PLUGIN = make(name='mmlu')",
    "name_taken": "PLUGIN = make(name='helmet', categories=(replace(B.categories[0], name='other'),))",
    "metrics_none": "PLUGIN = make(metrics=None)",
    "metrics_text": "PLUGIN = make(metrics=('accuracy',))",
    "metrics_missing": "PLUGIN = make(metrics=())",
    "metrics_twice": "PLUGIN = make(metrics=B.metrics * 2)",
    "metric_reserved": "PLUGIN = make(metrics=(*B.metrics, Metric('longctx_score', 'S', 'S.')))",
    "metric_title_none": "PLUGIN = make(metrics=(replace(B.metrics[0], title=None),))",
    "metric_range": "PLUGIN = make(metrics=(replace(B.metrics[0], range='0-1'),))",
    "axis_number": "PLUGIN = make(axis=4096)",
    "axis_none": "PLUGIN = make(axis=None)",
    "argument_of_ours": "PLUGIN = make(task_argument='length')",
    "argument_empty": "PLUGIN = make(task_argument='')",
    "published_none": "PLUGIN = make(published=None)",
    "published_raises": "PLUGIN = make(published=lambda: 1 / 0)",
    "published_exits": "import sys\nPLUGIN = make(published=sys.exit)",
    "published_rows": "PLUGIN = make(published=lambda: ({'model': 'a'},))",
    "published_category": "PLUGIN = make(published=lambda: (Published('m', 'none', 4096, {'': 0.5}),))",
    "published_task": "PLUGIN = make(published=lambda: (Published('m', '', 4096, {'none': 0.5}),))",
    "published_percent": "PLUGIN = make(published=lambda: (Published('m', '', 4096, {'': 50.0}),))",
    "errata_text": "PLUGIN = make(errata=lambda: ('wrong',))",
    "models_list": "PLUGIN = make(models=list)",
    "protocols_list": "PLUGIN = make(protocols=lambda: [None])",
    "protocols_dictionary": "PLUGIN = make(protocols=lambda: ({'name': 'x'},))",
    "protocols_entry": "PLUGIN = make(protocols=lambda: (Protocol('x', 'X', 'X', '', '', ('nothing:a=b',), 'x'),))",
    "protocols_aggregation": "PLUGIN = make(protocols=lambda: (Protocol('x', 'X', 'X', '', '', (), 'sum'),))",
    "sweep": "PLUGIN = make(sweeps=(Sweep('S', 'S.', {'a': 'none'}),))",
    "judge_checks": "PLUGIN = make(judge_checks='nowhere.CHECKS')",
    "outputs": "PLUGIN = make(outputs='json.loads')",
    "judge": "PLUGIN = make(categories=(replace(B.categories[0], judge='nowhere.Judge'),))",
    "sizes_text": "PLUGIN = with_task(sizes={'4k': 2})",
    "sizes_none": "PLUGIN = with_task(sizes=None)",
    "sizes_tiny": "PLUGIN = with_task(sizes={7: 2})",
    "sizes_empty": "PLUGIN = with_task(sizes={}, any_length=True)",
    "task_title": "PLUGIN = with_task(title=None)",
    "task_name": "PLUGIN = with_task(name='who,did=it')",
    "template_text": "PLUGIN = with_task(template='{context}')",
    "template_brace": "PLUGIN = with_task(template=Template('{context', ''))",
    "load_none": "PLUGIN = with_task(load=None)",
    "headline": "PLUGIN = with_task(headline=('f1',))",
    "headline_none": "PLUGIN = with_task(headline=())",
    "max_tokens": "PLUGIN = with_task(max_tokens={8192: 10})",
    "max_tokens_zero": "PLUGIN = with_task(max_tokens=0)",
    "num_samples": "PLUGIN = with_task(num_samples={'4k': 5})",
    "sources_raise": "PLUGIN = with_task(sources=lambda length: 1 / 0)",
    "sources_text": "PLUGIN = with_task(sources=lambda length: ('file.jsonl',))",
    "sources_arguments": "PLUGIN = with_task(sources=lambda: ())",
    "arguments": "PLUGIN = with_task(arguments=('model_name',))",
    "extras": "PLUGIN = with_task(extras=('quantum',))",
    "variants": "PLUGIN = with_task(variants={})",
    "cut": "PLUGIN = with_task(cut='start')",
    "repeats": "PLUGIN = with_task(repeats=0)",
    "tasks_twice": "T = B.categories[0].tasks[0]\n"
    "PLUGIN = make(categories=(replace(B.categories[0], tasks=(T, replace(T, max_tokens=5))),))",
    "entries_raise": "class Mine(Benchmark):\n    entries = property(lambda self: 1 / 0)\n"
    "PLUGIN = Mine(**vars(make()))",
    "lengths_exit": "class Mine(Benchmark):\n    lengths = property(lambda self: sys.exit())\nimport sys\n"
    "PLUGIN = Mine(**vars(make()))",
    "title_raises": "class Mine(Benchmark):\n    def __getattribute__(self, name):\n"
    "        return 1 / 0 if name == 'title' else super().__getattribute__(name)\n"
    "PLUGIN = Mine(**vars(make()))",
    "task_property": "class Mine(Task):\n    argument = property(lambda self: 1 / 0)\n"
    "PLUGIN = make(categories=(replace(B.categories[0], tasks=(Mine(**vars(T)),)),))",
}

_PROVIDERS = {
    "class": "PLUGIN = Provider",
    "client_none": "PLUGIN = make(client=None)",
    "client_text": "PLUGIN = make(client='acme.AcmeClient')",
    "client_other": "PLUGIN = make(client=dict)",
    "client_abstract": "from helm_longctx.models.apis.client import ProviderClient\n"
    "class Half(ProviderClient):\n    pass\nPLUGIN = make(client=Half)",
    "client_of_openai": "from helm_longctx.models.apis import OpenAIClient\n"
    "PLUGIN = make(client=OpenAIClient, address='https://evil.example', reads_environment=False)",
    "client_named_alike": "OpenAIClient = type('OpenAIClient', (Client,), {})\nPLUGIN = make(client=OpenAIClient)",
    "derived": "from helm_longctx.models.apis import OpenAIClient\nclass DerivedClient(OpenAIClient):\n    pass\n"
    "PLUGIN = make(client=DerivedClient, name='openai')",
    "name_none": "PLUGIN = make(name=None)",
    "name_empty": "PLUGIN = make(name='')",
    "name_spaces": "PLUGIN = make(name='a b')",
    "name_taken": "PLUGIN = make(name='openai')",
    "address_none": "PLUGIN = make(address=None)",
    "address_file": "PLUGIN = make(address='file:///etc/passwd')",
    "address_broken": "PLUGIN = make(address='http://[')",
    "package": "PLUGIN = make(package='no package')",
    "install": "PLUGIN = make(install=None)",
    "key_prefix": "PLUGIN = make(key_prefix='a=b')",
    "key_prefix_taken": "PLUGIN = make(key_prefix='OPENAI')",
    "routes_none": "PLUGIN = make(routes=None)",
    "routes_empty": "PLUGIN = make(routes={})",
    "routes_numbers": "PLUGIN = make(routes={'chat': 5})",
    "routes_address": "PLUGIN = make(routes={'chat': 'https://evil.example/v1/chat'})",
    "routes_unknown": "PLUGIN = make(routes={'chat': '/v1/chat', 'talk': '/v1/talk'})",
    "version": "PLUGIN = make(version=2)",
    "cache_mark": "PLUGIN = make(cache_mark='keep')",
    "long_cache": "PLUGIN = make(long_cache='1h')",
    "batches": "PLUGIN = make(batches=dict)",
    "batch_files": "PLUGIN = make(batch_files='files')",
    "secret_text": "PLUGIN = make(secret='acme-')",
    "long_cache_tuple": "PLUGIN = make(long_cache=({'keep': 1}, 2.0))",
    "secret_tuple": "PLUGIN = make(secret=(('acme-',), 'acme-[0-9]+'))",
    "secret_pattern": "PLUGIN = make(secret=SecretFormat(('acme-',), 'acme-('))",
    "secret_everything": "PLUGIN = make(secret=SecretFormat(('acme-',), '.*'))",
    "secret_hints": "PLUGIN = make(secret=SecretFormat((), 'acme-[0-9]+'))",
    "secret_group": "PLUGIN = make(secret=SecretFormat(('acme-',), '(?P<key>acme-[0-9]+)'))",
    "helm_clients": "PLUGIN = make(helm_clients={'OpenAIClient': HelmClient('ACME2', True)})",
    "helm_clients_tuples": "PLUGIN = make(helm_clients={'AcmeClient': ('ACME2', True)})",
    "helm_clients_list": "PLUGIN = make(helm_clients=['AcmeClient'])",
    "property_raises": "class Mine(Provider):\n    host = property(lambda self: 1 / 0)\nPLUGIN = Mine(**vars(make()))",
}

_METHODS = {
    "class": "PLUGIN = Method",
    "name_none": "PLUGIN = make(name=None)",
    "name_plain": "PLUGIN = make(name='plain')",
    "name_taken": "PLUGIN = make(name='retrieve')",
    "name_comma": "PLUGIN = make(name='a,b')",
    "ask_none": "PLUGIN = make(ask=None)",
    "arguments_none": "PLUGIN = make(arguments={'rounds': None})",
    "arguments_zero": "PLUGIN = make(arguments={'rounds': 0})",
    "arguments_of_tasks": "PLUGIN = make(arguments={'length': 1})",
    "fits_raises": "PLUGIN = make(fits=lambda task: 1 / 0)",
    "fits_nothing": "PLUGIN = make(fits=lambda task: None)",
    "first_tokens": "PLUGIN = make(first_tokens=lambda task: '10')",
    "extra": "PLUGIN = make(extra='quantum')",
}

_BASES = {
    "benchmarks": """from dataclasses import replace
from helm_longctx.tasks import *
from helm_longctx.tasks.benchmark import Sweep
from helm_longctx.tasks.publications import Protocol
from mystery import BENCHMARK as B, WHODUNIT as T
def make(**fields): return replace(B, **{'name': __name__, **fields})
def with_task(**fields): return make(categories=(replace(B.categories[0], tasks=(replace(T, **fields),)),))
""",
    "providers": """from dataclasses import replace
from helm_longctx.models.apis.provider import HelmClient, Provider
from helm_longctx.redaction.text import SecretFormat
from acme import AcmeClient, PROVIDER
Client = type(__name__ + 'Client', (AcmeClient,), {})
def make(**fields): return replace(PROVIDER, **{'name': __name__, 'client': Client, 'key_prefix': __name__.upper(), **fields})
""",
    "methods": """from dataclasses import replace
from helm_longctx.tasks import Method
from question_first import METHOD
def make(**fields): return replace(METHOD, **{'name': __name__, **fields})
""",
}

FAULTS = {
    kind: {f"{kind}_{name}": code for name, code in {**_AT_IMPORT, **faults}.items()}
    for kind, faults in (
        ("benchmarks", _BENCHMARKS),
        ("providers", _PROVIDERS),
        ("methods", _METHODS),
    )
}
"""The code of each faulty module, by its name and by the kind of plug-in."""


def write_plugins(folder: Path) -> Path:
    """Write all faulty plug-ins, and a good one of each kind, as pip would install them."""
    for page in ("adding-a-benchmark.md", "adding-a-provider.md", "methods.md"):
        for path, text in Guide(page).files.items():
            if path.endswith(".py"):
                (folder / Path(path).name).write_text(text)
    points = []
    for kind, faults in FAULTS.items():
        points += [
            f"[helm_longctx.{kind}]",
            f"zz_good = zz_{kind}:PLUGIN",
            f"attribute = zz_{kind}:NONE",
        ]
        (folder / f"zz_{kind}.py").write_text(GOOD[kind])
        for name, code in faults.items():
            (folder / f"{name}.py").write_text(f"{_BASES[kind]}{code}\n")
            points.append(f"{name} = {name}:PLUGIN")
    info = folder / "faulty-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    (info / "entry_points.txt").write_text("\n".join(points))
    return folder
