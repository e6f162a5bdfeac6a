// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/config/workload_table.hpp>

/// The "User Configuration" of the paper: one struct per YAML section, with the defaults. The key
/// table (config/keys.hpp) has the meaning, unit and legal values of every key.
namespace hpcai::config {

enum class Level { hardware, system, free, custom, aiperf };
enum class Normalization { batch, frozen_batch, group };
enum class Sampler { bootstrap, poisson, subsample, none };
enum class ParallelMode { data, pipeline, model, mixed };
enum class PipelineSchedule { gpipe, one_forward_one_backward };
enum class FieldPrecision { fp32, fp16, bf16 };
enum class Staging { none, training, all };
enum class Decoder { cpu, gpu };
enum class StagingCleanup { keep, remove, remove_on_success, remove_on_failure };
enum class BadSamplePolicy { fail, skip, count };
enum class Optimizer { sgd, lars, lamb, adam, adamw, adagrad };
enum class Schedule { constant, step, cosine, polynomial };
enum class Precision { automatic, fp32, tf32, fp16, mixed, bf16, int8 };
enum class CommunicationBackend { automatic, mpi, nccl };
enum class AllReduceAlgorithm { all_reduce, torus_2d, hierarchical, native };
enum class CommunicationPrecision { fp32, bf16, fp16, int8 };
enum class DeviceKind { automatic, cpu, cuda };
enum class ActivationLayout { automatic, blocked, channels_last };
enum class Meters { automatic, none };
enum class ProgressOutput { human, json, off };
enum class ParentChoice { evolution, bayesian, random };
enum class SearchHistory { asynchronous, own, recorded };

struct RunConfig {
    std::string name = "run";
    std::uint64_t seed = 1;
    std::string output;  // directory; empty: results/<name>-<UTC time>
    bool deterministic = false;
    int audit_steps = 100;  // steps between comparisons of the replicas; 0: only at the end
    int loss_steps = 0;     // steps between reads of the loss; 0: 20 with a CUDA graph, else 1
    bool measure_phases = true;
    bool trace = false;
    int trace_steps = 20;
    Level level = Level::custom;
    std::string roofline = "measure";  // or "off", or a file of `hpcai500 roofline`
    int repeat = 1;
    bool keep_weights = true;  // in the result directory of a complete run
    int keep_checkpoints = 0;  // number for each finished group, for `verify --replay`
    int evaluate_epochs = 0;   // epochs between evaluations; 0: only at the end
    Meters meters = Meters::automatic;
    ProgressOutput progress = ProgressOutput::human;
    int checkpoint_steps = 0;         // steps between checkpoints; 0: checkpoint_seconds decides
    double checkpoint_seconds = 600;  // minimum between checkpoints at epoch ends; 0: none there
    double time_limit_seconds = 0;    // of a launch, including its last checkpoint; 0: no limit
    double first_step_timeout_seconds = 900;  // watchdog: until the first loss read
    double step_timeout_seconds = 0;          // watchdog: between loss reads; 0: from earlier reads
    double group_timeout_seconds = 600;       // minimum wait of finished groups for silent groups
};

/// The submitter and descriptions of the nine layers of the system (docs/RULES.md).
struct SubmissionConfig {
    std::string system_name;
    std::string organization;
    std::string contact;
    std::string hardware;
    std::string operating_system;
    std::string communication_libraries;
    std::string acceleration_libraries;
    std::string framework;
    std::string parallel_mode;
    std::string algorithm;
    std::string hyper_parameters;
    std::string problem;
};

struct WorkloadConfig {
    WorkloadKind kind = WorkloadKind::image_classification;
    ProblemClass problem_class = ProblemClass::official;
    Model model = Model::resnet50_v1_5;
    int classes = 1000;              // 0: to be counted in the training data
    int image_size = 224;            // pixels, height
    std::optional<int> image_width;  // pixels; absent: image_size
    int channels = 3;
    int backbone_width = 64;        // channels of the first stage of a ResNet
    double target_quality = 0.763;  // of the task's metric
    double penalty_exponent = 5;    // n of eq. 8, (quality / target)^n
    int epochs = 90;
};

/// Settings of Faster R-CNN except its input; the defaults are the benchmark's.
struct DetectorConfig {
    Normalization normalization = Normalization::batch;
    int trained_stages = 5;  // stages of the backbone that train, counted from the last
    int pyramid_channels = 256;
    int head_features = 1024;
    std::vector<double> anchor_sizes = {32, 64, 128, 256, 512};  // pixels, one per pyramid level
    std::vector<double> anchor_ratios = {0.5, 1, 2};             // height / width
    int anchor_samples = 256;        // per image, for the losses of the proposal network
    int region_samples = 512;        // per image, for the losses of the second stage
    int training_proposals = 2000;   // per pyramid level before suppression, per image after
    int inference_proposals = 1000;  // as training_proposals, in evaluation
    double score_threshold = 0.01;   // detections above it are kept
    double fusion_overlap = 0;       // IoU above which boxes merge; 0: the aggregation's default
};

struct BaggingConfig {
    std::optional<int> groups;  // M; absent: ranks / P_degree
    std::optional<int> degree;  // P_degree; absent: ranks / M; M absent too: the ranks of one node
    Sampler sampler = Sampler::poisson;
    double subsample_fraction = 0.632;
    Aggregation aggregation = Aggregation::soft_vote;
    bool out_of_bag = true;  // also evaluate on the training samples that were not drawn
};

struct ParallelConfig {
    ParallelMode mode = ParallelMode::data;
    std::optional<int> data_degree;      // absent: P_degree / the other degrees
    std::optional<int> pipeline_degree;  // absent: P_degree / given degrees; 1 in modes data, model
    int micro_batches = 1;               // parts of a rank's samples that run one after another
    PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
    std::optional<int> model_degree;  // absent: P_degree / given degrees; 1 in modes data, pipeline
};

struct DataConfig {
    DataKind kind = DataKind::synthetic;
    std::string path;             // of the training samples; its form depends on data.kind
    std::string validation_path;  // of the test samples, in the form of `path`
    std::string image_path;       // coco: folder of the training images
    std::string validation_image_path;
    std::string training_split = "train";   // voc: list in ImageSets/Main
    std::string validation_split = "test";  // voc: list in ImageSets/Main
    std::vector<std::string> class_names;   // voc, coco; empty: all classes of the training set
    BadSamplePolicy on_bad_sample = BadSamplePolicy::fail;
    int synthetic_samples = 1280;            // training samples of a synthetic source
    int synthetic_validation_samples = 256;  // test samples of a synthetic source
    double random_area_minimum = 0.08;       // share of the image's area, for random resized crops
    double flip_probability = 0.5;           // left to right
    double vertical_flip_probability = 0;    // top to bottom, for aerial images
    bool climate_augmentation = true;
    FieldPrecision climate_precision = FieldPrecision::fp32;         // of synthetic or HDF5 fields
    std::vector<double> mean = {0.485, 0.456, 0.406};                // per channel, in [0, 1]
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};  // per channel, in (0, 1]
    int prefetch_batches = 3;
    int decode_threads = 0;     // per rank; 0: from the cores the rank may use
    int decoded_cache_mib = 0;  // per rank: host memory for images or generated weather; 0: none
    int max_boxes = 15;         // of one sample
    int resident_mib = 0;       // per rank: GPU memory for decoded training images; 0: none
    Decoder decoder = Decoder::cpu;  // of training images
    Staging staging = Staging::none;
    std::string staging_directory;  // on a local disk of each node
    StagingCleanup staging_cleanup = StagingCleanup::keep;
    int staging_pack_mib = 256;      // size of a file of staged images
    int staging_reserve_mib = 1024;  // left free on the disk of staging_directory
};

