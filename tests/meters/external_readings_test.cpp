// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/meters/external_readings.hpp>
#include <hpcai/meters/utc.hpp>

#include "fake_sysfs.hpp"

namespace hpcai::meters {
namespace {

MeteredEnergy integrate_text(const std::string& text, const Phase& phase,
                             const IntegrationSettings& settings = {}) {
    return integrate(parse_readings(text, "pdu.csv"), phase, settings);
}

std::string refusal_of(const std::string& text) {
    return message_of([&] { parse_readings(text, "pdu.csv"); });
}

TEST(Utc, IsWrittenAndReadToTheMillisecond) {
    EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(utc_text(1667656989.25), "2022-11-05T14:03:09.250Z");
    EXPECT_EQ(utc_text(951782399.9999), "2000-02-28T23:59:59.999Z");
    EXPECT_EQ(utc_text(253402300799.5), "9999-12-31T23:59:59.500Z");
    for (const double seconds : {0.0, 1667656989.25, 253402300799.5}) {
        EXPECT_EQ(parse_utc(utc_text(seconds)), seconds);
    }
    for (const double none : {-1.0, 253402300800.0, std::nan(""), 1e300}) {
        EXPECT_EQ(utc_text(none), "") << none;
    }
}

TEST(Utc, IsReadInBothFormsAndInNoOther) {
    EXPECT_EQ(parse_utc("2022-11-05T14:03:09Z"), 1667656989);
    EXPECT_EQ(parse_utc("2022-11-05T14:03:09.123456789Z"), 1667656989.123456789);
    EXPECT_EQ(parse_utc("1667656989.5"), 1667656989.5);
    EXPECT_EQ(parse_utc("2000-02-29T00:00:00Z"), 951782400);
    for (const char* text :
         {"", "now", "2022-11-05", "2022-11-05T14:03:09", "2022-11-05 14:03:09Z",
          "2022-11-05T14:03:09+01:00", "2022-02-30T00:00:00Z", "2022-11-05T24:00:00Z",
          "2022-11-05T14:03:09.Z", "-5", "nan", "1e400", "12 ", "2022-11-05T14:03:09Z ",
          "2022-11--5T14:03:09Z", "1969-12-31T23:59:59Z"}) {
        EXPECT_FALSE(parse_utc(text).has_value()) << text;
    }
}

TEST(ExternalMeter, IntegratesItsWattsByTrapezoidsBetweenTheEndsOfThePhase) {
    const std::string text = "time,watts\n0,100\n10,100\n20,200\n30,0\n";
    const MeteredEnergy energy = integrate_text(text, {5, 25});
    EXPECT_DOUBLE_EQ(energy.joules, 5 * 100.0 + 10 * 150.0 + 5 * 150.0);
    EXPECT_DOUBLE_EQ(energy.average_watts, energy.joules / 20);
    EXPECT_EQ(energy.readings, 4U);
    EXPECT_DOUBLE_EQ(energy.longest_gap_seconds, 10);
    EXPECT_DOUBLE_EQ(integrate_text(text, {12, 13}).joules, 125);
}

TEST(ExternalMeter, TakesTheDifferenceOfItsJoules) {
    const std::string text =
        "time,joules\r\n1970-01-01T00:00:00Z,1000\r\n1970-01-01T00:00:10Z,3000\r\n"
        "1970-01-01T00:00:20.0Z,3500";
    const MeteredEnergy energy = integrate_text(text, {5, 15});
    EXPECT_DOUBLE_EQ(energy.joules, 1000 + 250);
    EXPECT_DOUBLE_EQ(energy.average_watts, 125);
}

TEST(ExternalMeter, HasAClockWithACorrectableOffset) {
    const std::string text = "time,watts\n100,50\n110,50\n";
    EXPECT_DOUBLE_EQ(integrate_text(text, {0, 10}, {.clock_offset_seconds = -100}).joules, 500);
    EXPECT_NE(message_of([&] {
                  integrate_text(text, {0, 10});
              })
                  .find("pdu.csv: expected readings over the core phase from "
                        "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:10.000Z"),
              std::string::npos);
}

TEST(ExternalMeter, MustCoverThePhaseOnBothSides) {
    const std::string text = "time,watts\n10,50\n20,50\n";
    for (const Phase& phase : {Phase{9.9, 15}, Phase{15, 20.1}, Phase{30, 40}, Phase{1, 2}}) {
        EXPECT_NE(message_of([&] { integrate_text(text, phase); }).find("expected readings over"),
                  std::string::npos);
    }
    EXPECT_DOUBLE_EQ(integrate_text(text, {10, 20}).joules, 500);
    EXPECT_NE(message_of([&] {
                  integrate_text(text, {15, 15});
              }).find("has no length"),
              std::string::npos);
}

TEST(ExternalMeter, MayHaveGapsOnlyOutsideThePhase) {
    const std::string text = "time,watts\n0,50\n100,50\n105,50\n111,50\n300,50\n";
    EXPECT_DOUBLE_EQ(integrate_text(text, {101, 110}).joules, 450);
    EXPECT_EQ(message_of([&] {
                  integrate_text(text, {101, 110}, {.longest_gap_seconds = 5.5});
              }),
              "pdu.csv:5: 6.000 s after the previous reading; expected at most 5.5 s in the core "
              "phase");
    EXPECT_NE(message_of([&] {
                  integrate_text(text, {99, 110});
              }).find("pdu.csv:3: 100.000 s"),
              std::string::npos);
}

TEST(ExternalMeter, IsRejectedWithFileAndLineForAnInvalidReading) {
    struct Case {
        std::string text, message;
    };
    const std::vector<Case> cases{
        {"", "pdu.csv:1: expected the header \"time,watts\" or \"time,joules\", found \"\""},
        {"time;watts\n", "pdu.csv:1: expected the header"},
        {"Time,Watts\n1,2\n2,2\n", "found \"Time,Watts\""},
        {"time,watts\n", "pdu.csv: expected two readings or more after the header, found 0"},
        {"time,watts\n1,5\n", "found 1"},
        {"time,watts\n1,5\n\n2,5\n", "pdu.csv:3: expected a time and a number with a comma"},
        {"time,watts\n1,5\n2\n", "pdu.csv:3: expected a time and a number"},
        {"time,watts\nyesterday,5\n", "pdu.csv:2: time: expected UTC as 2026-11-05T14:03:09.25Z"},
        {"time,watts\n1,5,7\n", "pdu.csv:2: watts: expected a number from 0 to"},
        {"time,watts\n1,-5\n", "pdu.csv:2: watts"},
        {"time,watts\n1,nan\n", "pdu.csv:2: watts"},
        {"time,watts\n1,inf\n", "pdu.csv:2: watts"},
        {"time,watts\n1,1e99\n", "pdu.csv:2: watts"},
        {"time,watts\n1,5 W\n", "pdu.csv:2: watts"},
        {"time,watts\n1,\n", "pdu.csv:2: watts"},
        {"time,watts\n1,5\n1,6\n", "pdu.csv:3: time: expected a time after that of line 2"},
        {"time,watts\n2,5\n1,6\n", "pdu.csv:3: time: expected a time after that of line 2"},
        {"time,joules\n1,5\n2,4\n", "pdu.csv:3: joules: expected at least the value of line 2"},
        {"time,watts\n1,\x1b[2J\n", "found \"\\x1b[2J\""},
        {"time,watts\n" + std::string(5000, '9') + ",1\n", "999...\""},
    };
    for (const Case& one : cases) {
        EXPECT_NE(refusal_of(one.text).find(one.message), std::string::npos)
            << refusal_of(one.text) << " instead of " << one.message;
    }
}

}  // namespace
}  // namespace hpcai::meters
