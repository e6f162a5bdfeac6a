// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <cstring>
#include <set>

#include <gtest/gtest.h>
#include <omp.h>

#include <hpcai/reference/naive_random.hpp>

#include "device/detection_problems.hpp"
#include "device/kernel_runner.hpp"
#include "support/optimizer_steps.hpp"

/// The reference of a deterministic engine with several threads is the same engine with one thread.
/// Other tests also run on deterministic rows and check the values.
namespace hpcai::device {
namespace {

using naive::Problem;

/// Problems where the summation order of oneDNN depends on the number of threads.
std::vector<Problem> convolutions(naive::Random& random) {
    const std::vector<ops::Convolution> ops{
        {.input = {8, 64, 64, 3}, .filters = 64, .kernel = 7, .stride = 2, .padding = 3},
        {.input = {8, 16, 16, 64}, .filters = 64, .kernel = 1},
        {.input = {3, 16, 16, 64}, .filters = 128, .kernel = 1, .stride = 2},
        {.input = {21, 8, 8, 64}, .filters = 64, .kernel = 3, .padding = 1},  // unequal parts
        {.input = {1, 14, 14, 64}, .filters = 64, .kernel = 3, .padding = 1},
        {.input = {9, 2, 2, 512}, .filters = 512, .kernel = 3, .padding = 1},  // few parts
        {.input = {5, 9, 9, 5},
         .filters = 24,
         .kernel = 3,
         .padding = 1}};  // computed in other layouts
    std::vector<Problem> problems;
    for (const ops::Convolution& op : ops) {
        problems.push_back(
            {.operation = op,
             .inputs = {random.normal(op.input)},
             .parameters = {random.normal({op.filters, op.kernel, op.kernel, op.input[3]})},
             .output_gradients = {random.normal(output_shape(op))}});
    }
    return problems;
}

std::vector<Problem> classifiers(naive::Random& random) {
    std::vector<Problem> problems;
    for (const ops::Linear& op : {ops::Linear{{4, 2048}, 64}, ops::Linear{{21, 512}, 1000}}) {
        problems.push_back({.operation = op,
                            .inputs = {random.normal(op.input)},
                            .parameters = {random.normal({op.features, op.input[1]}),
                                           random.normal({op.features})},
                            .output_gradients = {random.normal(output_shape(op))}});
    }
    problems.push_back({.operation = ops::SoftmaxCrossEntropy{{21, 1000}, 0.1},
                        .inputs = {random.normal({21, 1000}), random.below({21}, 1000)},
                        .loss_scale = 0.125});
    return problems;
}

std::vector<Problem> batch_norms(naive::Random& random) {
    std::vector<Problem> problems;
    for (const bool add : {false, true}) {
        const ops::BatchNorm op{
            .input = {12, 9, 7, 64}, .statistics_samples = add ? 4 : 0, .add = add, .relu = add};
        Problem problem{.operation = op,
                        .inputs = {random.normal(op.input, 1)},
                        .parameters = {random.normal({64}), random.normal({64})},
                        .output_gradients = {random.normal(op.input), random.normal(op.input)},
                        .running_mean = random.normal({64}),
                        .running_variance = naive::Tensor({64}, 2)};
        if (add) problem.inputs.push_back(random.normal(op.input));
        problems.push_back(problem);
    }
    return problems;
}

std::vector<Problem> others(naive::Random& random) {
    const tensor::Shape images{3, 33, 31, 64};
    const ops::MaxPool pool{images, 3, 2, 1};
    return {{.operation = ops::InputNormalize{{3, 33, 31, 3}, {0.4, 0.5, 0.6}, {0.2, 0.3, 0.4}},
             .training = false,
             .inputs = {random.below({3, 33, 31, 3}, 256)}},
            {.operation = ops::Relu{images},
             .inputs = {random.normal(images)},
             .output_gradients = {random.normal(images), random.normal(images)}},
            {.operation = ops::Add{images},
             .inputs = {random.normal(images), random.normal(images)},
             .output_gradients = {random.normal(images), random.normal(images)}},
            {.operation = pool,
             .inputs = {random.normal(images)},
             .output_gradients = {random.normal(output_shape(pool))}},
            {.operation = ops::GlobalAveragePool{images},
             .inputs = {random.normal(images)},
             .output_gradients = {random.normal({3, 64})}}};
}

std::vector<Problem> pyramids(naive::Random& random) {
    const tensor::Shape fine{3, 34, 31, 64}, coarse{3, 17, 16, 64};
    ops::BatchNorm frozen{.input = fine, .add = true, .relu = true, .frozen = true};
    return {{.operation = ops::Bias{fine, true},
             .inputs = {random.normal(fine)},
             .parameters = {random.normal({64})},
             .output_gradients = {random.normal(fine)}},
            {.operation = ops::UpsampleAdd{fine, coarse},
             .inputs = {random.normal(fine), random.normal(coarse)},
             .output_gradients = {random.normal(fine), random.normal(fine)}},
            {.operation = ops::GroupNorm{fine, 32, 1e-5, true},
             .inputs = {random.normal(fine)},
             .parameters = {random.normal({64}), random.normal({64})},
             .output_gradients = {random.normal(fine)}},
            {.operation = frozen,
             .inputs = {random.normal(fine), random.normal(fine)},
             .parameters = {random.normal({64}), random.normal({64})},
             .output_gradients = {random.normal(fine)},
             .running_mean = random.normal({64}),
             .running_variance = naive::Tensor({64}, 2)},
            {.operation = ops::Linear{{21, 512}, 100, true},
             .inputs = {random.normal({21, 512})},
             .parameters = {random.normal({100, 512}), random.normal({100})},
             .output_gradients = {random.normal({21, 100}), random.normal({21, 100})}}};
}

std::vector<Problem> detectors(tensor::DType compute) {
    DetectionProblems make(compute);
    return {make.anchor_targets(3, 64),   make.rpn_loss(3, 64),      make.proposals_of(2, 100, 60),
            make.roi_targets(3, 20),      make.roi_align(2, 40, 48), make.roi_loss(3, 20),
            make.detections(3, 40, 5, 30)};
}

std::vector<Problem> segmentations(naive::Random& random, tensor::DType compute) {
    DetectionProblems make(compute);
    const tensor::Shape cells{3, 8, 12, 5};
    Problem problem;
    problem.inputs = {random.normal(cells), make.labelled(3, 6, 5)};
    problem.operation =
        ops::CellCrossEntropy{.input = cells, .boxes = problem.inputs[1].shape, .stride = 8};
    return {problem};
}

void expect_same_bits(const naive::Tensor& got, const naive::Tensor& want,
                      const std::string& what) {
    ASSERT_EQ(got.values.size(), want.values.size()) << what;
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got.values[i]),
                  std::bit_cast<std::uint64_t>(want.values[i]))
            << what << " at " << i << ": " << got.values[i] << " and " << want.values[i];
    }
}

