// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command.hpp"

/// Each adds one command, with its options and its help, to `parent`.
namespace hpcai::cli {

void add_run_command(CLI::App& parent, Context& context);
void add_resume_command(CLI::App& parent, Context& context);
void add_score_command(CLI::App& parent, Context& context);
void add_plan_command(CLI::App& parent, Context& context);
void add_flops_command(CLI::App& parent, Context& context);
void add_bench_command(CLI::App& parent, Context& context);
void add_roofline_command(CLI::App& parent, Context& context);
void add_export_command(CLI::App& parent, Context& context);
void add_evaluate_command(CLI::App& parent, Context& context);
void add_verify_command(CLI::App& parent, Context& context);
void add_compare_command(CLI::App& parent, Context& context);
void add_rank_command(CLI::App& parent, Context& context);
void add_report_command(CLI::App& parent, Context& context);
void add_energy_command(CLI::App& parent, Context& context);
void add_doctor_command(CLI::App& parent, Context& context);
void add_status_command(CLI::App& parent, Context& context);
void add_sbatch_command(CLI::App& parent, Context& context);

void add_config_command(CLI::App& parent, Context& context);
void add_config_print_command(CLI::App& parent, Context& context);
void add_config_explain_command(CLI::App& parent, Context& context);
void add_config_schema_command(CLI::App& parent, Context& context);

void add_data_command(CLI::App& parent, Context& context);
void add_data_generate_command(CLI::App& parent, Context& context);
void add_data_generate_photographs_command(CLI::App& parent, Context& context);
void add_data_generate_climate_command(CLI::App& parent, Context& context);
void add_data_check_command(CLI::App& parent, Context& context);
void add_data_stats_command(CLI::App& parent, Context& context);
void add_data_index_command(CLI::App& parent, Context& context);
void add_data_transcode_command(CLI::App& parent, Context& context);
void add_data_show_command(CLI::App& parent, Context& context);

}  // namespace hpcai::cli
