// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The User Configuration of the paper: one struct per YAML section, defaults inside. Meanings,
/// units and legal values of every key stand in the key table (config/keys.hpp), which also makes
/// `hpcai500 config explain` and `config schema`.
namespace hpcai::config {

enum class Level { hardware, system, free, custom };
enum class WorkloadKind { image_classification };
enum class Model { resnet50_v1, resnet50_v1_5 };
enum class Sampler { bootstrap, poisson, subsample, none };
enum class Aggregation { soft_vote, majority };
enum class ParallelMode { data };
enum class DataKind { synthetic, image_folder };
enum class BadSamplePolicy { fail, skip, count };
enum class Optimizer { sgd };
enum class Schedule { constant, step, cosine, polynomial };
enum class Precision { automatic, fp32, tf32, mixed, bf16 };
enum class CommunicationBackend { automatic, mpi, nccl };
enum class AllReduceAlgorithm { all_reduce };
enum class CommunicationPrecision { fp32 };
enum class DeviceKind { automatic, cpu, cuda };
enum class ActivationLayout { automatic, blocked, channels_last };

struct RunConfig {
    std::string name = "run";
    std::uint64_t seed = 1;
    std::string output;  // directory; empty: results/<name>-<UTC time>
    bool deterministic = false;
    int audit_steps = 100;  // between two comparisons of the replicas; 0: only at the end
    int loss_steps = 0;     // between two readings of the loss; 0: 1 on a CPU, 20 on a GPU
    Level level = Level::custom;
};

struct WorkloadConfig {
    WorkloadKind kind = WorkloadKind::image_classification;
    Model model = Model::resnet50_v1_5;
    int classes = 1000;
    int image_size = 224;  // pixels a side
    int channels = 3;
    double target_quality = 0.763;  // Top-1 accuracy
    double penalty_exponent = 5;    // n of eq. 8
    int epochs = 90;
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
};

struct DataConfig {
    DataKind kind = DataKind::synthetic;
    std::string path;             // folder of class folders
    std::string validation_path;  // likewise
    BadSamplePolicy on_bad_sample = BadSamplePolicy::fail;
    int synthetic_samples = 1280;            // training samples of the synthetic source
    int synthetic_validation_samples = 256;  // its test samples
    double random_area_minimum = 0.08;       // of the image, random resized crop
    double flip_probability = 0.5;           // left to right
    double vertical_flip_probability = 0;    // top to bottom: for aerial pictures, which have no up
    std::vector<double> mean = {0.485, 0.456, 0.406};                // per channel, in [0, 1]
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};  // per channel, in [0, 1]
    int prefetch_batches = 3;
    int decode_threads = 0;     // per rank; 0: from the cores the rank may use
    int decoded_cache_mib = 0;  // per rank, of decoded training images; 0: none
    int resident_mib = 0;       // per rank, of decoded training images in a GPU's memory; 0: none
};

struct TrainingConfig {
    int batch_size = 256;                   // per model
    std::optional<int> batch_norm_samples;  // statistics span; absent: batch_size / P_degree
    Optimizer optimizer = Optimizer::sgd;
    double learning_rate = 0.1;     // for a batch of learning_rate_batch samples
    int learning_rate_batch = 256;  // linear scaling: lr = learning_rate * batch_size / this
    Schedule schedule = Schedule::step;
    std::vector<int> schedule_epochs = {30, 60, 80};  // step: where the rate is multiplied
    double schedule_factor = 0.1;                     // step: by what
    double schedule_power = 2;                        // polynomial
    double final_learning_rate = 0;  // cosine, polynomial: behind the last step, scaled
    double warmup_epochs = 5;
    double warmup_start = 0;  // share of the peak rate one step before step 0
    double momentum = 0.9;
    bool nesterov = false;
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
    double bucket_mib = 25;
    bool overlap = true;
};

struct DeviceConfig {
    DeviceKind kind = DeviceKind::automatic;
    int threads = 0;  // per rank; 0: from the cores the rank may use
    ActivationLayout layout = ActivationLayout::automatic;
    bool autotune = true;
    std::string plan_cache;  // file; empty: none
};

struct Config {
    RunConfig run;
    WorkloadConfig workload;
    BaggingConfig bagging;
    ParallelConfig parallel;
    DataConfig data;
    TrainingConfig training;
    CommunicationConfig communication;
    DeviceConfig device;
};

}  // namespace hpcai::config
