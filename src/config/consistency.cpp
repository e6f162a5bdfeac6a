// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>

#include "section_keys.hpp"
#include "setting_checker.hpp"

namespace hpcai::config {
namespace {

class Checker : private SettingChecker {
public:
    using SettingChecker::SettingChecker;

    void check_run() const {
        const std::uint64_t max_seed =
            kMaxSeed - static_cast<std::uint64_t>(config_.run.repeat - 1);
        check(config_.run.seed <= max_seed, "run.seed",
              fmt::format("at most {}", max_seed) + as("run.repeat"));
        check(!config_.run.trace || config_.run.measure_phases, "run.trace",
              "false" + as("run.measure_phases"));
        check(config_.run.keep_weights || config_.run.level == Level::custom, "run.keep_weights",
              "true" + as("run.level"));
    }

    void check_workload() const {
        const WorkloadConfig& workload = config_.workload;
        const WorkloadRow& row = row_of(workload.kind);
        const bool is_detection = row.task == Task::detection;
        const std::string as_kind = as("workload.kind");
        check(workload.penalty_exponent * -std::log10(workload.target_quality) <= 200,
              "workload.target_quality",
              "a number x for which (1 / x)^workload.penalty_exponent is at most 1e200");
        check_legal_choice(row.models, &Config::workload, &WorkloadConfig::model, "workload.model");
        check_legal_choice(row.aggregations, &Config::bagging, &BaggingConfig::aggregation,
                           "bagging.aggregation");
        if (!is_detection) check_no_detector();
        if (row.task == Task::classification) {
            check(workload.classes != 1, "workload.classes", "2 or more" + as_kind);
            check(image_width(config_) == workload.image_size, "workload.image_width",
                  "auto or workload.image_size" + as_kind);
            return;
        }
        check(!config_.bagging.out_of_bag, "bagging.out_of_bag", "false" + as_kind);
        check(config_.training.label_smoothing == 0, "training.label_smoothing",
              fmt::format("0, as workload.model is {}",
                          is_detection ? "a detector" : "segmentation_net"));
        if (is_detection) {
            check_detector();
        } else {
            check_default("workload.backbone_width", as("workload.model"));
        }
    }

    void check_data() const {
        const DataConfig& data = config_.data;
        const std::string as_kind = as("data.kind");
        check_legal_choice(row_of(config_.workload.kind).data, &Config::data, &DataConfig::kind,
                           "data.kind");
        if (task_of(config_.workload) != Task::classification) {
            check_default("data.random_area_minimum",
                          fmt::format(", as nothing is cropped if data.kind is {}",
                                      value_text(config_, "data.kind")));
        }
        if (has_fields(data)) {
            check_channels(16);
            check(config_.workload.classes == 4 || config_.workload.classes == 0,
                  "workload.classes", "4, as the boxes of climate data have 4 classes");
            check(data.kind == DataKind::climate_hdf5 || data.max_boxes >= 15, "data.max_boxes",
                  "15 or more" + as_kind);
        } else {
            const auto channels = static_cast<std::size_t>(config_.workload.channels);
            const std::string per_channel =
                fmt::format("{} values, one for each of workload.channels", channels);
            check(data.mean.size() == channels, "data.mean", per_channel);
            check(data.standard_deviation.size() == channels, "data.standard_deviation",
                  per_channel);
        }
        check(config_.workload.classes > 0 || data.kind != DataKind::synthetic, "workload.classes",
              "an integer" + as_kind);
        check_source_keys();
        check_paths();
        if (!has_fields(data) && data.kind != DataKind::synthetic) check_channels(3);
        check(data.resident_mib == 0 || data.kind == DataKind::image_folder, "data.resident_mib",
              "0" + as_kind);
        check(data.decoder == Decoder::cpu || data.kind == DataKind::image_folder, "data.decoder",
              "cpu" + as_kind);
        check(data.decoder == Decoder::cpu || data.resident_mib == 0, "data.resident_mib",
              "0" + as("data.decoder"));
        check(data.decoder == Decoder::cpu || !config_.run.deterministic, "data.decoder",
              "cpu" + as("run.deterministic"));
        if (is_synthetic()) {
            check(data.synthetic_samples >= config_.training.batch_size, "data.synthetic_samples",
                  fmt::format("at least training.batch_size, which is {}",
                              config_.training.batch_size));
        }
        if (data.staging == Staging::none) return;
        check(!is_synthetic(), "data.staging", "none" + as_kind);
        check(!data.staging_directory.empty(), "data.staging_directory",
              "a directory" + as("data.staging"));
    }

