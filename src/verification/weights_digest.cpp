// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <hpcai/storage/safetensors.hpp>
#include <hpcai/storage/sha256.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

using storage::ElementType;
using storage::StoredTensor;

const StoredTensor& tensor_of(const storage::SafetensorsFile& file, const std::string& name,
                              ElementType type, std::int64_t elements) {
    const StoredTensor* tensor = file.find(name);
    require(tensor != nullptr, ExitCode::data, "has no tensor {}", name);
    const std::size_t bytes = static_cast<std::size_t>(elements) * storage::size_of(type);
    require(tensor->type == type && tensor->bytes.size() == bytes, ExitCode::data,
            "tensor {} has another type or {} bytes; must have {}", name, tensor->bytes.size(),
            bytes);
    return *tensor;
}

/// Converts from (rows, channels, pixels), the layout of the file, to (rows, pixels, channels), the
/// layout of the digest.
std::vector<float> to_digest_layout(const StoredTensor& tensor, std::int64_t rows,
                                    std::int64_t pixels) {
    std::vector<float> stored(tensor.bytes.size() / sizeof(float));
    std::memcpy(stored.data(), tensor.bytes.data(), tensor.bytes.size());
    if (pixels == 1 || stored.empty()) return stored;
    std::vector<float> values(stored.size());
    const auto area = static_cast<std::size_t>(pixels);
    const std::size_t channels = stored.size() / static_cast<std::size_t>(rows) / area;
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
        for (std::size_t channel = 0; channel < channels; ++channel) {
            for (std::size_t pixel = 0; pixel < area; ++pixel) {
                values[(row * area + pixel) * channels + channel] =
                    stored[(row * channels + channel) * area + pixel];
            }
        }
    }
    return values;
}

std::string digest_of(const storage::SafetensorsFile& file, const graph::Graph& graph) {
    storage::Sha256 digest;
    const auto add = [&](const std::string& name, std::int64_t elements, std::int64_t rows,
                         std::int64_t pixels) {
        const StoredTensor& tensor = tensor_of(file, name, ElementType::f32, elements);
        const std::vector<float> values = to_digest_layout(tensor, rows, pixels);
        digest.update(std::as_bytes(std::span(values)));
    };
    for (const graph::Parameter& parameter : graph.parameters()) {
        const bool is_filters = parameter.kind == graph::ParameterKind::filters;
        const std::int64_t pixels =
            is_filters ? parameter.shape[1] * parameter.shape[2] : parameter.pixels;
        add(parameter.name, parameter.shape.elements(), parameter.shape[0], pixels);
    }
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        add(statistics.name + ".running_mean", statistics.channels, 1, 1);
        add(statistics.name + ".running_var", statistics.channels, 1, 1);
    }
    return digest.finish_hex();
}

/// Checks the step counts, which the digest does not include, and the number of tensors.
void check_other_tensors(const storage::SafetensorsFile& file, const graph::Graph& graph,
                         std::int64_t steps_trained) {
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        const std::string name = statistics.name + ".num_batches_tracked";
        std::int64_t steps = 0;
        std::memcpy(&steps, tensor_of(file, name, ElementType::i64, 1).bytes.data(), sizeof(steps));
        require(steps == steps_trained, ExitCode::data, "{} is {}; must be {}", name, steps,
                steps_trained);
    }
    const std::size_t expected = graph.parameters().size() + 3 * graph.statistics().size();
    require(file.tensors().size() == expected, ExitCode::data,
            "has {} tensors; must have {} for this model", file.tensors().size(), expected);
}

/// Returns the largest size of a file with the parameters, statistics and step counts of `graph`.
std::size_t limit_bytes_of(const graph::Graph& graph) {
    constexpr std::size_t kHeader = 100'000'008;
    std::int64_t elements = 0;
    for (const graph::Parameter& parameter : graph.parameters()) {
        elements += parameter.shape.elements();
    }
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        elements += 2 * statistics.channels + 2;
    }
    return kHeader + sizeof(float) * static_cast<std::size_t>(elements);
}

}  // namespace

std::optional<std::string> digest_of_weights(const std::string& file, const graph::Graph& graph,
                                             std::int64_t steps_trained, Inspector& inspector) {
    return inspector.attempt(file, [&] {
        const std::size_t limit_bytes = limit_bytes_of(graph);
        const auto weights =
            storage::read_safetensors(inspector.checked_path(file, limit_bytes), limit_bytes);
        check_other_tensors(weights, graph, steps_trained);
        return digest_of(weights, graph);
    });
}

}  // namespace hpcai::verification
