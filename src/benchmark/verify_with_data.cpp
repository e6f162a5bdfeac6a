// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include <hpcai/base/units.hpp>
#include <hpcai/benchmark/verify_with_data.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/group/recompute.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/search/proposal.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/training/checkpoint.hpp>
#include <hpcai/verification/search.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;
using workloads::Inspector;

// Maximum differences of predictions. Processors add fp32 values in different orders, which changes
// the last bits of each layer's output. Other precisions round more coarsely. A device without the
// run's precision recomputes the predictions in fp32.
constexpr double kFp32Tolerance = 1e-3, kOtherTolerance = 0.1;
constexpr int kMaxLossSteps = 20;  // maximum steps between two stored losses if run.loss_steps is 0
// Maximum relative differences of losses; the first two are per repeated step. The third is added
// once for detectors: rounding may change the order of scores and so the regions that are sampled.
constexpr double kFp32LossTolerance = 1e-3, kOtherLossTolerance = 3e-3, kDetectorTolerance = 0.1;
constexpr double kMinLoss = 0.1;  // smaller losses may differ by as much as a loss of this size
constexpr double kFp32QualityTolerance = 0.01, kOtherQualityTolerance = 0.03;

/// Replaces the common folder C of the data paths by folder/<name of C> if all paths exist there,
/// else by `folder`. Throws Error(data) if a path does not exist in `folder` either.
void move_data(const fs::path& folder, config::DataConfig& data) {
    const std::array paths{&data.path, &data.validation_path, &data.image_path,
                           &data.validation_image_path};
    std::optional<fs::path> common;
    std::error_code ignored;
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
    const auto path_in = [&](const fs::path& root, const std::string& path) {
        const fs::path relative = fs::path(path).lexically_normal().lexically_relative(*common);
        return relative == "." ? root : root / relative;
    };
    const auto find_missing = [&](const fs::path& root) {
        return std::ranges::find_if(paths, [&](const std::string* path) {
            return !path->empty() && !fs::exists(path_in(root, *path), ignored);
        });
    };
    const fs::path inside = common && common->has_filename() ? folder / common->filename() : folder;
    const fs::path& root = find_missing(inside) == paths.end() ? inside : folder;
    if (const auto missing = find_missing(root); missing != paths.end()) {
        const std::string direct = path_in(folder, **missing).string();
        const std::string other = path_in(inside, **missing).string();
        throw Error(
            ExitCode::data,
            fmt::format("verify: --data: expected '{}'{}, because the run read '{}'; found none",
                        direct, other == direct ? "" : fmt::format(" or '{}'", other), **missing));
    }
    for (std::string* path : paths) {
        if (!path->empty()) *path = path_in(root, *path).string();
    }
}

/// Returns the configuration of a run, changed for data in `data_folder` and for this machine.
config::Config local_config(const fs::path& directory, const fs::path& data_folder) {
    config::Config config = results::read_config(directory);
    move_data(data_folder, config.data);
    config.data.staging = config::Staging::none;
    config.data.decode_threads = 0;
    config.device.threads = 0;
    config.device.plan_cache.clear();
    config.device.autotune = false;
    if (config.device.kind == config::DeviceKind::cuda)
        config.device.kind = config::DeviceKind::automatic;
    return config;
}

/// Compares a result with the data and with predictions that are recomputed from its weights.
class DataCheck {
public:
    DataCheck(const RunRecord& record, const fs::path& directory, const config::Config& config,
              Inspector& inspector)
        : record_(record),
          context_(results::context_of(directory, record.topology, config)),
          inspector_(inspector),
          is_fp32_(record.workload.precision == "fp32") {}

