// SPDX-License-Identifier: Apache-2.0
#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

class ReluKernel final : public OperationKernel<ops::Relu, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            loops_.apply(tile,
                         {offset(tensors_.inputs[0], at), nullptr, offset(tensors_.output, at),
                          identity_.ones, identity_.zeros, true});
        });
    }
    void input_gradient() override {
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            void* output = offset(tensors_.output, at);
            const GradientSource source = identity_.source(
                offset(output_gradient(), at), offset(second_output_gradient(), at), output, true);
            loops_.gradient_apply(tile, {source, offset(tensors_.input_gradients[0], at),
                                         identity_.ones, identity_.zeros, identity_.zeros});
        });
    }

    const SimdKernels& loops_ = *context_.loops;
    const FlatTiles flat_{op_.input.elements(), options_.compute};
    Identity identity_;
};

class AddKernel final : public OperationKernel<ops::Add, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override { sum(tensors_.inputs[0], tensors_.inputs[1], tensors_.output); }
    void input_gradient() override {
        for (void* to : tensors_.input_gradients) {
            if (to != nullptr) sum(output_gradient(), second_output_gradient(), to);
        }
    }
    void sum(void* a, void* b, void* to) const {
        flat_.for_each([&](const Tile& tile, std::size_t at) {
            loops_.apply(tile, {offset(a, at), offset(b, at), offset(to, at), identity_.ones,
                                identity_.zeros, false});
        });
    }

    const SimdKernels& loops_ = *context_.loops;
    const FlatTiles flat_{op_.input.elements(), options_.compute};
    Identity identity_;
};

}  // namespace

KernelPtr build(const ops::Relu& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<ReluKernel>(op, options, context);
}

KernelPtr build(const ops::Add& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<AddKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