void expect_same_bits(const naive::Solution& got, const naive::Solution& want) {
    expect_same_bits(got.output, want.output, "output");
    expect_same_bits(got.losses, want.losses, "losses");
    expect_same_bits(got.running_mean, want.running_mean, "running mean");
    expect_same_bits(got.running_variance, want.running_variance, "running variance");
    for (std::size_t i = 0; i < want.input_gradients.size(); ++i) {
        expect_same_bits(got.input_gradients[i], want.input_gradients[i], "input gradient");
    }
    for (std::size_t i = 0; i < want.parameter_gradients.size(); ++i) {
        expect_same_bits(got.parameter_gradients[i], want.parameter_gradients[i],
                         "parameter gradient");
    }
}

/// A precision and a layout of the CPU engine.
struct Kind {
    tensor::DType compute = tensor::DType::f32;
    CpuLayout layout = CpuLayout::automatic;

    DeviceRow deterministic(int threads) const { return cpu_row(compute, {threads, layout, true}); }
};

std::vector<Kind> all_kinds() {
    std::vector<Kind> kinds;
    for (const tensor::DType compute : make_cpu_device({})->compute_dtypes()) {
        for (const CpuLayout layout : {CpuLayout::automatic, CpuLayout::channels_last}) {
            kinds.push_back({compute, layout});
        }
    }
    return kinds;
}

