// SPDX-License-Identifier: Apache-2.0
#include <hpcai/config/workload_table.hpp>

#include "section_keys.hpp"

namespace hpcai::config {
namespace {

constexpr double kMaxSeed = 9007199254740991;  // 2^53 - 1, which doubles hold exactly
constexpr double kWeek = 7 * 86400;            // seconds
constexpr double kMonth = 31 * 86400;          // seconds

Key as_file_name(Key key) {
    key.is_file_name = true;
    return key;
}

}  // namespace

std::vector<Key> run_keys() {
    using C = RunConfig;
    using enum Level;
    constexpr SectionKeys<&Config::run> key;
    return {
        as_file_name(
            key("name", &C::name, "Name of the run, part of the result directory's default name.")),
        key("seed", &C::seed, between(0, kMaxSeed),
            "Seed of everything drawn: bootstraps, initial weights, order and augmentation."),
        key("output", &C::output,
            "Result directory; empty means one in results/, called by run.name and the UTC time."),
        key("deterministic", &C::deterministic,
            "Makes results the same bits in every run and for every number of threads, at some "
            "cost of speed; result.json says under which conditions."),
        key("audit_steps", &C::audit_steps, between(0, kMaxInt, "steps"),
            "Steps between two audits, in which the ranks of one base model compare a hash of "
            "their parameters and optimizer state; 0 leaves the one at the end of training."),
        key("loss_steps", &C::loss_steps, between(0, kMaxInt, "steps"),
            "Steps between two readings of the loss, of failures and of numbers that are not "
            "finite, for which the host waits; 0 is 1 on a CPU, with micro-batches and in a "
            "pipeline, and 20 on a GPU that repeats recorded steps."),
        key("measure_phases", &C::measure_phases,
            "Whether each rank measures where the time of each step goes: groups/<m>/steps.csv, "
            "ranks.csv and time_breakdown in result.json."),
        key("trace", &C::trace,
            "Writes groups/<m>/trace.json, which Perfetto and Chrome show: phases, kernels and "
            "sums of some steps of each rank. Needs measure_phases."),
        key("trace_steps", &C::trace_steps, between(1, 1000, "steps"),
            "Steps that run.trace has, from the fourth of the training on."),
        key("level", &C::level,
            {{hardware, "hardware"}, {system, "system"}, {free, "free"}, {custom, "custom"}},
            "Benchmark level whose rules the run keeps; custom runs keep none and are not "
            "rankable."),
        key("roofline", &C::roofline,
            "Ceiling that the run's speed is compared with: measure takes about two seconds before "
            "training, and on a GPU until the plans that it needs have been timed, outside of "
            "every clock that scores; off has none; else a file that `hpcai500 roofline --output` "
            "wrote."),
    };
}

std::vector<Key> run_lifecycle_keys() {
    using C = RunConfig;
    using enum Meters;
    constexpr SectionKeys<&Config::run> key;
    return {
        key("evaluate_epochs", &C::evaluate_epochs, between(0, 65535, "epochs"),
            "Epochs between two evaluations of each model on the test samples in the course of its "
            "training, on a clock that stands still; 0 is none but the one at the end. Costs "
            "memory beside the training's."),
        key("repeat", &C::repeat, between(1, 100, "runs"),
            "Complete runs in one invocation, with the seeds seed, seed + 1, ...: each in "
            "repetition_1, repetition_2, ... of the result directory, with medians and spread in "
            "repetitions.json."),
        key("checkpoint_steps", &C::checkpoint_steps, between(0, kMaxInt, "steps"),
            "Steps between two checkpoints of each group, from which `hpcai500 resume` goes on; 0 "
            "writes one only where the run is asked to stop. The last two are kept until the group "
            "is done."),
        key("time_limit_seconds", &C::time_limit_seconds, between(0, kMonth, "seconds"),
            "Time from the start of the program until it has stopped at a checkpoint, as it does "
            "on SIGUSR1; 0 is none."),
        key("meters", &C::meters, {{automatic, "auto"}, {none, "none"}},
            "Whether the energy of GPUs (NVML) and processors (RAPL) and the bytes of network "
            "interfaces are read while the run trains, where nodes show them: once a second, on "
            "each node by the first rank of each group there; and whether each rank asks the "
            "driver of its GPU how that is."),
        key("first_step_timeout_seconds", &C::first_step_timeout_seconds,
            between(1, kWeek, "seconds"),
            "The longest that a rank may take until the results of training steps are first read "
            "(loss_steps), in which libraries tune themselves and communicators connect, and, "
            "where step_timeout_seconds is 0, at least for those read next. Then its watchdog ends "
            "the group."),
        key("step_timeout_seconds", &C::step_timeout_seconds, between(0, kWeek, "seconds"),
            "The longest that a rank may be without a training step whose results were read, "
            "audits included; checkpoints may take first_step_timeout_seconds more, evaluations as "
            "long as they take. Then its watchdog ends the group. 0 learns it: ten times the "
            "longest so far, at least 300 s."),
        key("group_patience_seconds", &C::group_patience_seconds, between(1, kWeek, "seconds"),
            "How long groups that have finished wait at least for one that says nothing; then they "
            "vote without it. Where half of their own training took longer, they wait that long."),
    };
}

std::vector<Key> submission_keys() {
    using C = SubmissionConfig;
    constexpr SectionKeys<&Config::submission> key;
    return {
        key("system_name", &C::system_name, "Name of the system."),
        key("organization", &C::organization, "Who runs the system and hands the result in."),
        key("contact", &C::contact, "Whom to ask about the result; part of the published files."),
        key("hardware", &C::hardware,
            "Layer 1: nodes, processors, accelerators, memory, network, storage."),
        key("operating_system", &C::operating_system,
            "Layer 2: system, kernel, drivers, containers."),
        key("communication_libraries", &C::communication_libraries,
            "Layer 3: MPI, NCCL and what they run over."),
        key("acceleration_libraries", &C::acceleration_libraries,
            "Layer 4: libraries of kernels, such as cuDNN or oneDNN."),
        key("framework", &C::framework,
            "Layer 5: what trains the models; this program, or what was changed in it."),
        key("parallel_mode", &C::parallel_mode,
            "Layer 6: how ranks share the training, and why so."),
        key("algorithm", &C::algorithm, "Layer 7: the model and what was changed in it."),
        key("hyper_parameters", &C::hyper_parameters,
            "Layer 8: learning-rate policy, batch size and the rest."),
        key("problem", &C::problem,
            "Layer 9, which no level changes: data set, target quality, epochs."),
    };
}

std::vector<Key> workload_keys() {
    using C = WorkloadConfig;
    constexpr SectionKeys<&Config::workload> key;
    return {
        key("kind", &C::kind, names_of(kWorkloads),
            "Task of the benchmark: image_classification or extreme_weather; object_detection "
            "trains the latter's detector on other pictures, climate_segmentation gives the class "
            "of storm of each 8 x 8 pixels of the latter's fields."),
        key("model", &C::model, names_of(kModels),
            "Network: v1 has the stride of a down-sampling block on its first 1x1 convolution, "
            "v1.5 on its 3x3; the detector is Faster R-CNN on v1.5 with a feature pyramid; "
            "segmentation_net is a small fully convolutional one."),
        key("classes", &C::classes, between(1, 1000000),
            "Classes of the data set; those of boxes do not count the background."),
        key("image_size", &C::image_size, between(32, 4096, "pixels"),
            "Height of the network's input, and its width unless image_width is given."),
        key("image_width", &C::image_width, between(32, 4096, "pixels"),
            "Width of a detector's or a segmentation's input; auto is image_size."),
        key("channels", &C::channels, between(1, 1024), "Channels of the network's input."),
        key("backbone_width", &C::backbone_width, between(8, 512, "channels"),
            "Channels of the first stage of a classifier or of a detector's backbone; 64 is "
            "ResNet-50."),
        key("target_quality", &C::target_quality, above_up_to(0, 1, "fraction"),
            "Top-1 accuracy, AP50 of a detector, or mean intersection over union of a "
            "segmentation, that the penalty coefficient of VFLOPS compares with."),
        key("penalty_exponent", &C::penalty_exponent, between(0, 100),
            "Exponent n of the penalty coefficient (achieved / target quality)^n."),
        key("epochs", &C::epochs, between(1, 65535, "epochs"),
            "Passes of each base model over its own bootstrap."),
    };
}

std::vector<Key> bagging_keys() {
    using C = BaggingConfig;
    using enum Sampler;
    using enum Aggregation;
    constexpr SectionKeys<&Config::bagging> key;
    return {
        key("M", &C::groups, between(1, kMaxInt, "models"),
            "Base models trained at the same time; auto takes the ranks of the launch divided by "
            "P_degree."),
        key("P_degree", &C::degree, between(1, kMaxInt, "ranks"),
            "Ranks that train one base model; auto takes the ranks of the launch divided by M, or "
            "one node's ranks if M is auto too."),
        key("sampler", &C::sampler,
            {{bootstrap, "bootstrap"},
             {poisson, "poisson"},
             {subsample, "subsample"},
             {none, "none"}},
            "How each base model draws its data: N of N with replacement, Poisson(1) times each "
            "sample, a fraction without replacement, or all samples."),
        key("subsample_fraction", &C::subsample_fraction, above_up_to(0, 1, "fraction"),
            "Share of the samples that the subsample sampler draws."),
        key("aggregation", &C::aggregation,
            {{soft_vote, "soft_vote"}, {majority, "majority"}, {wbf, "wbf"}, {nms, "nms"}},
            "How the base models' predictions are combined: of classifiers, of images or of cells, "
            "the mean of the softmax outputs or the majority of the Top-1 classes, of detectors "
            "weighted boxes fusion or non-maximum suppression."),
        key("out_of_bag", &C::out_of_bag,
            "Whether each base model is also evaluated on the training samples that its bootstrap "
            "left out."),
    };
}

std::vector<Key> parallel_keys() {
    using C = ParallelConfig;
    using enum ParallelMode;
    using enum PipelineSchedule;
    constexpr SectionKeys<&Config::parallel> key;
    return {
        key("mode", &C::mode,
            {{data, "data"}, {pipeline, "pipeline"}, {model, "model"}, {mixed, "mixed"}},
            "How the ranks of one base model split a step: by the batch's samples (data), by the "
            "model's layers in stages (pipeline), by the channels of each layer (model), or by all "
            "three (mixed); pipeline and model may be shared by ranks that split the samples. "
            "Faster R-CNN and segmentation_net have mode data only; on GPUs layers have no parts."),
        key("data_degree", &C::data_degree, between(1, kMaxInt, "ranks"),
            "Ranks that share the samples of a batch, with each part of each stage; auto is what "
            "the other degrees leave of P_degree."),
        key("pipeline_degree", &C::pipeline_degree, between(1, kMaxInt, "stages"),
            "Stages of a pipeline; auto is P_degree / data_degree, or P_degree where that is auto, "
            "too; in mode mixed what the other degrees leave of P_degree."),
        key("model_degree", &C::model_degree, between(1, kMaxInt, "ranks"),
            "Parts among which the channels of each layer are shared out, in modes model and "
            "mixed; auto as for pipeline_degree. The parts exchange activations at nearly every "
            "layer. At most as many as the narrowest layer has channels: workload.backbone_width, "
            "or workload.classes where these are fewer. On CPUs only."),
        key("micro_batches", &C::micro_batches, between(1, 1048576),
            "Pieces in which a rank takes its share of a batch, one after the other, adding up "
            "their gradients; each has BatchNorm statistics of its own."),
        key("schedule", &C::schedule, {{one_forward_one_backward, "1f1b"}, {gpipe, "gpipe"}},
            "Order of micro-batches at a stage: gpipe takes all forward and then all backward; "
            "1f1b goes backward as early as it can, which holds the activations of at most "
            "pipeline_degree of them. Results are the same; with one stage or one micro-batch, the "
            "order too."),
    };
}

}  // namespace hpcai::config
