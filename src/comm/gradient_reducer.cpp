// SPDX-License-Identifier: Apache-2.0
#include "hpcai/comm/gradient_reducer.hpp"

namespace hpcai::comm {

namespace {

class MpiReducer final : public GradientReducer {
public:
    explicit MpiReducer(Communicator& group) : group_(group) {}

    int size() const override { return group_.size(); }
    std::string description() const override { return "mpi"; }
    std::unique_ptr<Request> start_sum(std::span<float> device_values) override {
        return group_.start_all_reduce_sum(device_values);
    }
    bool can_be_recorded() const override { return group_.size() == 1; }
    void check() override {}  // a sum that has been waited for has been made

private:
    Communicator& group_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_mpi_reducer(Communicator& group) {
    return std::make_unique<MpiReducer>(group);
}

}  // namespace hpcai::comm
