// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/context/build.hpp>
#include <hpcai/launch/environment.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/faults.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::array kVariables{
    "SLURM_CPUS_PER_TASK",  "SLURM_JOB_ID",      "SLURM_NNODES",    "SLURM_NTASKS",
    "SLURM_JOB_PARTITION",  "OMPI_VERSION",      "PMI_SIZE",        "PBS_JOBID",
    "OMPI_COMM_WORLD_SIZE", "FLUX_JOB_SIZE",     "OMP_NUM_THREADS", "OMP_PLACES",
    "CUDA_VISIBLE_DEVICES", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND",   "NCCL_ALGO",
    "NVIDIA_TF32_OVERRIDE", "DNNL_MAX_CPU_ISA",  "OMP_WAIT_POLICY", "NCCL_PROTO",
};

bool has_fault_injection_disqualification(const data::SampleSets& samples) {
    return std::ranges::count(samples.disqualifications, kFaultsDisqualification) > 0;
}

std::vector<std::string> arguments_of(const fs::path& process) {
    std::ifstream file(process / "cmdline", std::ios::binary);
    std::vector<std::string> arguments;
    for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
    return arguments;
}

std::string parent_of(const fs::path& process) {
    std::ifstream file(process / "status");
    for (std::string name, value; file >> name && std::getline(file >> std::ws, value);)
        if (name == "PPid:") return value;
    return "0";
}

bool is_launcher(const fs::path& program) {
    constexpr std::array kLaunchers{"mpirun", "mpiexec", "orterun", "prterun"};
    const std::string name = program.filename();  // such as mpiexec.hydra
    return std::ranges::any_of(kLaunchers,
                               [&](const char* launcher) { return name.starts_with(launcher); });
}

}  // namespace

std::string launcher_options(const fs::path& processes) {
    constexpr int kMaxGenerations = 5;
    std::string process = "self";
    for (int generation = 0; generation < kMaxGenerations; ++generation) {
        process = parent_of(processes / process);
        const std::vector<std::string> words = arguments_of(processes / process);
        if (!words.empty() && is_launcher(words.front()))
            return fmt::format("{}", fmt::join(results::placement_options(words), " "));
    }
    return "";
}

std::string binary_digest() {
    try {
        return storage::sha256_hex_of_file("/proc/self/exe");
    } catch (const std::exception&) {
        return "unreadable";  // a file may be executable but not readable
    }
}

std::string preloaded_libraries(const std::string& path) {
    const char* variable = std::getenv("LD_PRELOAD");
    std::string libraries = variable == nullptr ? "" : variable;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream names(line.substr(0, line.find('#')));  // the linker skips comments
        for (std::string name; names >> name;) libraries += (libraries.empty() ? "" : " ") + name;
    }
    return libraries;
}

void add_fault_injection_disqualification(data::SampleSets& samples) {
    if (!has_fault_injection_disqualification(samples)) {
        samples.disqualifications.emplace_back(kFaultsDisqualification);
    }
}

std::map<std::string, std::string> describe_environment(const context::RunContext& context,
                                                        const data::SampleSets& samples,
                                                        const std::string& program_sha256,
                                                        const std::string& command_line,
                                                        comm::Communicator& everyone) {
    std::map<std::string, std::string> facts = context::describe_build();
    facts["program"] = training::program_version();
    facts["binary_sha256"] = program_sha256;
    facts["command_line"] = command_line;
    facts["device_of_rank_0"] = context.ranks.front().device;
    if (has_fault_injection_disqualification(samples)) facts[kFaultsFact] = "can be injected";
    for (const std::string& names : comm::all_gather_strings(everyone, preloaded_libraries())) {
        if (!names.empty()) facts[verification::kPreloadedFact] = names;
    }
    const std::string options =
        comm::broadcast(everyone, everyone.rank() == 0 ? launcher_options() : "");
    if (!options.empty()) facts[results::kLauncherFact] = options;
    utsname system{};
    if (uname(&system) == 0) {
        facts["operating_system"] =
            fmt::format("{} {} {}", system.sysname, system.release, system.machine);
    }
    for (const char* name : kVariables) {
        if (const char* value = std::getenv(name)) facts[std::string("env.") + name] = value;
    }
    return facts;
}

}  // namespace hpcai::launch
