#!/bin/sh
# Runs the samples beside this file, from the folder above it, with a key for build.nvidia.com:
#   export OPENAI_API_KEY=nvapi-…
# The judged ones need keys for their judges, and ehrshot, medalign, n2c2_ct_matching and clear need their data.
set -e
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medcalc_bench --run_config test_cases/test_case_nim_llama_3_1_8b_medcalc_bench.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medec --run_config test_cases/test_case_nim_llama_3_1_8b_medec.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_head_qa --run_config test_cases/test_case_nim_llama_3_1_8b_head_qa.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medbullets --run_config test_cases/test_case_nim_llama_3_1_8b_medbullets.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_pubmed_qa --run_config test_cases/test_case_nim_llama_3_1_8b_pubmed_qa.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_ehr_sql --run_config test_cases/test_case_nim_llama_3_1_8b_ehr_sql.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_race_based_med --run_config test_cases/test_case_nim_llama_3_1_8b_race_based_med.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medhallu --run_config test_cases/test_case_nim_llama_3_1_8b_medhallu.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_mtsamples_replicate --run_config test_cases/test_case_nim_llama_3_1_8b_mtsamples_replicate.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_mtsamples_procedures --run_config test_cases/test_case_nim_llama_3_1_8b_mtsamples_procedures.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_aci_bench --run_config test_cases/test_case_nim_llama_3_1_8b_aci_bench.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medication_qa --run_config test_cases/test_case_nim_llama_3_1_8b_medication_qa.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medi_qa --run_config test_cases/test_case_nim_llama_3_1_8b_medi_qa.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_med_dialog --run_config test_cases/test_case_nim_llama_3_1_8b_med_dialog.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_med_dialog_healthcaremagic --run_config test_cases/test_case_nim_llama_3_1_8b_med_dialog_healthcaremagic.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_med_dialog_icliniq --run_config test_cases/test_case_nim_llama_3_1_8b_med_dialog_icliniq.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_ehrshot --run_config test_cases/test_case_nim_llama_3_1_8b_ehrshot.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_medalign --run_config test_cases/test_case_nim_llama_3_1_8b_medalign.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_n2c2_ct_matching --run_config test_cases/test_case_nim_llama_3_1_8b_n2c2_ct_matching.yml
eval-factory run_eval --output_dir test_cases/test_case_nim_llama_3_1_8b_clear --run_config test_cases/test_case_nim_llama_3_1_8b_clear.yml
