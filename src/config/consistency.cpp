// SPDX-License-Identifier: Apache-2.0
#include "consistency.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/config/keys.hpp>

#include "document.hpp"

namespace hpcai::config {
namespace {

class Checker {
public:
    Checker(const Config& config, const PlaceOf& place_of) : config_(config), place_of_(place_of) {}

    void check(bool consistent, const std::string& full_name, const std::string& expected) const {
        if (consistent) return;
        const std::string value = value_text(config_, full_name);
        const bool is_default = value == value_text(Config{}, full_name);
        throw Error(ExitCode::usage,
                    fmt::format("{}: {}: expected {}, got {}{}", place_of_(full_name), full_name,
                                expected, in_quotes(value), is_default ? ", the default" : ""));
    }

    /// Checks that a choice is one of those that go with workload.kind.
    template <typename Section, typename Choice>
    void check_listed(std::span<const Choice> legal, Section Config::*section,
                      Choice Section::*member, const std::string& full_name) const {
        std::vector<std::string> names;
        Config with = config_;
        for (const Choice choice : legal) {
            with.*section.*member = choice;
            names.push_back(value_text(with, full_name));
        }
        check(std::ranges::find(legal, config_.*section.*member) != legal.end(), full_name,
              fmt::format("{}, as workload.kind is {}", fmt::join(names, " or "),
                          value_text(config_, "workload.kind")));
    }

    void check_workload() const {
        const WorkloadConfig& workload = config_.workload;
        const WorkloadRow& row = row_of(workload.kind);
        const Task task = row.task;
        const std::string as_kind =
            fmt::format(", as workload.kind is {}", value_text(config_, "workload.kind"));
        check_listed(row.models, &Config::workload, &WorkloadConfig::model, "workload.model");
        check_listed(row.aggregations, &Config::bagging, &BaggingConfig::aggregation,
                     "bagging.aggregation");
        if (task != Task::detection) check_no_detector();
        if (task == Task::classification) {
            check(workload.classes > 1, "workload.classes", "2 or more" + as_kind);
            check(image_width(config_) == workload.image_size, "workload.image_width",
                  "auto or workload.image_size" + as_kind);
            return;
        }
        check(task == Task::detection || workload.backbone_width == WorkloadConfig{}.backbone_width,
              "workload.backbone_width",
              fmt::format("{}, as workload.model is segmentation_net",
                          WorkloadConfig{}.backbone_width));
        check(!config_.bagging.out_of_bag, "bagging.out_of_bag", "false" + as_kind);
        check(config_.training.label_smoothing == 0, "training.label_smoothing",
              fmt::format("0, as workload.model is {}",
                          task == Task::detection ? "a detector" : "segmentation_net"));
        if (task == Task::detection) check_detector();
    }

    void check_no_detector() const {
        for (const Key& key : keys()) {
            if (key.section != "detector") continue;
            const std::string usual = value_text(Config{}, key.full_name());
            check(value_text(config_, key.full_name()) == usual, key.full_name(),
                  fmt::format("{}, as workload.model is {}", usual,
                              value_text(config_, "workload.model")));
        }
    }

    void check_detector() const {
        const DetectorConfig& detector = config_.detector;
        const bool all_trained =
            detector.normalization == Normalization::frozen_batch || detector.trained_stages == 5;
        check(all_trained, "detector.trained_stages",
              "5, as detector.normalization is not frozen_batch");
        check(detector.anchor_sizes.size() == 5, "detector.anchor_sizes",
              "5 values, one for each level of the pyramid");
        check_anchors();
        check(detector.normalization != Normalization::frozen_batch ||
                  !config_.training.initial_weights.empty(),
              "training.initial_weights", "a file, as detector.normalization is frozen_batch");
        check(detector.normalization != Normalization::group ||
                  config_.workload.backbone_width % 32 == 0,
              "workload.backbone_width", "a multiple of 32, as detector.normalization is group");
        check(
            detector.normalization == Normalization::batch || !config_.training.batch_norm_samples,
            "training.batch_norm_samples", "auto, as detector.normalization is not batch");
    }

