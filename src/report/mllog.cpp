// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <ctime>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/report/mllog.hpp>

namespace hpcai::report {
namespace {

using nlohmann::ordered_json;

/// Returns the milliseconds since 1970 of a time such as "2022-11-05T14:03:09Z".
std::int64_t milliseconds_of(const std::string& utc) {
    std::tm calendar{};
    const char* const end = strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &calendar);
    const std::time_t seconds = end == nullptr ? 0 : timegm(&calendar);
    // Rejects blanks and missing digits, which strptime accepts. fmt::gmtime also converts years
    // after 2262, which std::chrono's nanoseconds cannot represent.
    const bool is_exact = fmt::format("{:%FT%TZ}", fmt::gmtime(seconds)) == utc;
    require(end != nullptr && is_exact, ExitCode::data,
            "result.json: time.started_utc is \"{}\"; it must be UTC as 2022-11-05T14:03:09Z",
            printable(utc));
    return 1000 * std::int64_t{seconds};
}

/// A log whose clock starts at a given time and only advances.
class Log {
public:
    Log(std::int64_t start_milliseconds, int group) : now_(start_milliseconds), group_(group) {}

    /// Advances the clock by `seconds` if they are known and plausible.
    void advance(const Quantity& seconds) {
        constexpr double kMaxSeconds = 1e10;  // three centuries
        const double value = seconds.value.value_or(0);
        if (value > 0 && value < kMaxSeconds) now_ += std::llround(1000 * value);
    }

    void begin(const char* key, const ordered_json& metadata = {}) {
        add("INTERVAL_START", key, nullptr, metadata);
    }
    void end(const char* key, const ordered_json& metadata = {}) {
        add("INTERVAL_END", key, nullptr, metadata);
    }
    void point(const std::string& key, const ordered_json& value,
               const ordered_json& metadata = {}) {
        add("POINT_IN_TIME", key, value, metadata);
    }
    void point(const std::string& key, const Quantity& value, const ordered_json& metadata = {}) {
        const bool known = value.value && std::isfinite(*value.value);
        ordered_json full = metadata;
        if (!known) full["reason"] = value.reason.empty() ? "not measured" : value.reason;
        add("POINT_IN_TIME", key, known ? ordered_json(*value.value) : ordered_json(nullptr), full);
    }
    void point(const MllogSetting& setting) {
        if (setting.text.empty()) return point(setting.key, setting.value);
        point(setting.key, ordered_json(setting.text));
    }

    std::string take() { return std::move(text_); }

private:
    void add(const char* type, const std::string& key, const ordered_json& value,
             const ordered_json& metadata) {
        ordered_json merged{{"group", group_}};
        if (!metadata.is_null()) merged.update(metadata);
        const ordered_json line{{"namespace", ""}, {"time_ms", now_}, {"event_type", type},
                                {"key", key},      {"value", value},  {"metadata", merged}};
        text_ +=
            ":::MLLOG " + line.dump(-1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
    }

    std::int64_t now_;
    int group_;
    std::string text_;
};

/// Returns the devices of a group's ranks, such as "4 x cpu".
std::string platform(const RunRecord& record, int group) {
    std::map<std::string, int> devices;
    for (const PlaceRecord& place : record.topology.map) {
        if (place.group == group) ++devices[place.device];
    }
    std::string result;
    for (const auto& [device, count] : devices) {
        result += fmt::format("{}{} x {}", result.empty() ? "" : ", ", count, device);
    }
    return result;
}

void add_submission(const RunRecord& record, const GroupRecord& group, Log& log) {
    const Quantity none = no_value("not in the configuration");
    log.point("submission_benchmark", record.workload.model);
    log.point("submission_division", record.workload.level);
    log.point({"submission_org", none, record.submission.organization});
    log.point("submission_platform", platform(record, group.group));
    log.point("submission_status", none);
}

void add_settings(const RunRecord& record, const GroupRecord& group,
                  const std::vector<MllogSetting>& settings, Log& log) {
    log.point("seed", record.workload.seed);
    log.point("global_batch_size", record.workload.batch_size);
    log.point("train_samples", group.samples_drawn,
              {{"data_set_samples", record.workload.training_samples},
               {"sampler", record.workload.sampler}});
    log.point("eval_samples", record.workload.validation_samples);
    log.point("gradient_accumulation_steps", record.parallel.micro_batches);
    for (const MllogSetting& setting : settings) log.point(setting);
}

/// Adds the evaluation after `epoch`, which is counted from 1. It took `seconds`.
void add_evaluation(const RunRecord& record, int epoch, const Quantity& quality,
                    const Quantity& seconds, Log& log) {
    const ordered_json number{{"epoch_num", epoch}};
    log.begin("eval_start", number);
    log.advance(seconds);
    log.point("eval_accuracy", quality,
              {{"epoch_num", epoch}, {"metric", metric_name(record.quality.metric)}});
    log.end("eval_stop", number);
}

void add_epochs(const RunRecord& record, const GroupRecord& group, Log& log) {
    double known_seconds = 0;
    for (std::size_t epoch = 0; epoch < group.epoch_seconds.size(); ++epoch) {
        const ordered_json number{{"epoch_num", epoch + 1}};
        log.begin("epoch_start", number);
        log.advance({group.epoch_seconds[epoch], ""});
        log.end("epoch_stop", number);
        known_seconds += group.epoch_seconds[epoch];
        if (epoch + 1 == group.epoch_seconds.size())
            break;  // mllog() adds the evaluation after the last epoch
        // Evaluations between epochs are not in the training time, so the clock does not advance.
        for (const EpochQualityRecord& quality : group.quality_by_epoch) {
            if (quality.epoch == static_cast<int>(epoch) + 1)
                add_evaluation(record, quality.epoch, {quality.quality, ""}, {}, log);
        }
    }
    // The rest of the training time is that of audits between epochs and of an epoch that failed.
    log.advance({group.training_seconds.value.value_or(0) - known_seconds, ""});
}

}  // namespace

std::string mllog(const RunRecord& record, std::size_t group,
                  const std::vector<MllogSetting>& settings) {
    const GroupRecord& group_record = record.work.groups.at(group);
    Log log(milliseconds_of(record.time.started_utc), group_record.group);
    add_submission(record, group_record, log);
    log.begin("init_start");
    add_settings(record, group_record, settings, log);
    log.advance(record.time.startup_seconds);
    log.advance(record.time.staging_seconds);
    log.end("init_stop");
    log.begin("run_start");
    add_epochs(record, group_record, log);
    const std::vector<Quantity>& members = record.quality.members;
    if (group < members.size() && members[group].value)
        add_evaluation(record, static_cast<int>(group_record.epoch_seconds.size()), members[group],
                       group_record.evaluation_seconds, log);
    ordered_json status{{"status", group_record.failure.empty() ? "success" : "aborted"}};
    if (!group_record.failure.empty()) status["reason"] = group_record.failure;
    log.end("run_stop", status);
    return log.take();
}

}  // namespace hpcai::report
