// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>

#include "picture_file.hpp"
#include "staging/pack_copy.hpp"
#include "staging/stage_folder.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

using staging::FileFacts;
using staging::Pack;
using staging::Source;

constexpr std::chrono::milliseconds kTick{500};  // interval of checks for errors of other ranks

/// The training or the test set.
struct StagedSet {
    std::string name;  // of its subfolder in the staging folder
    Source source;
    bool is_packed = false;  // otherwise each file is a pack
    std::vector<Pack> packs;
    std::vector<std::byte> there;  // by pack, 1 if an earlier run seems to have staged it
    std::int64_t left_files = 0;   // needed files that are not staged
};

/// Returns a + b, capped at a size that no disk has, because sparse files may have any size.
std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t kMaxSum = std::uint64_t{1} << 62;
    return std::min(a, kMaxSum) + std::min(b, kMaxSum) > kMaxSum ? kMaxSum : a + b;
}

std::uint64_t bytes_of(const std::vector<Pack>& packs) {
    std::uint64_t bytes = 0;
    for (const Pack& pack : packs) bytes = capped_sum(bytes, pack.bytes);
    return bytes;
}

std::int64_t files_of(const std::vector<Pack>& packs) {
    std::size_t files = 0;
    for (const Pack& pack : packs) files += pack.files.size();
    return static_cast<std::int64_t>(files);
}

constexpr std::size_t index_of(Split split) {
    return static_cast<std::size_t>(split);
}

/// Returns the number of files in packs that the source's manifest does not list.
std::int64_t unlisted_files(const StagedSet& set) {
    std::int64_t count = 0;
    for (const Pack& pack : set.packs) {
        for (const std::uint32_t file : pack.files) {
            const std::string path = set.source.path_of(file);
            count += path != storage::kManifestName && !set.source.digests.contains(path);
        }
    }
    return set.source.has_manifest ? count : 0;
}

/// Returns whether `path` is `folder` or below it.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder) {
    return std::ranges::mismatch(folder, path).in1 == folder.end();
}

/// The staging folder must not contain the samples, because it is removed later, nor be among them.
void require_apart(const std::filesystem::path& root, const std::filesystem::path& stage) {
    std::error_code error;
    const std::filesystem::path samples = std::filesystem::weakly_canonical(root, error);
    const std::filesystem::path folder = std::filesystem::weakly_canonical(stage, error);
    require(!lies_in(samples, folder), ExitCode::usage,
            "data.staging_directory: the samples in '{}' are inside the staging folder '{}'",
            root.string(), stage.string());
    require(!lies_in(folder, samples), ExitCode::usage,
            "data.staging_directory: the staging folder '{}' would be among the samples in '{}'; "
            "expected a folder outside of them",
            stage.string(), root.string());
}

}  // namespace

struct DataDuplicator::State {
    const config::Config& config;
    comm::Communicator& everyone;
    int threads;
    plan::Layout layout;
    staging::NodePlace place;
    std::unique_ptr<comm::Communicator> node = {};
    std::array<std::optional<StagedSet>, 2> sets = {};  // by Split
    std::shared_ptr<LocalStage> stage = {};
    staging::StageFolder* opened = nullptr;  // of `stage`
    double seconds = 0;
    staging::Traffic traffic = {};
    std::shared_ptr<std::atomic<std::int64_t>> lost = std::make_shared<std::atomic<std::int64_t>>();
    std::int64_t unlisted_files = 0;
    StagingRecord record = {};

