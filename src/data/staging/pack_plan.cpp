// SPDX-License-Identifier: Apache-2.0
#include "pack_plan.hpp"

#include <set>

#include <hpcai/data/sources.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::data::staging {
namespace {

constexpr std::size_t kMaxFiles = 100'000;  // per pack; its index then has 7 MB

std::string fingerprint_of(const Source& source, const std::vector<std::uint32_t>& files) {
    storage::Sha256 hash;
    const auto add = [&](std::string text) {
        text.push_back('\0');  // a separator that no path contains
        hash.update(storage::bytes_of(text));
    };
    add(std::filesystem::absolute(source.root).lexically_normal().string());
    for (const std::uint32_t file : files) {
        const FileMetadata& metadata = source.metadata[file];
        add(source.path_of(file));
        add(fmt::format("{} {} {}", metadata.bytes, metadata.modified_seconds,
                        metadata.modified_nanoseconds));
    }
    return hash.finish_hex();
}

void add_share(const std::vector<std::uint32_t>& evaluated, int rank, int degree,
               std::vector<std::uint8_t>& needed) {
    const EvaluationShare share = evaluation_share(std::ssize(evaluated), rank, degree);
    for (std::int64_t i = share.first; i < share.first + share.count; ++i) needed[evaluated[i]] = 1;
}

void add_bootstrap(const plan::DataSampler& sampler, int group, std::vector<std::uint8_t>& needed) {
    const std::vector<std::uint16_t> counts = sampler.counts(static_cast<std::uint32_t>(group));
    for (std::size_t sample = 0; sample < counts.size(); ++sample) {
        if (counts[sample] > 0) needed[sample] = 1;
    }
}

/// Returns whether this node has a rank that reads the group's training samples: one with the first
/// channels of the first pipeline stage.
bool reads_training_samples(const NodePlace& place, int group, const plan::Layout& layout) {
    return std::ranges::any_of(place.ranks, [&](const plan::RankPlace& rank) {
        return rank.group == group && layout.partition_of(rank.group_rank) == 0;
    });
}

}  // namespace

NodePlace place_on_node(const plan::ParallelismController& controller, int world_rank) {
    NodePlace place;
    const plan::RankPlace& mine = controller.place(world_rank);
    place.node = mine.node;
    place.node_rank = mine.node_rank;
    for (int rank = 0; rank < controller.layout().ranks; ++rank) {
        if (controller.place(rank).node == mine.node) place.ranks.push_back(controller.place(rank));
    }
    return place;
}

std::vector<std::uint8_t> needed_samples(const config::Config& config, Split split,
                                         std::uint32_t samples, const NodePlace& place,
                                         const plan::Layout& layout) {
    std::vector<std::uint8_t> needed(samples, 0);
    if (config.data.staging == config::Staging::none) return needed;
    const bool with_evaluation = config.data.staging == config::Staging::all;
    std::vector<std::uint32_t> evaluated;
    if (split == Split::validation) {
        if (!with_evaluation) return needed;
        for (std::uint32_t sample = 0; sample < samples; ++sample) evaluated.push_back(sample);
        for (const plan::RankPlace& rank : place.ranks) {
            add_share(evaluated, rank.group_rank, layout.degree, needed);
        }
        return needed;
    }
    const plan::DataSampler sampler(config.bagging, config.run.seed, samples);
    std::set<int> groups;
    for (const plan::RankPlace& rank : place.ranks) groups.insert(rank.group);
    for (const int group : groups) {
        if (reads_training_samples(place, group, layout)) add_bootstrap(sampler, group, needed);
        if (!with_evaluation || !config.bagging.out_of_bag) continue;
        const auto is_out_of_bag = sampler.out_of_bag(static_cast<std::uint32_t>(group));
        evaluated.clear();
        for (std::uint32_t sample = 0; sample < samples; ++sample) {
            if (is_out_of_bag[sample] != 0) evaluated.push_back(sample);
        }
        for (const plan::RankPlace& rank : place.ranks) {
            if (rank.group == group) add_share(evaluated, rank.group_rank, layout.degree, needed);
        }
    }
    return needed;
}

std::vector<Pack> plan_packs(const Source& source, const std::vector<std::uint8_t>& needed,
                             std::int64_t pack_bytes, std::int64_t max_file_bytes) {
    std::vector<Pack> packs;
    for (std::uint32_t file = 0; file < source.files; ++file) {
        const std::int64_t bytes = source.metadata[file].bytes;
        if (needed[file] == 0 || bytes < 0 || bytes > max_file_bytes) continue;
        if (packs.empty() || packs.back().bytes + bytes > pack_bytes ||
            packs.back().files.size() == kMaxFiles) {
            packs.push_back({fmt::format("pack-{:06}", packs.size()), {}, 0, ""});
        }
        packs.back().files.push_back(file);
        packs.back().bytes += bytes;
    }
    for (Pack& pack : packs) pack.fingerprint = fingerprint_of(source, pack.files);
    return packs;
}

std::vector<Pack> plan_single_file_packs(const Source& source) {
    std::vector<Pack> packs;
    std::set<std::string> names;
    for (std::uint32_t file = 0; file < source.files; ++file) {
        const std::string name = source.path_of(file);
        const FileMetadata& metadata = source.metadata[file];
        require(metadata.bytes >= 0, ExitCode::data, "cannot read '{}': not a regular file",
                source.full_path(file).string());
        const bool is_plain = !name.empty() && !name.starts_with('.') &&
                              !name.ends_with(".index") && name.find('/') == std::string::npos;
        require(is_plain, ExitCode::data,
                "'{}' cannot be staged: its name is empty, has a '/', begins with '.' or ends in "
                ".index",
                source.full_path(file).string());
        require(names.insert(name).second, ExitCode::data, "'{}' is listed twice",
                source.full_path(file).string());
        packs.push_back({name, {file}, metadata.bytes, fingerprint_of(source, {file})});
    }
    return packs;
}

}  // namespace hpcai::data::staging
