// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <hpcai/base/rounding.hpp>

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// The coarse index of each fine one, and for each coarse one the first fine one that is not below
/// it: an axis of `fine` places that read `coarse` ones.
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

class UpsampleAddKernel final : public Kernel {
public:
    UpsampleAddKernel(const ops::UpsampleAdd& op, const KernelOptions& options,
                      const Context& context)
        : op_(op),
          mode_(options.mode),
          loops_(*context.loops),
          fine_(tile_grid(context.layouts, op.input, options.compute)),
          coarse_(tile_grid(context.layouts, op.coarse, options.compute)),
          flat_(op.input.elements(), options.compute),
          rows_(op.input[1], op.coarse[1]),
          columns_(op.input[2], op.coarse[2]) {}

    std::size_t max_output_gradients() const override { return 2; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            for_each_row(op_.input[1], [this](std::int64_t image, std::int64_t tile,
                                              std::int64_t row) { forward(image, tile, row); });
            return;
        }
        if (tensors_.input_gradients[0] != nullptr) sum_gradients();
        if (tensors_.input_gradients[1] == nullptr) return;
        for_each_row(op_.coarse[1], [this](std::int64_t image, std::int64_t tile,
                                           std::int64_t row) { shrink(image, tile, row); });
    }

private:
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
        loops_.enlarge_add(
            pixels, {row_at(fine_, tensors_.inputs[0], image, tile, fine),
                     row_at(coarse_, tensors_.inputs[1], image, tile, coarse),
                     row_at(fine_, tensors_.output, image, tile, fine), columns_.coarse_of.data()});
    }

    void sum_gradients() const {
        const auto& gradients = tensors_.output_gradients;
        void* second = gradients.size() > 1 ? gradients[1] : nullptr;
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            loops_.apply(tile, {offset(gradients[0], at), offset(second, at),
                                offset(tensors_.input_gradients[0], at), identity_.one,
                                identity_.zero, false});
        });
    }

    void shrink(std::int64_t image, std::int64_t tile, std::int64_t row) const {
        const auto& gradients = tensors_.output_gradients;
        void* second = gradients.size() > 1 ? gradients[1] : nullptr;
        Tile pixels = coarse_.tile;
        pixels.pixels = op_.coarse[2];
        const auto index = static_cast<std::size_t>(row);
        const std::int64_t first = rows_.first_fine[index] * op_.input[2];
        loops_.shrink_sum(
            pixels, {row_at(fine_, gradients[0], image, tile, first),
                     row_at(fine_, second, image, tile, first),
                     row_at(coarse_, tensors_.input_gradients[1], image, tile, row * op_.coarse[2]),
                     rows_.first_fine[index + 1] - rows_.first_fine[index], op_.input[2],
                     columns_.first_fine.data()});
    }

    ops::UpsampleAdd op_;
    Mode mode_;
    const SimdKernels& loops_;
    TileGrid fine_, coarse_;
    FlatTiles flat_;
    Axis rows_, columns_;
    Identity identity_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_upsample_add(const ops::UpsampleAdd& op, const KernelOptions& options,
                                           const Context& context) {
    return std::make_unique<UpsampleAddKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
