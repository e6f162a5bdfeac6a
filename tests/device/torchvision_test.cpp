// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/reference_cases.hpp"

/// The operations of Faster R-CNN, naive and on every device, compared with torchvision in double.
namespace hpcai::device {
namespace {

/// The tolerance against torchvision, relative to the largest number of a column.
struct Exactness {
    double decided = 0;  // numbers of anchors, labels, boxes, scores and targets
    double stored = 0;   // in the compute type
    double losses = 0;
};

naive::Tensor column_of(const naive::Tensor& rows, std::int64_t which) {
    naive::Tensor one({rows.shape[0], rows.shape[1]});
    for (std::int64_t row = 0; row < one.shape.elements(); ++row) {
        one[row] = rows[row * rows.shape[2] + which];
    }
    return one;
}

void expect_like_torchvision(const ReferenceCase& reference, const naive::Solution& got,
                             const Exactness& exactness) {
    SCOPED_TRACE(reference.name);
    const naive::Solution& want = reference.expected;
    const bool is_loss = ops::is_loss(reference.problem.operation);
    const bool is_rows = want.output.shape.rank() == 3;
    for (std::int64_t i = 0; is_rows && i < want.output.shape[2]; ++i) {
        expect_close(column_of(got.output, i), column_of(want.output, i), exactness.decided,
                     "column " + std::to_string(i));
    }
    if (!is_rows) {
        expect_close(got.output, want.output, is_loss ? exactness.losses : exactness.stored,
                     "output");
    }
    for (std::size_t i = 0; i < want.input_gradients.size(); ++i) {
        expect_close(got.input_gradients.at(i), want.input_gradients[i], exactness.stored,
                     "input gradient " + std::to_string(i));
    }
}

std::vector<ReferenceCase> all_cases() {
    const ReferenceFile file("detection.safetensors");
    std::vector<ReferenceCase> all;
    for (const char* operation : {"anchor_targets", "rpn_loss", "proposals", "roi_targets",
                                  "roi_align", "roi_loss", "detections"}) {
        for (const ReferenceCase& one : file.cases_of(operation)) all.push_back(one);
    }
    return all;
}

TEST(NaiveDetection, AgreesWithTorchvisionInDouble) {
    for (const ReferenceCase& reference : all_cases()) {
        expect_like_torchvision(reference, naive::solve(reference.problem), {1e-9, 1e-9, 1e-9});
    }
}

class TorchvisionOf : public testing::TestWithParam<DeviceRow> {};

TEST_P(TorchvisionOf, AgreesWithTorchvisionInDouble) {
    // A coordinate below 200 pixels has an fp32 error of up to 2^-17 pixels.
    const double stored = std::max(GetParam().tolerance.stored, 2e-5);
    for (const ReferenceCase& reference : all_cases()) {
        expect_like_torchvision(reference, KernelRunner(GetParam(), reference.problem).run(),
                                {2e-6, stored, 2e-6});
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, TorchvisionOf, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
