// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/data/transcode.hpp>

#include "climate_scan.hpp"

namespace hpcai::data {

namespace {

namespace fs = std::filesystem;
using climate::SampleMoments;
using climate::ScannedSample;

void count_boxes(const std::vector<Box>& boxes, ClimateReport& report) {
    report.samples_without_box += boxes.empty();
    for (const Box& box : boxes) {
        ++report.boxes_per_category[box.category - 1];
    }
}

void store_moments(const SampleMoments& moments, ClimateReport& report) {
    for (const climate::Moments& m : moments) {
        report.statistics.mean.push_back(m.mean);
        report.statistics.standard_deviation.push_back(m.deviation());
        report.minimum.push_back(m.minimum);
        report.maximum.push_back(m.maximum);
    }
}

}  // namespace

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
    require(!files.empty(), ExitCode::data, "'{}': no *.h5 or *.hdf5 in this folder",
            path.string());
    std::sort(files.begin(), files.end());
    return files;
}

ClimateReport survey_climate(const std::vector<fs::path>& files,
                             const ClimateFileSettings& settings, int threads) {
    ClimateReport report;
    report.boxes_per_category.resize(kClimateCategories);
    SampleMoments total;
    auto level = GeopotentialLevel::unknown;
    climate::for_each_file(files, settings, [&](const ClimateFile& file) {
        report.height = file.height();
        report.width = file.width();
        if (level == GeopotentialLevel::unknown) level = file.level();
        report.samples += file.samples();
        report.dropped_boxes += file.dropped_boxes();
        const bool has_ranges = file.box_order() == BoxOrder::ranges;
        ++(has_ranges ? report.files_with_ranges : report.files_with_corners);
        climate::for_each_sample(file, [&](const ScannedSample& sample) {
            count_boxes(file.boxes(sample.number), report);
            const SampleMoments moments = climate::moments_of(sample, threads);
            if (!is_finite(moments)) {
                report.bad_samples.push_back(climate::name_of(sample));
                return;
            }
            for (std::size_t c = 0; c < kClimateChannels; ++c) total[c].join(moments[c]);
        });
    });
    report.channel_names = channel_names(level);
    store_moments(total, report);
    return report;
}

}  // namespace hpcai::data