    /// Each rank reads the metadata of a share of the files, because the file system is slow.
    std::vector<FileFacts> survey(const StagingRequest& request) {
        const auto ranks = static_cast<std::uint32_t>(everyone.size());
        const std::uint32_t block = ceil_div(request.files, ranks);
        const std::uint32_t first = block * static_cast<std::uint32_t>(everyone.rank());
        std::vector<FileFacts> mine(block);
        parallel_for(block, threads, [&](std::int64_t i) {
            const std::int64_t file = first + i;
            if (file >= request.files) return;
            const std::string path = request.path_of(static_cast<std::uint32_t>(file));
            mine[i] = staging::facts_of(request.root / path);
        });
        std::vector<FileFacts> all(std::size_t{block} * ranks);
        everyone.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
        all.resize(request.files);
        return all;
    }
    /// One rank per node reads the manifest.
    void read_manifest(Source& source) {
        constexpr std::size_t kMaxManifest = std::size_t{1} << 30;
        const std::filesystem::path path = source.root / storage::kManifestName;
        std::vector<std::byte> bytes;
        comm::collective_try(everyone, [&] {
            if (node->rank() != 0) return;
            std::error_code error;
            const bool exists = std::filesystem::exists(path, error);
            require(!error, ExitCode::data, "cannot read '{}': {}", path.string(), error.message());
            source.has_manifest = exists;
            if (exists) bytes = storage::read_file_bytes(path, kMaxManifest);
        });
        node->broadcast(std::as_writable_bytes(std::span(&source.has_manifest, 1)), 0);
        bytes = comm::broadcast(*node, std::move(bytes));
        comm::collective_try(everyone, [&] {
            source.digests = storage::parse_manifest(storage::text_of(bytes), path);
        });
    }
    std::unique_ptr<LocalStage::State> open_folder() const {
        return std::make_unique<LocalStage::State>(
            LocalStage::State{staging::StageFolder(config.data.staging_directory),
                              config.data.staging_cleanup, place.node_rank, lost});
    }
    void add(Split split, const StagingRequest& request, bool is_packed) {
        if (config.data.staging != config::Staging::all && split == Split::validation) return;
        const Stopwatch watch;
        StagedSet set{staging::kSetNames[index_of(split)],
                      {request.root, request.files, request.path_of, survey(request), {}},
                      is_packed};
        read_manifest(set.source);
        comm::collective_try(everyone, [&] {
            if (!is_packed) {
                set.packs = staging::plan_whole_files(set.source);
                return;
            }
            const std::vector<std::uint8_t> needed =
                staging::needed_samples(config, split, request.files, place, layout);
            const auto pack_bytes = static_cast<std::uint64_t>(config.data.staging_pack_mib) << 20;
            set.packs = staging::plan_packs(set.source, needed, pack_bytes, kMaxPictureBytes);
            set.left_files = std::ranges::count(needed, std::uint8_t{1}) - files_of(set.packs);
        });
        sets[index_of(split)] = std::move(set);
        seconds += watch.seconds();
    }
    /// The first rank of the node locks the staging folder, removes old packs and checks free
    /// space.
    void prepare() {
        comm::collective_try(everyone, [&] {
            if (node->rank() != 0) return;
            for (const std::optional<StagedSet>& set : sets) {
                if (!set) continue;
                require_apart(set->source.root, staging::stage_path(config.data.staging_directory));
            }
            std::unique_ptr<LocalStage::State> folder = open_folder();
            require(
                folder->folder.lock_alone(), ExitCode::usage,
                "data.staging_directory: '{}' on node {} is in use by another run, or by another "
                "node if nodes share the directory",
                folder->folder.path().string(), place.node);
            hold(std::move(folder));
            opened->note_running(static_cast<int>(place.ranks.size()));
            for (std::size_t split = 0; split < sets.size(); ++split) {
                std::vector<std::byte> there =
                    opened->prepare(staging::kSetNames[split],
                                    sets[split] ? sets[split]->packs : std::vector<Pack>());
                if (sets[split]) sets[split]->there = std::move(there);
            }
            require_room();
        });
    }
    void hold(std::unique_ptr<LocalStage::State> folder) {
        opened = &folder->folder;
        stage = std::make_shared<LocalStage>(std::move(folder));
    }
    void require_room() const {
        constexpr std::uint64_t kBlock = 4096;  // bytes that a pack or its index wastes at most
        constexpr std::uint64_t kEntry = 67;    // bytes of a file's entry in an index
        std::uint64_t needed = 0, all = 0;
        for (const std::optional<StagedSet>& set : sets) {
            if (!set) continue;
            all = capped_sum(all, bytes_of(set->packs));
            for (std::size_t pack = 0; pack < set->packs.size(); ++pack) {
                if (set->there[pack] != std::byte{0}) continue;
                const std::uint64_t index_bytes =
                    kEntry * set->packs[pack].files.size() + 2 * kBlock;
                needed = capped_sum(needed, capped_sum(set->packs[pack].bytes, index_bytes));
            }
        }
        const std::uint64_t reserve = static_cast<std::uint64_t>(config.data.staging_reserve_mib)
                                      << 20;
        const std::uint64_t free = opened->free_bytes();
        require(
            needed == 0 || capped_sum(needed, reserve) <= free, ExitCode::usage,
            "data.staging_directory: '{}' on node {} has {} free, but staging needs {} ({} of "
            "samples, of which {} are already staged) and data.staging_reserve_mib keeps {} free",
            config.data.staging_directory, place.node, format_bytes(free), format_bytes(needed),
            format_bytes(all), format_bytes(all - std::min(all, needed)), format_bytes(reserve));
    }
    /// Threads copy while their rank regularly checks that no other rank has failed.
    void copy() {
        struct Piece {
            StagedSet* set;
            std::size_t pack;
        };
        std::vector<Piece> mine;
        std::int64_t piece = 0;
        for (std::optional<StagedSet>& set : sets) {
            for (std::size_t pack = 0; set && pack < set->packs.size(); ++pack, ++piece) {
                if (piece % node->size() == node->rank()) mine.push_back({&*set, pack});
            }
        }
        std::atomic<bool> stop{false};
        const std::function<void(std::int64_t)> work = [&](std::int64_t i) {
            copy_or_check(*mine[i].set, mine[i].pack, stop);
        };
        std::optional<WorkerPool> worker_pool;
        comm::collective_try(everyone, [&] {
            worker_pool.emplace(static_cast<std::int64_t>(mine.size()), threads, work, stop);
        });
        std::array<double, 2> any{};  // 1 if any rank has failed; 1 if any still copies
        do {
            const bool done = worker_pool->wait(kTick);
            any = {worker_pool->has_failed() ? 1.0 : 0.0, done ? 0.0 : 1.0};
            everyone.all_reduce_max(any);
        } while (any[0] == 0 && any[1] != 0);
        stop = true;
        comm::collective_try(everyone, [&] { worker_pool->finish(); });
    }
    void copy_or_check(StagedSet& set, std::size_t pack, std::atomic<bool>& stop) {
        const staging::Copying copying{
            set.source, set.is_packed,
            staging::stage_path(config.data.staging_directory) / set.name, stop, traffic};
        try {
            if (set.there[pack] != std::byte{0} && staging::is_whole(copying, set.packs[pack]))
                return;
            staging::copy_pack(copying, set.packs[pack]);
        } catch (const staging::Stopped&) {
            return;  // `stop` also ends the pool's work
        }
    }
    /// Locks the staging folder for reading. Each rank that reads it holds its own lock.
    void share() {
        const auto lock = [](staging::StageFolder& folder) {
            require(folder.lock_shared(), ExitCode::usage,
                    "data.staging_directory: '{}' was locked by another program after this run had "
                    "copied its samples",
                    folder.path().string());
        };
        comm::collective_try(everyone, [&] {
            if (node->rank() == 0) lock(*opened);
        });
        comm::collective_try(everyone, [&] {
            if (node->rank() == 0) return;
            std::unique_ptr<LocalStage::State> folder = open_folder();
            lock(folder->folder);
            hold(std::move(folder));
        });
    }
    void sum_up() {
        const std::int64_t left = traffic.left;
        std::array<std::int64_t, 5> sums{static_cast<std::int64_t>(traffic.written),
                                         static_cast<std::int64_t>(traffic.verified), -left, left,
                                         0};
        std::array<double, 2> most{0, seconds};
        for (const std::optional<StagedSet>& set : sets) {
            if (!set || node->rank() != 0) continue;
            most[0] += static_cast<double>(bytes_of(set->packs));
            sums[3] += set->left_files;
            sums[4] += data::unlisted_files(*set);
            sums[2] += files_of(set->packs);
        }
        everyone.all_reduce_sum(sums);
        everyone.all_reduce_max(most);
        record = {config::value_text(config, "data.staging"), sums[2], sums[0], sums[1],
                  static_cast<std::int64_t>(most[0]),         sums[3]};
        unlisted_files = sums[4];
        seconds = most[1];
    }
};

