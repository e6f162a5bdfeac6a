// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <hpcai/report/flight.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/report/launch.hpp>
#include <hpcai/report/progress.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/storage/strict_json.hpp>

#include "flight_fields.hpp"
#include "launch_fields.hpp"
#include "progress_fields.hpp"
#include "repetitions_fields.hpp"

namespace hpcai::report {
namespace {

using nlohmann::json;
using Place = storage::JsonPlace;

template <std::integral T>
void read(const json& in, const Place& place, T& value) {
    constexpr std::int64_t lowest = std::is_unsigned_v<T> ? 0 : std::numeric_limits<T>::min();
    constexpr auto highest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    const bool fits = in.is_number_unsigned()
                          ? in.get<std::uint64_t>() <= highest
                          : in.is_number_integer() && in.get<std::int64_t>() >= lowest;
    if (!fits) place.fail(fmt::format("an integer from {} to {}", lowest, highest), in);
    value = in.get<T>();
}

void read(const json& in, const Place& place, bool& value) {
    if (!in.is_boolean()) place.fail("true or false", in);
    value = in.get<bool>();
}

void read(const json& in, const Place& place, std::string& value) {
    if (!in.is_string()) place.fail("a text", in);
    value = in.get<std::string>();
}

void read(const json& in, const Place& place, double& value) {
    if (!in.is_number() && !in.is_null()) place.fail("a number or null", in);
    value = in.is_null() ? std::numeric_limits<double>::quiet_NaN() : in.get<double>();
}

void read(const json& in, const Place& place, Status& value) {
    const auto* row = std::ranges::find_if(
        kStatuses, [&](const StatusRow& candidate) { return in == candidate.word; });
    if (row == kStatuses.end()) place.fail("VALID, INVALID, PARTIAL or CUSTOM", in);
    value = row->status;
}

void read(const json& in, const Place& place, ProgressState& value) {
    const auto* row = std::ranges::find_if(
        kProgressStates, [&](const ProgressStateRow& candidate) { return in == candidate.word; });
    if (row == kProgressStates.end()) {
        place.fail("training, evaluating, finished, failed, stopped or unsaved", in);
    }
    value = row->state;
}

void read(const json& in, const Place& place, ExitCode& value) {
    int number = -1;
    read(in, place, number);
    if (number < static_cast<int>(ExitCode::ok) || number > static_cast<int>(ExitCode::mismatch)) {
        place.fail("an exit code from 0 to 10", in);
    }
    value = static_cast<ExitCode>(number);
}

void read(const json& in, const Place& place, std::map<std::string, std::string>& values) {
    if (!in.is_object()) place.fail("an object", in);
    for (const auto& [key, value] : in.items()) read(value, place.key(key), values[key]);
}

/// Takes one struct's keys from a JSON object.
class Reader {
public:
    Reader(const json& object, const Place& place) : object_(object), place_(place) {
        if (!object.is_object()) place.fail("an object", object);
    }

    template <typename T>
    void operator()(const std::string& key, T& value) const {
        read_value(member(key), place_.key(key), value);
    }

    void operator()(const std::string& key, Quantity& quantity) const {
        const json& in = member(key);
        read_quantity(in, place_.key(key), quantity);
        if (in.is_null()) (*this)(key + "_reason", quantity.reason);
    }

    void operator()(const std::string& key, std::vector<Quantity>& quantities) const {
        const json& in = list(key);
        quantities.resize(in.size());
        std::vector<std::string> reasons(in.size());
        const bool complete =
            std::ranges::none_of(in, [](const json& one) { return one.is_null(); });
        if (!complete) (*this)(key + "_reason", reasons);
        if (reasons.size() != in.size()) {
            place_.key(key + "_reason").fail(fmt::format("{} texts", in.size()), reasons);
        }
        for (std::size_t index = 0; index < in.size(); ++index) {
            read_quantity(in[index], place_.key(key).index(index), quantities[index]);
            quantities[index].reason = reasons[index];
        }
    }

private:
    static void read_quantity(const json& in, const Place& place, Quantity& quantity) {
        double value = 0;
        read(in, place, value);
        quantity.value = in.is_null() ? std::nullopt : std::optional(value);
    }

