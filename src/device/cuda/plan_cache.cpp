// SPDX-License-Identifier: Apache-2.0
#include "plan_cache.hpp"

#include <fstream>
#include <random>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace hpcai::device::cuda {
namespace {

constexpr int kFormat = 1;

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, Machine machine)
    : file_(std::move(file)), machine_(std::move(machine)) {
    plans_ = read();
}

std::string PlanCache::find(const std::string& problem) const {
    const auto at = plans_.find(problem);
    return at == plans_.end() ? "" : at->second;
}

void PlanCache::insert(const std::string& problem, const std::string& plan) {
    std::string& known = plans_[problem];
    changed_ = changed_ || known != plan;
    known = plan;
}

PlanCache::Plans PlanCache::read() {
    std::error_code ignored;
    if (file_.empty() || !std::filesystem::exists(file_, ignored)) return {};
    try {
        std::ifstream stream(file_);
        const auto json = nlohmann::json::parse(stream);
        const Machine machine{json.at("device"), json.at("cudnn")};
        if (json.at("format") == kFormat && machine == machine_) return json.at("plans");
        warning_ = fmt::format("{}: plans of {} with cuDNN {}, not used", file_.string(),
                               machine.device, machine.cudnn);
    } catch (const nlohmann::json::exception& error) {
        warning_ = fmt::format("{}: not a file of plans: {}", file_.string(), error.what());
    }
    return {};
}

void PlanCache::save() {
    if (file_.empty() || !changed_) return;
    Plans plans = plans_;
    plans.merge(read());
    const nlohmann::json json{{"format", kFormat},
                              {"device", machine_.device},
                              {"cudnn", machine_.cudnn},
                              {"plans", plans}};
    // Ranks of many nodes write at the same time, so each writes its own file and renames it.
    const std::filesystem::path part =
        file_.string() + fmt::format(".{:08x}{:08x}", std::random_device()(), getpid());
    std::error_code failure;
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path(), failure);
    std::ofstream stream(part);
    stream << json.dump(1) << '\n';
    stream.close();
    if (stream) std::filesystem::rename(part, file_, failure);
    if (!stream || failure) {
        warning_ = fmt::format("{}: not written: {}", file_.string(),
                               failure ? failure.message() : "no space or no permission");
        std::filesystem::remove(part, failure);
        return;
    }
    changed_ = false;
}

}  // namespace hpcai::device::cuda