    void check_batch() const {
        const TrainingConfig& training = config_.training;
        check_parallel();
        if (config_.bagging.degree && !has_pipeline(config_.parallel)) {
            check(training.batch_size % *config_.bagging.degree == 0, "training.batch_size",
                  fmt::format("a multiple of bagging.P_degree, which is {}",
                              *config_.bagging.degree));
        }
        check(
            !training.batch_norm_samples || training.batch_size % *training.batch_norm_samples == 0,
            "training.batch_norm_samples",
            fmt::format("a divisor of training.batch_size, which is {}", training.batch_size));
    }

    void check_schedule() const {
        check(
            std::ranges::adjacent_find(config_.training.schedule_epochs, std::greater_equal<>()) ==
                config_.training.schedule_epochs.end(),
            "training.schedule_epochs", "increasing epochs");
        check(config_.training.warmup_epochs < config_.workload.epochs, "training.warmup_epochs",
              fmt::format("less than workload.epochs, which is {}, such as 0",
                          config_.workload.epochs));
    }

    void check_optimizer() const {
        const TrainingConfig& training = config_.training;
        const Optimizer optimizer = training.optimizer;
        const bool has_momentum = optimizer == Optimizer::sgd || optimizer == Optimizer::lars;
        check_unused_keys(has_momentum, {"momentum", "nesterov", "momentum_correction"});
        check_unused_keys(has_betas(optimizer), {"beta1", "beta2"});
        check_unused_keys(optimizer != Optimizer::sgd, {"epsilon"});
        check_unused_keys(optimizer == Optimizer::lars, {"trust_coefficient"});
        // Except with lars, an epsilon that fp32 rounds to 0 may cause a division by 0.
        check(optimizer == Optimizer::lars || !training.epsilon ||
                  static_cast<float>(*training.epsilon) > 0,
              "training.epsilon", "a number of at least 1.5e-45" + as("training.optimizer"));
        check(!training.nesterov || training.momentum > 0, "training.momentum",
              "a number above 0" + as("training.nesterov"));
    }

    void check_communication() const {
        using enum AllReduceAlgorithm;
        const CommunicationConfig& used = config_.communication;
        const std::string as_algorithm = as("communication.algorithm");
        check(used.algorithm == torus_2d || !used.torus_columns, "communication.torus_columns",
              "auto" + as_algorithm);
        check(used.algorithm == hierarchical || !used.ranks_per_node,
              "communication.ranks_per_node", "auto" + as_algorithm);
        if (used.algorithm != native) return;
        check(used.precision == CommunicationPrecision::fp32, "communication.precision",
              "fp32" + as_algorithm);
        check(!config_.run.deterministic, "communication.algorithm",
              "all_reduce, torus_2d or hierarchical" + as("run.deterministic"));
    }