    /// Compares samples and predictions. If `steps` is not 0, also compares the losses of `steps`
    /// steps at the beginning and after each kept checkpoint. Returns a line for each part of the
    /// result that was compared. Reports differences to the inspector.
    std::string check(std::int64_t steps) {
        const auto self = comm::make_self_communicator();
        const data::SampleSets samples = data::make_sample_sets(context_.config, *self);
        const std::int64_t test_samples = samples.validation->samples();
        const WorkloadRecord& workload = record_.workload;
        if (samples.sha256 != workload.samples_sha256)
            inspector_.report("result.json",
                              "workload.samples_sha256 is {}; must be {}, according to the data, "
                              "unless --data has other samples than the run",
                              workload.samples_sha256, samples.sha256);
        if (test_samples != workload.validation_samples) {
            inspector_.report("result.json",
                              "workload.validation_samples is {}; must be {}, according to the "
                              "data, unless --data has other samples than the run",
                              workload.validation_samples, test_samples);
            return "";
        }
        check_predictions(samples);
        std::string agreed = fmt::format(
            "agree: {} training and {} test samples{} (workload.samples_sha256)\n"
            "agree: labels of the test samples\nagree: predictions and quality of each trained "
            "model\n{}",
            samples.training->samples(), test_samples,
            context_.config.data.path.empty() ? ", generated again without --data" : "",
            samples.hold_out ? "agree: hold-out samples, best trials' predictions for them\n" : "");
        if (steps == 0 || samples.sha256 != workload.samples_sha256) return agreed;
        const StepsOfGroups stored = read_steps();
        agreed += check_losses(samples, stored, 0, steps);
        for (const std::int64_t epoch : config::kept_steps(context_.config, 1))  // 1 step per epoch
            agreed += check_losses(samples, stored, epoch, steps);
        return agreed;
    }

private:
    using StepsOfGroups = std::map<int, std::vector<StepRecord>>;

    void check_predictions(const data::SampleSets& samples) {
        const context::Resources resources =
            group::open_resources(context_.config, record_.workload.precision, samples, 1);
        const auto evaluator = workloads::make_evaluator(context_.config, resources.samples);
        bool is_first = true;
        for (const GroupRecord& group : record_.work.groups) {
            if (!group.failure.empty()) continue;
            const auto stored = records::read_file<GroupResult>(
                inspector_.checked_path(workloads::group_prefix(group.group) + "record.json"));
            const group::TrainedModel model = trained_model(stored);
            workloads::MemberPredictions recomputed{
                .validation =
                    group::predict_samples(context_, resources, model, samples.validation)};
            if (stored.search) {
                const auto predictions =
                    group::predict_samples(context_, resources, model, samples.hold_out);
                if (is_first) check_hold_out(*samples.hold_out);
                check_classes(stored, predictions);
            }
            if (std::exchange(is_first, false))
                evaluator->check_samples(recomputed.validation.labels, inspector_);
            check_member(*evaluator, group.group, recomputed);
        }
    }

    /// Returns the weights and edits of a group's model; the record `stored` has been verified.
    group::TrainedModel trained_model(const GroupResult& stored) const {
        const std::string folder = workloads::group_prefix(stored.record.group);
        return {inspector_.checked_path(folder + "weights.safetensors"),
                stored.search ? search::morphs_of(stored.search->edits) : group::Edits{}};
    }

    /// Compares the hold-out samples, on which the search compared its trials.
    void check_hold_out(const data::SampleSet& samples) {
        std::string names;
        std::vector<std::int32_t> labels;
        for (std::uint32_t sample = 0; sample < samples.samples(); ++sample) {
            names += samples.name(sample) + "\n";
            labels.push_back(samples.label(sample));
        }
        const std::string stored = inspector_.read_text(verification::kHoldOutNames).value_or("");
        inspector_.compare_lines(verification::kHoldOutNames, stored, names);
        inspector_.attempt(verification::kHoldOutLabels, [&] {
            const storage::NpyArray array =
                storage::read_npy(inspector_.checked_path(verification::kHoldOutLabels));
            require(std::ranges::equal(array.as<std::int32_t>(), labels), ExitCode::data,
                    "has other labels than the data");
        });
    }

