// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/config/workload_table.hpp>

/// The User Configuration of the paper: one struct per YAML section, defaults inside. Meanings,
/// units and legal values of every key stand in the key table (config/keys.hpp), which also makes
/// `hpcai500 config explain` and `config schema`.
namespace hpcai::config {

enum class Level { hardware, system, free, custom };
enum class Normalization { batch, frozen_batch, group };
enum class Sampler { bootstrap, poisson, subsample, none };
enum class ParallelMode { data, pipeline, model, mixed };
enum class PipelineSchedule { gpipe, one_forward_one_backward };
enum class FieldPrecision { fp32, fp16, bf16 };
enum class Staging { none, training, all };
enum class StagingCleanup { keep, remove, remove_on_success, remove_on_failure };
enum class BadSamplePolicy { fail, skip, count };
enum class Optimizer { sgd, lars, lamb, adam, adamw, adagrad };
enum class Schedule { constant, step, cosine, polynomial };
enum class Precision { automatic, fp32, tf32, fp16, mixed, bf16, int8 };
enum class CommunicationBackend { automatic, mpi, nccl };
enum class AllReduceAlgorithm { all_reduce, torus_2d, hierarchical };
enum class CommunicationPrecision { fp32, bf16, fp16, int8 };
enum class DeviceKind { automatic, cpu, cuda };
enum class ActivationLayout { automatic, blocked, channels_last };
enum class Meters { automatic, none };

struct RunConfig {
    std::string name = "run";
    std::uint64_t seed = 1;
    std::string output;  // directory; empty: results/<name>-<UTC time>
    bool deterministic = false;
    int audit_steps = 100;       // between two comparisons of the replicas; 0: only at the end
    int loss_steps = 0;          // between two readings of the loss; 0: 1 on a CPU, 20 on a GPU
    bool measure_phases = true;  // where the time of each step goes
    bool trace = false;
    int trace_steps = 20;
    Level level = Level::custom;
    std::string roofline = "measure";  // or "off", or a file of `hpcai500 roofline`
    int repeat = 1;
    int evaluate_epochs = 0;  // between two evaluations in training; 0: at the end only
    Meters meters = Meters::automatic;
    int checkpoint_steps = 0;       // between two checkpoints; 0: only when asked to stop
    double time_limit_seconds = 0;  // of the program, then it stops at a checkpoint; 0: none
    double first_step_timeout_seconds = 900;  // of a rank's watchdog, until its first step is done
    double step_timeout_seconds = 0;          // between two steps done; 0: learned from the run
    double group_patience_seconds = 600;      // of finished groups with silent ones, at least
};

/// Who hands the result in, and the nine layers of the system, in words.
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
    Model model = Model::resnet50_v1_5;
    int classes = 1000;
    int image_size = 224;            // pixels a side, or of the height
    std::optional<int> image_width;  // pixels; absent: image_size
    int channels = 3;
    int backbone_width = 64;        // channels of the ResNet's first stage
    double target_quality = 0.763;  // of the task's metric
    double penalty_exponent = 5;    // n of eq. 8
    int epochs = 90;
};

/// Sizes of Faster R-CNN beside its input; the defaults are the benchmark's.
struct DetectorConfig {
    Normalization normalization = Normalization::batch;
    int trained_stages = 5;  // of the backbone, from the last on
    int pyramid_channels = 256;
    int head_features = 1024;
    std::vector<double> anchor_sizes = {32, 64, 128, 256, 512};  // pixels, one a level
    std::vector<double> anchor_ratios = {0.5, 1, 2};             // height / width
    int anchor_samples = 256;        // an image, of the proposal network's losses
    int region_samples = 512;        // an image, of the second stage's losses
    int training_proposals = 2000;   // an image, and a level before suppression
    int inference_proposals = 1000;  // likewise
    double score_threshold = 0.01;   // of detections that are kept
    double fusion_overlap = 0;       // IoU from which the members\' boxes are one; 0: the usual one
};

struct BaggingConfig {
    std::optional<int> groups;  // M; absent: from eq. 5
    std::optional<int> degree;  // P_degree; absent: from eq. 5, else the ranks of one node
    Sampler sampler = Sampler::poisson;
    double subsample_fraction = 0.632;
    Aggregation aggregation = Aggregation::soft_vote;
    bool out_of_bag = true;  // also evaluate on the training samples a bootstrap left out
};

struct ParallelConfig {
    ParallelMode mode = ParallelMode::data;
    std::optional<int> data_degree;      // absent: what is left of P_degree
    std::optional<int> pipeline_degree;  // stages; absent: what is left of P_degree, or 1
    int micro_batches = 1;               // of one rank's share of a batch
    PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
    std::optional<int> model_degree;  // parts of each layer; absent: as pipeline_degree
};