    /// Checks the settings that only one kind of device supports.
    void check_device() const {
        if (config_.device.kind == DeviceKind::automatic) return;
        const bool is_cpu = config_.device.kind == DeviceKind::cpu;
        const std::string as_kind = as("device.kind");
        const Precision precision = config_.training.precision;
        const bool needs_gpu = precision == Precision::tf32 || precision == Precision::fp16 ||
                               precision == Precision::mixed;
        check(!is_cpu || !needs_gpu, "training.precision",
              "auto, fp32, bf16 or int8" + as_kind + " (GPUs have tf32, fp16 and mixed)");
        check(is_cpu || precision != Precision::int8, "training.precision",
              "auto, fp32, tf32, fp16, mixed or bf16" + as_kind + " (CPUs have int8)");
        check(!is_cpu || config_.communication.backend != CommunicationBackend::nccl,
              "communication.backend", "auto or mpi" + as_kind);
        check(!is_cpu || config_.data.resident_mib == 0, "data.resident_mib",
              "0" + as_kind + " (data.decoded_cache_mib keeps images in host memory)");
        check(!is_cpu || config_.data.decoder == Decoder::cpu, "data.decoder", "cpu" + as_kind);
    }

private:
    template <typename Section, typename Choice>
    void check_legal_choice(std::span<const Choice> legal, Section Config::*section,
                            Choice Section::*member, const std::string& full_name) const {
        std::vector<std::string> names;
        Config candidate = config_;
        for (const Choice choice : legal) {
            candidate.*section.*member = choice;
            names.push_back(value_text(candidate, full_name));
        }
        check(std::ranges::find(legal, config_.*section.*member) != legal.end(), full_name,
              fmt::format("{}", fmt::join(names, " or ")) + as("workload.kind"));
    }

    void check_no_detector() const {
        for (const Key& key : keys()) {
            if (key.section == "detector") check_default(key.full_name(), as("workload.model"));
        }
    }

    void check_detector() const {
        const DetectorConfig& detector = config_.detector;
        const bool is_frozen = detector.normalization == Normalization::frozen_batch;
        const std::string as_normalization = as("detector.normalization");
        check(is_frozen || detector.trained_stages == 5, "detector.trained_stages",
              "5, as detector.normalization is not frozen_batch");
        check(detector.anchor_sizes.size() == 5, "detector.anchor_sizes",
              "5 values, one for each level of the pyramid");
        check_anchors();
        check(!is_frozen || !config_.training.initial_weights.empty(), "training.initial_weights",
              "a file" + as_normalization);
        check(detector.normalization != Normalization::group ||
                  config_.workload.backbone_width % 32 == 0,
              "workload.backbone_width", "a multiple of 32" + as_normalization);
        check(
            detector.normalization == Normalization::batch || !config_.training.batch_norm_samples,
            "training.batch_norm_samples", "auto, as detector.normalization is not batch");
    }

    void check_anchors() const {
        constexpr double kMaxAnchors = 16777216;  // fp32 represents smaller indices exactly
        const DetectorConfig& detector = config_.detector;
        const std::size_t ratios = detector.anchor_ratios.size();
        check(ratios > 0, "detector.anchor_ratios", "one value or more");
        // Positions at stride 4; all coarser levels together have less than half as many.
        const double cells = image_width(config_) / 4.0 * config_.workload.image_size / 4.0 * 1.5;
        check(static_cast<double>(ratios) * cells < kMaxAnchors, "detector.anchor_ratios",
              "fewer values: an image must have fewer than 16,777,216 anchors");
        for (const double size : detector.anchor_sizes) {
            for (const double ratio : detector.anchor_ratios) {
                const double shorter = size * std::min(std::sqrt(ratio), 1 / std::sqrt(ratio));
                check(shorter / 2 > 0.5, "detector.anchor_sizes",
                      "sizes whose anchors have sides of more than a pixel in all "
                      "detector.anchor_ratios");
            }
        }
    }

    void check_channels(int channels) const {
        check(config_.workload.channels == channels, "workload.channels",
              fmt::format("{}", channels) + as("data.kind"));
    }

    bool is_synthetic() const {
        return config_.data.kind == DataKind::synthetic ||
               config_.data.kind == DataKind::climate_synthetic;
    }