    template <typename T>
    static void read_value(const json& in, const Place& place, T& value) {
        if constexpr (requires(const Reader& fields) { describe(fields, value); }) {
            const Reader inner(in, place);
            describe(inner, value);
        } else {
            read(in, place, value);
        }
    }

    template <typename T>
    static void read_value(const json& in, const Place& place, std::vector<T>& values) {
        if (!in.is_array()) place.fail("a list", in);
        values.resize(in.size());
        for (std::size_t index = 0; index < in.size(); ++index) {
            read_value(in[index], place.index(index), values[index]);
        }
    }

    const json& member(const std::string& key) const {
        const auto found = object_.find(key);
        if (found == object_.end()) place_.key(key).fail("a value", "nothing");
        return *found;
    }

    const json& list(const std::string& key) const {
        const json& in = member(key);
        if (!in.is_array()) place_.key(key).fail("a list", in);
        return in;
    }

    const json& object_;
    Place place_;
};

void check_schema(const json& in, const Place& place, const std::string& expected) {
    const json schema = in.is_object() ? in.value("schema", json()) : json();
    if (schema != expected) place.key("schema").fail(fmt::format("\"{}\"", expected), schema);
}

void check_consistency(const RunRecord& record, const Place& place) {
    const VerdictRecord& verdict = record.verdict;
    const auto* row = std::ranges::find(kStatuses, verdict.status, &StatusRow::status);
    const bool invalid = verdict.status == Status::invalid;
    const bool failure =
        verdict.exit_code != ExitCode::ok && verdict.exit_code != ExitCode::partial;
    if (invalid ? !failure : verdict.exit_code != row->exit_code) {
        place.key("verdict.exit_code")
            .fail(fmt::format("one that {} has", row->word), static_cast<int>(verdict.exit_code));
    }
    const std::size_t groups = record.work.groups.size();
    const std::string expected = fmt::format("a list of {} groups, as in work.groups", groups);
    if (record.quality.members.size() != groups) {
        place.key("quality.members").fail(expected, record.quality.members.size());
    }
    if (record.training_digest.size() != groups) {
        place.key("training_digest").fail(expected, record.training_digest.size());
    }
}

/// Of which programs make a map of groups and nodes.
void check_topology(const TopologyRecord& topology, const Place& place) {
    const std::int64_t ranks = topology.ranks;
    if (ranks < 1 || std::cmp_not_equal(ranks, topology.map.size())) {
        place.key("ranks").fail(fmt::format("as many as map has, {}", topology.map.size()), ranks);
    }
    if (topology.groups < 1 || topology.degree < 1 ||
        std::int64_t{topology.groups} * topology.degree != ranks) {
        place.key("groups").fail("ranks / degree", topology.groups);
    }
    for (std::size_t rank = 0; rank < topology.map.size(); ++rank) {
        const int node = topology.map[rank].node;
        if (node >= 0 && node < ranks) continue;
        place.key("map").index(rank).key("node").fail(fmt::format("0 to {}", ranks - 1), node);
    }
}

/// Sums over groups must not hide one's counts behind another's.
void check_counts(const GroupResult& result, const Place& place) {
    const GroupRecord& record = result.record;
    for (const auto& [key, count] :
         {std::pair{"bad_samples", result.bad_samples},
          {"record.samples_drawn", record.samples_drawn},
          {"record.samples_trained", record.samples_trained},
          {"record.iterations", record.iterations},
          {"record.skipped_steps", record.skipped_steps},
          {"record.audit.passed", record.audit.passed},
          {"record.audit.diverged_at_step", record.audit.diverged_at_step}}) {
        if (count < 0) place.key(key).fail("0 or more", count);
    }
}

void require_positive(double value, const Place& place) {
    if (!(std::isfinite(value) && value > 0)) place.fail("a number above 0", value);
}

void require_positive(const Quantity& quantity, const Place& place) {
    if (quantity.value) require_positive(*quantity.value, place);
}

/// Predictions divide by these numbers.
void check_numbers(const RooflineRecord& record, const Place& place) {
    for (const auto& [key, value] : {std::pair{"ranks", record.ranks},
                                     {"nodes", record.nodes},
                                     {"ranks_of_fullest_node", record.ranks_of_fullest_node},
                                     {"threads", record.threads},
                                     {"cores", record.cores}}) {
        require_positive(value, place.key(key));
    }
    for (std::size_t i = 0; i < record.operations.size(); ++i) {
        const Place at = place.key("operations").index(i);
        require_positive(record.operations[i].flops, at.key("flops"));
        require_positive(record.operations[i].bytes, at.key("bytes"));
        require_positive(record.operations[i].flops_per_second, at.key("flops_per_second"));
    }
    for (std::size_t i = 0; i < record.bandwidths.size(); ++i) {
        require_positive(record.bandwidths[i].bytes_per_second,
                         place.key("bandwidths").index(i).key("bytes_per_second"));
    }
    for (std::size_t i = 0; i < record.all_reduce_fits.size(); ++i) {
        const Place at = place.key("all_reduce_fits").index(i);
        require_positive(record.all_reduce_fits[i].ranks, at.key("ranks"));
        require_positive(record.all_reduce_fits[i].bytes_per_second, at.key("bytes_per_second"));
        const Quantity& latency = record.all_reduce_fits[i].latency_seconds;
        if (latency.value && !(*latency.value >= 0)) {
            at.key("latency_seconds").fail("a number from 0 on", *latency.value);
        }
    }
    int samples = 0;
    for (std::size_t i = 0; i < record.calibration.points.size(); ++i) {
        const CalibrationPoint& point = record.calibration.points[i];
        const Place at = place.key("calibration.points").index(i);
        if (point.samples <= samples) {
            at.key("samples").fail(fmt::format("more than {}", samples), point.samples);
        }
        samples = point.samples;
        require_positive(point.step_seconds, at.key("step_seconds"));
        require_positive(point.summed_step_seconds, at.key("summed_step_seconds"));
    }
}

/// Energy is formed by differences of neighbours.
void check_counters(const std::vector<CounterRecord>& counters, const Place& place) {
    constexpr double kYear10000 = 253402300800.0;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        CounterReading before;
        for (std::size_t j = 0; j < counters[i].readings.size(); ++j) {
            const CounterReading& reading = counters[i].readings[j];
            const Place at = place.index(i).key("readings").index(j);
            if (!(reading.utc_seconds >= before.utc_seconds && reading.utc_seconds < kYear10000)) {
                at.key("utc_seconds").fail("a time not before the last one", reading.utc_seconds);
            }
            if (!(reading.value >= before.value && std::isfinite(reading.value))) {
                at.key("value").fail("a number not below the last one", reading.value);
            }
            before = reading;
        }
    }
}

}  // namespace

