// SPDX-License-Identifier: Apache-2.0
#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

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
    const SimdKernels& loops_;
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

    const SimdKernels& loops_;
    Mode mode_;
    FlatTiles flat_;
    Identity identity_;
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

}  // namespace hpcai::device::cpu