    void check_anchors() const {
        constexpr double kMost = 16777216;  // whose numbers fp32 holds
        const DetectorConfig& detector = config_.detector;
        const std::size_t ratios = detector.anchor_ratios.size();
        check(ratios > 0, "detector.anchor_ratios", "one value or more");
        const double cells = image_width(config_) / 4.0 * config_.workload.image_size / 4.0 * 1.5;
        check(static_cast<double>(ratios) * cells < kMost, "detector.anchor_ratios",
              "fewer values: an image has no more than 16,777,216 anchors");
        for (const double size : detector.anchor_sizes) {
            for (const double ratio : detector.anchor_ratios) {
                const double shorter = size * std::min(std::sqrt(ratio), 1 / std::sqrt(ratio));
                check(shorter / 2 > 0.5, "detector.anchor_sizes",
                      "sizes whose anchors have sides of more than a pixel in all "
                      "detector.anchor_ratios");
            }
        }
    }

    void check_data() const {
        const DataConfig& data = config_.data;
        check_listed(row_of(config_.workload.kind).data, &Config::data, &DataConfig::kind,
                     "data.kind");
        const bool has_boxes = task_of(config_.workload) != Task::classification;
        check(!has_boxes || data.random_area_minimum == DataConfig{}.random_area_minimum,
              "data.random_area_minimum",
              fmt::format("{}, as nothing is cropped where data.kind is {}",
                          DataConfig{}.random_area_minimum, value_text(config_, "data.kind")));
        if (has_fields(data)) {
            check_channels(16);
            check(config_.workload.classes == 4, "workload.classes",
                  "4, as the weather's boxes have 4 classes");
            check(data.kind == DataKind::climate_hdf5 || data.max_boxes >= 15, "data.max_boxes",
                  "15 or more, as data.kind is climate_synthetic");
        } else {
            check_pixels();
        }
        check_paths();
        check_made_samples();
        check_staging();
    }

    void check_staging() const {
        const DataConfig& data = config_.data;
        if (data.staging == Staging::none) return;
        check(data.kind != DataKind::synthetic && data.kind != DataKind::climate_synthetic,
              "data.staging",
              fmt::format("none, as data.kind is {}", value_text(config_, "data.kind")));
        check(
            !data.staging_directory.empty(), "data.staging_directory",
            fmt::format("a directory, as data.staging is {}", value_text(config_, "data.staging")));
    }

    void check_pixels() const {
        const DataConfig& data = config_.data;
        const auto channels = static_cast<std::size_t>(config_.workload.channels);
        const std::string per_channel =
            fmt::format("{} values, one for each of workload.channels", channels);
        check(data.mean.size() == channels, "data.mean", per_channel);
        check(data.standard_deviation.size() == channels, "data.standard_deviation", per_channel);
    }

    void check_channels(int channels) const {
        check(config_.workload.channels == channels, "workload.channels",
              fmt::format("{}, as data.kind is {}", channels, value_text(config_, "data.kind")));
    }

    void check_paths() const {
        const DataConfig& data = config_.data;
        const auto needs = [&](const std::string& path, const std::string& name,
                               const std::string& what) {
            check(!path.empty(), name,
                  fmt::format("{}, as data.kind is {}", what, value_text(config_, "data.kind")));
        };
        switch (data.kind) {
            case DataKind::synthetic:
            case DataKind::climate_synthetic:
                return;
            case DataKind::image_folder:
                needs(data.path, "data.path", "a folder");
                needs(data.validation_path, "data.validation_path", "a folder");
                break;
            case DataKind::voc:
                needs(data.path, "data.path", "a folder");
                break;
            case DataKind::coco:
                needs(data.path, "data.path", "an annotation file");
                needs(data.validation_path, "data.validation_path", "an annotation file");
                needs(data.image_path, "data.image_path", "a folder");
                needs(data.validation_image_path, "data.validation_image_path", "a folder");
                break;
            case DataKind::climate_hdf5:
                needs(data.path, "data.path", "a file or folder");
                needs(data.validation_path, "data.validation_path", "a file or folder");
                return;
        }
        check_channels(3);
    }