    /// Checks that a key has its default if only other kinds of sources read it.
    void check_source_keys() const {
        constexpr const char* kFiles = "image_folder, voc, coco or climate_hdf5";
        constexpr std::pair<const char*, std::string_view> kReaders[] = {
            {"data.path", kFiles},
            {"data.validation_path", kFiles},
            {"data.image_path", "coco"},
            {"data.validation_image_path", "coco"},
            {"data.training_split", "voc"},
            {"data.validation_split", "voc"},
            {"data.class_names", "voc or coco"}};
        const std::string kind = value_text(config_, "data.kind");
        for (const auto& [key, readers] : kReaders) {
            check(readers.find(kind) != readers.npos || has_default(key), key,
                  fmt::format("{}{} (set data.kind to {} to use this key)",
                              in_quotes(value_text(Config{}, key)), as("data.kind"), readers));
        }
    }

    void check_paths() const {
        struct Path {
            DataKind kind;
            const char* key;
            const char* meaning;
        };
        constexpr Path kRequired[] = {
            {DataKind::image_folder, "data.path", "a folder"},
            {DataKind::image_folder, "data.validation_path", "a folder"},
            {DataKind::voc, "data.path", "a folder"},
            {DataKind::coco, "data.path", "an annotation file"},
            {DataKind::coco, "data.validation_path", "an annotation file"},
            {DataKind::coco, "data.image_path", "a folder"},
            {DataKind::coco, "data.validation_image_path", "a folder"},
            {DataKind::climate_hdf5, "data.path", "a file or folder"},
            {DataKind::climate_hdf5, "data.validation_path", "a file or folder"}};
        for (const auto& [kind, key, meaning] : kRequired) {
            check(kind != config_.data.kind || !value_text(config_, key).empty(), key,
                  meaning + as("data.kind"));
        }
    }

    /// Checks the settings that do not depend on P_degree; plan::make_layout() checks the others.
    void check_parallel() const {
        const ParallelConfig& parallel = config_.parallel;
        const std::string as_mode = as("parallel.mode"), as_model = as("workload.model");
        if (parallel.mode == ParallelMode::data || parallel.mode == ParallelMode::model) {
            check(parallel.pipeline_degree.value_or(1) == 1, "parallel.pipeline_degree",
                  "auto or 1" + as_mode);
            check_default("parallel.schedule", as_mode);
        }
        if (parallel.mode == ParallelMode::data || parallel.mode == ParallelMode::pipeline) {
            check(parallel.model_degree.value_or(1) == 1, "parallel.model_degree",
                  "auto or 1" + as_mode);
        }
        check(config_.device.kind != DeviceKind::cuda || parallel.model_degree.value_or(1) == 1,
              "parallel.model_degree",
              "1" + as("device.kind") + ", which has no model parallelism yet");
        if (!has_pipeline(parallel)) return;
        const bool is_classification = task_of(config_.workload) == Task::classification;
        check(is_classification || parallel.mode == ParallelMode::data, "parallel.mode",
              "data" + as_model + ", which has neither pipeline nor model parallelism yet");
        check(is_classification, "parallel.micro_batches", "1" + as_model);
        check(config_.data.resident_mib == 0, "data.resident_mib",
              "0, as resident images support no micro-batches, pipeline or model parallelism");
        check(config_.data.decoder == Decoder::cpu, "data.decoder",
              "cpu, as GPU decoding supports no micro-batches, pipeline or model parallelism");
    }

    /// Checks that keys of `training` that the optimizer does not use have their defaults.
    void check_unused_keys(bool is_used, std::initializer_list<const char*> names) const {
        if (is_used) return;
        for (const char* name : names) {
            check_default(std::string("training.") + name, as("training.optimizer"));
        }
    }
};

}  // namespace

void check_consistency(const Config& config, const LocationOf& location_of) {
    const Checker checker(config, location_of);
    checker.check_run();
    checker.check_workload();
    check_search(config, location_of);
    checker.check_data();
    checker.check_batch();
    checker.check_schedule();
    checker.check_optimizer();
    checker.check_communication();
    checker.check_device();
}

}  // namespace hpcai::config
