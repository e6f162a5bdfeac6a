// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/slurm/batch_script.hpp>

namespace hpcai::slurm {
namespace {

void require_one_line(std::string_view what, const std::string& text) {
    require(printable(text) == text, ExitCode::usage,
            "sbatch: {}: expected a text without control characters, got '{}'", what,
            printable(text));
}

void check(const BatchJob& job) {
    require_one_line("--config", job.config);
    require_one_line("--results", job.results);
    require_one_line("run.name", job.name);
    for (const std::string& setting : job.settings) require_one_line("--set", setting);
    for (const ArrayTask& task : job.array) {
        for (const std::string& setting : task.settings) require_one_line("--array", setting);
    }
}

/// Slurm reads quotes in its directives, and would take a name apart at a space or a comment.
std::string job_name(const BatchJob& job) {
    std::string name = job.name;
    for (char& letter : name) {
        const bool is_plain = (letter >= 'a' && letter <= 'z') ||
                              (letter >= 'A' && letter <= 'Z') ||
                              (letter >= '0' && letter <= '9') || letter == '_' || letter == '.';
        if (!is_plain) letter = '-';
    }
    return name;
}

std::string directives(const BatchJob& job) {
    std::string text =
        fmt::format("#SBATCH --job-name={}\n#SBATCH --nodes={}\n", job_name(job), job.nodes);
    text += fmt::format("#SBATCH --ntasks-per-node={}\n", job.ranks_per_node);
    if (job.gpus_per_node > 0) {
        text += fmt::format(
            "#SBATCH --gpus-per-node={}\n"
            "# Every rank sees all GPUs of its node, or it could not reach its peers' memory.\n"
            "#SBATCH --gpu-bind=none\n",
            job.gpus_per_node);
    }
    if (job.cpus_per_rank > 0) {
        text += fmt::format("#SBATCH --cpus-per-task={}\n", job.cpus_per_rank);
    } else {
        text += "# What is measured is measured alone.\n#SBATCH --exclusive\n";
    }
    if (!job.time.empty()) text += fmt::format("#SBATCH --time={}\n", job.time);
    if (!job.array.empty()) text += fmt::format("#SBATCH --array=0-{}\n", job.array.size() - 1);
    text += fmt::format(
        "# To this script alone, so many seconds before the time ends; it tells the ranks.\n"
        "#SBATCH --signal=B:USR1@{}\n",
        kNoticeSeconds);
    text += job.requeues > 0 ? "#SBATCH --requeue\n" : "#SBATCH --no-requeue\n";
    return text +
           "# Behind a restart the log goes on.\n"
           "#SBATCH --open-mode=append\n";
}

/// mpirun with --enable-recovery says nothing, and stays, where there is no such program.
constexpr const char* kProgram =
    "set -u\n"
    "hpcai500=${HPCAI500:-hpcai500}\n"
    "if ! command -v \"$hpcai500\" >/dev/null; then\n"
    "    echo \"$hpcai500: there is no such program; load its module or set HPCAI500\" >&2\n"
    "    exit 2\n"
    "fi\n\n";

std::string settings_words(const std::vector<std::string>& settings) {
    std::string words;
    for (const std::string& setting : settings) words += " --set " + shell_word(setting);
    return words;
}

std::string array_cases(const BatchJob& job) {
    if (job.array.empty()) return "";
    std::string text = "case $SLURM_ARRAY_TASK_ID in\n";
    for (std::size_t task = 0; task < job.array.size(); ++task) {
        text += fmt::format("    {}) ranks={} task=({}) ;;\n", task, job.array[task].ranks,
                            settings_words(job.array[task].settings).substr(1));
    }
    return text +
           "    *) echo \"no task $SLURM_ARRAY_TASK_ID in this script\" >&2 && exit 2 ;;\n"
           "esac\n\n";
}

std::string choice(const BatchJob& job) {
    const bool is_array = !job.array.empty();
    std::string text = fmt::format(
        "# The job keeps its number when it is restarted, and so finds what it has left behind.\n"
        "results={}-$SLURM_JOB_ID\n",
        shell_word(job.results + "/" + job_name(job)));
    text += "if [[ -e $results/config.yaml ]]; then\n    command=(resume \"$results\")\nelse\n";
    text += fmt::format("    command=(run --config {}{}{} --output \"$results\")\nfi\n\n",
                        shell_word(job.config), settings_words(job.settings),
                        is_array ? " \"${task[@]}\"" : "");
    return text;
}

/// What scontrol and scancel take for this job alone: the number of a task of an array may be that
/// of the whole array.
std::string_view this_job(const BatchJob& job) {
    return job.array.empty() ? "$SLURM_JOB_ID" : "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID";
}

/// `place`, the options that say where ranks go and to which cores they keep. This node stands for
/// the others; where several ranks share a NUMA node they are neighbours in rank, as the GPUs are
/// that they take.
std::string places(const BatchJob& job) {
    const bool is_mpirun = job.launcher == Launcher::mpirun;
    const int most = job.ranks_per_node;
    const std::string anywhere = is_mpirun
                                     ? fmt::format("--map-by ppr:{}:node --bind-to none", most)
                                     : fmt::format("--ntasks-per-node={}", most);
    // Slurm gives each rank its cores, and knows which are this job's.
    if (job.cpus_per_rank > 0) {
        return fmt::format("place=({}{})\n", anywhere,
                           is_mpirun ? "" : fmt::format(" --cpus-per-task={}", job.cpus_per_rank));
    }
    const std::string unbound =
        fmt::format("place=({}{})\n", anywhere, is_mpirun ? "" : " --cpu-bind=none");
    if (most == 1) return unbound;
    std::string text =
        "# Each rank keeps to one NUMA node, where these divide the ranks evenly.\n"
        "numa=($(lscpu --parse=NODE | grep -v '^#' | sort -nu))\n";
    text += job.array.empty() ? fmt::format("here={}\n", most)
                              : fmt::format("here=$((ranks < {0} ? ranks : {0}))\n", most);
    text += unbound;
    text += "if ((${#numa[@]} > 1 && here % ${#numa[@]} == 0)); then\n";
    if (is_mpirun) {
        text += "    place=(--map-by \"ppr:$((here / ${#numa[@]})):numa\" --bind-to numa)\n";
    } else {
        text +=
            "    nodes=\n"
            "    for ((i = 0; i < here; ++i)); do nodes+=,${numa[i * ${#numa[@]} / here]}; done\n";
        text += fmt::format("    place=({} --cpu-bind=\"map_ldom:${{nodes:1}}\")\n", anywhere);
    }
    return text + "fi\n";
}

std::string launch(const BatchJob& job) {
    const std::string ranks =
        job.array.empty() ? std::to_string(job.nodes * job.ranks_per_node) : "\"$ranks\"";
    if (job.launcher == Launcher::mpirun) {
        return fmt::format(
            "# The other groups outlive a dead rank (Open MPI 4; 5 has --with-ft ulfm). The "
            "price:\n"
            "# mpirun returns 0 whatever happens. Without the second option it would never return\n"
            "# where ranks on two nodes end with another code.\n"
            "mpirun -np {} \"${{place[@]}}\" \\\n"
            "    --enable-recovery --mca orte_abort_on_non_zero_status 0 \\\n",
            ranks);
    }
    return fmt::format(
        "# The other groups outlive a dead rank that was alone on its node; the ranks read this\n"
        "# variable, too.\n"
        "export SLURM_KILL_BAD_EXIT=0\n"
        "srun --mpi=pmix --wait=0 --ntasks={}{} \"${{place[@]}}\" \\\n",
        ranks,
        job.array.empty() ? ""
                          : fmt::format(" --nodes=$(((ranks + {}) / {}))", job.ranks_per_node - 1,
                                        job.ranks_per_node));
}

/// Bash ends a wait for a signal that it traps, and the launcher goes on.
std::string start_and_wait(const BatchJob& job) {
    std::string text = places(job) +
                       "\n# What shows that a run has come somewhere.\n"
                       "traces() {\n"
                       "    find \"$results\" \\( -name summary.txt -o -name progress.json \\) \\\n"
                       "        -printf '%p %i %T@ ' 2>/dev/null\n"
                       "}\n"
                       "traces=$(traces)\n"
                       "summary=$(stat -c %i.%Y \"$results/summary.txt\" 2>/dev/null)\n";
    text += launch(job);
    text += "    \"$hpcai500\" \"${command[@]}\" &\nlauncher=$!\n";
    text +=
        "# The launcher hands USR1 on to every rank, which stops at a checkpoint.\n"
        "told=0\n"
        "trap 'told=1; kill -USR1 \"$launcher\"' USR1\n";
    text +=
        "# Where a rank was killed the launcher may stay when all others have gone: a minute "
        "behind\n"
        "# the end of the run, which writes its summary last, it is ended, and 10 s behind a "
        "stop.\n"
        "has_stopped() {\n"
        "    ((told)) && [[ $(traces) != \"$traces\" ]] || return 1\n"
        "    \"$hpcai500\" status \"$results\" >/dev/null 2>&1\n"
        "    case $? in 5 | 8) return 0 ;; *) return 1 ;; esac\n"
        "}\n"
        "looks=6 looks_at_stop=1 next=0\n"
        "while kill -0 \"$launcher\" 2>/dev/null; do\n"
        "    sleep 10 &\n"
        "    wait -n\n"
        "    ((SECONDS >= next)) || continue  # a signal, or the sleep before it\n"
        "    next=$((SECONDS + 10))\n"
        "    now=$(stat -c %i.%Y \"$results/summary.txt\" 2>/dev/null)\n"
        "    if [[ -n $now && $now != \"$summary\" ]] && ((looks-- <= 0)); then kill "
        "\"$launcher\"; fi\n"
        "    if has_stopped && ((looks_at_stop-- <= 0)); then kill \"$launcher\"; fi\n"
        "done\n"
        "wait \"$launcher\"\n"
        "launched=$?\n"
        "trap '' USR1\n\n";
    return text;
}

std::string ending(const BatchJob& job) {
    std::string text =
        "\"$hpcai500\" status \"$results\"\ncode=$?\n"
        "# 8: stopped at a checkpoint; not by this start where it has come nowhere.\n"
        "if [[ $(traces) == \"$traces\" ]] && ((launched != 0 || code == 8)); then\n"
        "    echo \"this start has come nowhere; what status says is of an earlier one\" >&2\n"
        "    code=$((launched != 0 ? launched : 1))\n"
        "fi\n";
    if (job.requeues > 0) {
        text += fmt::format(
            "if ((code == 8 && ${{SLURM_RESTART_COUNT:-0}} < {})); then\n"
            "    scontrol requeue \"{}\"\n"
            "fi\n",
            job.requeues, this_job(job));
    }
    return text + "exit $code\n";
}

}  // namespace

std::string batch_script(const BatchJob& job) {
    check(job);
    return "#!/bin/bash\n# Made by: " + printable(job.command_line) + "\n" + directives(job) +
           kProgram + array_cases(job) + choice(job) + start_and_wait(job) + ending(job);
}

}  // namespace hpcai::slurm
