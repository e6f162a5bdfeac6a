// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <hpcai/benchmark/verify_with_data.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/cuda_library.hpp>
#include <hpcai/group/recompute.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;
using workloads::Inspector;

// Between processors, fp32 sums in another order change the last bits of each layer. Predictions in
// other precisions, or made again in fp32, differ by their rounding.
constexpr double kFp32Tolerance = 1e-3, kRoundedTolerance = 0.1;
constexpr double kFp32Quality = 0.01, kRoundedQuality = 0.03;

/// Replaces the common folder of the data paths by `folder`.
void move_data(const fs::path& folder, config::DataConfig& data) {
    const std::array paths{&data.path, &data.validation_path, &data.image_path,
                           &data.validation_image_path};
    std::optional<fs::path> common;
    for (const std::string* path : paths) {
        if (path->empty()) continue;
        const fs::path normal = fs::path(*path).lexically_normal();
        if (!common) common = normal;
        fs::path shared;
        auto part = common->begin();
        for (const fs::path& other : normal) {
            if (part == common->end() || *part != other) break;
            shared /= *part++;
        }
        common = shared;
    }
    for (std::string* path : paths) {
        if (path->empty()) continue;
        const fs::path below = fs::path(*path).lexically_normal().lexically_relative(*common);
        *path = (folder / below).lexically_normal().string();
    }
}

/// Returns the configuration of a run for this machine.
config::Config local_config(const fs::path& directory, const fs::path& data) {
    config::Config config = results::read_config(directory);
    move_data(data, config.data);
    config.data.staging = config::Staging::none;
    config.data.decode_threads = 0;
    config.device.threads = 0;
    config.device.plan_cache.clear();
    config.device.autotune = false;
    if (!device::CudaLibrary::has_driver()) config.device.kind = config::DeviceKind::cpu;
    return config;
}

/// Opens the device. It computes in the precision of the run or, without that, in fp32.
context::Resources open_resources(const config::Config& config, const std::string& precision,
                                  data::SampleSets samples) {
    const device::Cores cores = device::count_cores();
    context::Resources resources{.device = context::open_device(config, cores, {}).device,
                                 .precision = {},
                                 .threads = device::threads_for_rank(0, cores, 1),
                                 .samples = std::move(samples)};
    const auto available = context::available_precisions(context::formats_of(*resources.device));
    const auto found = std::ranges::find(available, context::precision_named(precision));
    if (found != available.end()) resources.precision = *found;
    return resources;
}

/// Compares a result with the data and with the predictions of its weights.
class DataCheck {
public:
    DataCheck(const RunRecord& record, const fs::path& directory, const config::Config& config,
              Inspector& inspector)
        : record_(record),
          context_(results::context_of(directory, record.topology, config)),
          inspector_(inspector),
          is_fp32_(record.workload.precision == "fp32") {}

    void check() {
        const auto self = comm::make_self_communicator();
        data::SampleSets samples = data::make_sample_sets(context_.config, *self);
        const std::int64_t found = samples.validation->samples();
        const WorkloadRecord& workload = record_.workload;
        if (samples.sha256 != workload.samples_sha256)
            inspector_.report("result.json", "workload.samples_sha256 is {}; must be {}, {}",
                              workload.samples_sha256, samples.sha256, "according to the data");
        if (found != workload.validation_samples)
            return inspector_.report("result.json",
                                     "workload.validation_samples is {}; must be {}, {}",
                                     workload.validation_samples, found, "according to the data");
        const context::Resources resources =
            open_resources(context_.config, workload.precision, std::move(samples));
        const auto evaluator = workloads::make_evaluator(context_.config, resources.samples);
        bool is_first = true;
        for (const GroupRecord& group : record_.work.groups) {
            if (!group.failure.empty()) continue;
            const std::string weights =
                workloads::group_prefix(group.group) + "weights.safetensors";
            workloads::MemberPredictions again{
                .validation = group::predict_test_samples(context_, resources,
                                                          inspector_.checked_path(weights))};
            if (std::exchange(is_first, false))
                evaluator->check_samples(again.validation.labels, inspector_);
            check_member(*evaluator, group.group, again);
        }
    }

private:
    void check_member(const workloads::Evaluator& evaluator, int group,
                      const workloads::MemberPredictions& again) {
        const std::string file = workloads::group_prefix(group) +
                                 workloads::workload_of(context_.config.workload).files.member;
        workloads::MemberPredictions stored{.validation = {{}, again.validation.labels}};
        inspector_.attempt(file, [&] {
            evaluator.load(results::group_directory(context_.output, group), stored);
            const std::string difference =
                evaluator.difference(stored, again, is_fp32_ ? kFp32Tolerance : kRoundedTolerance);
            if (!difference.empty())
                inspector_.report(file, "{}, according to weights.safetensors", difference);
        });
        GroupResult rescored;
        evaluator.score(again, rescored);
        const Quantity& is = record_.quality.members.at(static_cast<std::size_t>(group));
        const double allowed = is_fp32_ ? kFp32Quality : kRoundedQuality;
        const double value = is.value.value_or(0), expected = rescored.quality.value.value_or(0);
        if (std::abs(value - expected) > allowed)
            inspector_.report("result.json", "quality.members[{}] is {}; must be {} within {}, {}",
                              group, value, expected, allowed, "according to the weights");
    }

    const RunRecord& record_;
    const context::RunContext context_;
    Inspector& inspector_;
    const bool is_fp32_;
};

}  // namespace

verification::Verification verify_with_data(const fs::path& directory, const fs::path& data) {
    verification::Verification verification = results::verify_result(directory);
    if (!verification.findings.empty()) return verification;
    const config::Config config = local_config(directory, data);
    require(config.run.keep_weights, ExitCode::usage,
            "verify: --data needs the weights of the run, but run.keep_weights is false in {}",
            directory.string());
    Inspector inspector(directory);
    DataCheck(*verification.record, directory, config, inspector).check();
    verification.findings = inspector.take_findings();
    return verification;
}

}  // namespace hpcai::benchmark