struct TrainingConfig {
    int batch_size = 256;                   // per model
    std::optional<int> batch_norm_samples;  // samples that share statistics; absent: a micro-batch
    Optimizer optimizer = Optimizer::sgd;
    double learning_rate = 0.1;     // for batches of learning_rate_batch samples
    int learning_rate_batch = 256;  // peak rate: learning_rate * batch_size / learning_rate_batch
    Schedule schedule = Schedule::step;
    std::vector<int> schedule_epochs = {30, 60, 80};  // step: where schedule_factor is applied
    double schedule_factor = 0.1;                     // step: factor of the rate
    double schedule_power = 2;                        // polynomial
    double final_learning_rate = 0;  // cosine, polynomial; scaled like learning_rate
    double warmup_epochs = 5;
    double warmup_start = 0;                  // fraction of the peak rate one step before step 0
    double momentum = 0.9;                    // sgd, lars
    bool nesterov = false;                    // sgd, lars
    std::optional<bool> momentum_correction;  // sgd, lars; absent: true for sgd, false for lars
    double beta1 = 0.9;                       // lamb, adam, adamw
    double beta2 = 0.999;                     // lamb, adam, adamw
    std::optional<double> epsilon;            // all but sgd; absent: the optimizer's default
    double trust_coefficient = 0.001;         // lars
    double weight_decay = 1e-4;
    bool weight_decay_on_norm_and_bias = false;
    double label_smoothing = 0;
    bool zero_gamma = true;  // the scale of the last BatchNorm of a residual block starts at 0
    double batch_norm_momentum = 0.1;
    Precision precision = Precision::automatic;
    int loss_scale = 0;  // 0: dynamic for precisions mixed and fp16, otherwise none
    bool fusion = true;
    std::string initial_weights;  // safetensors with torchvision's names
};