RooflineRecord roofline_from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    RooflineRecord record;
    check_schema(in, place, record.schema);
    const Reader fields(in, place);
    describe(fields, record);
    check_numbers(record, place);
    return record;
}

RunRecord from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    RunRecord record;
    check_schema(in, place, record.schema);
    const Reader fields(in, place);
    describe(fields, record);
    check_consistency(record, place);
    return record;
}

RepetitionsRecord repetitions_from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    RepetitionsRecord record;
    check_schema(in, place, record.schema);
    const Reader fields(in, place);
    describe(fields, record);
    return record;
}

LaunchRecord launch_from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    LaunchRecord launch;
    check_schema(in, place, launch.schema);
    const Reader fields(in, place);
    describe(fields, launch);
    check_topology(launch.topology, place.key("topology"));
    return launch;
}

ProgressRecord progress_from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    ProgressRecord progress;
    check_schema(in, place, progress.schema);
    const Reader fields(in, place);
    describe(fields, progress);
    constexpr std::int64_t kEndOfYear9999 =
        253'402'300'799;  // the last that a date has four digits
    if (progress.written_unix_seconds < 0 || progress.written_unix_seconds > kEndOfYear9999) {
        place.key("written_unix_seconds")
            .fail(fmt::format("an integer from 0 to {}", kEndOfYear9999),
                  in["written_unix_seconds"]);
    }
    return progress;
}

FlightRecord flight_from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    FlightRecord record;
    check_schema(in, place, record.schema);
    const Reader fields(in, place);
    describe(fields, record);
    return record;
}

GroupResult group_from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    GroupResult result;
    check_schema(in, place, result.schema);
    const Reader fields(in, place);
    describe(fields, result);
    check_counters(result.counters, place.key("counters"));
    check_counts(result, place);
    return result;
}

}  // namespace hpcai::report
