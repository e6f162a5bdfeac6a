// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>

#include "rebuild.hpp"

namespace hpcai::morphs {
namespace {

/// The edit from which functions below derive the changes of a graph.
struct Request {
    const Readers& readers;
    Place place;
    std::int64_t amount = 0;
    std::uint32_t position = 0;
    std::uint64_t seed = 0;

    const graph::Node& node() const { return readers.node(place.node); }
    const graph::Parameter& parameter(graph::ParameterId id) const {
        return readers.graph().parameters()[id];
    }
    std::string name(std::string_view part) const {
        return fmt::format("edit{}.{}", position, part);
    }
};

/// The origin of a parameter with the old channels, followed by copies of random ones.
Origin copies_of(const Request& request, std::int64_t channels, std::int32_t parent) {
    CounterStream stream(request.seed, RandomPurpose::inheritance, request.position);
    Origin origin{Inheritance::gathered, parent, {}};
    origin.channels.resize(channels);
    std::iota(origin.channels.begin(), origin.channels.end(), 0);
    while (std::ssize(origin.channels) < request.amount) {
        origin.channels.push_back(stream.below(static_cast<std::uint32_t>(channels)));
    }
    return origin;
}

/// The parameter with extent request.amount of `axis`.
ChangedParameter changed(const Request& request, graph::ParameterId id, std::size_t axis,
                         Origin origin) {
    origin.parent = id;
    ChangedParameter result{request.parameter(id).shape, std::move(origin)};
    result.shape[axis] = request.amount;
    return result;
}

Changes wider_changes(const Request& request) {
    const Readers& readers = request.readers;
    auto convolution = std::get<ops::Convolution>(request.node().operation);
    const NodeId norm = readers.only_reader(request.place.node), relu = readers.only_reader(norm);
    const std::int32_t statistics = readers.node(norm).statistics;
    const Origin copies = copies_of(request, convolution.filters, statistics);
    convolution.filters = request.amount;
    Changes changes;
    changes.operations.emplace(request.place.node, convolution);
    changes.statistics.emplace(statistics, copies);
    for (const NodeId id : {request.place.node, norm}) {
        for (const graph::ParameterId parameter : readers.node(id).parameters) {
            changes.parameters.emplace(parameter, changed(request, parameter, 0, copies));
        }
    }
    for (const NodeId reader : readers.of(readers.node(relu).output)) {
        const graph::ParameterId filters = readers.node(reader).parameters.front();
        changes.parameters.emplace(filters,
                                   changed(request, filters, 3, {Inheritance::padded, -1, {}}));
    }
    return changes;
}

Changes kernel_changes(const Request& request) {
    auto convolution = std::get<ops::Convolution>(request.node().operation);
    convolution.kernel = request.amount;
    ++convolution.padding;
    const graph::ParameterId filters = request.node().parameters.front();
    ChangedParameter larger = changed(request, filters, 1, {Inheritance::padded, -1, {}});
    larger.shape[2] = request.amount;
    Changes changes;
    changes.operations.emplace(request.place.node, convolution);
    changes.parameters.emplace(filters, std::move(larger));
    return changes;
}

Changes skip_changes(const Request& request) {
    Changes changes;
    changes.after = request.place.end;
    changes.insert = [request](Builder& make, ValueId end, const Changes::ChildValue& child) {
        const ValueId start = child(request.node().output);
        const ValueId projected =
            make.convolution(request.name("conv"), start, make.shape(end)[3], {1, request.amount});
        return make.add(request.name("add"), end, make.norm(request.name("bn"), projected, true));
    };
    return changes;
}

Changes deeper_changes(const Request& request) {
    Changes changes;
    changes.after = request.place.node;
    changes.insert = [request](Builder& make, ValueId x, const Changes::ChildValue&) {
        ValueId y = make.convolution(request.name("conv1"), x, request.amount, {3, 1});
        y = make.relu(request.name("relu1"), make.norm(request.name("bn1"), y, false));
        y = make.convolution(request.name("conv2"), y, make.shape(x)[3], {1, 1});
        y = make.norm(request.name("bn2"), y, true);
        return make.relu(request.name("relu2"), make.add(request.name("add"), y, x));
    };
    return changes;
}

Changes deeper_plain_changes(const Request& request) {
    Changes changes;
    changes.after = request.place.node;
    changes.insert = [request](Builder& make, ValueId x, const Changes::ChildValue&) {
        const ValueId y = make.convolution(request.name("conv"), x, request.amount, {3, 1},
                                           Inheritance::identity);
        return make.relu(request.name("relu"), make.norm(request.name("bn"), y, false));
    };
    return changes;
}

constexpr std::array kEdits{wider_changes, kernel_changes, skip_changes, deeper_changes,
                            deeper_plain_changes};  // [MorphKind]

static_assert(kEdits.size() == kMorphNames.size());

std::vector<Morph> all_edits(const Readers& readers, MorphKind kind) {
    const std::vector<graph::Node>& nodes = readers.graph().nodes();
    std::vector<Morph> all;
    const auto add = [&](Place place) {
        const std::optional<std::int64_t> amount = legal_amount(readers, kind, place);
        if (!amount) return;
        const std::string end = place.end == graph::kNoNode ? "" : nodes[place.end].name;
        all.push_back({kind, nodes[place.node].name, end, *amount});
    };
    for (NodeId node = 0; node < std::ssize(nodes); ++node) {
        if (kind != MorphKind::skip) {
            add({node, graph::kNoNode});
            continue;
        }
        for (NodeId end = node + 1; end < std::ssize(nodes); ++end) add({node, end});
    }
    return all;
}

}  // namespace

std::string_view name_of(MorphKind kind) {
    return std::ranges::find(kMorphNames, kind, &MorphName::kind)->name;
}

std::vector<Morph> legal_morphs(const graph::Graph& graph, bool has_plain) {
    const Readers readers(graph);
    std::vector<Morph> chosen;
    for (const MorphName& row : kMorphNames) {
        if (row.kind == MorphKind::deeper_plain && !has_plain) continue;
        const std::vector<Morph> all = all_edits(readers, row.kind);
        const std::size_t count = std::min(all.size(), kMaxPlaces);
        for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[i * all.size() / count]);
    }
    return chosen;
}