struct CommunicationConfig {
    CommunicationBackend backend = CommunicationBackend::automatic;
    AllReduceAlgorithm algorithm = AllReduceAlgorithm::all_reduce;
    CommunicationPrecision precision = CommunicationPrecision::fp32;
    std::optional<int> torus_columns;   // ranks in a row of the grid; absent: nearest to a square
    std::optional<int> ranks_per_node;  // that `hierarchical` treats as one node; absent: detected
    double bucket_mib = 25;
    bool overlap = true;
};

struct DeviceConfig {
    DeviceKind kind = DeviceKind::automatic;
    int threads = 0;  // per rank; 0: from the cores the rank may use
    ActivationLayout layout = ActivationLayout::automatic;
    bool autotune = true;
    std::string plan_cache;  // file that keeps GPU autotuning results; empty: none
    bool recording = true;   // whether a GPU captures a training step as a CUDA graph
};

/// Settings of an architecture search (workload.kind architecture_search).
struct SearchConfig {
    int trials = 0;               // per group; 0: search.duration_seconds ends the search
    double duration_seconds = 0;  // from the end of start-up; 0: search.trials ends the search
    std::vector<int> epochs = {15, 30, 45, 60};  // of a group's trials in order; the last repeats
    ParentChoice parent = ParentChoice::evolution;
    SearchHistory history = SearchHistory::asynchronous;
    std::string recorded;         // history recorded: the result directory to replay
    double hold_out = 0.1;        // share of the training samples, used only to compare trials
    double max_flops_factor = 4;  // maximum FLOPs of a trial's network / FLOPs of the first network
    double max_memory_gb = 0;     // GB of a rank for a trial's network; 0: the rank's memory
    bool plain_deepening = false;
    std::vector<int> root_blocks = {3, 4, 6, 3};           // [stage] of the first network, the root
    std::vector<double> rate_factors = {0.5, 2};           // range of the factor of learning_rate
    std::vector<double> weight_decays = {0.00001, 0.001};  // range of training.weight_decay
};

struct Config {
    RunConfig run;
    SubmissionConfig submission;
    WorkloadConfig workload;
    DetectorConfig detector;
    SearchConfig search;
    BaggingConfig bagging;
    ParallelConfig parallel;
    DataConfig data;
    TrainingConfig training;
    CommunicationConfig communication;
    DeviceConfig device;
};

constexpr Task task_of(const WorkloadConfig& workload) {
    return row_of(workload.kind).task;
}

constexpr bool is_search(const WorkloadConfig& workload) {
    return workload.kind == WorkloadKind::architecture_search;
}

/// Returns the number of epochs of a group's trial number `sequence`, counted from 0.
inline int trial_epochs(const SearchConfig& search, std::int64_t sequence) {
    return search.epochs[std::min<std::size_t>(sequence, search.epochs.size() - 1)];
}

/// Returns true if samples are weather fields, false if they are images.
constexpr bool has_fields(const DataConfig& data) {
    return data.kind == DataKind::climate_synthetic || data.kind == DataKind::climate_hdf5;
}

/// Returns true if training::PipelineStep runs the steps: for stages, shards or micro-batches.
constexpr bool has_pipeline(const ParallelConfig& parallel) {
    return parallel.mode != ParallelMode::data || parallel.micro_batches > 1;
}

/// Returns true if the optimizer keeps running means of gradients and of their squares.
constexpr bool has_betas(Optimizer optimizer) {
    return optimizer == Optimizer::lamb || optimizer == Optimizer::adam ||
           optimizer == Optimizer::adamw;
}

/// Returns the number of state values per parameter; device::state_count() must return the same.
constexpr int optimizer_states(Optimizer optimizer) {
    return has_betas(optimizer) ? 2 : 1;
}

/// Returns after how many steps a group keeps a checkpoint, in ascending order: at the ends of up
/// to run.keep_checkpoints epochs, which are evenly spread and do not include the last epoch.
inline std::vector<std::int64_t> kept_steps(const Config& config, std::int64_t steps_per_epoch) {
    const std::int64_t epochs = config.workload.epochs;
    const std::int64_t kept = std::min<std::int64_t>(config.run.keep_checkpoints, epochs - 1);
    std::vector<std::int64_t> steps;
    for (std::int64_t i = 1; i <= kept; ++i)
        steps.push_back(i * epochs / (kept + 1) * steps_per_epoch);
    return steps;
}

/// Width of the network's input in pixels.
inline int image_width(const Config& config) {
    return config.workload.image_width.value_or(config.workload.image_size);
}

}  // namespace hpcai::config
