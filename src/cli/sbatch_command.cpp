// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <ostream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/slurm/batch_script.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/verdict.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

constexpr std::size_t kMaxTasks = 1000;  // of an array, by Slurm's default

struct SbatchOptions {
    config::Sources config;
    slurm::BatchJob job;
    std::string output;
    int ranks_per_node = 0;  // 0: one for each GPU, or one without GPUs
    std::vector<std::string> array;
};

/// Returns the settings in "M=1,2": "bagging.M=1", "bagging.M=2".
std::vector<std::string> settings_of(const std::string& text) {
    const std::size_t equals = text.find('=');
    require(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), ExitCode::usage,
            "sbatch: --array: expected KEY=A,B,... such as M=1,2,4 or section.key=a,b, got {}",
            in_quotes(text));
    std::string key = text.substr(0, equals);
    if (key == "M" || key == "P_degree") key = "bagging." + key;
    std::vector<std::string> settings;
    std::istringstream values(text.substr(equals + 1) + ",");
    for (std::string value; std::getline(values, value, ',');) {
        require(!value.empty(), ExitCode::usage, "sbatch: --array: a value of {} is empty",
                in_quotes(text));
        settings.push_back(key + "=" + value);
    }
    return settings;
}

/// Returns all combinations of the settings of --array; none without --array.
std::vector<slurm::ArrayTask> tasks_of(const std::vector<std::string>& array) {
    if (array.empty()) return {};
    std::vector<slurm::ArrayTask> tasks(1);
    for (const std::string& text : array) {
        std::vector<slurm::ArrayTask> combinations;
        for (const slurm::ArrayTask& task : tasks) {
            for (const std::string& setting : settings_of(text)) {
                combinations.push_back(task);
                combinations.back().settings.push_back(setting);
            }
        }
        require(combinations.size() <= kMaxTasks, ExitCode::usage,
                "sbatch: --array: expected up to {} combinations, got {}", kMaxTasks,
                combinations.size());
        tasks = std::move(combinations);
    }
    return tasks;
}

/// Throws, as the run would, if the ranks do not fit the configuration.
void check_layout(const config::Config& config, int ranks, int ranks_per_node) {
    try {
        plan::make_layout(config.bagging, config.training, config.parallel, ranks,
                          std::min(ranks, ranks_per_node));
    } catch (const Error& error) {
        constexpr const char* kAdvice = "choose --nodes and --ranks-per-node for $1 ranks";
        throw Error(error.code(), "sbatch: " + replace_launch(error.what(), kAdvice));
    }
}

/// Throws, as the run would, if the `ranks` ranks of a node share GPUs and run.level is not custom.
void check_gpus(const config::Config& config, const slurm::BatchJob& job, int ranks) {
    const bool may_share = config.run.level == config::Level::custom || job.gpus_per_node == 0 ||
                           config.device.kind == config::DeviceKind::cpu;
    require(may_share || ranks <= job.gpus_per_node, ExitCode::launch,
            "sbatch: {} on each node would share {}: at a run.level other than custom every rank "
            "needs its own GPU; expected --ranks-per-node {} at most",
            counted(ranks, "rank"), counted(job.gpus_per_node, "GPU"), job.gpus_per_node);
}

void warn_about_idle_gpus(const config::Config& config, const slurm::BatchJob& job) {
    const int used = config.device.kind == config::DeviceKind::cpu ? 0 : job.ranks_per_node;
    const int idle = job.gpus_per_node - used;
    if (idle <= 0) return;
    std::cerr << fmt::format(
        "sbatch: warning: {} of the {} of each node would be idle, because "
        "it has {} and device.kind is {}\n",
        idle, counted(job.gpus_per_node, "GPU"), counted(job.ranks_per_node, "rank"),
        config::value_text(config, "device.kind"));
}

/// Prints notes, not errors: a path may exist only on the cluster, and a result need not be ranked.
void print_notes(const config::Config& config, const std::string& container, bool is_requeued) {
    const bool is_file = container.find("://") == container.npos;
    for (const std::string& path :
         {config.data.path, config.data.validation_path, is_file ? container : ""}) {
        std::error_code ignored;
        if (path.empty() || std::filesystem::exists(path, ignored)) continue;
        std::cerr << "sbatch: note: " << in_quotes(path) << " does not exist on this machine\n";
    }
    const std::string resumed = is_requeued ? verification::describe_resumed(config) : "";
    if (const std::string why = verification::describe_missing_for_rank(config); !why.empty())
        std::cerr << wrap("sbatch: note: the result is " + why, 4) << "\n";
    if (!resumed.empty())
        std::cerr << wrap("sbatch: note: after a requeue, the result is " + resumed, 4) << "\n";
}

