// SPDX-License-Identifier: Apache-2.0
#include "climate_scan.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "worker_pool.hpp"

namespace hpcai::data::climate {

void Moments::merge(const Moments& other) {
    if (count == 0) {
        *this = other;
        return;
    }
    const double total = count + other.count, distance = other.mean - mean;
    mean += distance * (other.count / total);
    squares += other.squares + distance * distance * (count * other.count / total);
    count = total;
    minimum = std::min(minimum, other.minimum);
    maximum = std::max(maximum, other.maximum);
}

Moments moments_of(std::span<const float> values) {
    Moments result;
    result.count = static_cast<double>(values.size());
    result.minimum = result.maximum = values[0];
    double sum = 0;
    for (const float value : values) {
        sum += value;
        result.minimum = std::min(result.minimum, value);
        result.maximum = std::max(result.maximum, value);
    }
    result.mean = sum / result.count;
    for (const float value : values) {
        const double distance = value - result.mean;
        result.squares += distance * distance;
    }
    return result;
}

void for_each_sample(const ClimateFile& file,
                     const std::function<void(const ScannedSample&)>& action) {
    constexpr std::int64_t kMaxBlockBytes = std::int64_t{4} << 30;
    const std::int64_t elements = std::int64_t{kClimateChannels} * file.height() * file.width();
    const std::int64_t fit = kMaxBlockBytes / (elements * std::int64_t{sizeof(float)});
    const std::int64_t block =
        std::clamp<std::int64_t>(file.chunk_samples(), 1, std::max<std::int64_t>(fit, 1));
    std::vector<float> fields(std::min(block, file.samples()) * elements);
    for (std::int64_t first = 0; first < file.samples(); first += block) {
        const std::int64_t count = std::min(block, file.samples() - first);
        const std::span<float> used(fields.data(), count * elements);
        file.read(first, count, used);
        for (std::int64_t i = 0; i < count; ++i) {
            action({file, first + i, used.subspan(i * elements, elements)});
        }
    }
}

std::string name_of(const ScannedSample& sample) {
    return fmt::format("{}/{}", sample.file.path().filename().string(), sample.number);
}

SampleMoments moments_of(const ScannedSample& sample, int threads) {
    SampleMoments moments;
    const std::size_t pixels = sample.fields.size() / kClimateChannels;
    parallel_for(kClimateChannels, threads, [&](std::int64_t channel) {
        moments[channel] = moments_of(sample.fields.subspan(channel * pixels, pixels));
    });
    return moments;
}

bool is_finite(const SampleMoments& moments) {
    return std::all_of(moments.begin(), moments.end(), [](const Moments& m) {
        return std::isfinite(m.mean) && std::isfinite(m.squares);
    });
}

void for_each_file(const std::vector<std::filesystem::path>& paths,
                   const ClimateFileSettings& settings,
                   const std::function<void(const ClimateFile&)>& action) {
    require(!paths.empty(), ExitCode::usage, "no ExtremeWeather files are given");
    int height = 0, width = 0;
    auto level = GeopotentialLevel::unknown;
    for (const std::filesystem::path& path : paths) {
        const ClimateFile file(path, settings);
        if (height == 0) {
            height = file.height();
            width = file.width();
        }
        require(file.height() == height && file.width() == width, ExitCode::data,
                "'{}' has fields of {} x {} pixels, but '{}' has {} x {}", path.string(),
                file.height(), file.width(), paths[0].string(), height, width);
        if (level == GeopotentialLevel::unknown) level = file.level();
        require(file.level() == GeopotentialLevel::unknown || file.level() == level, ExitCode::data,
                "'{}': channel 13 has another pressure level than in the previous files",
                path.string());
        action(file);
    }
}

}  // namespace hpcai::data::climate
