// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/weights_file.hpp>

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
            "tensor {} has {} bytes; must have {} bytes of type {}", name, tensor->bytes.size(),
            bytes, type == ElementType::f32 ? "F32" : "I64");
    return *tensor;
}

std::string digest_of(const storage::SafetensorsFile& file, const graph::Graph& graph) {
    storage::Sha256 digest;
    // The digest is of the values in the order of graph::ParameterStore.
    const auto add = [&](const std::string& name, std::int64_t elements, std::int64_t rows,
                         std::int64_t pixels) {
        const StoredTensor& tensor = tensor_of(file, name, ElementType::f32, elements);
        const std::vector<float> values = training::values_in_store(tensor, rows, pixels);
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

/// Checks the batch counts, which the digest does not include, and the number of tensors.
void check_other_tensors(const storage::SafetensorsFile& file, const graph::Graph& graph,
                         std::int64_t batches_trained) {
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        const std::string name = statistics.name + ".num_batches_tracked";
        std::int64_t count = 0;
        std::memcpy(&count, tensor_of(file, name, ElementType::i64, 1).bytes.data(), sizeof(count));
        require(count == batches_trained, ExitCode::data, "{} is {}; must be {}", name, count,
                batches_trained);
    }
    const std::size_t expected = graph.parameters().size() + 3 * graph.statistics().size();
    require(file.tensors().size() == expected, ExitCode::data,
            "has {} tensors; must have {} for this model", file.tensors().size(), expected);
}

/// Returns the largest size of a file with the parameters, statistics and batch counts of `graph`.
std::size_t limit_bytes_of(const graph::Graph& graph) {
    constexpr std::size_t kHeader = 100'000'008;  // safetensors' limit and the length field
    std::int64_t elements = 0;
    for (const graph::Parameter& parameter : graph.parameters())
        elements += parameter.shape.elements();
    for (const graph::NormStatistics& statistics : graph.statistics())
        elements += 2 * statistics.channels + 2;  // an i64 batch count is as large as two floats
    return kHeader + sizeof(float) * static_cast<std::size_t>(elements);
}

}  // namespace

std::optional<std::string> digest_of_weights(const std::string& file, const graph::Graph& graph,
                                             std::int64_t batches, Inspector& inspector) {
    return inspector.attempt(file, [&] {
        const std::size_t limit_bytes = limit_bytes_of(graph);
        const auto weights =
            storage::read_safetensors(inspector.checked_path(file, limit_bytes), limit_bytes);
        check_other_tensors(weights, graph, batches);
        return digest_of(weights, graph);
    });
}

}  // namespace hpcai::verification