    void check_made_samples() const {
        const DataConfig& data = config_.data;
        check(data.resident_mib == 0 || data.kind == DataKind::image_folder, "data.resident_mib",
              fmt::format("0, as data.kind is {}", value_text(config_, "data.kind")));
        if (data.kind != DataKind::synthetic && data.kind != DataKind::climate_synthetic) return;
        check(
            data.synthetic_samples >= config_.training.batch_size, "data.synthetic_samples",
            fmt::format("at least training.batch_size, which is {}", config_.training.batch_size));
    }

    void check_batch() const {
        const TrainingConfig& training = config_.training;
        const ParallelConfig& parallel = config_.parallel;
        check_parallel();
        if (config_.bagging.degree && !has_pipeline(parallel)) {
            check(training.batch_size % *config_.bagging.degree == 0, "training.batch_size",
                  fmt::format("a multiple of bagging.P_degree, which is {}",
                              *config_.bagging.degree));
        }
        if (training.batch_norm_samples) {
            check(
                training.batch_size % *training.batch_norm_samples == 0,
                "training.batch_norm_samples",
                fmt::format("a divisor of training.batch_size, which is {}", training.batch_size));
        }
    }

    /// What P_degree has to do with it, the layout knows.
    void check_parallel() const {
        const ParallelConfig& parallel = config_.parallel;
        const std::string as_mode =
            fmt::format(", as parallel.mode is {}", value_text(config_, "parallel.mode"));
        if (parallel.mode == ParallelMode::data || parallel.mode == ParallelMode::model) {
            check(parallel.pipeline_degree.value_or(1) == 1, "parallel.pipeline_degree",
                  "auto or 1" + as_mode);
            check(parallel.schedule == ParallelConfig{}.schedule, "parallel.schedule",
                  value_text(Config{}, "parallel.schedule") + as_mode);
        }
        if (parallel.mode == ParallelMode::data || parallel.mode == ParallelMode::pipeline) {
            check(parallel.model_degree.value_or(1) == 1, "parallel.model_degree",
                  "auto or 1" + as_mode);
        }
        check(config_.device.kind != DeviceKind::cuda || parallel.model_degree.value_or(1) == 1,
              "parallel.model_degree", "1, as device.kind is cuda, which has no parts yet");
        if (!has_pipeline(parallel)) return;
        const bool is_cut = task_of(config_.workload) == Task::classification;
        check(is_cut || parallel.mode == ParallelMode::data, "parallel.mode",
              fmt::format("data, as workload.model is {}, which has neither stages nor parts yet",
                          value_text(config_, "workload.model")));
        check(is_cut, "parallel.micro_batches",
              fmt::format("1, as workload.model is {}", value_text(config_, "workload.model")));
        check(config_.data.resident_mib == 0, "data.resident_mib",
              "0, as a batch is taken in micro-batches, stages or parts");
    }

    void check_schedule() const {
        const TrainingConfig& training = config_.training;
        const std::vector<int>& epochs = training.schedule_epochs;
        const bool increasing = std::adjacent_find(epochs.begin(), epochs.end(),
                                                   std::greater_equal<>()) == epochs.end();
        check(increasing, "training.schedule_epochs", "increasing epochs");
        check(training.warmup_epochs < config_.workload.epochs, "training.warmup_epochs",
              fmt::format("less than workload.epochs, which is {}", config_.workload.epochs));
    }