/// Sets the number of ranks of each task, which may be less than the allocation has. Rejects tasks
/// with equal configurations, also if the texts of values differ (0.1 and 1e-1).
void fit_tasks(const SbatchOptions& options, slurm::BatchJob& job) {
    const int ranks = job.nodes * job.ranks_per_node;
    std::map<std::string, std::size_t> numbers;  // [effective configuration as YAML]
    for (slurm::ArrayTask& task : job.array) {
        config::Sources source = options.config;
        source.overrides.insert(source.overrides.end(), task.settings.begin(), task.settings.end());
        const config::Config config = load(source);
        const auto [first, is_new] = numbers.emplace(config::to_yaml(config), numbers.size());
        require(is_new, ExitCode::usage,
                "sbatch: --array: expected different tasks, got {}, which is the same as task {}",
                in_quotes(fmt::format("{}", fmt::join(task.settings, " "))), first->second);
        const config::BaggingConfig& bagging = config.bagging;
        const std::int64_t requested_ranks = bagging.groups && bagging.degree
                                                 ? std::int64_t{*bagging.groups} * *bagging.degree
                                                 : ranks;
        task.ranks = static_cast<int>(std::min<std::int64_t>(requested_ranks, ranks));
        check_layout(config, task.ranks, job.ranks_per_node);
        check_gpus(config, job, std::min(task.ranks, job.ranks_per_node));
    }
}

slurm::BatchJob job_of(const SbatchOptions& options, const std::string& command_line) {
    slurm::BatchJob job = options.job;
    const config::Config config = load(options.config);
    job.binds = {config.data.path,
                 config.data.validation_path,
                 config.data.image_path,
                 config.data.validation_image_path,
                 job.results,
                 std::filesystem::path(config.training.initial_weights).parent_path().string()};
    for (const std::string& file : options.config.files) job.binds.push_back(file);
    for (std::string& path : job.binds) {  // makes paths outside the working directory absolute
        if (std::filesystem::path(path).lexically_normal().string().starts_with(".."))
            path = std::filesystem::absolute(path).lexically_normal().string();
    }
    job.command_line = command_line;
    job.name = config.run.name;
    job.configs = options.config.files;
    job.settings = options.config.overrides;
    job.ranks_per_node = options.ranks_per_node > 0 ? options.ranks_per_node
                         : job.gpus_per_node > 0    ? job.gpus_per_node
                                                    : 1;
    job.array = tasks_of(options.array);
    if (job.array.empty()) {
        check_layout(config, job.nodes * job.ranks_per_node, job.ranks_per_node);
        check_gpus(config, job, job.ranks_per_node);
    } else {
        fit_tasks(options, job);
    }
    warn_about_idle_gpus(config, job);
    print_notes(config, job.container, job.requeues > 0);
    return job;
}

ExitCode sbatch(const SbatchOptions& options, const Context& context) {
    require(options.output != "-", ExitCode::usage,
            "sbatch: --output: expected a file, got '-'; without --output the script is printed to "
            "standard output");
    for (const auto& [option, path] :
         {std::pair{"results", options.job.results}, {"container", options.job.container}}) {
        require(
            !path.starts_with('-'), ExitCode::usage,
            "sbatch: --{}: expected a path that does not look like an option, such as {}, got {}",
            option, in_quotes("./" + path), in_quotes(path));
    }
    const std::string script = slurm::batch_script(job_of(options, context.command_line));
    if (options.output.empty()) {
        context.out << script;
    } else {
        require_replaceable("sbatch: --output", options.output, script.substr(0, 32));
        storage::write_file_durably(options.output, script);
        constexpr const char* kSubmit[] = {"sbatch", "qsub", "flux batch"};  // [Scheduler]
        context.out << fmt::format("wrote {}; submit it with\n  {} {}\n", printable(options.output),
                                   kSubmit[static_cast<int>(options.job.scheduler)],
                                   printable(shell_quote(options.output)));
    }
    return ExitCode::ok;
}

