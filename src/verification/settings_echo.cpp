// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

ParameterRecord as_configured(const config::Config& config, const std::string& key) {
    const std::size_t dot = key.find('.');
    const config::Key* row = config::find_key(key.substr(0, dot), key.substr(dot + 1));
    return {key, config::value_text(config, key), row != nullptr ? row->meaning : ""};
}

/// How the ranks of a group split a step; what only some modes have is left out of the others.
void add_parallel(const config::Config& config, const plan::Layout& layout,
                  std::vector<ParameterRecord>& parameters) {
    parameters.push_back({"parallel.mode", config::value_text(config, "parallel.mode"),
                          "how the ranks of a group share a step"});
    if (layout.slices() > 1) {
        parameters.push_back({"parallel.data_degree", std::to_string(layout.data_degree()),
                              "ranks that share the samples of a batch"});
        parameters.push_back({"parallel.pipeline_degree", std::to_string(layout.stages),
                              "stages of the model, one after the other"});
        parameters.push_back({"parallel.model_degree", std::to_string(layout.parts),
                              "ranks that share the channels of each layer"});
    }
    if (config::has_pipeline(config.parallel)) {
        parameters.push_back({"parallel.micro_batches", std::to_string(layout.micro_batches),
                              "parts of a rank's samples, one after the other"});
    }
}

}  // namespace

std::vector<ParameterRecord> echo_settings(const config::Config& config, const plan::Layout& layout,
                                           const std::string& precision) {
    constexpr std::array kKeys{
        "workload.model",
        "workload.image_size",
        "workload.epochs",
        "training.batch_size",
        "training.optimizer",
        "training.learning_rate",
        "training.schedule",
        "bagging.sampler",
        "bagging.aggregation",
        "communication.backend",
        "communication.algorithm",
        "communication.precision",
        "run.seed",
    };
    std::vector<ParameterRecord> parameters{
        {"bagging.M", std::to_string(layout.groups), "base models trained at the same time"},
        {"bagging.P_degree", std::to_string(layout.degree), "ranks that train one base model"}};
    add_parallel(config, layout, parameters);
    parameters.push_back({"training.precision", precision, "precision in force"});
    if (const auto samples = config.training.batch_norm_samples) {
        parameters.push_back({"training.batch_norm_samples", std::to_string(*samples),
                              "samples that share a BatchNorm statistic"});
    }
    for (const char* key : kKeys) parameters.push_back(as_configured(config, key));
    return parameters;
}

void echo_facts(const StagingRecord& staging, std::int64_t bad_samples,
                std::vector<ParameterRecord>& parameters) {
    const auto text = [](std::int64_t bytes) {
        return format_bytes(static_cast<std::uint64_t>(bytes));
    };
    if (staging.scope != "none") {
        parameters.push_back(
            {"staged", text(staging.copied_bytes),
             fmt::format("copied to the nodes' disks; {} were there", text(staging.reused_bytes))});
    }
    if (bad_samples > 0) {
        parameters.push_back({"bad samples", std::to_string(bad_samples),
                              "damaged files met by the groups; their logs name them"});
    }
}

}  // namespace hpcai::verification
