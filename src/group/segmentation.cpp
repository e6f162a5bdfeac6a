// SPDX-License-Identifier: Apache-2.0
#include <hpcai/models/make_model.hpp>
#include <hpcai/ops/cell_class.hpp>
#include <hpcai/storage/file.hpp>

#include "probability_workload.hpp"

namespace hpcai::group {
namespace {

class Segmentation final : public ProbabilityWorkload {
public:
    using ProbabilityWorkload::ProbabilityWorkload;
    using ProbabilityWorkload::store;

    void store(const EnsemblePredictions& said,
               const std::filesystem::path& directory) const override {
        ProbabilityWorkload::store(said, directory);
        std::string names;
        for (const std::string& name : task_.class_names) names += name + "\n";
        storage::write_file_durably(directory / verification::kClassNamesFile, names);
    }

private:
    /// Of the cells of each sample, by rows.
    std::vector<std::int32_t> labels_of(std::span<const std::int32_t> samples) const override {
        const data::SampleSet& set = *samples_.validation;
        const models::CellGrid grid = models::cell_grid(config_);
        std::vector<std::int32_t> labels;
        labels.reserve(samples.size() * static_cast<std::size_t>(grid.rows * grid.columns));
        std::vector<float> boxes(set.format().box_numbers());
        const ops::ImageBoxes known{boxes.data(), set.format().max_boxes,
                                    static_cast<int>(task_.classes)};
        for (std::size_t sample = 0; sample < samples.size(); ++sample) {
            const bool is_scored = samples[sample] >= 0;
            if (is_scored) {
                data::write_boxes(set.boxes(static_cast<std::uint32_t>(sample)), boxes);
            }
            for (std::int64_t cell = 0; cell < grid.rows * grid.columns; ++cell) {
                labels.push_back(is_scored
                                     ? ops::cell_class(known, grid.pixels, cell / grid.columns,
                                                       cell % grid.columns)
                                     : -1);
            }
        }
        return labels;
    }
};

}  // namespace

std::unique_ptr<const Workload> make_segmentation(const config::Config& config,
                                                  const data::SampleSets& samples) {
    return std::make_unique<Segmentation>(config, samples);
}

}  // namespace hpcai::group
