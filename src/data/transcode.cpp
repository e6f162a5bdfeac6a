// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <system_error>

#include <hpcai/data/record_set.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>

#include "field_numbers.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

/// Count, mean, squared distances and extremes of values (Chan et al., 1979: pairwise update).
struct Moments {
    double count = 0;
    double mean = 0;
    double squares = 0;  // sum of squared distances from the mean
    float minimum = 0;
    float maximum = 0;

    double deviation() const { return count > 0 ? std::sqrt(squares / count) : 0; }
    void merge(const Moments& other) {
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
};

using SampleMoments = std::array<Moments, kClimateChannels>;

/// Returns the moments of one or more values. A NaN makes mean and squares NaN.
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

using Fields = std::span<const float>;  // (16, H, W), as stored in a file

/// Calls action(number, fields) for every sample of a file in order. Reads blocks of one chunk, at
/// most 4 GiB.
void for_each_sample(const ClimateFile& file,
                     const std::function<void(std::int64_t, Fields)>& action) {
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
            action(first + i, used.subspan(i * elements, elements));
        }
    }
}

/// Returns the moments of all channels, independent of the number of threads.
SampleMoments channel_moments(Fields fields, int threads) {
    SampleMoments moments;
    const std::size_t pixels = fields.size() / kClimateChannels;
    parallel_for(kClimateChannels, threads, [&](std::int64_t channel) {
        moments[channel] = moments_of(fields.subspan(channel * pixels, pixels));
    });
    return moments;
}

bool is_finite(const SampleMoments& moments) {
    return std::ranges::all_of(moments,
                               [](const Moments& m) { return std::isfinite(m.mean + m.squares); });
}

/// Opens the files one after the other, calls `action` for each and returns the pressure level of
/// channel 13. Throws Error(data) for a file that is invalid or differs from earlier files in the
/// size of its fields or the pressure level of channel 13.
GeopotentialLevel for_each_file(const std::vector<fs::path>& paths,
                                const ClimateFileSettings& settings,
                                const std::function<void(const ClimateFile&)>& action) {
    int height = 0, width = 0;
    auto level = GeopotentialLevel::unknown;
    for (const fs::path& path : paths) {
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
    return level;
}

class RecordWriter {
public:
    RecordWriter(const TranscodeOptions& options, RecordIndex index, const fs::path& folder)
        : options_(options),
          index_(std::move(index)),
          folder_(folder),
          record_(index_.record_bytes()) {}

    void begin(const ClimateFile& file) {
        close();
        index_.files.push_back({fmt::format("records-{:05}.bin", index_.files.size()),
                                file.path().filename().string(), file.generator()});
        out_.open(folder_ / index_.files.back().name, std::ios::binary);
    }
    /// Returns false, without writing, if a normalized number is not finite in the dtype.
    bool write(std::int64_t number, Fields fields, const std::vector<Box>& boxes) {
        write_normalized(fields, index_.statistics, index_.dtype, record_, options_.threads);
        if (!all_finite(record_, index_.dtype)) return false;
        out_.write(reinterpret_cast<const char*>(record_.data()),
                   static_cast<std::streamsize>(record_.size()));
        require_written();
        index_.files.back().records.push_back({number, checksum_of(record_), boxes});
        return true;
    }
    void finish() {
        close();
        write_record_index(index_, folder_);
    }
    std::size_t record_bytes() const { return record_.size(); }

private:
    void require_written() const {
        require(out_.good(), ExitCode::usage, "cannot write '{}': {}", options_.output.string(),
                std::strerror(errno));
    }
    void close() {
        if (!out_.is_open()) return;
        out_.close();
        require_written();
        if (index_.files.back().records.empty()) {
            fs::remove(folder_ / index_.files.back().name);
            index_.files.pop_back();
        }
    }

    const TranscodeOptions& options_;
    RecordIndex index_;
    fs::path folder_;
    std::vector<std::byte> record_;
    std::ofstream out_;
};

/// Returns an index without files, with the channels and the statistics that normalize the records.
RecordIndex begin_index(const TranscodeOptions& options) {
    if (!options.statistics_from.empty()) {
        RecordIndex index = read_record_index(options.statistics_from);
        require(index.channels.size() == kClimateChannels, ExitCode::data,
                "'{}' has {} channels, expected {}", options.statistics_from.string(),
                index.channels.size(), kClimateChannels);
        return {options.dtype, 0, 0, index.channels, index.statistics, {}};
    }
    ClimateReport report = survey_climate(options.files, options.source, options.threads);
    if (!options.skip_bad_samples && !report.bad_samples.empty()) {
        throw Error(ExitCode::data,
                    fmt::format("{}: not all values are finite ({} of {} samples)",
                                report.bad_samples[0], report.bad_samples.size(), report.samples));
    }
    for (double& deviation : report.statistics.standard_deviation) {
        if (deviation == 0) deviation = 1;
    }
    return {options.dtype, 0, 0, report.channel_names, report.statistics, {}};
}

void require_channels(const TranscodeOptions& options, const std::vector<std::string>& channels,
                      const ClimateFile& file) {
    if (file.level() == GeopotentialLevel::unknown) return;
    const std::vector<std::string> names = channel_names(file.level());
    for (std::size_t c = 0; c < names.size(); ++c) {
        require(names[c] == channels[c], ExitCode::data,
                "'{}': channel {} is {}, but in '{}', whose statistics are used, it is {}",
                file.path().string(), c, names[c], options.statistics_from.string(), channels[c]);
    }
}

void require_new(const fs::path& output) {
    std::error_code error;
    require(!fs::exists(output, error) ||
                (fs::is_directory(output, error) && fs::is_empty(output, error)),
            ExitCode::usage, "{}: exists already; remove it or choose another folder",
            output.string());
}

}  // namespace

