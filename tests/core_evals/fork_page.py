"""The configurations and commands of the page of NVIDIA's fork of HELM, word for word but for hosts and keys.

Source: https://pypi.org/project/nvidia-crfm-helm/25.10/ (Apache-2.0).
"""

from __future__ import annotations

OPENAI = """\
target:
  api_endpoint:
    url: https://api.openai.com/v1
    model_id: gpt-4
    type: chat
    api_key: OPENAI_API_KEY
"""

BUILD = """\
target:
  api_endpoint:
    url: https://integrate.api.nvidia.com/v1
    model_id: nvdev/meta/llama-3.3-70b-instruct
    type: chat
    api_key: OPENAI_API_KEY
"""

FUNCTION = """\
target:
  api_endpoint:
    url: https://api.nvcf.nvidia.com/v2/nvcf/pexec/functions/13e4f873-9d52-4ba9-8194-61baf8dc2bc9/
    model_id: meta-llama/Llama-3.3-70B-Instruct
    type: chat
    api_key: OPENAI_API_KEY
    adapter_config:
      use_nvcf: true
"""

CONFIGURATIONS = {
    "my_test.yml": f"""\
config:
  type: medcalc_bench  # Choose from available benchmarks
  output_dir: results/my_test
{OPENAI}""",
    "openai.yml": f"""\
config:
  type: medcalc_bench
  output_dir: results/openai_test
{OPENAI}""",
    "nim.yml": f"""\
config:
  type: pubmed_qa
  output_dir: results/nim_test
{BUILD}""",
    "nvcf.yml": f"""\
config:
  type: ehr_sql
  output_dir: results/nvcf_test
{FUNCTION}""",
    "advanced.yml": f"""\
config:
  type: medcalc_bench
  output_dir: results/advanced_test
  params:
    limit_samples: 100        # Limit number of evaluation instances
    parallelism: 4           # Number of parallel threads
    extra:
      num_train_trials: 3    # Number of training trials
      max_length: 2048       # Maximum token length
{OPENAI}""",
    "all_parameters.yml": f"""\
config:
  type: ehrshot
  output_dir: results/ehrshot_evaluation
  params:
    limit_samples: 500
    parallelism: 2
    extra:
      data_path: "/custom/path/to/ehrshot/data"
      num_output_tokens: 1000
      max_length: 4096
      subject: "guo_readmission"
      num_train_trials: 3
{OPENAI}""",
    "multi_judge_config.yml": f"""\
config:
  type: mtsamples_replicate
  output_dir: results/multi_judge_test
  params:
    limit_samples: 50
    parallelism: 2
    extra:
      num_train_trials: 3
      max_length: 2048
      gpt_judge_api_key: GPT_JUDGE_API_KEY
      llama_judge_api_key: LLAMA_JUDGE_API_KEY
      claude_judge_api_key: CLAUDE_JUDGE_API_KEY
{BUILD}""",
    "oauth_multi_judge_config.yml": f"""\
config:
  type: mtsamples_replicate
  output_dir: results/oauth_multi_judge_test
  params:
    limit_samples: 50
    parallelism: 2
    extra:
      num_train_trials: 3
      max_length: 2048
      # Mix OAuth (automatic) and direct keys
      gpt_judge_api_key: GPT_JUDGE_API_KEY  # Direct key for GPT
      # Llama and Claude will use OAuth-generated tokens
{BUILD}""",
}
"""The page's configurations, by the name of a file. Five of them have no name on the page."""

COPIES = {
    "medcalc_config.yml": "my_test.yml",
    "medec_config.yml": "my_test.yml",
    "head_qa_config.yml": "my_test.yml",
    "my_config.yml": "all_parameters.yml",
    "debug_config.yml": "my_test.yml",
    "hybrid_multi_judge_config.yml": "oauth_multi_judge_config.yml",
}
"""Files that the page's commands name and whose content it leaves open, and what the tests write into them."""

RUNS = (
    "eval-factory run_eval --output_dir results/my_test --run_config my_test.yml",
    "eval-factory run_eval --output_dir results/medcalc_test --run_config medcalc_config.yml",
    "eval-factory run_eval --output_dir results/medec_test --run_config medec_config.yml",
    "eval-factory run_eval --output_dir results/head_qa_test --run_config head_qa_config.yml",
    "eval-factory run_eval --output_dir results/test --run_config my_config.yml --dry_run",
    "eval-factory --debug run_eval --output_dir results/debug_test --run_config debug_config.yml",
    "eval-factory run_eval"
    " --output_dir test_cases/test_case_nim_llama_3_1_8b_medcalc_bench"
    " --run_config test_cases/test_case_nim_llama_3_1_8b_medcalc_bench.yml",
    "eval-factory run_eval"
    " --output_dir test_cases/test_case_nim_llama_3_1_8b_medec"
    " --run_config test_cases/test_case_nim_llama_3_1_8b_medec.yml",
    "eval-factory run_eval"
    " --output_dir test_cases/test_case_nim_llama_3_1_8b_head_qa"
    " --run_config test_cases/test_case_nim_llama_3_1_8b_head_qa.yml",
    "eval-factory run_eval --output_dir results/multi_judge_test --run_config multi_judge_config.yml",
    "eval-factory run_eval --output_dir results/oauth_multi_judge_test --run_config oauth_multi_judge_config.yml",
    "eval-factory run_eval --output_dir results/hybrid_multi_judge_test --run_config hybrid_multi_judge_config.yml",
    "eval-factory --debug run_eval --output_dir results/debug_multi_judge --run_config multi_judge_config.yml",
)
"""The page's commands that start an evaluation."""

SEARCHES = {
    'grep "Using.*judge API key" logs/*.log': 2,
    'grep "Creating new.*OAuth token" logs/*.log': 1,
    'grep "is not set, setting to" logs/*.log': 1,
    'grep "Authentication error detected" logs/*.log': 1,
    r'grep "rate limit\|429" logs/*.log': 2,
    r'grep "token expired\|refreshing" logs/*.log': 1,
    # A key's end is a part of a key.
    'grep "Using.*API key.*ends with" logs/*.log': 0,
}
"""The page's searches of logs, and the number of lines that they find in the test."""
