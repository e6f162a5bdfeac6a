// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <regex>
#include <string_view>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/slurm/batch_script.hpp>

namespace hpcai::slurm {
namespace {

/// Words of bash that depend on the scheduler.
struct SchedulerWords {
    const char* job;       // number of the job
    const char* task;      // index in the array
    const char* restarts;  // variable that counts restarts
    const char* signal;    // command that requests all ranks to stop
    const char* resubmit;  // command that submits a script again; "" if the scheduler requeues jobs
};

const SchedulerWords& words_of(const BatchJob& job) {
    static constexpr std::array<SchedulerWords, 3> kWords{
        {// [Scheduler]
         {"$SLURM_JOB_ID", "$SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT",
          "kill -USR1 \"$launcher\"", ""},
         {"${PBS_JOBID%%.*}", "$PBS_ARRAY_INDEX", "HPCAI500_RESTARTS", "kill -USR1 \"$launcher\"",
          "qsub -v HPCAI500,HPCAI500_RESULTS,HPCAI500_RESTARTS"},
         // A job number of Flux begins with a letter beyond ASCII.
         {"$(flux getattr jobid | tr -cd '[:alnum:]')", "", "HPCAI500_RESTARTS",
          "flux job kill --signal=USR1 \"$job\"", "flux --parent batch"}}};
    return kWords[static_cast<std::size_t>(job.scheduler)];
}

void require_one_line(std::string_view what, const std::string& text) {
    require(printable(text) == text, ExitCode::usage,
            "sbatch: {}: expected a string without control characters, got '{}'", what,
            printable(text));
}

void check(const BatchJob& job) {
    require_one_line("--results", job.results);
    require_one_line("run.name", job.name);
    require_one_line("--prologue", job.prologue);
    require_one_line("--container", job.container);
    for (const std::string& file : job.configs) require_one_line("--config", file);
    for (const std::string& setting : job.settings) require_one_line("--set", setting);
    for (const std::string& module : job.modules) {
        require_one_line("--module", module);
        require(!module.starts_with('-'), ExitCode::usage,
                "sbatch: --module: expected the name of a module, got '{}'", module);
    }
    for (const ArrayTask& task : job.array) {
        for (const std::string& setting : task.settings) require_one_line("--array", setting);
    }
}

/// Returns commands that load the modules and then source the prologue, which may use them.
std::string site_setup(const BatchJob& job) {
    std::string text;
    for (const std::string& module : job.modules) {
        text += fmt::format("module load {} || exit 2\n", shell_quote(module));
    }
    if (job.prologue.empty()) return text;
    // Without a '/', bash would search for the file in PATH.
    const bool has_folder = job.prologue.find('/') != std::string::npos;
    return text + fmt::format("source {} || exit 2\n",
                              shell_quote((has_folder ? "" : "./") + job.prologue));
}

/// Returns " --set a --set b" for the option "--set" with the values a and b.
std::string option_words(const char* option, const std::vector<std::string>& values) {
    std::string words;
    for (const std::string& value : values)
        words += fmt::format(" {} {}", option, shell_quote(value));
    return words;
}

/// Returns commands that set `hpcai500` to the command that runs the program, in its container if
/// any, and check that this command exists: otherwise mpirun --enable-recovery would hang silently.
std::string find_program(const BatchJob& job) {
    std::string container, folder, binds;
    if (!job.container.empty()) {
        for (const std::string& path : job.binds) {
            require_one_line("--container", path);
            require(path.find_first_of(",:") == path.npos, ExitCode::usage,
                    "sbatch: --container: expected paths without ',' and ':', got '{}'", path);
            if (path.starts_with('/')) binds += " --bind " + shell_quote(path);
        }
        container =
            fmt::format("apptainer exec{} --bind \"$PWD\"{} {} ",
                        job.gpus_per_node > 0 ? " --nv" : "", binds, shell_quote(job.container));
        folder = fmt::format("mkdir -p {} || exit 2\n", shell_quote(job.results));  // for --bind
    }
    return fmt::format("{}set -u\nhpcai500=({}\"${{HPCAI500:-hpcai500}}\")\n", folder, container) +
           R"(if ! command -v "${hpcai500[0]}" >/dev/null; then
    echo "${hpcai500[0]}: command not found; load its module or set HPCAI500" >&2
    exit 2
fi

)";
}

std::string array_cases(const BatchJob& job) {
    if (job.array.empty()) return "";
    const char* id = words_of(job).task;
    std::string text = fmt::format("case {} in\n", id);
    for (std::size_t task = 0; task < job.array.size(); ++task) {
        text += fmt::format("    {}) ranks={} task=({}) ;;\n", task, job.array[task].ranks,
                            option_words("--set", job.array[task].settings).substr(1));
    }
    return text +
           fmt::format("    *) echo \"no task {} in this script\" >&2 && exit 2 ;;\nesac\n\n", id);
}

std::string run_or_resume(const BatchJob& job) {
    const bool is_array = !job.array.empty();
    std::string text = fmt::format(
        "# A restarted job finds its result directory by job number or HPCAI500_RESULTS.\n"
        "results={}-{}\n",
        shell_quote(job.results + "/" + job_name(job)), words_of(job).job);
    // A user or a resubmitted job sets HPCAI500_RESULTS to resume an earlier run.
    if (!is_array) text += "results=${HPCAI500_RESULTS:-$results}\n";
    text += "if [[ -e $results/config.yaml ]]; then\n    command=(resume \"$results\")\nelse\n";
    text += fmt::format("    command=(run{}{}{} --output \"$results\")\nfi\n\n",
                        option_words("--config", job.configs), option_words("--set", job.settings),
                        is_array ? " \"${task[@]}\"" : "");
    return text;
}

/// Returns commands that set `place`, the launcher's options for placement and binding. Assumes the
/// same NUMA layout on all nodes, with consecutive GPUs in each NUMA node. Gives each NUMA node
/// consecutive ranks.
std::string placement_options(const BatchJob& job) {
    if (job.scheduler == Scheduler::flux) return "";
    const bool is_mpirun = job.launcher == Launcher::mpirun;
    const int node_ranks = job.ranks_per_node;
    const std::string placement =
        is_mpirun ? fmt::format("--map-by ppr:{}:node --bind-to none", node_ranks)
                  : fmt::format("--ntasks-per-node={}", node_ranks);
    // srun binds each rank to the cores that Slurm allocates for it.
    if (job.cpus_per_rank > 0) {
        return fmt::format("place=({}{})\n", placement,
                           is_mpirun ? "" : fmt::format(" --cpus-per-task={}", job.cpus_per_rank));
    }
    const std::string unbound =
        fmt::format("place=({}{})\n", placement, is_mpirun ? "" : " --cpu-bind=none");
    if (node_ranks == 1) return unbound;
    std::string text =
        "# Binds each rank to one NUMA node if the ranks divide evenly among the NUMA nodes.\n"
        "numa=($(lscpu --parse=NODE | grep -v '^#' | sort -nu))\n";
    text += job.array.empty()
                ? fmt::format("node_ranks={}\n", node_ranks)
                : fmt::format("node_ranks=$((ranks < {0} ? ranks : {0}))\n", node_ranks);
    text += unbound;
    text += "if ((${#numa[@]} > 1 && node_ranks % ${#numa[@]} == 0)); then\n";
    if (is_mpirun) {
        text += "    place=(--map-by \"ppr:$((node_ranks / ${#numa[@]})):numa\" --bind-to numa)\n";
    } else {
        text +=
            "    nodes=\n"
            "    for ((i = 0; i < node_ranks; ++i)); do nodes+=,${numa[i * ${#numa[@]} / "
            "node_ranks]}; done\n";
        text += fmt::format("    place=({} --cpu-bind=\"map_ldom:${{nodes:1}}\")\n", placement);
    }
    return text + "fi\n";
}

std::string launch(const BatchJob& job) {
    const std::string ranks =
        job.array.empty() ? std::to_string(job.nodes * job.ranks_per_node) : "\"$ranks\"";
    constexpr const char* kCommand = "    \"${hpcai500[@]}\" \"${command[@]}\"";
    if (job.scheduler == Scheduler::flux) {
        return fmt::format(
            "# By default Flux ends all ranks 30 s after the first has ended.\n"
            "job=$(flux submit -o exit-timeout=none -o cpu-affinity=per-task -o gpu-affinity=off "
            "\\\n"
            "    --exclusive --nodes={} --ntasks={} \\\n{}) || exit 1\n"
            "flux job attach \"$job\" &\n",
            job.nodes, ranks, kCommand);
    }
    if (job.launcher == Launcher::mpirun) {
        return fmt::format(
            "# With --enable-recovery (Open MPI 5: --with-ft ulfm), other groups survive a failed\n"
            "# rank, but mpirun may return 0 after it. Without orte_abort_on_non_zero_status 0,\n"
            "# mpirun would hang after ranks on two nodes exit with a nonzero code.\n"
            "# odls_base_sigkill_timeout gives the ranks 10 s for a checkpoint after SIGTERM.\n"
            "mpirun {}-np {} \"${{place[@]}}\" \\\n"
            "    --enable-recovery --mca orte_abort_on_non_zero_status 0 \\\n"
            "    --mca odls_base_sigkill_timeout 10 \\\n{} &\n",
            job.scheduler == Scheduler::pbs ? "--hostfile \"$PBS_NODEFILE\" " : "", ranks,
            kCommand);
    }
    return fmt::format(
        "# Other groups survive a failed rank that was alone on its node. The ranks also read\n"
        "# SLURM_KILL_BAD_EXIT to know whether one rank may exit without ending the others.\n"
        "export SLURM_KILL_BAD_EXIT=0\n"
        "srun --mpi=pmix --wait=0 --ntasks={}{} \"${{place[@]}}\" \\\n{} &\n",
        ranks,
        job.array.empty() ? ""
                          : fmt::format(" --nodes=$(((ranks + {}) / {}))", job.ranks_per_node - 1,
                                        job.ranks_per_node),
        kCommand);
}

constexpr const char* kOutputState = R"(
# Prints a text that changes when a run writes its progress or summary.
output_state() {
    find "$results" \( -name summary.txt -o -name progress.json \) \
        -printf '%p %i %T@ ' 2>/dev/null
}
initial_state=$(output_state)
summary=$(stat -c %i.%Y "$results/summary.txt" 2>/dev/null)
)";

