// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/training/flight_recorder.hpp>

namespace hpcai::training {
namespace {

/// A recorder whose clock advances by a second each time it is read.
struct Flight {
    double seconds = 0;
    FlightRecorder recorder{[this] { return ++seconds; }};

    FlightRecord record() const {
        FlightRecord found;
        recorder.fill_record(found);
        return found;
    }
};

TEST(FlightRecorder, HasPhasesAndAllReducesInTheOrderInWhichTheyBegan) {
    Flight flight;
    flight.recorder.enter("forward");           // 1
    flight.recorder.enter("backward");          // 2
    flight.recorder.begin_all_reduce(1, 4096);  // 3
    flight.recorder.begin_all_reduce(0, 64);    // 4
    flight.recorder.end_all_reduce(1);          // 5
    flight.recorder.enter("communication");     // 6
    const FlightRecord record = flight.record();
    EXPECT_EQ(record.all_reduces_started, 2);
    EXPECT_EQ(record.all_reduces_finished, 1);
    const Quantity open{std::nullopt, "has not ended"};
    const std::vector<FlightEvent> expected{{0, "forward", 0, 1, {2, ""}},
                                            {0, "backward", 0, 2, {6, ""}},
                                            {0, "sum 1", 4096, 3, {5, ""}},
                                            {0, "sum 0", 64, 4, open},
                                            {0, "communication", 0, 6, open}};
    EXPECT_EQ(record.events, expected);
}

TEST(FlightRecorder, CountsEventsInTheCurrentStep) {
    Flight flight;
    flight.recorder.enter("forward");
    flight.recorder.step_done(1);
    flight.recorder.enter("forward");
    const FlightRecord record = flight.record();
    EXPECT_EQ(record.steps_done, 1);
    EXPECT_EQ(record.events.at(0).step, 0);
    EXPECT_EQ(record.events.at(1).step, 1);
}

TEST(FlightRecorder, KeepsOnlyTheLast256Events) {
    Flight flight;
    flight.recorder.begin_all_reduce(7, 1);
    for (int event = 0; event < 300; ++event) flight.recorder.enter("other");
    flight.recorder.end_all_reduce(7);  // its start is no longer recorded
    const FlightRecord record = flight.record();
    ASSERT_EQ(record.events.size(), FlightRecorder::kMaxEvents);
    EXPECT_EQ(record.events.front().begin_seconds, 46);
    EXPECT_EQ(record.events.back().begin_seconds, 301);
    EXPECT_EQ(record.all_reduces_finished, 1);
}

}  // namespace
}  // namespace hpcai::training