class DeterministicCpu : public testing::TestWithParam<Kind> {
protected:
    /// Numbers of threads that divide or do not divide the parts of a batch; the last number is
    /// used twice.
    void expect_same_bits_from_any_threads(const std::vector<Problem>& problems) const {
        for (const Problem& problem : problems) {
            SCOPED_TRACE(std::string(name_of(problem.operation)) + " of " +
                         to_string(problem.inputs[0].shape));
            const naive::Solution want = KernelRunner(GetParam().deterministic(1), problem).run();
            for (const int threads : {2, 3, 4, 4}) {
                SCOPED_TRACE(threads);
                expect_same_bits(KernelRunner(GetParam().deterministic(threads), problem).run(),
                                 want);
            }
        }
    }

    naive::Random random_{GetParam().compute, 60};
};

TEST_P(DeterministicCpu, ConvolutionsHaveTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(convolutions(random_));
}

TEST_P(DeterministicCpu, LinearLayersAndLossesHaveTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(classifiers(random_));
}

TEST_P(DeterministicCpu, BatchNormsHaveTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(batch_norms(random_));
}

TEST_P(DeterministicCpu, FeaturePyramidsHaveTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(pyramids(random_));
}

TEST_P(DeterministicCpu, DetectionHasTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(detectors(GetParam().compute));
}

TEST_P(DeterministicCpu, SegmentationHasTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(segmentations(random_, GetParam().compute));
}

TEST_P(DeterministicCpu, AllOtherOperationsHaveTheSameBitsWithAnyNumberOfThreads) {
    expect_same_bits_from_any_threads(others(random_));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeterministicCpu, testing::ValuesIn(all_kinds()),
                         [](const auto& test) { return test.param.deterministic(0).name; });

TEST(DeterministicCpuTest, LeavesNoOperationOut) {
    naive::Random random(tensor::DType::f32, 60);
    std::set<std::size_t> seen;
    for (const auto& problems : {convolutions(random), classifiers(random), batch_norms(random),
                                 others(random), pyramids(random), detectors(tensor::DType::f32),
                                 segmentations(random, tensor::DType::f32)}) {
        for (const Problem& problem : problems) seen.insert(problem.operation.index());
    }
    // The CPU engine fuses no operations.
    const std::set<std::size_t> fused{ops::Operation(ops::DualNorm{}).index(),
                                      ops::Operation(ops::PointwiseNorm{}).index(),
                                      ops::Operation(ops::NormPool{}).index()};
    // These operations need other ranks; PartsRun tests complete runs with them.
    const std::set<std::size_t> exchanged{ops::Operation(ops::AllGather{}).index(),
                                          ops::Operation(ops::ReduceScatter{}).index()};
    EXPECT_EQ(seen.size() + fused.size() + exchanged.size(), std::variant_size_v<ops::Operation>);
}

TEST(DeterministicCpuDevice, OptimizerHasTheSameBitsWithAnyNumberOfThreads) {
    naive::Random random(tensor::DType::f32, 61);
    const tensor::Shape shape{100001};
    const auto numbers = [&] {
        const naive::Tensor tensor = random.normal(shape);
        return std::vector<float>(tensor.values.begin(), tensor.values.end());
    };
    const std::vector<float> parameters = numbers(), gradients = numbers(), momentum = numbers();
    const auto stepped = [&](int threads) {
        std::vector<float> w = parameters, v = momentum;
        const auto device = make_cpu_device({.threads = threads, .deterministic = true});
        OptimizerSteps(*device, {Sgd{0.9f, true}, 1e-4f}, {w, gradients, {v}}).step(0.1);
        w.insert(w.end(), v.begin(), v.end());
        return w;
    };
    const std::vector<float> want = stepped(1);
    for (const int threads : {2, 3, 4}) {
        EXPECT_EQ(0,
                  std::memcmp(stepped(threads).data(), want.data(), want.size() * sizeof(float)));
    }
}

TEST(DeterministicCpuDevice, NamesThePropertyInItsDescription) {
    const auto says = [](bool deterministic) {
        return make_cpu_device({.deterministic = deterministic})
            ->description()
            .ends_with(", deterministic");
    };
    EXPECT_TRUE(says(true));
    EXPECT_FALSE(says(false));
}

TEST(DeterministicCpuDevice, LeavesTheProcessItsNumberOfThreads) {
    naive::Random random(tensor::DType::f32, 62);
    const Problem problem = classifiers(random)[1];
    KernelRunner(cpu_row(tensor::DType::f32, {.threads = 3, .deterministic = true}), problem).run();
    EXPECT_EQ(omp_get_max_threads(), 3);
}

}  // namespace
}  // namespace hpcai::device