/// If bash traps a signal, its `wait` ends, but the launcher does not.
constexpr const char* kWatchLauncher =
    R"(# If a rank was killed, the launcher may hang after all others have exited. This script
# kills it about a minute after a run has written its summary, or 10 to 20 s after a stop
# (code 8) or the failure of all groups (5).
has_stopped() {
    ((signalled)) && [[ $(output_state) != "$initial_state" ]] || return 1
    "${hpcai500[@]}" status "$results" >/dev/null 2>&1
    case $? in 5 | 8) return 0 ;; *) return 1 ;; esac
}
checks=6 checks_of_stop=1 next=0
while kill -0 "$launcher" 2>/dev/null; do
    sleep 10 &
    wait -n
    # A signal or the end of an earlier sleep may have ended the wait early.
    ((SECONDS >= next)) || continue
    next=$((SECONDS + 10))
)";

constexpr const char* kEndLauncher = R"(    now=$(stat -c %i.%Y "$results/summary.txt" 2>/dev/null)
    if [[ -n $now && $now != "$summary" ]] && ((checks-- <= 0)); then kill "$launcher"; fi
    if has_stopped && ((checks_of_stop-- <= 0)); then kill "$launcher"; fi
done
wait "$launcher"
launched=$?
trap '' USR1

)";

