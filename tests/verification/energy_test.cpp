// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

constexpr const char* kGpu = "nvml:GPU-1";
constexpr const char* kCpu = "rapl:package-0";
constexpr const char* kSent = "net:eth0:sent";
constexpr const char* kReceived = "net:eth0:received";

CounterRecord readings(const std::string& host, const std::string& name,
                       std::vector<CounterReading> of) {
    return {host, name, name.starts_with("net") ? "B" : "J", "", std::move(of)};
}

CounterRecord failure(const std::string& host, const std::string& name, const std::string& why) {
    return {host, name, "J", why, {}};
}

Quantity growth_of(const std::vector<CounterRecord>& records) {
    std::vector<const CounterRecord*> pointers;
    for (const CounterRecord& one : records) pointers.push_back(&one);
    return growth(pointers);
}

/// Returns a group that trained 10 steps on `host` in these seconds, with further counters.
GroupResult group(const std::string& host, double begin, double end,
                  std::vector<CounterRecord> counters) {
    GroupResult result;
    result.record.iterations = 10;
    result.record.training_seconds = {end - begin, ""};
    result.counters = std::move(counters);
    result.counters.insert(result.counters.begin(), steps_counter(host, begin, result.record));
    return result;
}

/// Returns a run of one rank on each host; group and node have the host's number.
RunRecord run_on(const std::vector<std::string>& hosts) {
    RunRecord record;
    for (int rank = 0; const std::string& host : hosts) {
        record.topology.map.push_back({rank, rank, 0, rank, 0, 1, host, "cpu"});
        ++rank;
    }
    record.scores.vflops = {6000, ""};
    return record;
}

RunRecord derived(const std::vector<std::string>& hosts, const std::vector<GroupResult>& groups,
                  const config::RunConfig& run = {}) {
    RunRecord record = run_on(hosts);
    derive_energy(run, groups, record);
    return record;
}

TEST(Growth, OfOneGroupIsFromItsFirstReadingToItsLast) {
    EXPECT_EQ(growth_of({readings("a", kGpu, {{0, 100}, {5, 130}, {10, 180}})}).value, 80);
    EXPECT_EQ(growth_of({readings("a", kGpu, {{0, 100}})}).value, 0);
}

TEST(Growth, CountsEveryJouleOfTwoGroupsOnANodeOnce) {
    const CounterRecord early = readings("a", kGpu, {{0, 100}, {10, 200}});
    const CounterRecord late = readings("a", kGpu, {{4, 140}, {8, 180}, {16, 340}});
    EXPECT_DOUBLE_EQ(*growth_of({early, late}).value, 240);
    EXPECT_DOUBLE_EQ(*growth_of({late, early}).value, 240);
    const CounterRecord within = readings("a", kGpu, {{2, 120}, {3, 130}});
    EXPECT_DOUBLE_EQ(*growth_of({early, within}).value, 100);
    EXPECT_DOUBLE_EQ(*growth_of({within, early, early, late}).value, 240);
}

TEST(Growth, OfPowerDoesNotDependOnWhereEachGroupBeganToIntegrate) {
    const CounterRecord early = readings("a", "nvml-power:GPU-1", {{0, 0}, {10, 100}});
    const CounterRecord late = readings("a", "nvml-power:GPU-1", {{5, 0}, {15, 100}});
    EXPECT_DOUBLE_EQ(*growth_of({early, late}).value, 150);
}

TEST(Growth, ContinuesWhereOneGroupHasSeenTheCounterWrapAndAnotherHasNot) {
    const CounterRecord wrapped = readings("a", kCpu, {{0, 990}, {10, 1090}});
    const CounterRecord raw = readings("a", kCpu, {{5, 40}, {15, 140}});
    EXPECT_DOUBLE_EQ(*growth_of({wrapped, raw}).value, 150);
}

TEST(Growth, IsUnknownIfNoGroupReadForSomeTimeOrOneCouldNot) {
    const CounterRecord early = readings("a", kGpu, {{0, 0}, {10, 100}});
    const CounterRecord later = readings("a", kGpu, {{11, 110}, {20, 200}});
    EXPECT_EQ(growth_of({early, later}).reason, "no group read the counter for some time");
    EXPECT_EQ(growth_of({early, failure("a", kGpu, "gone")}).reason, "gone");
    EXPECT_EQ(growth_of({early, readings("a", kGpu, {})}).reason, "the counter was not read");
}