void add_allocation_options(Command command, SbatchOptions& options) {
    constexpr std::int64_t kMaxNodes = 100'000;
    constexpr std::int64_t kMaxPerNode = 1024;
    command.add_integer("--nodes", options.job.nodes, {1, kMaxNodes}, "nodes of the job",
                        Presence::required);
    command.add_integer("--ranks-per-node", options.ranks_per_node, {1, kMaxPerNode},
                        "ranks per node; default: --gpus-per-node, or one");
    command.add_integer("--gpus-per-node", options.job.gpus_per_node, {1, kMaxPerNode},
                        "GPUs per node; default: none");
    command.add_integer(
        "--cpus-per-rank", options.job.cpus_per_rank, {1, kMaxPerNode},
        "cores per rank; pbs requires it, slurm needs it for shared nodes, flux rejects it; "
        "default: whole nodes");
}

/// Adds the options that depend on the site. An option that is not given adds nothing to the
/// script.
void add_site_options(Command command, slurm::BatchJob& job) {
    for (const char* name : {"account", "partition", "qos", "constraint", "mem"}) {
        const auto store = [&job, name](const std::string& text) { job.site_options[name] = text; };
        command.add_parsed(fmt::format("--{}", name), store, "VALUE", "as in Slurm's sbatch");
    }
    command.add_texts("--module", job.modules, "NAME", "module to load; repeatable");
    const auto read_prologue = [&job](const std::string& file) {
        std::error_code error;
        require(std::filesystem::is_regular_file(file, error), ExitCode::usage,
                "sbatch: --prologue: expected a file with commands of bash, got {}",
                in_quotes(file));
        job.prologue = file;
    };
    command.add_parsed("--prologue", read_prologue, "FILE",
                       "file with commands of bash to source before the launch");
    command.add_text("--container", job.container, "IMAGE", "Apptainer image for the ranks");
}

void add_time(Command command, slurm::BatchJob& job) {
    const auto read = [&job](const std::string& text) {
        const auto seconds = slurm::time_limit_seconds(text);
        require(seconds && *seconds > slurm::kSignalLeadSeconds, ExitCode::usage,
                "sbatch: --time: expected more than 2 minutes in Slurm's format, such as "
                "90, 12:00:00 or 2-12, got {}",
                in_quotes(text));
        job.time = text;
        job.time_seconds = *seconds;
    };
    command.add_parsed("--time", read, "[D-]H:M:S",
                       "time limit of the job; default: the partition's");
}

}  // namespace

void add_sbatch_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"sbatch",
         "Print a script for Slurm, PBS or Flux: run, stop before the time limit, requeue, resume.",
         {"hpcai500 sbatch --config configs/imagenet_nvidia.yaml --set bagging.P_degree=8 "
          "--nodes 4 --gpus-per-node 8 --time 12:00:00 --requeue 3 --output job.sbatch",
          "hpcai500 sbatch --config configs/quickstart.yaml --nodes 2 --ranks-per-node 4 "
          "--launcher srun --array M=1,2,4 --array P_degree=1,2 --account physics --module "
          "openmpi",
          "hpcai500 sbatch --config configs/quickstart.yaml --scheduler pbs --nodes 2 "
          "--ranks-per-node 4 --cpus-per-rank 16 --time 2:00:00 --requeue 3 --output job.pbs"}},
        sbatch);
    add_config_options(command, options.config, Presence::required);
    add_allocation_options(command, options);
    add_site_options(command, options.job);
    command.add_choice("--scheduler", options.job.scheduler,
                       {{"slurm", slurm::Scheduler::slurm},
                        {"pbs", slurm::Scheduler::pbs},
                        {"flux", slurm::Scheduler::flux}},
                       "default: slurm");
    command.add_choice("--launcher", options.job.launcher,
                       {{"mpirun", slurm::Launcher::mpirun}, {"srun", slurm::Launcher::srun}},
                       "launcher of the ranks; default: mpirun");
    add_time(command, options.job);
    command.add_texts("--array", options.array, "KEY=A,B,...",
                      "a job for each combination; repeatable");
    command.add_integer("--requeue", options.job.requeues, {0, 1000},
                        "maximum number of restarts after a stop; pbs and flux require --time with "
                        "it; default: 0");
    command.add_text("--results", options.job.results, "DIR",
                     "parent of the result directories; default: results");
    command.add_text("--output", options.output, "FILE", "file for the script");
}

}  // namespace hpcai::cli
