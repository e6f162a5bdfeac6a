// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/generate_climate.hpp>

#include "worker_pool.hpp"

namespace hpcai::data {

namespace {

std::map<std::string, std::string> attributes_of(const GenerateClimateOptions& options) {
    const ClimateSettings& s = options.settings;
    return {{"generator", "hpcai500-climate-2"},
            {"seed", fmt::format("{}", s.seed)},
            {"split", options.split == Split::training ? "training" : "validation"},
            {"amplitude", fmt::format("{}", s.amplitude)},
            {"event_rate", fmt::format("{}", s.event_rate)},
            {"distractor_rate", fmt::format("{}", s.distractor_rate)},
            {"intensity_spread", fmt::format("{}", s.intensity_spread)},
            {"extent_spread", fmt::format("{}", s.extent_spread)},
            {"label_dropout", fmt::format("{}", s.label_dropout)},
            {"event_windows", fmt::format("{}", s.event_windows)},
            {"kept_share", fmt::format("{}", s.kept_share)}};
}

void check(const GenerateClimateOptions& options) {
    require(options.samples >= 1 && options.samples <= kMaxGeneratedSamples, ExitCode::usage,
            "data generate climate: samples: expected 1 to {}, got {}", kMaxGeneratedSamples,
            options.samples);
    std::error_code error;
    require(!std::filesystem::exists(options.file, error), ExitCode::usage,
            "{}: there is something already; remove it or choose another name",
            options.file.string());
}

}  // namespace

void generate_climate(const GenerateClimateOptions& options, int threads) {
    check(options);
    const ClimateGenerator generator(options.settings);
    ClimateFileWriter writer(options.file, {options.samples, options.settings.height,
                                            options.settings.width, attributes_of(options)});
    struct Made {
        std::vector<float> fields;
        std::vector<Box> boxes;
    };
    std::vector<Made> block(threads);
    for (Made& made : block) made.fields.resize(generator.elements());
    for (std::int64_t first = 0; first < options.samples; first += threads) {
        const std::int64_t count = std::min<std::int64_t>(threads, options.samples - first);
        parallel_for(count, threads, [&](std::int64_t i) {
            Made& made = block[i];
            generator.sample(options.split, static_cast<std::uint32_t>(first + i),
                             FieldLayout::channels_first, made.fields, made.boxes);
        });
        for (std::int64_t i = 0; i < count; ++i) {
            const Made& made = block[i];
            writer.write(first + i, made.fields, made.boxes);
        }
    }
    writer.finish();
}

}  // namespace hpcai::data