TEST(Energy, IsTheSumOfAllMetersOverTheCorePhase) {
    const RunRecord record =
        derived({"a", "b"}, {group("a", 1000, 1010,
                                   {readings("a", kGpu, {{1000, 0}, {1010, 500}}),
                                    readings("a", kCpu, {{1000, 70}, {1010, 170}})}),
                             group("b", 1002, 1014,
                                   {readings("b", kGpu, {{1002, 0}, {1014, 900}}),
                                    readings("b", kCpu, {{1002, 0}, {1014, 180}})})});
    const EnergyRecord& energy = record.energy;
    EXPECT_EQ(energy.joules.value, 500 + 100 + 900 + 180);
    EXPECT_EQ(energy.average_watts.value, 1680 / 14.0);
    EXPECT_EQ(record.scores.vflops_per_watt.value, 6000 / 120.0);
    EXPECT_EQ(energy.source, "NVML and RAPL");
    EXPECT_EQ(energy.core_begin_utc, "1970-01-01T00:16:40.000Z");
    EXPECT_EQ(energy.core_end_utc, "1970-01-01T00:16:54.000Z");
    EXPECT_NE(energy.level.find("not Level 1"), std::string::npos);
    ASSERT_EQ(energy.meters.size(), 4U);
    EXPECT_EQ(energy.meters[0], (MeterRecord{"a", kGpu, {500, ""}}));
    EXPECT_EQ(energy.meters[3], (MeterRecord{"b", kCpu, {180, ""}}));
}

TEST(Energy, HasNoAveragePowerIfTheClocksOfTheHostsDiffer) {
    for (const double ahead : {4.0, 6.0, -6.0, -3600.0}) {
        const double begin = 1000 + ahead, end = begin + 100;
        const RunRecord record = derived(
            {"a", "b"}, {group("a", 1000, 1100, {readings("a", kGpu, {{1000, 0}, {1100, 500}})}),
                         group("b", begin, end, {readings("b", kGpu, {{begin, 0}, {end, 900}})})});
        const bool agree = std::abs(ahead) < 5;
        EXPECT_EQ(record.energy.joules.value, 1400) << "each node's by its own clock";
        EXPECT_EQ(record.energy.average_watts.value.has_value(), agree) << ahead;
        EXPECT_EQ(record.energy.core_begin_utc.empty(), !agree) << ahead;
        if (agree) continue;
        EXPECT_TRUE(
            record.energy.average_watts.reason.starts_with("the clocks of the hosts differ"));
        EXPECT_EQ(record.scores.vflops_per_watt.reason, record.energy.average_watts.reason);
    }
}

TEST(Energy, OfTwoGroupsOnOneNodeIsNotTheirSum) {
    const CounterRecord same = readings("a", kGpu, {{1000, 0}, {1010, 500}});
    const RunRecord record =
        derived({"a"}, {group("a", 1000, 1010, {same}), group("a", 1000, 1010, {same})});
    EXPECT_EQ(record.energy.joules.value, 500);
}

TEST(Energy, IsUnknownIfANodeLacksAMeterThatOthersHave) {
    const GroupResult with = group("a", 1000, 1010, {readings("a", kGpu, {{1000, 0}, {1010, 5}})});
    const RunRecord lacking = derived({"a", "b"}, {with, group("b", 1000, 1010, {})});
    EXPECT_FALSE(lacking.energy.joules.value);
    EXPECT_EQ(lacking.energy.joules.reason, "no readings of NVML on b");
    EXPECT_EQ(lacking.energy.average_watts.reason, lacking.energy.joules.reason);
    EXPECT_EQ(lacking.scores.vflops_per_watt.reason, lacking.energy.joules.reason);
    ASSERT_EQ(lacking.energy.meters.size(), 1U);
    EXPECT_EQ(lacking.energy.meters[0].joules.value, 5);
    EXPECT_EQ(lacking.energy.source, "NVML");

    const RunRecord failed =
        derived({"a", "b"}, {with, group("b", 1000, 1010, {failure("b", kGpu, "fell off")})});
    EXPECT_EQ(failed.energy.joules.reason, "nvml:GPU-1 of b: fell off");
}

TEST(Energy, OmitsAKindOfMeterThatNoNodeCanRead) {
    const RunRecord record =
        derived({"a"}, {group("a", 1000, 1010,
                              {readings("a", kGpu, {{1000, 0}, {1010, 500}}),
                               failure("a", kCpu, "energy_uj: Permission denied (EACCES)")})});
    EXPECT_EQ(record.energy.joules.value, 500);
    EXPECT_EQ(record.energy.source, "NVML");
    EXPECT_EQ(record.energy.method.find("RAPL"), std::string::npos);
    ASSERT_EQ(record.energy.meters.size(), 2U);
    EXPECT_EQ(record.energy.meters[1].joules.reason, "energy_uj: Permission denied (EACCES)");
}

