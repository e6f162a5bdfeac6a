// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/survey.hpp>
#include <hpcai/storage/file.hpp>

#include "commands.hpp"
#include "survey.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

struct InitOptions {
    std::string data;
    std::string output;
    int threads = 0;
};

constexpr const char* kConfiguration =
    R"(# {training} training and {test} test images of {classes} classes; sides of {smallest} to {largest} pixels.
# Two base models, on two ranks:
#   mpirun --bind-to none -np 2 hpcai500 run --config {file}
# `hpcai500 config explain` describes these keys and all others.
run:
  name: {name}

workload:
  model: resnet50_v1.5
  classes: auto                # counted in the folders when a run starts
  image_size: {image_size}               # pixels; larger images take longer and may raise the accuracy
  epochs: {epochs}                   # passes of each base model over its bootstrap
  # Top-1 accuracy to reach. Set your own target before you compare runs; guessing scores {guessing:.3f}.
  target_quality: {target:.2f}
  penalty_exponent: 5          # VFLOPS = FLOPS x (quality / target)^5

bagging:
  M: 2                         # base models; a larger machine trains more of them

data:
  kind: image_folder           # a folder of JPEG or PNG files for each class
  path: {path}
  validation_path: {validation_path}
  mean: [{mean:.4f}]                # of the training images, per channel
  standard_deviation: [{deviation:.4f}]
  random_area_minimum: 0.35    # smallest random resized crop, as a fraction of the image
  decoded_cache_mib: {cache}        # per rank, for decoded images; 0 disables it

training:
  batch_size: {batch_size}               # samples per step of one base model
  learning_rate: 0.1           # for 32 samples; scaled to batch_size
  learning_rate_batch: 32
  schedule: cosine
  warmup_epochs: 0.5           # of a linear rise to the learning rate; less than epochs
  weight_decay: 5.0e-4
  label_smoothing: 0.1
)";

/// Returns the first of the subfolders `names` that exists.
fs::path subfolder(const fs::path& folder, std::initializer_list<const char*> names) {
    std::error_code ignored;
    require(fs::is_directory(folder, ignored), ExitCode::usage,
            "init: --data: expected a folder, got {}", in_quotes(folder.string()));
    for (const char* name : names)
        if (fs::is_directory(folder / name, ignored)) return folder / name;
    throw Error(ExitCode::usage,
                fmt::format("init: {}: expected subfolders train and val (or test) with a folder "
                            "of JPEG or PNG files for each class; there is no {}",
                            printable(folder.string()), fmt::join(names, " or ")));
}

/// Returns a legal run.name: the file's name, shortened, with illegal characters replaced.
std::string name_of(const fs::path& file) {
    std::string name = file.stem().string().substr(0, 63);
    for (char& letter : name)
        if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-') letter = '_';
    return std::isalnum(static_cast<unsigned char>(name.front())) ? name : "x" + name;
}

/// Surveys the images and returns a configuration for a first run of minutes on a few cores.
std::string configuration_of(const InitOptions& options) {
    constexpr std::int64_t kSamplesOfRun = 20'000;             // over all epochs; takes minutes
    constexpr std::int64_t kMaxCacheMib = 2048, kStride = 32;  // stride of the whole ResNet-50
    const fs::path training = subfolder(options.data, {"train", "training"});
    const fs::path validation = subfolder(options.data, {"val", "validation", "valid", "test"});
    const data::SampleIndex index = data::load_samples(training);
    require(
        index.classes.size() > 1, ExitCode::data,
        "init: {}: expected a folder for each of two or more classes; one class folder found, {}",
        printable(training.string()), printable(index.classes.front()));
    const data::SampleIndex test = data::load_samples(validation);
    data::require_same_classes(index, test);
    const data::FolderReport survey = data::survey(index, threads_or_all(options.threads));
    require(survey.bad.empty(), ExitCode::data,
            "init: {} of {} training images are bad; `hpcai500 data check {}` lists them",
            survey.bad.size(), index.samples.size(), printable(shell_quote(training.string())));
    const auto samples = std::ssize(index.samples);
    std::int64_t batch_size = 32;
    while (batch_size > 4 && samples / batch_size < 8) batch_size /= 2;
    const std::int64_t cache = survey.pixels * data::kImageChannels / (1 << 20) + 1;
    const double guessing = 1.0 / static_cast<double>(index.classes.size());
    const auto yaml_path = [](const fs::path& path) {  // as a YAML scalar
        return nlohmann::json(fs::absolute(path).lexically_normal().string()).dump();
    };
    using fmt::arg;
    std::string text = fmt::format(
        kConfiguration, arg("training", samples), arg("test", test.samples.size()),
        arg("classes", index.classes.size()), arg("smallest", survey.smallest_side),
        arg("largest", survey.largest_side), arg("file", printable(shell_quote(options.output))),
        arg("name", name_of(options.output)),
        arg("image_size",
            std::clamp<std::int64_t>(survey.median_side / kStride * kStride, kStride, 2 * kStride)),
        arg("epochs", std::clamp<std::int64_t>(kSamplesOfRun / samples, 3, 90)),
        arg("guessing", guessing), arg("target", (1 + guessing) / 2),
        arg("path", yaml_path(training)), arg("validation_path", yaml_path(validation)),
        arg("mean", fmt::join(survey.mean, ", ")),
        arg("deviation", fmt::join(survey.standard_deviation, ", ")),
        arg("cache", cache <= kMaxCacheMib ? cache : 0), arg("batch_size", batch_size));
    // Throws if a value that comes from the images is not legal.
    config::parse(text, options.data, {fmt::format("workload.classes={}", index.classes.size())});
    return text;
}

ExitCode init(const InitOptions& options, const Context& context) {
    std::error_code ignored;
    require_place("init: --output", options.output);
    require(!fs::exists(options.output, ignored), ExitCode::usage,
            "init: --output: {} exists; name another file", printable(options.output));
    const std::string text = configuration_of(options);
    storage::write_file_durably(options.output, text);
    const char* const as_root =
        geteuid() == 0 ? "  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
                       : "";
    context.out << fmt::format(
        "wrote {}; run it with\n{}  mpirun --bind-to none -np 2 hpcai500 run --config {}\n",
        printable(options.output), as_root, printable(shell_quote(options.output)));
    return ExitCode::ok;
}

}  // namespace

void add_init_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"init",
         "Write a commented configuration for your own images from their measured classes, sizes "
         "and statistics.",
         {"hpcai500 init --data mine --output mine.yaml",
          "hpcai500 init --data /data/flowers --output flowers.yaml --threads 8"}},
        init);
    command.add_text("--data", options.data, "FOLDER",
                     "folder with train and val (or test), which have a folder of JPEG or PNG "
                     "files for each class",
                     Presence::required);
    command.add_text("--output", options.output, "FILE", "new file to write", Presence::required);
    add_threads(command, options.threads);
}

}  // namespace hpcai::cli