TranscodeReport transcode(const TranscodeOptions& options) {
    require_new(options.output);
    for (const fs::path& file : options.files) require_source_name(file);
    storage::PendingPath pending(options.output);
    RecordIndex index = begin_index(options);
    std::error_code error;
    require(fs::create_directory(pending.path(), error), ExitCode::usage, "cannot write '{}': {}",
            options.output.string(), error ? error.message() : "another process writes it");
    TranscodeReport report;
    std::optional<RecordWriter> writer;
    for_each_file(options.files, options.source, [&](const ClimateFile& file) {
        require_channels(options, index.channels, file);
        index.height = file.height();
        index.width = file.width();
        if (!writer) writer.emplace(options, index, pending.path());
        writer->begin(file);
        report.dropped_boxes += file.dropped_boxes();
        for_each_sample(file, [&](std::int64_t number, Fields fields) {
            const bool is_sound = is_finite(channel_moments(fields, options.threads));
            if (is_sound && writer->write(number, fields, file.boxes(number))) {
                ++report.samples;
                return;
            }
            require(options.skip_bad_samples, ExitCode::data, "{}: not all values are finite{}",
                    file.name(number),
                    is_sound
                        ? fmt::format(" after normalization to {}", tensor::name_of(options.dtype))
                        : "");
            ++report.skipped_samples;
        });
    });
    require(report.samples > 0, ExitCode::data, "'{}': every sample has a value that is not finite",
            options.files[0].string());
    writer->finish();
    storage::write_manifest(pending.path());
    pending.commit();
    report.bytes = static_cast<std::uint64_t>(report.samples) * writer->record_bytes();
    return report;
}

std::vector<fs::path> climate_files_at(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return {path};
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path, error)) {
        if (entry.path().filename().string().starts_with('.')) continue;
        const fs::path extension = entry.path().extension();
        if (extension == ".h5" || extension == ".hdf5") files.push_back(entry.path());
    }
    require(!error, ExitCode::data, "cannot list '{}': {}", path.string(), error.message());
    require(!files.empty(), ExitCode::data, "'{}': the folder has no *.h5 or *.hdf5 file",
            path.string());
    std::ranges::sort(files);
    return files;
}

ClimateReport survey_climate(const std::vector<fs::path>& files,
                             const ClimateFileSettings& settings, int threads) {
    ClimateReport report;
    report.boxes_per_category.resize(kClimateCategories);
    SampleMoments total;
    const auto level = for_each_file(files, settings, [&](const ClimateFile& file) {
        report.height = file.height();
        report.width = file.width();
        report.samples += file.samples();
        report.dropped_boxes += file.dropped_boxes();
        const bool has_ranges = file.box_order() == BoxOrder::ranges;
        ++(has_ranges ? report.files_with_ranges : report.files_with_corners);
        for_each_sample(file, [&](std::int64_t number, Fields fields) {
            const std::vector<Box>& boxes = file.boxes(number);
            report.samples_without_box += boxes.empty();
            for (const Box& box : boxes) ++report.boxes_per_category[box.category - 1];
            const SampleMoments moments = channel_moments(fields, threads);
            if (!is_finite(moments)) {
                report.bad_samples.push_back(file.name(number));
                return;
            }
            for (std::size_t c = 0; c < kClimateChannels; ++c) total[c].merge(moments[c]);
        });
    });
    report.channel_names = channel_names(level);
    for (const Moments& channel : total) {
        report.statistics.mean.push_back(channel.mean);
        report.statistics.standard_deviation.push_back(channel.deviation());
        report.minimum.push_back(channel.minimum);
        report.maximum.push_back(channel.maximum);
    }
    return report;
}

}  // namespace hpcai::data
