// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/photograph.hpp>

#include "commands.hpp"
#include "picture_survey.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string output;
    data::GenerateOptions set;
    int threads = 0;
};

ExitCode generate(const Options& options, std::ostream& out) {
    data::GenerateOptions set = options.set;
    set.directory = options.output;
    const bool made = data::generate_photographs(set, threads_or_all(options.threads));
    out << fmt::format("{}: {}{} classes, for each {} pictures to train on and {} to test with\n",
                       printable(options.output), made ? "" : "there already: ", set.classes,
                       format_count(set.training_per_class),
                       format_count(set.validation_per_class));
    return ExitCode::ok;
}

void add_count(CLI::App& command, const std::string& name, int& target, IntegerRange range,
               const std::string& meaning) {
    add_integer(
        command, name, [&target](std::int64_t value) { target = static_cast<int>(value); }, range,
        fmt::format("{} ({})", meaning, target));
}

void add_set_options(CLI::App& command, data::GenerateOptions& set) {
    add_count(command, "--classes", set.classes, {1, data::kMaximumPhotographClasses}, "classes");
    add_count(command, "--training-per-class", set.training_per_class, {1, 1'000'000},
              "pictures of a class in train/");
    add_count(command, "--validation-per-class", set.validation_per_class, {1, 1'000'000},
              "pictures of a class in val/");
    add_count(command, "--size", set.size, {16, 4096}, "longer side in pixels");
    add_count(command, "--quality", set.quality, {1, 100}, "of the JPEG files");
    add_integer(
        command, "--seed",
        [&set](std::int64_t seed) { set.seed = static_cast<std::uint64_t>(seed); },
        {0, 9007199254740991}, fmt::format("what is drawn follows from it ({})", set.seed));
}

}  // namespace

void add_data_generate_photographs_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"photographs",
         "Make synthetic photographs in the ImageNet layout: DIR/train/<class>/*.jpg and "
         "DIR/val/<class>/*.jpg. A set that is there already with the same options is kept.",
         {"hpcai500 data generate photographs --output quickstart-data --classes 8 --size 48",
          "hpcai500 data generate photographs --output /tmp/set --training-per-class 500 --seed "
          "7"}});
    add_text(command, "--output", options->output, "DIR", "new or empty folder").required();
    add_set_options(command, options->set);
    add_threads(command, options->threads);
    set_action(command, context, [options, &context] { return generate(*options, context.out); });
}

}  // namespace hpcai::cli