TEST(Energy, ReportsWhyThereIsNone) {
    const auto reason = [](const RunRecord& record) {
        EXPECT_FALSE(record.energy.joules.value);
        EXPECT_EQ(record.energy.source, "");
        EXPECT_EQ(record.energy.level, "");
        return record.energy.joules.reason;
    };
    EXPECT_EQ(reason(derived({"a"}, {group("a", 0, 1, {})},
                             config::RunConfig{.meters = config::Meters::none})),
              "run.meters is none");
    EXPECT_EQ(reason(derived({"a"}, {group("a", 0, 1, {failure("a", "rapl", "no powercap")})})),
              "rapl of a: no powercap");
    GroupResult failed;
    failed.record.failure = "out of memory";
    EXPECT_EQ(reason(derived({"a"}, {failed})), "no group finished");
    EXPECT_EQ(derived({"a"}, {failed}).energy.core_begin_utc, "");
}

TEST(Energy, IsUnknownWithEvaluationsBetweenTheSteps) {
    const RunRecord record = derived({"a"}, {group("a", 1000, 1010, {})}, {.evaluate_epochs = 2});
    EXPECT_EQ(record.energy.core_begin_utc, "");
    EXPECT_EQ(record.energy.core_end_utc, "");
    EXPECT_NE(record.energy.joules.reason.find("run.evaluate_epochs"), std::string::npos);
    EXPECT_NE(record.communication.counted_sent_bytes.reason.find("run.evaluate_epochs"),
              std::string::npos);
}

TEST(Energy, IsUnknownIfNoProgramReadTheWholeTraining) {
    const GroupResult whole = group("a", 0, 10, {readings("a", kGpu, {{0, 0}, {10, 500}})});
    GroupResult was_resumed = whole;
    was_resumed.record.continuations = {{4, "2022-11-06T00:00:00Z"}};
    const RunRecord record = derived({"a"}, {whole, was_resumed});
    EXPECT_FALSE(record.energy.joules.value);
    EXPECT_EQ(record.energy.joules.reason,
              "a group was resumed: no launch read the meters in all its steps");
    EXPECT_EQ(record.communication.counted_sent_bytes.reason, record.energy.joules.reason);
    EXPECT_TRUE(record.energy.meters.empty());
    EXPECT_TRUE(derived({"a"}, {whole}).energy.joules.value);
}

TEST(Energy, OmitsTheReadingsOfFailedGroups) {
    GroupResult failed = group("a", 990, 1020, {readings("a", kGpu, {{990, 0}, {1020, 30000}})});
    failed.record.failure = "out of memory";
    const RunRecord record = derived(
        {"a"}, {failed, group("a", 1000, 1010, {readings("a", kGpu, {{1000, 0}, {1010, 500}})})});
    EXPECT_EQ(record.energy.joules.value, 500);
}

TEST(Energy, IsUnknownIfNodesHaveTheSameName) {
    const CounterRecord one = readings("a", kGpu, {{1000, 0}, {1010, 500}});
    const RunRecord record = derived({"a", "a"}, {group("a", 1000, 1010, {one})});
    EXPECT_EQ(record.energy.joules.reason, "topology.map has several nodes called a");
    EXPECT_EQ(record.communication.counted_sent_bytes.reason,
              "topology.map has several nodes called a");
}

TEST(InterfaceBytes, AreSummedOverNodesWhereAllAreKnown) {
    const auto on = [](const std::string& host, double sent) {
        return group(host, 1000, 1010,
                     {readings(host, kSent, {{1000, 7}, {1010, 7 + sent}}),
                      readings(host, kReceived, {{1000, 0}, {1010, 3}})});
    };
    const RunRecord record = derived({"a", "b"}, {on("a", 100), on("b", 50)});
    EXPECT_EQ(record.communication.counted_sent_bytes.value, 150);
    ASSERT_EQ(record.communication.interfaces.size(), 2U);
    EXPECT_EQ(record.communication.interfaces[1],
              (InterfaceRecord{"b", "net:eth0", {50, ""}, {3, ""}}));

    GroupResult appeared = on("b", 50);
    appeared.counters.push_back(failure("b", "net:eth1:sent", "it was not there"));
    const RunRecord unknown = derived({"a", "b"}, {on("a", 100), appeared});
    EXPECT_EQ(unknown.communication.counted_sent_bytes.reason, "net:eth1 of b: it was not there");
    EXPECT_EQ(derived({"a", "b"}, {on("a", 1)}).communication.counted_sent_bytes.reason,
              "no counter of an interface on b");
    EXPECT_EQ(
        derived({"a"}, {group("a", 0, 1, {})}, config::RunConfig{.meters = config::Meters::none})
            .communication.counted_sent_bytes.reason,
        "run.meters is none");
}

TEST(StepsCounter, GoesFromTheStartOfTheClockToTheLastStep) {
    GroupRecord record;
    record.iterations = 12;
    record.training_seconds = {2.5, ""};
    const CounterRecord steps = steps_counter("a", 1000, record);
    EXPECT_EQ(steps.name, kStepsCounter);
    EXPECT_EQ(steps.readings, (std::vector<CounterReading>{{1000, 0}, {1002.5, 12}}));
}

}  // namespace
}  // namespace hpcai::verification
