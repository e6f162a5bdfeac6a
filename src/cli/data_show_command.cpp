// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/config/nearest.hpp>
#include <hpcai/data/field_picture.hpp>
#include <hpcai/data/png.hpp>
#include <hpcai/storage/file.hpp>

#include "climate_survey.hpp"
#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string path;
    std::string output;
    std::string channel = "TMQ";
    std::int64_t sample = 0;
    data::ClimateFileSettings source;
};

int channel_number(const std::vector<std::string>& names, const std::string& wanted) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == wanted) return static_cast<int>(i);
    }
    throw Error(ExitCode::usage, fmt::format("data show: --channel: expected one of {}, got {}{}",
                                             fmt::join(names, ", "), in_quotes(wanted),
                                             config::did_you_mean(wanted, names)));
}

void require_sample(const Options& options, std::int64_t samples) {
    require(options.sample < samples, ExitCode::usage,
            "data show: --sample: expected 0 to {}, got {}", samples - 1, options.sample);
}

data::ShownField load(const Options& options) {
    const DataKind kind = kind_of(options.path);
    require(kind != DataKind::pictures, ExitCode::usage,
            "data show: {}: expected an HDF5 file or a folder of records", printable(options.path));
    if (kind == DataKind::records) {
        const data::RecordSet records(options.path);
        require_sample(options, records.samples());
        return data::field_of(records, options.sample,
                              channel_number(records.channel_names(), options.channel));
    }
    const data::ClimateFile file(options.path, options.source);
    require_sample(options, file.samples());
    return data::field_of(file, options.sample,
                          channel_number(data::channel_names(file.level()), options.channel));
}

ExitCode show(const Options& options, std::ostream& out) {
    const data::ShownField field = load(options);
    const data::Image image = data::draw_field(field);
    const std::vector<std::uint8_t> png = data::encode_png(image.view());
    const storage::Bytes bytes = std::as_bytes(std::span(png));
    storage::write_file_durably(options.output, {&bytes, 1});
    out << fmt::format("wrote {}: {} of sample {}, {} x {} pixels\n", printable(options.output),
                       options.channel, options.sample, field.height, field.width);
    for (const data::Box& box : field.boxes) {
        const auto category = static_cast<std::size_t>(box.category) - 1;
        out << fmt::format("{:<22} x {} to {}, y {} to {}\n",
                           category < data::kClimateCategories
                               ? data::kClimateCategoryNames[category]
                               : "category " + std::to_string(box.category),
                           box.x1, box.x2, box.y1, box.y2);
    }
    return ExitCode::ok;
}

}  // namespace

void add_data_show_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent, {"show",
                 "Draw one channel of one sample with its boxes as a PNG, north at the top.",
                 {"hpcai500 data show climo_1984.h5 --sample 17 --output 17.png",
                  "hpcai500 data show train-records --channel PSL --output psl.png"}});
    add_text(command, "PATH", options->path, "", "HDF5 file, or folder of records").required();
    add_text(command, "--output", options->output, "FILE", "PNG to write").required();
    add_integer(
        command, "--sample", [options = options.get()](std::int64_t i) { options->sample = i; },
        {0, 1'000'000'000}, "number of the sample (0)");
    add_text(command, "--channel", options->channel, "NAME", "name of the channel (TMQ)");
    add_box_order(command, options->source);
    set_action(command, context, [options, &context] { return show(*options, context.out); });
}

}  // namespace hpcai::cli