struct DataConfig {
    DataKind kind = DataKind::synthetic;
    std::string path;             // of the training samples, as data.kind has them
    std::string validation_path;  // likewise
    std::string image_path;       // coco: folder of the training pictures
    std::string validation_image_path;
    std::string training_split = "train";   // voc: a list in ImageSets/Main
    std::string validation_split = "test";  // likewise
    std::vector<std::string> class_names;   // of voc, coco; empty: all that the training set has
    BadSamplePolicy on_bad_sample = BadSamplePolicy::fail;
    int synthetic_samples = 1280;            // training samples of the synthetic source
    int synthetic_validation_samples = 256;  // its test samples
    double random_area_minimum = 0.08;       // of the image, random resized crop
    double flip_probability = 0.5;           // left to right
    double vertical_flip_probability = 0;    // top to bottom: for aerial pictures, which have no up
    bool climate_augmentation = true;
    FieldPrecision climate_precision = FieldPrecision::fp32;         // of made-up or HDF5 fields
    std::vector<double> mean = {0.485, 0.456, 0.406};                // per channel, in [0, 1]
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};  // per channel, in [0, 1]
    int prefetch_batches = 3;
    int decode_threads = 0;     // per rank; 0: from the cores the rank may use
    int decoded_cache_mib = 0;  // per rank, of decoded training images; 0: none
    int max_boxes = 15;         // of one sample
    int resident_mib = 0;       // per rank, of decoded training images in a GPU's memory; 0: none
    Staging staging = Staging::none;
    std::string staging_directory;  // on each node's own disk
    StagingCleanup staging_cleanup = StagingCleanup::keep;
    int staging_pack_mib = 256;      // of one file of the stage that holds pictures
    int staging_reserve_mib = 1024;  // left free on that disk
};

struct TrainingConfig {
    int batch_size = 256;                   // per model
    std::optional<int> batch_norm_samples;  // statistics span; absent: what a rank has at once
    Optimizer optimizer = Optimizer::sgd;
    double learning_rate = 0.1;     // for a batch of learning_rate_batch samples
    int learning_rate_batch = 256;  // linear scaling: lr = learning_rate * batch_size / this
    Schedule schedule = Schedule::step;
    std::vector<int> schedule_epochs = {30, 60, 80};  // step: where the rate is multiplied
    double schedule_factor = 0.1;                     // step: by what
    double schedule_power = 2;                        // polynomial
    double final_learning_rate = 0;  // cosine, polynomial: behind the last step, scaled
    double warmup_epochs = 5;
    double warmup_start = 0;                  // share of the peak rate one step before step 0
    double momentum = 0.9;                    // sgd, lars
    bool nesterov = false;                    // sgd, lars
    std::optional<bool> momentum_correction;  // sgd, lars; absent: as the optimizer is published
    double beta1 = 0.9;                       // lamb, adam, adamw
    double beta2 = 0.999;                     // lamb, adam, adamw
    std::optional<double> epsilon;            // all but sgd; absent: as the optimizer is published
    double trust_coefficient = 0.001;         // lars
    double weight_decay = 1e-4;
    bool weight_decay_on_norm_and_bias = false;
    double label_smoothing = 0;
    bool zero_gamma = true;  // last BatchNorm of each residual block starts at zero
    double batch_norm_momentum = 0.1;
    Precision precision = Precision::automatic;
    int loss_scale = 0;  // 0: mixed finds it by itself, others have none
    bool fusion = true;
    std::string initial_weights;  // safetensors with torchvision's names
};

struct CommunicationConfig {
    CommunicationBackend backend = CommunicationBackend::automatic;
    AllReduceAlgorithm algorithm = AllReduceAlgorithm::all_reduce;
    CommunicationPrecision precision = CommunicationPrecision::fp32;
    std::optional<int> torus_columns;   // absent: the grid nearest to a square
    std::optional<int> ranks_per_node;  // absent: as MPI finds them
    double bucket_mib = 25;
    bool overlap = true;
};

struct DeviceConfig {
    DeviceKind kind = DeviceKind::automatic;
    int threads = 0;  // per rank; 0: from the cores the rank may use
    ActivationLayout layout = ActivationLayout::automatic;
    bool autotune = true;
    std::string plan_cache;  // file; empty: none
    bool recording = true;
};

struct Config {
    RunConfig run;
    SubmissionConfig submission;
    WorkloadConfig workload;
    DetectorConfig detector;
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

/// Whether samples are fields of the weather; otherwise they are pictures.
constexpr bool has_fields(const DataConfig& data) {
    return data.kind == DataKind::climate_synthetic || data.kind == DataKind::climate_hdf5;
}

/// Whether a step is that of a pipeline, perhaps of one stage.
constexpr bool has_pipeline(const ParallelConfig& parallel) {
    return parallel.mode != ParallelMode::data || parallel.micro_batches > 1;
}

/// Numbers that the optimizer keeps for each parameter.
constexpr int optimizer_states(Optimizer optimizer) {
    const bool has_one = optimizer == Optimizer::sgd || optimizer == Optimizer::lars ||
                         optimizer == Optimizer::adagrad;
    return has_one ? 1 : 2;
}

/// Of the network's input, in pixels.
inline int image_width(const Config& config) {
    return config.workload.image_width.value_or(config.workload.image_size);
}

}  // namespace hpcai::config
