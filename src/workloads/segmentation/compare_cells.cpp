// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/models/make_model.hpp>
#include <hpcai/workloads/intervals.hpp>
#include <hpcai/workloads/probability_task.hpp>

#include "judge_cells.hpp"

namespace hpcai::workloads {

using evaluation::Judgement;

QualityComparison compare_cells(const ComparedResults& results) {
    const auto [labels, said_1, said_2] = read_probabilities(results);
    const models::CellGrid grid = models::cell_grid(results.config);
    const std::int64_t cells = grid.rows * grid.columns;
    const std::int64_t rows = labels.shape().rank() == 1 ? labels.shape()[0] : 0;
    require(labels.dtype() == tensor::DType::s32 && said_1.dtype() == tensor::DType::f32 &&
                said_2.dtype() == tensor::DType::f32 && rows > 0 && rows % cells == 0 &&
                said_1.shape() == said_2.shape() && said_1.shape().rank() == 2 &&
                said_1.shape()[0] == rows,
            ExitCode::data,
            "labels {} of {} and probabilities {} of {} and {} of {}; must be int32 of some times "
            "{} cells and fp32 with as many rows",
            to_string(labels.shape()), tensor::name_of(labels.dtype()), to_string(said_1.shape()),
            tensor::name_of(said_1.dtype()), to_string(said_2.shape()),
            tensor::name_of(said_2.dtype()), cells);
    const auto of = [&](const storage::NpyArray& said) {
        return Probabilities{said.as<float>(), labels.as<std::int32_t>(), said.shape()[1]};
    };
    const Probabilities one = of(said_1), other = of(said_2);
    if (std::ranges::equal(one.values, other.values)) {
        return {Judgement::same, "both say the same"};
    }
    const auto interval = cell_interval_95(one, cells, &other);
    if (!interval) return {Judgement::unclear, "no cell was scored"};
    return compare_by(*interval, rows / cells);
}

}  // namespace hpcai::workloads