    void check_optimizer() const {
        const TrainingConfig& training = config_.training;
        const Optimizer optimizer = training.optimizer;
        const bool has_momentum = optimizer == Optimizer::sgd || optimizer == Optimizer::lars;
        const bool has_betas = optimizer == Optimizer::lamb || optimizer == Optimizer::adam ||
                               optimizer == Optimizer::adamw;
        check_use(has_momentum, {"momentum", "nesterov", "momentum_correction"});
        check_use(has_betas, {"beta1", "beta2"});
        check_use(optimizer != Optimizer::sgd, {"epsilon"});
        check_use(optimizer == Optimizer::lars, {"trust_coefficient"});
        check(optimizer == Optimizer::lars || !training.epsilon ||
                  static_cast<float>(*training.epsilon) > 0,
              "training.epsilon",
              fmt::format("a number of at least 1.5e-45, as training.optimizer is {}",
                          value_text(config_, "training.optimizer")));
        check(!training.nesterov || training.momentum > 0, "training.momentum",
              "a number above 0, as training.nesterov is true");
    }

    void check_run() const {
        constexpr std::uint64_t kLastSeed = 9007199254740991;
        const auto further = static_cast<std::uint64_t>(config_.run.repeat) - 1;
        check(config_.run.seed <= kLastSeed - further, "run.seed",
              fmt::format("at most {}, as run.repeat is {}", kLastSeed - further,
                          config_.run.repeat));
        check(!config_.run.trace || config_.run.measure_phases, "run.trace",
              "false, as run.measure_phases is false");
    }

    void check_communication() const {
        const CommunicationConfig& communication = config_.communication;
        const std::string as_algorithm =
            "auto, as communication.algorithm is " + value_text(config_, "communication.algorithm");
        check(
            communication.algorithm == AllReduceAlgorithm::torus_2d || !communication.torus_columns,
            "communication.torus_columns", as_algorithm);
        check(communication.algorithm == AllReduceAlgorithm::hierarchical ||
                  !communication.ranks_per_node,
              "communication.ranks_per_node", as_algorithm);
    }

    /// What the kind of device decides, whichever of its kind it is.
    void check_device() const {
        if (config_.device.kind == DeviceKind::automatic) return;
        const bool is_cpu = config_.device.kind == DeviceKind::cpu;
        const std::string as_kind =
            fmt::format(", as device.kind is {}", value_text(config_, "device.kind"));
        const Precision precision = config_.training.precision;
        const bool is_of_gpus = precision == Precision::tf32 || precision == Precision::fp16 ||
                                precision == Precision::mixed;
        check(!is_cpu || !is_of_gpus, "training.precision",
              "auto, fp32, bf16 or int8" + as_kind + " (GPUs have tf32, fp16 and mixed)");
        check(is_cpu || precision != Precision::int8, "training.precision",
              "auto, fp32, tf32, fp16, mixed or bf16" + as_kind + " (CPUs have int8)");
        check(!is_cpu || config_.communication.backend != CommunicationBackend::nccl,
              "communication.backend", "auto or mpi" + as_kind);
        check(!is_cpu || config_.data.resident_mib == 0, "data.resident_mib",
              "0" + as_kind + " (data.decoded_cache_mib keeps pictures in its memory)");
    }

    /// Keys that the optimizer has no use for stay what they are.
    void check_use(bool has_use, std::initializer_list<const char*> names) const {
        for (const char* name : names) {
            const std::string full_name = std::string("training.") + name;
            const std::string usual = value_text(Config{}, full_name);
            check(has_use || value_text(config_, full_name) == usual, full_name,
                  fmt::format("{}, as training.optimizer is {}", usual,
                              value_text(config_, "training.optimizer")));
        }
    }

private:
    const Config& config_;
    const PlaceOf& place_of_;
};

}  // namespace

void check_consistency(const Config& config, const PlaceOf& place_of) {
    const Checker checker(config, place_of);
    checker.check_run();
    checker.check_workload();
    checker.check_data();
    checker.check_batch();
    checker.check_schedule();
    checker.check_optimizer();
    checker.check_communication();
    checker.check_device();
}

}  // namespace hpcai::config
