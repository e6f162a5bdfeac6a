// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <hpcai/base/rounding.hpp>

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// Maps indices of an axis: the coarse index of each fine index, and the first fine index of each
/// coarse index.
struct Axis {
    std::vector<std::int32_t> coarse_of;   // (fine)
    std::vector<std::int32_t> first_fine;  // (coarse + 1)

    Axis(std::int64_t fine, std::int64_t coarse) {
        for (std::int64_t index = 0; index < fine; ++index) {
            coarse_of.push_back(static_cast<std::int32_t>(index * coarse / fine));
        }
        for (std::int64_t index = 0; index <= coarse; ++index) {
            first_fine.push_back(static_cast<std::int32_t>(ceil_div(index * fine, coarse)));
        }
    }
};

class UpsampleAddKernel final : public OperationKernel<ops::UpsampleAdd, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
        for_each_row(op_.input[1], [this](std::int64_t image, std::int64_t tile, std::int64_t row) {
            forward(image, tile, row);
        });
    }
    void input_gradient() override {
        if (tensors_.input_gradients[0] != nullptr) sum_gradients();
        if (tensors_.input_gradients[1] == nullptr) return;
        for_each_row(op_.coarse[1], [this](std::int64_t image, std::int64_t tile,
                                           std::int64_t row) { downsample(image, tile, row); });
    }

    template <typename Body>
    void for_each_row(std::int64_t rows, const Body& body) const {
#pragma omp parallel for collapse(3) schedule(static)
        for (std::int64_t image = 0; image < fine_.images; ++image) {
            for (std::int64_t tile = 0; tile < fine_.tiles; ++tile) {
                for (std::int64_t row = 0; row < rows; ++row) body(image, tile, row);
            }
        }
    }

    static void* row_at(const TileGrid& grid, void* base, std::int64_t image, std::int64_t tile,
                        std::int64_t first_pixel) {
        const auto elements = static_cast<std::size_t>(first_pixel * grid.tile.stride);
        return offset(grid.at(base, image, tile), elements * size_of(grid.tile.dtype));
    }

    void forward(std::int64_t image, std::int64_t tile, std::int64_t row) const {
        Tile pixels = fine_.tile;
        pixels.pixels = op_.input[2];
        const std::int64_t coarse_row = rows_.coarse_of[row];
        const std::int64_t fine = row * op_.input[2], coarse = coarse_row * op_.coarse[2];
        loops_.upsample_add(
            pixels, {row_at(fine_, tensors_.inputs[0], image, tile, fine),
                     row_at(coarse_, tensors_.inputs[1], image, tile, coarse),
                     row_at(fine_, tensors_.output, image, tile, fine), columns_.coarse_of.data()});
    }

    void sum_gradients() const {
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            loops_.apply(tile, {offset(output_gradient(), at), offset(second_output_gradient(), at),
                                offset(tensors_.input_gradients[0], at), identity_.ones,
                                identity_.zeros, false});
        });
    }

    void downsample(std::int64_t image, std::int64_t tile, std::int64_t row) const {
        Tile pixels = coarse_.tile;
        pixels.pixels = op_.coarse[2];
        const auto index = static_cast<std::size_t>(row);
        const std::int64_t first = rows_.first_fine[index] * op_.input[2];
        loops_.downsample_sum(
            pixels, {row_at(fine_, output_gradient(), image, tile, first),
                     row_at(fine_, second_output_gradient(), image, tile, first),
                     row_at(coarse_, tensors_.input_gradients[1], image, tile, row * op_.coarse[2]),
                     rows_.first_fine[index + 1] - rows_.first_fine[index], op_.input[2],
                     columns_.first_fine.data()});
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid fine_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const TileGrid coarse_ = tile_grid(context_.layouts, op_.coarse, options_.compute);
    const FlatTiles flat_{op_.input.elements(), options_.compute};
    const Axis rows_{op_.input[1], op_.coarse[1]}, columns_{op_.input[2], op_.coarse[2]};
    Identity identity_;
};

}  // namespace

KernelPtr build(const ops::UpsampleAdd& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<UpsampleAddKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
