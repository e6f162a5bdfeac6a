// SPDX-License-Identifier: Apache-2.0
#include "plan_cache.hpp"

#include <fstream>
#include <random>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace hpcai::device::cuda {

constexpr int kFormat = 2;  // of the file

void to_json(nlohmann::json& json, const PlanCache::Timing& timing) {
    json = {{"name", timing.name},
            {"seconds", timing.seconds},
            {"workspace_bytes", timing.workspace_bytes},
            {"agrees", timing.agrees ? nlohmann::json(*timing.agrees) : nlohmann::json()}};
}

void from_json(const nlohmann::json& json, PlanCache::Timing& timing) {
    timing = {json.at("name"), json.at("seconds"), json.at("workspace_bytes"), {}};
    if (!json.at("agrees").is_null()) timing.agrees = json.at("agrees").get<bool>();
}

PlanCache::PlanCache(std::filesystem::path file, Machine machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
    known_ = read();
}

std::string PlanCache::find(const std::string& problem) const {
    const auto at = known_.plans.find(problem);
    if (at == known_.plans.end() || barred(problem).contains(at->second)) return "";
    return at->second;
}

void PlanCache::insert(const std::string& problem, const std::string& plan) {
    std::string& known = known_.plans[problem];
    changed_ = changed_ || known != plan;
    known = plan;
}

void PlanCache::insert_timings(const std::string& problem, std::vector<Timing> timings) {
    known_.timings[problem] = std::move(timings);
    changed_ = true;
}

const std::set<std::string>& PlanCache::barred(const std::string& problem) const {
    static const std::set<std::string> kNone;
    const auto at = known_.barred.find(problem);
    return at == known_.barred.end() ? kNone : at->second;
}

void PlanCache::bar(const std::string& problem, const std::string& plan) {
    changed_ = known_.barred[problem].insert(plan).second || changed_;
}

PlanCache::Contents PlanCache::read() {
    std::error_code ignored;
    if (file_.empty() || !std::filesystem::exists(file_, ignored)) return {};
    try {
        std::ifstream stream(file_);
        const auto json = nlohmann::json::parse(stream);
        const Machine machine{json.at("device"), json.at("cudnn")};
        if (json.at("format") == kFormat && machine == machine_) {
            return {json.at("plans"), json.at("barred"), json.at("timings")};
        }
        warning_ = fmt::format(
            "{}: not used, because its plans are of {} with cuDNN {} in format {}, not of {} with "
            "cuDNN {} in format {}",
            file_.string(), machine.device, machine.cudnn, json.at("format").dump(),
            machine_.device, machine_.cudnn, kFormat);
    } catch (const nlohmann::json::exception& error) {
        warning_ = fmt::format("{}: not a plan cache: {}", file_.string(), error.what());
    }
    return {};
}

void PlanCache::save() {
    if (file_.empty() || !changed_) return;
    Contents all = known_, others = read();
    all.plans.merge(others.plans);
    all.timings.merge(others.timings);
    for (auto& [problem, plans] : others.barred) all.barred[problem].merge(plans);
    const nlohmann::json json{{"format", kFormat},       {"device", machine_.device},
                              {"cudnn", machine_.cudnn}, {"plans", all.plans},
                              {"barred", all.barred},    {"timings", all.timings}};
    // Ranks of many nodes write at the same time, so each writes its own file and renames it.
    const std::filesystem::path temporary =
        file_.string() + fmt::format(".{:08x}{:08x}", std::random_device()(), getpid());
    std::error_code failure;
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path(), failure);
    std::ofstream stream(temporary);
    stream << json.dump(1) << '\n';
    stream.close();
    if (stream) std::filesystem::rename(temporary, file_, failure);
    if (!stream || failure) {
        warning_ = fmt::format("{}: not written: {}", file_.string(),
                               failure ? failure.message() : "no space or no permission");
        std::filesystem::remove(temporary, failure);
        return;
    }
    changed_ = false;
}

}  // namespace hpcai::device::cuda