DataDuplicator::DataDuplicator(const config::Config& config,
                               const plan::ParallelismController& controller,
                               comm::Communicator& everyone, int threads)
    : state_(new State{.config = config,
                       .everyone = everyone,
                       .threads = threads,
                       .layout = controller.layout(),
                       .place = staging::place_on_node(controller, everyone.rank())}) {
    state_->node = everyone.split(state_->place.node, state_->place.node_rank);
}

DataDuplicator::~DataDuplicator() = default;

void DataDuplicator::add_pictures(Split split, const StagingRequest& request) {
    state_->add(split, request, true);
}

void DataDuplicator::add_files(Split split, const StagingRequest& request) {
    state_->add(split, request, false);
}

void DataDuplicator::run() {
    const Stopwatch watch;
    state_->prepare();
    for (std::optional<StagedSet>& set : state_->sets) {
        if (set) set->there = comm::broadcast(*state_->node, std::move(set->there));
    }
    state_->copy();
    state_->share();
    state_->seconds += watch.seconds();
    state_->sum_up();
}

std::shared_ptr<const StagedPictures> DataDuplicator::pictures(Split split) const {
    const std::optional<StagedSet>& set = state_->sets[index_of(split)];
    if (!set) return nullptr;
    return staging::open_staged(folder(split), set->packs, set->source, state_->lost);
}

std::filesystem::path DataDuplicator::folder(Split split) const {
    const std::optional<StagedSet>& set = state_->sets[index_of(split)];
    if (!set) return {};
    return staging::stage_path(state_->config.data.staging_directory) / set->name;
}

const StagingRecord& DataDuplicator::record() const {
    return state_->record;
}

std::vector<std::string> DataDuplicator::notes() const {
    if (state_->unlisted_files == 0) return {};
    return {
        fmt::format("{} staged files are not listed in the manifest.sha256 of their folder and "
                    "were not compared with it",
                    state_->unlisted_files)};
}

double DataDuplicator::seconds() const {
    return state_->seconds;
}

std::shared_ptr<LocalStage> DataDuplicator::stage() const {
    return state_->stage;
}

}  // namespace hpcai::data
