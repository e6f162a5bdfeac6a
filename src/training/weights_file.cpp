// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/weights_file.hpp>

namespace hpcai::training {
namespace {

using graph::ParameterKind;

constexpr std::string_view kBackbone = "backbone.body.";  // of a detector

/// A tensor of the file and its values in the store.
struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;  // in the file
    std::span<float> target;          // in the store
    std::int64_t pixels = 1;  // inner axes: (pixels, channels) in the store, reversed in the file
};

std::vector<Entry> entries(const graph::Graph& graph, graph::ParameterStore& store) {
    std::vector<Entry> result;
    for (std::size_t index = 0; index < graph.parameters().size(); ++index) {
        const graph::Parameter& parameter = graph.parameters()[index];
        Entry entry{parameter.name,
                    {},
                    store.parameter(static_cast<graph::ParameterId>(index)),
                    parameter.pixels};
        entry.shape.assign(parameter.shape.begin(), parameter.shape.end());
        if (parameter.kind == ParameterKind::filters) {
            // (filters, height, width, channels) here, (filters, channels, height, width) in files
            entry.pixels = parameter.shape[1] * parameter.shape[2];
            std::rotate(entry.shape.begin() + 1, entry.shape.end() - 1, entry.shape.end());
        }
        result.push_back(std::move(entry));
    }
    for (std::size_t index = 0; index < graph.statistics().size(); ++index) {
        const graph::NormStatistics& statistics = graph.statistics()[index];
        const auto id = static_cast<std::int32_t>(index);
        result.push_back(
            {statistics.name + ".running_mean", {statistics.channels}, store.running_mean(id)});
        result.push_back(
            {statistics.name + ".running_var", {statistics.channels}, store.running_variance(id)});
    }
    return result;
}

/// Converts (rows, a, b) to (rows, b, a).
std::vector<float> swap_axes(const std::vector<float>& values, std::int64_t rows, std::int64_t a) {
    if (a == 1 || values.empty()) return values;
    const std::int64_t b = std::ssize(values) / rows / a;
    std::vector<float> swapped(values.size());
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < a; ++i) {
            for (std::int64_t j = 0; j < b; ++j) {
                swapped[(row * b + j) * a + i] = values[(row * a + i) * b + j];
            }
        }
    }
    return swapped;
}

const storage::StoredTensor& checked_tensor(const storage::SafetensorsFile& file,
                                            const std::filesystem::path& path, const Entry& entry) {
    const storage::StoredTensor* tensor = file.find(entry.name);
    require(tensor != nullptr, ExitCode::data, "{}: tensor {} is missing", path.string(),
            entry.name);
    require(tensor->type == storage::ElementType::f32, ExitCode::data, "{}: tensor {} must be F32",
            path.string(), entry.name);
    require(tensor->shape == entry.shape, ExitCode::data,
            "{}: tensor {} has shape ({}), expected ({})", path.string(), entry.name,
            fmt::join(tensor->shape, ", "), fmt::join(entry.shape, ", "));
    std::vector<float> values(entry.target.size());
    std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    require(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }),
            ExitCode::data, "{}: tensor {} holds a value that is not finite", path.string(),
            entry.name);
    return *tensor;
}

/// Reads the tensors of `all`. The name of any other tensor must end in `.num_batches_tracked` or,
/// if the prefix `skipped` is not empty, begin with this prefix.
void load_all(const std::filesystem::path& path, const storage::SafetensorsFile& file,
              const std::vector<Entry>& all, std::string_view skipped,
              graph::ParameterStore& store) {
    std::set<std::string> known;
    std::vector<const storage::StoredTensor*> tensors;
    for (const Entry& entry : all) {
        tensors.push_back(&checked_tensor(file, path, entry));
        known.insert(entry.name);
    }
    for (const storage::StoredTensor& tensor : file.tensors()) {
        const bool is_ignored = tensor.name.ends_with(".num_batches_tracked") ||
                                (!skipped.empty() && tensor.name.starts_with(skipped));
        require(known.contains(tensor.name) || is_ignored, ExitCode::data,
                "{}: tensor {} does not belong to this model", path.string(), tensor.name);
    }
    for (std::size_t index = 0; index < all.size(); ++index) {
        const Entry& entry = all[index];
        store.write(values_in_store(*tensors[index], entry.shape.front(), entry.pixels),
                    entry.target);
    }
}

}  // namespace

std::vector<float> values_in_store(const storage::StoredTensor& tensor, std::int64_t rows,
                                   std::int64_t pixels) {
    std::vector<float> stored(tensor.bytes.size() / sizeof(float));
    std::memcpy(stored.data(), tensor.bytes.data(), tensor.bytes.size());
    if (pixels == 1 || stored.empty()) return stored;
    return swap_axes(stored, rows, std::ssize(stored) / rows / pixels);
}

void write_weights(const std::filesystem::path& path, const graph::Graph& graph,
                   graph::ParameterStore& store, std::int64_t normalized_batches) {
    const std::vector<Entry> all = entries(graph, store);
    std::vector<std::vector<float>> values;
    std::vector<storage::StoredTensor> tensors;
    for (const Entry& entry : all) {
        values.push_back(swap_axes(store.read(entry.target), entry.shape.front(), entry.pixels));
        tensors.push_back({entry.name, storage::ElementType::f32, entry.shape,
                           std::as_bytes(std::span(values.back()))});
    }
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        tensors.push_back({statistics.name + ".num_batches_tracked",
                           storage::ElementType::i64,
                           {},
                           std::as_bytes(std::span(&normalized_batches, 1))});
    }
    storage::write_safetensors(path, tensors, {{"format", "pt"}});
}

void read_weights(const std::filesystem::path& path, const graph::Graph& graph,
                  graph::ParameterStore& store) {
    load_all(path, storage::read_safetensors(path), entries(graph, store), "", store);
}

void read_initial_weights(const std::filesystem::path& path, const graph::Graph& graph,
                          graph::ParameterStore& store) {
    const storage::SafetensorsFile file = storage::read_safetensors(path);
    std::vector<Entry> all = entries(graph, store);
    const auto is_backbone = [](const auto& named) { return named.name.starts_with(kBackbone); };
    const bool is_classifier =
        std::none_of(file.tensors().begin(), file.tensors().end(), is_backbone);
    if (!is_classifier || std::none_of(all.begin(), all.end(), is_backbone)) {
        load_all(path, file, all, "", store);
        return;
    }
    std::erase_if(all, [&](const Entry& entry) { return !is_backbone(entry); });
    for (Entry& entry : all) entry.name = entry.name.substr(kBackbone.size());
    load_all(path, file, all, "fc.", store);
}

std::string training_digest(const graph::Graph& graph, graph::ParameterStore& store) {
    storage::Sha256 digest;
    for (const Entry& entry : entries(graph, store)) {
        const std::vector<float> values = store.read(entry.target);
        digest.update(std::as_bytes(std::span(values)));
    }
    return digest.finish_hex();
}

}  // namespace hpcai::training
