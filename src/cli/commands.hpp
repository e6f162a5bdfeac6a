// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command.hpp"

/// Each add_*_command() adds one command with its options, subcommands and help to `parent`.
namespace hpcai::cli {

void add_run_command(Command parent);
void add_resume_command(Command parent);
void add_score_command(Command parent);
void add_status_command(Command parent);

void add_plan_command(Command parent);
void add_flops_command(Command parent);

void add_bench_command(Command parent);
void add_roofline_command(Command parent);
void add_validate_command(Command parent);
void add_doctor_command(Command parent);

void add_verify_command(Command parent);
void add_compare_command(Command parent);
void add_rank_command(Command parent);
void add_report_command(Command parent);
void add_table_command(Command parent);
void add_export_command(Command parent);
/// Returns lines of Python that predict with the files of `export`: `settings` (JSON), `weights`
/// (safetensors) and, for a classifier that torchvision lacks, the network (Python). Empty for
/// segmentation_net, and for a detector that torchvision lacks.
std::string python_lines(const config::Config& config, const std::string& settings,
                         const std::string& weights);
void add_energy_command(Command parent);

void add_evaluate_command(Command parent);
void add_sbatch_command(Command parent);

void add_completion_command(Command parent);
void add_config_command(Command parent);

void add_init_command(Command parent);
void add_data_command(Command parent);
void add_data_generate_command(Command parent);
void add_data_check_command(Command parent);
void add_data_stats_command(Command parent);

}  // namespace hpcai::cli
