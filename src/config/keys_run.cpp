// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "key_builder.hpp"

namespace hpcai::config {
namespace {

/// When what does not go on is given up.
std::vector<Key> keys_of_patience(const SectionBuilder<RunConfig>& run) {
    constexpr double kLongest = 604800;  // a week
    return {
        run.number(
            "first_step_timeout_seconds", &RunConfig::first_step_timeout_seconds,
            {.meaning = "The longest that a rank may take until the results of training steps "
                        "are first read (loss_steps), in which libraries tune themselves "
                        "and communicators connect, and, where step_timeout_seconds is 0, "
                        "at least for those read next. Then its watchdog ends the group.",
             .unit = "seconds",
             .bounds = between(1, kLongest)}),
        run.number("step_timeout_seconds", &RunConfig::step_timeout_seconds,
                   {.meaning = "The longest that a rank may be without a training step whose "
                               "results were read, audits included; checkpoints may take "
                               "first_step_timeout_seconds more, evaluations as long as they take. "
                               "Then its watchdog ends the group. 0 learns it: ten times the "
                               "longest so far, at least 300 s.",
                    .unit = "seconds",
                    .bounds = between(0, kLongest)}),
        run.number("group_patience_seconds", &RunConfig::group_patience_seconds,
                   {.meaning = "How long groups that have finished wait at least for one that "
                               "says nothing; then they vote without it. Where half of their own "
                               "training took longer, they wait that long.",
                    .unit = "seconds",
                    .bounds = between(1, kLongest)}),
    };
}

/// What happens in the course of a run, beside its training.
std::vector<Key> keys_over_time(const SectionBuilder<RunConfig>& run) {
    return {
        run.integer("evaluate_epochs", &RunConfig::evaluate_epochs,
                    {.meaning = "Epochs between two evaluations of each model on the test samples "
                                "in the course of its training, on a clock that stands still; 0 "
                                "is none but the one at the end. Costs memory beside the "
                                "training's.",
                     .unit = "epochs",
                     .bounds = between(0, 65535)}),
        run.integer("repeat", &RunConfig::repeat,
                    {.meaning = "Complete runs in one invocation, with the seeds seed, seed + 1, "
                                "...: each in repetition_1, repetition_2, ... of the result "
                                "directory, with medians and spread in repetitions.json.",
                     .unit = "runs",
                     .bounds = between(1, 100)}),
        run.integer("checkpoint_steps", &RunConfig::checkpoint_steps,
                    {.meaning = "Steps between two checkpoints of each group, from which "
                                "`hpcai500 resume` goes on; 0 writes one only where the run is "
                                "asked to stop. The last two are kept until the group is done.",
                     .unit = "steps",
                     .bounds = between(0, kMaxInt)}),
        run.number("time_limit_seconds", &RunConfig::time_limit_seconds,
                   {.meaning = "Time from the start of the program until it has stopped at a "
                               "checkpoint, as it does on SIGUSR1; 0 is none.",
                    .unit = "seconds",
                    .bounds = between(0, 2678400)}),  // 31 days
        run.choice<Meters>(
            "meters", &RunConfig::meters, {{{Meters::automatic, "auto"}, {Meters::none, "none"}}},
            {.meaning =
                 "Whether the energy of GPUs (NVML) and processors (RAPL) and the bytes of "
                 "network interfaces are read while the run trains, where nodes show them: "
                 "once a second, on each node by the first rank of each group there; and whether "
                 "each rank asks the driver of its GPU how that is."}),
    };
}

}  // namespace

std::vector<Key> run_keys() {
    const SectionBuilder<RunConfig> run("run", &Config::run);
    Key name =
        run.text("name", &RunConfig::name,
                 {.meaning = "Name of the run, part of the result directory's default name."});
    name.is_file_name = true;
    std::vector<Key> keys{
        name,
        // 2^53 - 1: readers that hold numbers as doubles still read every seed exactly.
        run.integer("seed", &RunConfig::seed,
                    {.meaning = "Seed of everything drawn: bootstraps, initial weights, order and "
                                "augmentation.",
                     .bounds = between(0, 9007199254740991)}),
        run.text("output", &RunConfig::output,
                 {.meaning = "Result directory; empty means one in results/, called by run.name "
                             "and the UTC time."}),
        run.boolean("deterministic", &RunConfig::deterministic,
                    {.meaning = "Makes results the same bits in every run and for every number of "
                                "threads, at some cost of speed; result.json says under which "
                                "conditions."}),
        run.integer(
            "audit_steps", &RunConfig::audit_steps,
            {.meaning = "Steps between two audits, in which the ranks of one base model "
                        "compare a hash of their parameters and optimizer state; 0 leaves the "
                        "one at the end of training.",
             .unit = "steps",
             .bounds = between(0, kMaxInt)}),
        run.integer("loss_steps", &RunConfig::loss_steps,
                    {.meaning = "Steps between two readings of the loss, of failures and of "
                                "numbers that are not finite, for which the host waits; 0 is 1 "
                                "on a CPU, with micro-batches and in a pipeline, and 20 on a "
                                "GPU that repeats recorded steps.",
                     .unit = "steps",
                     .bounds = between(0, kMaxInt)}),
        run.boolean("measure_phases", &RunConfig::measure_phases,
                    {.meaning = "Whether each rank measures where the time of each step goes: "
                                "groups/<m>/steps.csv, ranks.csv and time_breakdown in "
                                "result.json."}),
        run.boolean("trace", &RunConfig::trace,
                    {.meaning = "Writes groups/<m>/trace.json, which Perfetto and Chrome show: "
                                "phases, kernels and sums of some steps of each rank. Needs "
                                "measure_phases."}),
        run.integer("trace_steps", &RunConfig::trace_steps,
                    {.meaning = "Steps that run.trace has, from the fourth of the training on.",
                     .unit = "steps",
                     .bounds = between(1, 1000)}),
        run.choice<Level>("level", &RunConfig::level,
                          {{{Level::hardware, "hardware"},
                            {Level::system, "system"},
                            {Level::free, "free"},
                            {Level::custom, "custom"}}},
                          {.meaning = "Benchmark level whose rules the run keeps; custom runs keep "
                                      "none and are not rankable."}),
        run.text(
            "roofline", &RunConfig::roofline,
            {.meaning = "Ceiling that the run's speed is compared with: measure takes about two "
                        "seconds before training, and on a GPU until the plans that it needs "
                        "have been timed, outside of every clock that scores; off has "
                        "none; else a file that `hpcai500 roofline --output` wrote."}),
    };
    for (Key& key : keys_over_time(run)) keys.push_back(std::move(key));
    for (Key& key : keys_of_patience(run)) keys.push_back(std::move(key));
    return keys;
}

std::vector<Key> submission_keys() {
    const SectionBuilder<SubmissionConfig> submission("submission", &Config::submission);
    using S = SubmissionConfig;
    return {
        submission.text("system_name", &S::system_name, {.meaning = "Name of the system."}),
        submission.text("organization", &S::organization,
                        {.meaning = "Who runs the system and hands the result in."}),
        submission.text("contact", &S::contact,
                        {.meaning = "Whom to ask about the result; part of the published files."}),
        submission.text("hardware", &S::hardware,
                        {.meaning = "Layer 1: nodes, processors, accelerators, memory, network, "
                                    "storage."}),
        submission.text("operating_system", &S::operating_system,
                        {.meaning = "Layer 2: system, kernel, drivers, containers."}),
        submission.text("communication_libraries", &S::communication_libraries,
                        {.meaning = "Layer 3: MPI, NCCL and what they run over."}),
        submission.text("acceleration_libraries", &S::acceleration_libraries,
                        {.meaning = "Layer 4: libraries of kernels, such as cuDNN or oneDNN."}),
        submission.text("framework", &S::framework,
                        {.meaning = "Layer 5: what trains the models; this program, or what was "
                                    "changed in it."}),
        submission.text("parallel_mode", &S::parallel_mode,
                        {.meaning = "Layer 6: how ranks share the training, and why so."}),
        submission.text("algorithm", &S::algorithm,
                        {.meaning = "Layer 7: the model and what was changed in it."}),
        submission.text("hyper_parameters", &S::hyper_parameters,
                        {.meaning = "Layer 8: learning-rate policy, batch size and the rest."}),
        submission.text("problem", &S::problem,
                        {.meaning = "Layer 9, which no level changes: data set, target quality, "
                                    "epochs."}),
    };
}

std::vector<Key> workload_keys() {
    const SectionBuilder<WorkloadConfig> workload("workload", &Config::workload);
    return {
        workload.choice<WorkloadKind>(
            "kind", &WorkloadConfig::kind,
            {{{WorkloadKind::image_classification, "image_classification"},
              {WorkloadKind::extreme_weather, "extreme_weather"},
              {WorkloadKind::object_detection, "object_detection"},
              {WorkloadKind::climate_segmentation, "climate_segmentation"}}},
            {.meaning = "Task of the benchmark: image_classification or extreme_weather; "
                        "object_detection trains the latter's detector on other pictures, "
                        "climate_segmentation gives the class of storm of each 8 x 8 pixels of "
                        "the latter's fields."}),
        workload.choice<Model>(
            "model", &WorkloadConfig::model,
            {{{Model::resnet50_v1, "resnet50_v1"},
              {Model::resnet50_v1_5, "resnet50_v1.5"},
              {Model::faster_rcnn_r50_fpn, "faster_rcnn_r50_fpn"},
              {Model::segmentation_net, "segmentation_net"}}},
            {.meaning = "Network: v1 has the stride of a down-sampling block on its first 1x1 "
                        "convolution, v1.5 on its 3x3; the detector is Faster R-CNN on v1.5 with "
                        "a feature pyramid; segmentation_net is a small fully convolutional "
                        "one."}),
        workload.integer("classes", &WorkloadConfig::classes,
                         {.meaning = "Classes of the data set; those of boxes do not count the "
                                     "background.",
                          .bounds = between(1, 1000000)}),
        workload.integer("image_size", &WorkloadConfig::image_size,
                         {.meaning = "Height of the network's input, and its width unless "
                                     "image_width is given.",
                          .unit = "pixels",
                          .bounds = between(32, 4096)}),
        workload.integer("image_width", &WorkloadConfig::image_width,
                         {.meaning = "Width of a detector's or a segmentation's input; auto is "
                                     "image_size.",
                          .unit = "pixels",
                          .bounds = between(32, 4096)}),
        workload.integer(
            "channels", &WorkloadConfig::channels,
            {.meaning = "Channels of the network's input.", .bounds = between(1, 1024)}),
        workload.integer("backbone_width", &WorkloadConfig::backbone_width,
                         {.meaning = "Channels of the first stage of a classifier or of a "
                                     "detector's backbone; 64 is ResNet-50.",
                          .unit = "channels",
                          .bounds = between(8, 512)}),
        workload.number("target_quality", &WorkloadConfig::target_quality,
                        {.meaning = "Top-1 accuracy, AP50 of a detector, or mean intersection over "
                                    "union of a segmentation, that the penalty coefficient of "
                                    "VFLOPS compares with.",
                         .unit = "fraction",
                         .bounds = above_up_to(0, 1)}),
        workload.number("penalty_exponent", &WorkloadConfig::penalty_exponent,
                        {.meaning = "Exponent n of the penalty coefficient "
                                    "(achieved / target quality)^n.",
                         .bounds = between(0, 100)}),
        workload.integer("epochs", &WorkloadConfig::epochs,
                         {.meaning = "Passes of each base model over its own bootstrap.",
                          .unit = "epochs",
                          .bounds = between(1, 65535)}),
    };
}

std::vector<Key> bagging_keys() {
    const SectionBuilder<BaggingConfig> bagging("bagging", &Config::bagging);
    return {
        bagging.integer("M", &BaggingConfig::groups,
                        {.meaning = "Base models trained at the same time; auto takes the ranks "
                                    "of the launch divided by P_degree.",
                         .unit = "models",
                         .bounds = between(1, kMaxInt)}),
        bagging.integer("P_degree", &BaggingConfig::degree,
                        {.meaning = "Ranks that train one base model; auto takes the ranks of the "
                                    "launch divided by M, or one node's ranks if M is auto too.",
                         .unit = "ranks",
                         .bounds = between(1, kMaxInt)}),
        bagging.choice<Sampler>(
            "sampler", &BaggingConfig::sampler,
            {{{Sampler::bootstrap, "bootstrap"},
              {Sampler::poisson, "poisson"},
              {Sampler::subsample, "subsample"},
              {Sampler::none, "none"}}},
            {.meaning = "How each base model draws its data: N of N with replacement, Poisson(1) "
                        "times each sample, a fraction without replacement, or all samples."}),
        bagging.number("subsample_fraction", &BaggingConfig::subsample_fraction,
                       {.meaning = "Share of the samples that the subsample sampler draws.",
                        .unit = "fraction",
                        .bounds = above_up_to(0, 1)}),
        bagging.choice<Aggregation>(
            "aggregation", &BaggingConfig::aggregation,
            {{{Aggregation::soft_vote, "soft_vote"},
              {Aggregation::majority, "majority"},
              {Aggregation::wbf, "wbf"},
              {Aggregation::nms, "nms"}}},
            {.meaning = "How the base models' predictions are combined: of classifiers, of images "
                        "or of cells, the mean of the softmax outputs or the majority of the "
                        "Top-1 classes, of detectors weighted boxes fusion or non-maximum "
                        "suppression."}),
        bagging.boolean("out_of_bag", &BaggingConfig::out_of_bag,
                        {.meaning = "Whether each base model is also evaluated on the training "
                                    "samples that its bootstrap left out."}),
    };
}

std::vector<Key> parallel_keys() {
    const SectionBuilder<ParallelConfig> parallel("parallel", &Config::parallel);
    return {
        parallel.choice<ParallelMode>(
            "mode", &ParallelConfig::mode,
            {{{ParallelMode::data, "data"},
              {ParallelMode::pipeline, "pipeline"},
              {ParallelMode::model, "model"},
              {ParallelMode::mixed, "mixed"}}},
            {.meaning = "How the ranks of one base model split a step: by the batch's samples "
                        "(data), by the model's layers in stages (pipeline), by the channels of "
                        "each layer (model), or by all three (mixed); pipeline and model may be "
                        "shared by ranks that split the samples. Faster R-CNN and segmentation_net "
                        "have mode data only; on GPUs layers have no parts."}),
        parallel.integer("data_degree", &ParallelConfig::data_degree,
                         {.meaning = "Ranks that share the samples of a batch, with each part of "
                                     "each stage; auto is what the other degrees leave of "
                                     "P_degree.",
                          .unit = "ranks",
                          .bounds = between(1, kMaxInt)}),
        parallel.integer("pipeline_degree", &ParallelConfig::pipeline_degree,
                         {.meaning = "Stages of a pipeline; auto is P_degree / data_degree, or "
                                     "P_degree where that is auto, too; in mode mixed what the "
                                     "other degrees leave of P_degree.",
                          .unit = "stages",
                          .bounds = between(1, kMaxInt)}),
        parallel.integer("model_degree", &ParallelConfig::model_degree,
                         {.meaning = "Parts among which the channels of each layer are shared out, "
                                     "in modes model and mixed; auto as for pipeline_degree. The "
                                     "parts exchange activations at nearly every layer. At most "
                                     "as many as the narrowest layer has channels: "
                                     "workload.backbone_width, or workload.classes where these "
                                     "are fewer. On CPUs only.",
                          .unit = "ranks",
                          .bounds = between(1, kMaxInt)}),
        parallel.integer("micro_batches", &ParallelConfig::micro_batches,
                         {.meaning = "Pieces in which a rank takes its share of a batch, one after "
                                     "the other, adding up their gradients; each has BatchNorm "
                                     "statistics of its own.",
                          .bounds = between(1, 1048576)}),
        parallel.choice<PipelineSchedule>(
            "schedule", &ParallelConfig::schedule,
            {{{PipelineSchedule::one_forward_one_backward, "1f1b"},
              {PipelineSchedule::gpipe, "gpipe"}}},
            {.meaning = "Order of micro-batches at a stage: gpipe takes all forward and then all "
                        "backward; 1f1b goes backward as early as it can, which holds the "
                        "activations of at most pipeline_degree of them. Results are the same; "
                        "with one stage or one micro-batch, the order too."}),
    };
}

}  // namespace hpcai::config
