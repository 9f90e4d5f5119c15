"""OfficeQA Pro: questions on figures in issues of the U.S. Treasury Bulletin, with source pages or whole issues."""

from helm_longctx.benchmarks.officeqa.tasks import OFFICEQA as BENCHMARK