/// Returns commands that wait for the launcher and stop the run before the time limit.
std::string wait_for_launcher(const BatchJob& job) {
    std::string text = fmt::format(
        "launcher=$!\n"
        "# Every rank receives USR1 and stops at a checkpoint.\n"
        "signalled=0\n"
        "trap 'signalled=1; {}' USR1\n",
        words_of(job).signal);
    text += kWatchLauncher;
    if (job.time_seconds > 0 && job.scheduler != Scheduler::slurm) {
        text += fmt::format(
            "    # The time limit comes {} seconds later.\n"
            "    ((signalled || SECONDS < {})) || kill -USR1 $$\n",
            kSignalLeadSeconds, job.time_seconds - kSignalLeadSeconds);
    }
    return text + kEndLauncher;
}

std::string report_status(const BatchJob& job) {
    const SchedulerWords& words = words_of(job);
    std::string text = R"("${hpcai500[@]}" status "$results"
code=$?
# Code 8 (a stop) belongs to an earlier launch if this launch has written nothing.
if [[ $(output_state) == "$initial_state" ]] && ((launched != 0 || code == 8)); then
    echo "this launch has written no results; any status above is from an earlier launch" >&2
    code=$((launched != 0 ? launched : 1))
fi
)";
    if (job.requeues == 0) return text + "exit $code\n";
    text +=
        fmt::format("if ((code == 8 && ${{{}:-0}} < {})); then\n", words.restarts, job.requeues);
    if (job.scheduler == Scheduler::slurm) {
        // The job number of an array task may denote the whole array.
        constexpr const char* kTask = "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID";
        text += fmt::format("    scontrol requeue \"{}\"\n", job.array.empty() ? words.job : kTask);
    } else {
        // qsub rejects the name of a variable that is not set.
        text += fmt::format(
            "    export HPCAI500=${{HPCAI500:-hpcai500}} HPCAI500_RESULTS=$results\n"
            "    export HPCAI500_RESTARTS=$((${{HPCAI500_RESTARTS:-0}} + 1))\n"
            "    {} \"$0\"\n",
            words.resubmit);
    }
    return text + "fi\nexit $code\n";
}

}  // namespace

std::optional<std::int64_t> time_limit_seconds(std::string_view text) {
    constexpr std::int64_t kMaxSeconds = std::int64_t{3650} * 86400;
    const std::regex form(R"((?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?)");
    std::match_results<std::string_view::const_iterator> match;
    if (!std::regex_match(text.begin(), text.end(), match, form)) return std::nullopt;
    const auto number = [&](std::size_t group) -> std::int64_t {
        return match[group].matched ? std::stoll(match[group].str()) : 0;
    };
    // match[2] has hours after days or in H:M:S, and minutes in M and M:S.
    const bool has_hours = match[1].matched || match[4].matched;
    const std::int64_t seconds =
        has_hours ? number(2) * 3600 + number(3) * 60 + number(4) : number(2) * 60 + number(3);
    const std::int64_t total = number(1) * 86400 + seconds;
    return total <= kMaxSeconds ? std::optional(total) : std::nullopt;
}

std::string batch_script(const BatchJob& job) {
    check(job);
    return "#!/bin/bash\n# Made by: " + printable(job.command_line) + "\n" + directives(job) +
           site_setup(job) + find_program(job) + array_cases(job) + run_or_resume(job) +
           placement_options(job) + kOutputState + launch(job) + wait_for_launcher(job) +
           report_status(job);
}

}  // namespace hpcai::slurm
