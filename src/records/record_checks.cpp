// SPDX-License-Identifier: Apache-2.0
#include "record_checks.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hpcai::records {
namespace {

constexpr std::int64_t kEndOfYear9999 = 253'402'300'799;  // Unix time
// The sum of a count up to this limit over fewer than 8 million groups fits in 64 bits.
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

void require_positive(double value, const Place& place) {
    if (!(std::isfinite(value) && value > 0)) place.fail("a number above 0", value);
}

void require_positive(const Quantity& quantity, const Place& place) {
    if (quantity.value) require_positive(*quantity.value, place);
}

/// Calls check(element, place of the element) for each element of a list.
template <typename Element, typename Check>
void for_each(const std::vector<Element>& list, const Place& place, const Check& check) {
    for (std::size_t i = 0; i < list.size(); ++i) check(list[i], place.index(i));
}

/// Checks that times and values of readings are in range and do not decrease.
void check_counters(const std::vector<CounterRecord>& counters, const Place& place) {
    for_each(counters, place, [](const CounterRecord& counter, const Place& at_counter) {
        CounterReading last;
        const auto check = [&last](const CounterReading& reading, const Place& at) {
            if (!(reading.utc_seconds >= last.utc_seconds &&
                  reading.utc_seconds < kEndOfYear9999 + 1)) {
                at.key("utc_seconds")
                    .fail("a time not before the previous one", reading.utc_seconds);
            }
            if (!(reading.value >= last.value && std::isfinite(reading.value))) {
                at.key("value").fail("a number not below the previous one", reading.value);
            }
            last = reading;
        };
        for_each(counter.readings, at_counter.key("readings"), check);
    });
}

}  // namespace

void check(const RunRecord& record, const Place& place) {
    const VerdictRecord& verdict = record.verdict;
    const ExitCode code = verdict.exit_code;
    const ExitCode finished = verdict.status == Status::partial ? ExitCode::partial : ExitCode::ok;
    const bool is_legal = verdict.status == Status::invalid
                              ? code != ExitCode::ok && code != ExitCode::partial
                              : code == finished;
    if (!is_legal) {
        place.key("verdict.exit_code")
            .fail(fmt::format("an exit code for verdict.status {}", word_of(verdict.status)),
                  static_cast<int>(code));
    }
    const std::size_t groups = record.work.groups.size();
    for (const auto& [key, size] : {std::pair{"quality.members", record.quality.members.size()},
                                    {"training_digest", record.training_digest.size()}}) {
        if (size == groups) continue;
        place.key(key).fail(fmt::format("the number of work.groups, {}", groups), size);
    }
}

void check(const LaunchRecord& launch, const Place& file) {
    const TopologyRecord& topology = launch.topology;
    const Place place = file.key("topology");
    const std::int64_t ranks = topology.ranks;
    if (ranks < 1 || std::cmp_not_equal(ranks, topology.map.size())) {
        place.key("ranks").fail(fmt::format("{}, the length of map", topology.map.size()), ranks);
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

void check(const GroupResult& result, const Place& place) {
    check_counters(result.counters, place.key("counters"));
    // A negative count would cancel the count of another group in a sum.
    const GroupRecord& record = result.record;
    for (const auto& [key, count] :
         {std::pair{"bad_samples", result.bad_samples},
          {"decoder_warnings", result.decoder_warnings},
          {"record.samples_drawn", record.samples_drawn},
          {"record.samples_trained", record.samples_trained},
          {"record.iterations", record.iterations},
          {"record.skipped_steps", record.skipped_steps},
          {"record.audit.passed", record.audit.passed},
          {"record.audit.diverged_at_step", record.audit.diverged_at_step}}) {
        if (count < 0 || count > kMaxCount)
            place.key(key).fail(fmt::format("0 to {}", kMaxCount), count);
    }
}

/// Checks the numbers from which `hpcai500 plan` predicts times.
void check(const RooflineRecord& record, const Place& place) {
    for (const auto& [key, value] : {std::pair{"ranks", record.ranks},
                                     {"nodes", record.nodes},
                                     {"ranks_of_fullest_node", record.ranks_of_fullest_node},
                                     {"threads", record.threads},
                                     {"cores", record.cores}}) {
        require_positive(value, place.key(key));
    }
    for_each(record.operations, place.key("operations"), [](const auto& rate, const Place& at) {
        require_positive(rate.flops, at.key("flops"));
        require_positive(rate.bytes, at.key("bytes"));
        require_positive(rate.flops_per_second, at.key("flops_per_second"));
    });
    for_each(record.bandwidths, place.key("bandwidths"), [](const auto& rate, const Place& at) {
        require_positive(rate.bytes_per_second, at.key("bytes_per_second"));
    });
    for_each(record.all_reduce_fits, place.key("all_reduce_fits"),
             [](const auto& rate, const Place& at) {
                 require_positive(rate.ranks, at.key("ranks"));
                 require_positive(rate.bytes_per_second, at.key("bytes_per_second"));
                 const auto latency = rate.latency_seconds.value;
                 if (latency && !(*latency >= 0)) {
                     at.key("latency_seconds").fail("a number of at least 0", *latency);
                 }
             });
    int samples = 0;
    for_each(record.calibration.points, place.key("calibration.points"),
             [&samples](const auto& point, const Place& at) {
                 if (point.samples <= samples) {
                     at.key("samples").fail(fmt::format("more than {}", samples), point.samples);
                 }
                 samples = point.samples;
                 require_positive(point.step_seconds, at.key("step_seconds"));
                 require_positive(point.summed_step_seconds, at.key("summed_step_seconds"));
             });
}

void check(const ProgressRecord& progress, const Place& place) {
    const std::int64_t written = progress.written_unix_seconds;
    if (written < 0 || written > kEndOfYear9999) {
        place.key("written_unix_seconds")
            .fail(fmt::format("an integer from 0 to {}", kEndOfYear9999), written);
    }
}

}  // namespace hpcai::records
