// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/sample_index.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string folder;
    std::string output;
};

ExitCode index(const Options& options, std::ostream& out) {
    const data::SampleIndex index = data::scan_image_folder(options.folder);
    data::write_index(index, options.output);
    out << fmt::format("wrote {}: {} pictures of {} classes\n", printable(options.output),
                       format_count(static_cast<std::int64_t>(index.samples.size())),
                       format_count(static_cast<std::int64_t>(index.classes.size())));
    return ExitCode::ok;
}

}  // namespace

void add_data_index_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"index",
         "List a folder's pictures in a file; data.path may name it and so spare the listing.",
         {"hpcai500 data index /data/imagenet/train --output /data/imagenet/train.jsonl",
          "hpcai500 data index quickstart-data/val --output quickstart-data/val.jsonl"}});
    add_text(command, "FOLDER", options->folder, "", "folder of class folders").required();
    add_text(command, "--output", options->output, "FILE", "file to write").required();
    set_action(command, context, [options, &context] { return index(*options, context.out); });
}

}  // namespace hpcai::cli
