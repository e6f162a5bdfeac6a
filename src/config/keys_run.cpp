// SPDX-License-Identifier: Apache-2.0
#include <hpcai/config/workload_table.hpp>

#include "section_keys.hpp"

namespace hpcai::config {
namespace {

constexpr double kWeekSeconds = 7 * 86400;
constexpr double kMonthSeconds = 31 * 86400;

Key as_file_name(Key key) {
    key.is_file_name = true;
    return key;
}

/// Represents the value 0 of an integer key as `auto`.
Key with_auto(Key key) {
    key.may_be_auto = true;
    key.get = [get = key.get](const Config& config) {
        const Value value = get(config);
        return value == Value(std::int64_t{0}) ? Automatic{} : value;
    };
    key.set = [set = key.set](Config& config, const Value& value) {
        set(config, std::holds_alternative<Automatic>(value) ? std::int64_t{0} : value);
    };
    return key;
}

std::string meaning_of_kinds() {
    std::string text = "Workload: ";
    for (const WorkloadRow& row : kWorkloads) {
        text.append(row.name).append(" ").append(row.meaning).append("; ");
    }
    return text + "the first two are the benchmark's.";
}

}  // namespace

std::vector<Key> run_keys() {
    using C = RunConfig;
    using enum Level;
    constexpr SectionKeys<&Config::run> key{"run"};
    return {
        as_file_name(
            key("name", &C::name, "Name of the run, used in the default result directory.")),
        key("seed", &C::seed, between(0, kMaxSeed),
            "Seed of all random draws: bootstraps, initial weights, sample order and "
            "augmentation."),
        key("output", &C::output, "Result directory; empty uses results/<run.name>-<UTC time>."),
        key("deterministic", &C::deterministic,
            "Makes results bit-identical between runs and for any number of threads; steps may be "
            "slower. `determinism` in result.json lists what must be equal."),
        key("audit_steps", &C::audit_steps, between(0, kMaxInt, "steps"),
            "Steps between audits, in which a base model's replicas compare a hash of parameters "
            "and optimizer state; 0 audits only before checkpoints and at the end."),
        key("loss_steps", &C::loss_steps, between(0, kMaxInt, "steps"),
            "Steps between reads of the loss, for which the host waits. Each read also detects "
            "failures and non-finite values. 0 uses 20 on a GPU that replays a CUDA graph, else 1, "
            "as on CPUs and with micro-batches or pipelines."),
        key("measure_phases", &C::measure_phases,
            "Measures the phases of each step on each rank: groups/<m>/steps.csv, ranks.csv and "
            "time_breakdown in result.json."),
        key("trace", &C::trace,
            "Writes groups/<m>/trace.json for Perfetto and Chrome: phases, kernels and all-reduces "
            "of trace_steps steps of each rank. Needs measure_phases."),
        key("trace_steps", &C::trace_steps, between(1, 1000, "steps"),
            "Steps to trace, from the fourth training step."),
        key("level", &C::level,
            {{hardware, "hardware"},
             {system, "system"},
             {free, "free"},
             {custom, "custom"},
             {aiperf, "aiperf"}},
            "Benchmark level whose rules the run must keep; custom runs are not ranked. aiperf is "
            "for an architecture search."),
        key("roofline", &C::roofline,
            "Peak rates to compare the run with: measure (about two seconds before training, "
            "longer on a GPU with device.autotune; not part of any score), off, or a file of "
            "`hpcai500 roofline --output`."),
    };
}

std::vector<Key> run_lifecycle_keys() {
    using C = RunConfig;
    using enum Meters;
    using enum ProgressOutput;
    constexpr SectionKeys<&Config::run> key{"run"};
    return {
        key("evaluate_epochs", &C::evaluate_epochs, between(0, 65535, "epochs"),
            "Epochs between evaluations on the test samples. They need memory but do not count as "
            "training time. 0 evaluates only at the end."),
        key("repeat", &C::repeat, between(1, 100, "runs"),
            "Complete runs in one invocation, with seeds seed, seed + 1, ..., in repetition_1, ... "
            "of the result directory; repetitions.json has medians and spread."),
        key("keep_weights", &C::keep_weights,
            "Keeps the trained weights. false (level custom only) deletes them after the ensemble "
            "evaluation; export then fails."),
        key("keep_checkpoints", &C::keep_checkpoints, between(0, 100, "checkpoints"),
            "Checkpoints of each group to keep for `verify --replay`, at evenly spread ends of "
            "epochs."),
        key("checkpoint_steps", &C::checkpoint_steps, between(0, kMaxInt, "steps"),
            "Steps between checkpoints of each group for `hpcai500 resume`; 0 uses "
            "checkpoint_seconds."),
        key("checkpoint_seconds", &C::checkpoint_seconds, between(0, kWeekSeconds, "seconds"),
            "If checkpoint_steps is 0: minimum time between checkpoints, which are written at ends "
            "of epochs. 0 writes only those of keep_checkpoints and of a stop."),
        key("time_limit_seconds", &C::time_limit_seconds, between(0, kMonthSeconds, "seconds"),
            "Time from program start until the run has stopped at a checkpoint, as on SIGUSR1; 0 "
            "is no limit."),
        key("meters", &C::meters, {{automatic, "auto"}, {none, "none"}},
            "auto reads GPU energy (NVML), processor energy (RAPL), network traffic and GPU health "
            "once a second during training, where available."),
        key("progress", &C::progress, {{human, "human"}, {json, "json"}, {off, "off"}},
            "human prints progress on standard error. json prints progress and result on standard "
            "output, one JSON object per line, and all text on standard error."),
        key("first_step_timeout_seconds", &C::first_step_timeout_seconds,
            between(1, kWeekSeconds, "seconds"),
            "Watchdog timeout of the first loss read (loss_steps), including library tuning and "
            "connection setup. On expiry the group ends. Also the timeout of the second read if "
            "step_timeout_seconds is 0."),
        key("step_timeout_seconds", &C::step_timeout_seconds, between(0, kWeekSeconds, "seconds"),
            "Watchdog timeout between later reads, including audits but not evaluations. On expiry "
            "the group ends. A checkpoint adds first_step_timeout_seconds. 0 uses ten times the "
            "longest time between reads, but at least 300 s and the time until the first read."),
        key("group_timeout_seconds", &C::group_timeout_seconds, between(1, kWeekSeconds, "seconds"),
            "Finished groups wait this long for a silent group, or half of their own training time "
            "if that is longer. They then evaluate the ensemble without it."),
    };
}

std::vector<Key> submission_keys() {
    using C = SubmissionConfig;
    constexpr SectionKeys<&Config::submission> key{"submission"};
    return {
        key("system_name", &C::system_name, "Name of the system."),
        key("organization", &C::organization,
            "Operator of the system and submitter of the result."),
        key("contact", &C::contact, "Contact for questions about the result; published."),
        key("hardware", &C::hardware,
            "Layer 1: nodes, processors, accelerators, memory, network, storage."),
        key("operating_system", &C::operating_system,
            "Layer 2: system, kernel, drivers, containers."),
        key("communication_libraries", &C::communication_libraries,
            "Layer 3: MPI, NCCL and their transports."),
        key("acceleration_libraries", &C::acceleration_libraries,
            "Layer 4: kernel libraries, such as cuDNN or oneDNN."),
        key("framework", &C::framework,
            "Layer 5: training framework; this program and any changes to it."),
        key("parallel_mode", &C::parallel_mode,
            "Layer 6: parallelization of training, with reasons."),
        key("algorithm", &C::algorithm, "Layer 7: the model and any changes to it."),
        key("hyper_parameters", &C::hyper_parameters,
            "Layer 8: learning-rate policy, batch size and others."),
        key("problem", &C::problem,
            "Layer 9, fixed at every level: data set, target quality, epochs."),
    };
}

std::vector<Key> workload_keys() {
    using C = WorkloadConfig;
    constexpr SectionKeys<&Config::workload> key{"workload"};
    return {
        key("kind", &C::kind, names_of(kWorkloads), meaning_of_kinds()),
        key("problem_class", &C::problem_class,
            {{ProblemClass::official, "official"}, {ProblemClass::mini, "mini"}},
            "Rules and ranking of the run: official (the benchmark's problems) or mini (small "
            "problems with the data of `data generate mini`)."),
        key("model", &C::model, names_of(kModels),
            "Network. In a down-sampling block, v1 has the stride in the first 1x1 convolution, "
            "v1.5 in the 3x3. faster_rcnn_r50_fpn is built on v1.5; segmentation_net is a small "
            "fully convolutional network."),
        with_auto(
            key("classes", &C::classes, between(1, 1000000),
                "Classes of the data set, without the background class of detectors; auto counts "
                "those of the training samples.")),
        key("image_size", &C::image_size, between(32, 4096, "pixels"),
            "Height of the network's input, and its width unless image_width is set."),
        key("image_width", &C::image_width, between(32, 4096, "pixels"),
            "Input width for detection or segmentation; auto is image_size."),
        key("channels", &C::channels, between(1, 1024), "Channels of the network's input."),
        key("backbone_width", &C::backbone_width, between(8, 512, "channels"),
            "Channels of the first stage of a classifier or a detector's backbone; 64 is "
            "ResNet-50."),
        key("target_quality", &C::target_quality, above_up_to(0, 1, "fraction"),
            "Target quality of the VFLOPS penalty, in the metric of the task."),
        key("penalty_exponent", &C::penalty_exponent, between(0, 100),
            "Exponent n of the penalty (quality / target_quality)^n."),
        key("epochs", &C::epochs, between(1, 65535, "epochs"),
            "Passes of each base model over its bootstrap sample."),
    };
}

std::vector<Key> detector_keys() {
    using C = DetectorConfig;
    using enum Normalization;
    constexpr SectionKeys<&Config::detector> key{"detector"};
    return {
        key("normalization", &C::normalization,
            {{batch, "batch"}, {frozen_batch, "frozen_batch"}, {group, "group"}},
            "Backbone normalization: over the batch (batch), with statistics of "
            "training.initial_weights (frozen_batch), or in 32 channel groups per image (group)."),
        key("trained_stages", &C::trained_stages, between(0, 5),
            "Backbone stages to train, counted from the last; 5 is all, including the first "
            "convolution."),
        key("pyramid_channels", &C::pyramid_channels, between(8, 2048, "channels"),
            "Channels of the feature pyramid and the proposal network."),
        key("head_features", &C::head_features, between(8, 16384),
            "Features of the two hidden layers that classify regions."),
        key("anchor_sizes", &C::anchor_sizes, between(1, 8192, "pixels"),
            "Square root of the anchor area for pyramid levels of strides 4, 8, 16, 32 and 64."),
        key("anchor_ratios", &C::anchor_ratios, between(0.05, 20),
            "Height / width of the anchors."),
        key("anchor_samples", &C::anchor_samples, between(2, 4096),
            "Anchors per image that are sampled for the losses of the proposal network."),
        key("region_samples", &C::region_samples, between(4, 4096),
            "Regions per image that are sampled for the losses of the second stage, at most a "
            "quarter of them foreground."),
        key("training_proposals", &C::training_proposals, between(1, 4096),
            "Proposals kept in training: per pyramid level before non-maximum suppression, per "
            "image after it."),
        key("inference_proposals", &C::inference_proposals, between(1, 4096),
            "Like training_proposals, in evaluation."),
        key("score_threshold", &C::score_threshold, from_below(0, 1, "fraction"),
            "Detections with a score above this are kept, at most 100 per image."),
        key("fusion_overlap", &C::fusion_overlap, from_below(0, 1, "fraction"),
            "IoU above which boxes of base models are merged; 0 uses 0.55 for wbf and 0.5 for "
            "nms."),
    };
}

std::vector<Key> bagging_keys() {
    using C = BaggingConfig;
    using enum Sampler;
    using enum Aggregation;
    constexpr SectionKeys<&Config::bagging> key{"bagging"};
    return {
        key("M", &C::groups, between(1, kMaxInt, "models"),
            "Base models trained concurrently; auto is ranks / P_degree."),
        key("P_degree", &C::degree, between(1, kMaxInt, "ranks"),
            "Ranks that train one base model; auto is ranks / M, or the ranks of one node if M is "
            "also auto."),
        key("sampler", &C::sampler,
            {{bootstrap, "bootstrap"},
             {poisson, "poisson"},
             {subsample, "subsample"},
             {none, "none"}},
            "How each base model draws its training samples: bootstrap (N of N with replacement), "
            "poisson (each Poisson(1) times), subsample (a fraction without replacement), or none "
            "(all)."),
        key("subsample_fraction", &C::subsample_fraction, above_up_to(0, 1, "fraction"),
            "Fraction of the samples that sampler subsample draws."),
        key("aggregation", &C::aggregation,
            {{soft_vote, "soft_vote"}, {majority, "majority"}, {wbf, "wbf"}, {nms, "nms"}},
            "Combination of the base models' predictions. Classification and segmentation: "
            "soft_vote (mean softmax output) or majority (of Top-1 classes). Detection: wbf "
            "(weighted boxes fusion) or nms (non-maximum suppression)."),
        key("out_of_bag", &C::out_of_bag,
            "For classifiers: also evaluates each base model on the training samples that it has "
            "not drawn."),
    };
}

std::vector<Key> parallel_keys() {
    using C = ParallelConfig;
    using enum ParallelMode;
    using enum PipelineSchedule;
    constexpr SectionKeys<&Config::parallel> key{"parallel"};
    return {
        key("mode", &C::mode,
            {{data, "data"}, {pipeline, "pipeline"}, {model, "model"}, {mixed, "mixed"}},
            "How the ranks of a base model divide a step: by samples (data), layers (pipeline), "
            "channels of each layer (model), or all three (mixed). With data_degree above 1, "
            "pipeline and model also divide samples. Detection and segmentation support data only; "
            "GPUs support no model parallelism."),
        key("data_degree", &C::data_degree, between(1, kMaxInt, "ranks"),
            "Ranks among which the samples of a batch are divided; auto is P_degree divided by the "
            "other degrees."),
        key("pipeline_degree", &C::pipeline_degree, between(1, kMaxInt, "stages"),
            "Pipeline stages; auto is P_degree divided by the other degrees that are given."),
        key("model_degree", &C::model_degree, between(1, kMaxInt, "ranks"),
            "Shards of each layer's channels in modes model and mixed; auto is as for "
            "pipeline_degree. At most the smaller of workload.backbone_width and "
            "workload.classes."),
        key("micro_batches", &C::micro_batches, between(1, 1048576),
            "Micro-batches into which each rank's samples are divided, with gradient accumulation; "
            "each micro-batch has its own BatchNorm statistics."),
        key("schedule", &C::schedule, {{one_forward_one_backward, "1f1b"}, {gpipe, "gpipe"}},
            "Order of micro-batches in a stage: gpipe runs all forward, then all backward; 1f1b "
            "runs backward early and holds activations of at most pipeline_degree micro-batches. "
            "Results are the same."),
    };
}

}  // namespace hpcai::config
