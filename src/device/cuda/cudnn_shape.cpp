// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

ConvolutionShape convolution_shape(const ops::Convolution& op, const KernelOptions& options) {
    return {.images = op.input[0],
            .height = op.input[1],
            .width = op.input[2],
            .channels = stored_channels(op.input[3]),
            .filters = stored_channels(op.filters),
            .kernel = op.kernel,
            .stride = op.stride,
            .padding = op.padding,
            .dtype = options.compute,
            .tf32 = options.tf32 && options.compute == DType::f32};
}

ConvolutionShape weight_gradient_shape(const ops::Convolution& op, const KernelOptions& options) {
    ConvolutionShape shape = convolution_shape(op, options);
    shape.pairs =
        op.input[3] == 3 && op.stride == 2 && shape.width % 2 == 0 && size_of(shape.dtype) == 2;
    if (!shape.pairs) return shape;
    shape.width /= 2;
    shape.channels *= 2;
    return shape;
}

std::string to_string(const ConvolutionShape& shape) {
    return fmt::format("{}x{}x{}x{} filters={} kernel={} stride={} padding={} {}{}", shape.images,
                       shape.height, shape.width, shape.channels, shape.filters, shape.kernel,
                       shape.stride, shape.padding, shape.tf32 ? "tf32" : name_of(shape.dtype),
                       shape.pairs ? " pairs" : "");
}

std::string_view name_of(ConvolutionPass pass) {
    static constexpr std::array<std::string_view, kConvolutionPasses> kNames{
        "forward",
        "forward_with_statistics",
        "normalized_forward_with_statistics",
        "input_gradient",
        "input_gradient_with_norm",
        "weight_gradient",
        "normalized_weight_gradient",
    };
    return kNames.at(static_cast<std::size_t>(pass));
}

}  // namespace hpcai::device::cuda