Child apply(const graph::Graph& parent, const Morph& morph, std::uint32_t position,
            std::uint64_t seed) {
    const Readers readers(parent);
    const bool has_end = morph.kind == MorphKind::skip;
    const Place place{readers.find(morph.node), has_end ? readers.find(morph.end) : graph::kNoNode};
    const std::string edit =
        fmt::format("edit {}: {} of {}", position, name_of(morph.kind), morph.node);
    require(place.node != graph::kNoNode, ExitCode::data, "{}: the graph has no such node", edit);
    require(has_end || morph.end.empty(), ExitCode::data, "{}: only a skip has an end, got {}",
            edit, morph.end);
    require(!has_end || place.end != graph::kNoNode, ExitCode::data, "{}: the graph has no node {}",
            edit, morph.end);
    const std::optional<std::int64_t> amount = legal_amount(readers, morph.kind, place);
    require(amount.has_value(), ExitCode::data, "{}: the graph does not allow it", edit);
    require(*amount == morph.amount, ExitCode::data, "{}: expected the amount {}, got {}", edit,
            *amount, morph.amount);
    const Request request{readers, place, *amount, position, seed};
    const bool is_new = readers.find(request.name("add")) == graph::kNoNode &&
                        readers.find(request.name("relu")) == graph::kNoNode;
    require(is_new, ExitCode::data, "{}: the graph already has an edit of this number", edit);
    return rebuild(parent, kEdits[static_cast<std::size_t>(morph.kind)](request));
}

graph::Graph apply_all(const graph::Graph& root, std::span<const Morph> script) {
    graph::Graph graph = root;
    for (std::uint32_t position = 0; position < script.size(); ++position) {
        graph = apply(graph, script[position], position, 0).graph;
    }
    return graph;
}

}  // namespace hpcai::morphs
