// SPDX-License-Identifier: Apache-2.0
#include "consistency.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>
#include <hpcai/config/keys.hpp>

#include "document.hpp"

namespace hpcai::config {
namespace {

class Checker {
public:
    Checker(const Config& config, const PlaceOf& place_of) : config_(config), place_of_(place_of) {}

    void check(bool consistent, const std::string& full_name, const std::string& expected) const {
        if (consistent) return;
        const std::string value = value_text(config_, full_name);
        const bool is_default = value == value_text(Config{}, full_name);
        throw Error(ExitCode::usage,
                    fmt::format("{}: {}: expected {}, got {}{}", place_of_(full_name), full_name,
                                expected, in_quotes(value), is_default ? ", the default" : ""));
    }

    void check_data() const {
        const DataConfig& data = config_.data;
        const auto channels = static_cast<std::size_t>(config_.workload.channels);
        const std::string per_channel =
            fmt::format("{} values, one for each of workload.channels", channels);
        check(data.mean.size() == channels, "data.mean", per_channel);
        check(data.standard_deviation.size() == channels, "data.standard_deviation", per_channel);
        if (data.kind == DataKind::image_folder) {
            const std::string folder = "a folder, as data.kind is image_folder";
            check(!data.path.empty(), "data.path", folder);
            check(!data.validation_path.empty(), "data.validation_path", folder);
            check(channels == 3, "workload.channels", "3, as data.kind is image_folder");
        } else {
            check(data.resident_mib == 0, "data.resident_mib", "0, as data.kind is synthetic");
            check(data.synthetic_samples >= config_.training.batch_size, "data.synthetic_samples",
                  fmt::format("at least training.batch_size, which is {}",
                              config_.training.batch_size));
        }
    }

    void check_batch() const {
        const TrainingConfig& training = config_.training;
        if (config_.bagging.degree) {
            check(training.batch_size % *config_.bagging.degree == 0, "training.batch_size",
                  fmt::format("a multiple of bagging.P_degree, which is {}",
                              *config_.bagging.degree));
        }
        if (training.batch_norm_samples) {
            check(
                training.batch_size % *training.batch_norm_samples == 0,
                "training.batch_norm_samples",
                fmt::format("a divisor of training.batch_size, which is {}", training.batch_size));
        }
    }

    void check_schedule() const {
        const TrainingConfig& training = config_.training;
        const std::vector<int>& epochs = training.schedule_epochs;
        const bool increasing = std::adjacent_find(epochs.begin(), epochs.end(),
                                                   std::greater_equal<>()) == epochs.end();
        check(increasing, "training.schedule_epochs", "increasing epochs");
        check(training.warmup_epochs < config_.workload.epochs, "training.warmup_epochs",
              fmt::format("less than workload.epochs, which is {}", config_.workload.epochs));
        check(!training.nesterov || training.momentum > 0, "training.momentum",
              "a number above 0, as training.nesterov is true");
    }

private:
    const Config& config_;
    const PlaceOf& place_of_;
};

}  // namespace

void check_consistency(const Config& config, const PlaceOf& place_of) {
    const Checker checker(config, place_of);
    checker.check_data();
    checker.check_batch();
    checker.check_schedule();
}

}  // namespace hpcai::config