    /// Compares the classes that the best trial has predicted with the outputs of its weights.
    /// Among nearly equal outputs, rounding may change which is the largest.
    void check_classes(const GroupResult& stored, const training::Predictions& predictions) {
        const std::string file = fmt::format(
            "{}trials/{}.npy", workloads::group_prefix(stored.record.group), stored.search->best);
        inspector_.attempt(file, [&] {
            const storage::NpyArray array = storage::read_npy(inspector_.checked_path(file));
            const auto classes = array.as<std::int32_t>();
            const std::size_t samples = predictions.labels.size();
            require(classes.size() == samples, ExitCode::data, "has {} samples; must have {}",
                    classes.size(), samples);
            const std::size_t columns =
                predictions.outputs.size() / std::max<std::size_t>(samples, 1);
            for (std::size_t sample = 0; sample < samples; ++sample) {
                if (predictions.labels[sample] < 0) continue;
                const auto row = std::span(predictions.outputs).subspan(sample * columns, columns);
                const double allowed = is_fp32_ ? kFp32Tolerance : kOtherTolerance;
                const auto chosen = static_cast<std::size_t>(classes[sample]);
                require(chosen < columns && row[chosen] + allowed >= std::ranges::max(row),
                        ExitCode::data,
                        "has the class {} for sample {}; must have another, according to "
                        "weights.safetensors",
                        classes[sample], sample);
            }
        });
    }

    StepsOfGroups read_steps() {
        StepsOfGroups stored;
        for (const GroupRecord& group : record_.work.groups) {
            if (!group.failure.empty()) continue;
            auto steps = inspector_.parse(workloads::group_prefix(group.group) + "steps.csv",
                                          report::steps_from_csv, report::steps_to_csv);
            if (steps) stored[group.group] = std::move(*steps);
        }
        return stored;
    }

    /// Compares the losses of up to `steps` steps of each group from the end of `epoch` on (0: from
    /// the beginning). Returns a line about them, and one for each checkpoint that does not exist.
    std::string check_losses(const data::SampleSets& samples, const StepsOfGroups& stored,
                             std::int64_t epoch, std::int64_t steps) {
        std::string missing;
        std::int64_t fewest = steps + 1;  // above `steps`: no group yet
        for (const auto& [group, all] : stored) {
            const std::int64_t first = epoch * (std::ssize(all) / context_.config.workload.epochs);
            const fs::path checkpoint = training::checkpoint_folder(
                {results::kept_checkpoint_directory("", group), "", 0, 1}, first);
            if (epoch > 0 && !storage::path_exists(context_.output / checkpoint)) {
                missing += fmt::format("no checkpoint of epoch {} of group {}\n", epoch, group);
                continue;
            }
            const auto count = std::min<std::int64_t>(steps, std::ssize(all) - first);
            fewest = std::min(fewest, count);
            const group::StepRange wanted{group, first, count};
            const auto later = std::span(all).subspan(static_cast<std::size_t>(first));
            const std::string file = workloads::group_prefix(group) + "steps.csv";
            inspector_.attempt(epoch > 0 ? checkpoint.string() : file, [&] {
                compare_losses(
                    group::train_again(context_, samples, record_.workload.precision, wanted),
                    later, file);
            });
        }
        if (fewest > steps) return missing;
        const std::string after =
            epoch == 0 ? "" : fmt::format(" after the checkpoint of epoch {}", epoch);
        return fmt::format("{}agree: losses of the first {}{} of each trained model\n", missing,
                           counted(fewest, "step"), after);
    }

