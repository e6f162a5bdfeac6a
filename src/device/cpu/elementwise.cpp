// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

/// A value seen as rows of 16 elements, whatever its layout; the last, shorter row is walked one
/// element at a time.
class FlatTiles {
public:
    FlatTiles(std::int64_t elements, DType dtype)
        : rows_(elements / kLanes), rest_(elements % kLanes), dtype_(dtype) {}

    /// Calls body(tile, byte offset) for parts of the value, in parallel.
    template <typename Body>
    void for_each(const Body& body) const {
        constexpr std::int64_t kRowsPerPart = 512;
        const std::int64_t parts = (rows_ + kRowsPerPart - 1) / kRowsPerPart;
#pragma omp parallel for schedule(static)
        for (std::int64_t part = 0; part < parts; ++part) {
            const std::int64_t first = part * kRowsPerPart;
            body(Tile{std::min(kRowsPerPart, rows_ - first), kLanes, kLanes, dtype_},
                 bytes(first * kLanes));
        }
        if (rest_ > 0) body(Tile{rest_, 1, 1, dtype_}, bytes(rows_ * kLanes));
    }

private:
    static constexpr int kLanes = 16;
    std::size_t bytes(std::int64_t elements) const {
        return static_cast<std::size_t>(elements) * size_of(dtype_);
    }
    std::int64_t rows_, rest_;
    DType dtype_;
};

void* offset(void* base, std::size_t bytes) {
    return base == nullptr ? nullptr : static_cast<std::byte*>(base) + bytes;
}

// The normalization's loops with scale 1 and shift 0 are ReLU, addition and their gradients.
struct Identity {
    float one[16], zero[16] = {};
    Identity() { std::fill_n(one, 16, 1.0f); }
};

class ReluKernel final : public Kernel {
public:
    ReluKernel(const ops::Relu& op, const KernelOptions& options, const Context& context)
        : loops_(*context.loops),
          mode_(options.mode),
          flat_(op.input.elements(), options.compute) {}

    std::size_t max_output_gradients() const override { return 2; }
    bool backward_reads_output() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            if (pass == ops::Pass::forward) {
                loops_.apply(tile,
                             {offset(tensors_.inputs[0], at), nullptr, offset(tensors_.output, at),
                              identity_.one, identity_.zero, true});
                return;
            }
            const auto& gradients = tensors_.output_gradients;
            void* output = offset(tensors_.output, at);
            const GradientSource source{offset(gradients[0], at),
                                        gradients.size() > 1 ? offset(gradients[1], at) : nullptr,
                                        output,
                                        output,
                                        identity_.one,
                                        identity_.zero,
                                        true};
            loops_.gradient_apply(tile, {source, offset(tensors_.input_gradients[0], at),
                                         identity_.one, identity_.zero, identity_.zero});
        });
    }

private:
    const Loops& loops_;
    Mode mode_;
    FlatTiles flat_;
    Identity identity_;
    KernelTensors tensors_;
};

class AddKernel final : public Kernel {
public:
    AddKernel(const ops::Add& op, const KernelOptions& options, const Context& context)
        : loops_(*context.loops),
          mode_(options.mode),
          flat_(op.input.elements(), options.compute) {}

    std::size_t max_output_gradients() const override { return 2; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            sum(tensors_.inputs[0], tensors_.inputs[1], tensors_.output);
            return;
        }
        const auto& gradients = tensors_.output_gradients;
        for (void* to : tensors_.input_gradients) {
            if (to != nullptr) sum(gradients[0], gradients.size() > 1 ? gradients[1] : nullptr, to);
        }
    }

private:
    void sum(void* a, void* b, void* to) const {
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            loops_.apply(tile, {offset(a, at), offset(b, at), offset(to, at), identity_.one,
                                identity_.zero, false});
        });
    }

    const Loops& loops_;
    Mode mode_;
    FlatTiles flat_;
    Identity identity_;
    KernelTensors tensors_;
};

class InputNormalizeKernel final : public Kernel {
public:
    InputNormalizeKernel(const ops::InputNormalize& op, const KernelOptions& options,
                         const Context& context)
        : loops_(*context.loops),
          shape_(op.input),
          grid_(tile_grid(context.layouts, op.input, options.compute)) {
        const auto channels = static_cast<std::size_t>(op.input[3]);
        ensure(op.mean.size() == channels && op.standard_deviation.size() == channels,
               "{} means and {} deviations for {} channels", op.mean.size(),
               op.standard_deviation.size(), channels);
        for (std::size_t channel = 0; channel < channels; ++channel) {
            scale_.push_back(static_cast<float>(1 / (255 * op.standard_deviation[channel])));
            shift_.push_back(
                static_cast<float>(-op.mean[channel] / op.standard_deviation[channel]));
        }
    }

    std::vector<ops::Pass> passes() const override { return {ops::Pass::forward}; }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass) override {
        const auto* pixels = static_cast<const std::uint8_t*>(tensors_.inputs[0]);
        const std::int64_t per_image = grid_.tile.pixels * shape_[3];
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
                normalize(pixels + image * per_image, image, tile);
            }
        }
    }

private:
    static constexpr std::int64_t kPixelsPerRow = 256;

    /// Converts a tile's pixels to fp32 rows and lets the affine loop write them.
    void normalize(const std::uint8_t* pixels, std::int64_t image, std::int64_t tile) const {
        const int lanes = grid_.tile.lanes;
        float row[kPixelsPerRow * 16];
        for (std::int64_t start = 0; start < grid_.tile.pixels; start += kPixelsPerRow) {
            const std::int64_t count = std::min(kPixelsPerRow, grid_.tile.pixels - start);
            for (std::int64_t pixel = 0; pixel < count; ++pixel) {
                for (int lane = 0; lane < lanes; ++lane) {
                    const std::int64_t channel = tile * lanes + lane;
                    const auto c = static_cast<std::size_t>(channel);
                    row[pixel * lanes + lane] =
                        scale_[c] *
                            static_cast<float>(pixels[(start + pixel) * shape_[3] + channel]) +
                        shift_[c];
                }
            }
            auto* to =
                static_cast<std::byte*>(grid_.at(tensors_.output, image, tile)) +
                static_cast<std::size_t>(start * grid_.tile.stride) * size_of(grid_.tile.dtype);
            Tile target = grid_.tile;
            target.pixels = count;
            loops_.store_floats(target, row, to);
        }
    }

    const Loops& loops_;
    Shape shape_;
    TileGrid grid_;
    std::vector<float> scale_, shift_;  // (C)
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_relu(const ops::Relu& op, const KernelOptions& options,
                                   const Context& context) {
    return std::make_unique<ReluKernel>(op, options, context);
}

std::unique_ptr<Kernel> build_add(const ops::Add& op, const KernelOptions& options,
                                  const Context& context) {
    return std::make_unique<AddKernel>(op, options, context);
}

std::unique_ptr<Kernel> build_input_normalize(const ops::InputNormalize& op,
                                              const KernelOptions& options,
                                              const Context& context) {
    return std::make_unique<InputNormalizeKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
