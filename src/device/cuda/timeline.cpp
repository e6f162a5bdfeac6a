// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <deque>

#include "owned.hpp"

namespace hpcai::device::cuda {
namespace {

class EventTimeline final : public Timeline {
public:
    explicit EventTimeline(cudaStream_t stream) : stream_(stream) {}

    void mark() override { marks_.emplace_back().record(stream_); }
    std::vector<double> seconds() const override {
        check(cudaStreamSynchronize(stream_), "timing work");
        std::vector<double> between;
        for (std::size_t i = 1; i < marks_.size(); ++i) {
            between.push_back(marks_[i].seconds_since(marks_[i - 1]));
        }
        return between;
    }

private:
    cudaStream_t stream_;
    std::deque<TimedEvent> marks_;
};

}  // namespace

std::unique_ptr<Timeline> make_timeline(cudaStream_t stream) {
    return std::make_unique<EventTimeline>(stream);
}

}  // namespace hpcai::device::cuda