    /// Compares each stored loss with the mean of the losses recomputed since the previous stored
    /// loss. Steps in between have NaN, at most `max_steps` - 1 in sequence.
    void compare_losses(const std::vector<double>& recomputed, std::span<const StepRecord> stored,
                        const std::string& file) {
        const int loss_steps = context_.config.run.loss_steps;
        const int max_steps = loss_steps > 0 ? loss_steps : kMaxLossSteps;
        double sum = 0;
        int steps = 0;  // in `sum`
        for (std::size_t step = 0; step < recomputed.size(); ++step) {
            sum += recomputed[step];
            const double loss = stored[step].loss, expected = sum / ++steps;
            if (std::isnan(loss) && steps < max_steps) continue;
            const double allowed = loss_tolerance(step) * std::max(expected, kMinLoss);
            const bool is_equal = std::isnan(expected) ? std::isnan(loss) : loss == expected;
            if (!is_equal && !(std::abs(loss - expected) <= allowed))
                return inspector_.report(
                    file, "loss of step {} is {}; the repeated step yields {}, with tolerance {}",
                    stored[step].step, loss, expected, allowed);
            sum = steps = 0;
        }
    }

    double loss_tolerance(std::size_t step) const {
        const bool detects = task_of(context_.config.workload) == config::Task::detection;
        const double per_step = is_fp32_ ? kFp32LossTolerance : kOtherLossTolerance;
        return (detects ? kDetectorTolerance : 0) + per_step * static_cast<double>(step + 1);
    }

    void check_member(const workloads::Evaluator& evaluator, int group,
                      const workloads::MemberPredictions& recomputed) {
        const std::string file = workloads::group_prefix(group) +
                                 workloads::workload_of(context_.config.workload).files.member;
        workloads::MemberPredictions stored{.validation = {{}, recomputed.validation.labels}};
        inspector_.attempt(file, [&] {
            evaluator.load(results::group_directory(context_.output, group), stored);
            const std::string difference = evaluator.difference(
                stored, recomputed, is_fp32_ ? kFp32Tolerance : kOtherTolerance);
            if (!difference.empty())
                inspector_.report(file, "{}, according to weights.safetensors", difference);
        });
        GroupResult rescored;
        evaluator.score(recomputed, rescored);
        const Quantity& quality = record_.quality.members.at(static_cast<std::size_t>(group));
        const double allowed = is_fp32_ ? kFp32QualityTolerance : kOtherQualityTolerance;
        const double value = quality.value.value_or(0);
        const double expected = rescored.quality.value.value_or(0);
        if (std::abs(value - expected) > allowed)
            inspector_.report("result.json",
                              "quality.members[{}] is {}; the weights yield {}, with tolerance {}",
                              group, value, expected, allowed);
    }

    const RunRecord& record_;
    const context::RunContext context_;
    Inspector& inspector_;
    const bool is_fp32_;
};

}  // namespace

verification::Verification verify_with_data(const fs::path& directory, const DataToVerify& with) {
    verification::Verification verification = results::verify_result(directory);
    if (!verification.findings.empty()) return verification;
    const config::Config config = local_config(directory, with.folder);
    require(config.run.keep_weights, ExitCode::usage,
            "verify: --data needs the weights of the run, but run.keep_weights is false in {}",
            directory.string());
    Inspector inspector(directory);
    const std::string& precision = verification.record->workload.precision;
    require(
        with.steps == 0 || (config.parallel.mode == config::ParallelMode::data &&
                            config.parallel.micro_batches == 1),
        ExitCode::usage,
        "verify: --replay: expected a run with parallel.mode data and parallel.micro_batches 1, "
        "got {} and {}",
        config::value_text(config, "parallel.mode"), config.parallel.micro_batches);
    require(with.steps == 0 || !config::is_search(config.workload), ExitCode::usage,
            "verify: --replay: expected a run without an architecture search; to repeat a search, "
            "run it again with search.history recorded");
    require(with.steps == 0 || (precision != "mixed" && precision != "fp16"), ExitCode::usage,
            "verify: --replay: expected a run in fp32, tf32, bf16 or int8, which CPUs can repeat, "
            "got {}",
            precision);
    require(with.steps == 0 || config.data.decoder == config::Decoder::cpu, ExitCode::usage,
            "verify: --replay: expected a run with data.decoder cpu, got gpu");
    verification.agreed =
        DataCheck(*verification.record, directory, config, inspector).check(with.steps);
    verification.findings = inspector.take_findings();
    return verification;
}

}  // namespace hpcai::benchmark
