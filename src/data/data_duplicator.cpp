// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/clock.hpp>
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

using staging::FileMetadata;
using staging::Pack;
using staging::Source;

constexpr std::chrono::milliseconds kErrorCheckInterval{500};  // between checks of other ranks

/// The training or the test set.
struct StagedSet {
    std::string name;  // of its subfolder in the staging folder
    Source source;
    bool has_pictures = false;  // true: a pack has many image files; false: one other file
    std::vector<Pack> packs;
    std::vector<std::byte> is_staged;  // by pack, 1 if an earlier run has apparently staged it
    std::int64_t unstaged_files = 0;   // needed files that are in no pack
};

/// Returns a + b, capped at a size that no disk has, because sparse files may have any size.
std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t kMaxSum = std::int64_t{1} << 62;
    return a > kMaxSum - std::min(b, kMaxSum) ? kMaxSum : a + b;
}

std::int64_t bytes_of(const std::vector<Pack>& packs) {
    std::int64_t bytes = 0;
    for (const Pack& pack : packs) bytes = capped_sum(bytes, pack.bytes);
    return bytes;
}

std::int64_t files_of(const std::vector<Pack>& packs) {
    std::int64_t files = 0;
    for (const Pack& pack : packs) files += std::ssize(pack.files);
    return files;
}

constexpr std::size_t index_of(Split split) {
    return static_cast<std::size_t>(split);
}

/// Returns the number of files in packs that the source's manifest, if any, does not list.
std::int64_t unlisted_files(const StagedSet& set) {
    std::int64_t count = 0;
    for (const Pack& pack : set.packs) {
        for (const std::uint32_t file : pack.files) {
            count += set.source.path_of(file) != storage::kManifestName &&
                     set.source.listed_digest(file).empty();
        }
    }
    return set.source.has_manifest ? count : 0;
}

bool is_at_or_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
    return std::ranges::mismatch(folder, path).in1 == folder.end();
}

/// Throws if the staging folder, which may be removed, contains the samples or is in their folder.
void require_disjoint(const std::filesystem::path& root, const std::filesystem::path& stage) {
    std::error_code error;
    const std::filesystem::path samples = std::filesystem::weakly_canonical(root, error);
    const std::filesystem::path folder = std::filesystem::weakly_canonical(stage, error);
    require(!is_at_or_below(samples, folder), ExitCode::usage,
            "data.staging_directory: the samples in '{}' are inside the staging folder '{}'",
            root.string(), stage.string());
    require(!is_at_or_below(folder, samples), ExitCode::usage,
            "data.staging_directory: the staging folder '{}' would be inside the samples' folder "
            "'{}'; expected a directory outside of it",
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
    StagingResult result = {};
    staging::StageFolder* stage_folder = nullptr;  // of result.lock
    staging::CopyCounters counters = {};
    std::shared_ptr<std::atomic<std::int64_t>> lost_copies =
        std::make_shared<std::atomic<std::int64_t>>();

    /// Returns the metadata of all files. Each rank reads a block, because the file system is slow.
    std::vector<FileMetadata> read_metadata(const StagingRequest& request) {
        const auto ranks = static_cast<std::uint32_t>(everyone.size());
        const std::uint32_t block = ceil_div(request.files, ranks);
        const std::uint32_t first = block * static_cast<std::uint32_t>(everyone.rank());
        std::vector<FileMetadata> mine(block);
        parallel_for(block, threads, [&](std::int64_t i) {
            const std::int64_t file = first + i;
            if (file >= request.files) return;
            const auto number = static_cast<std::uint32_t>(file);
            mine[i] = request.packed != nullptr
                          ? staging::read_metadata(*request.packed, number)
                          : staging::read_metadata(request.root / request.path_of(number));
        });
        std::vector<FileMetadata> all(std::size_t{block} * ranks);
        everyone.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
        all.resize(request.files);
        return all;
    }
    /// Reads the manifest, if there is one, on one rank per node and broadcasts it.
    void read_manifest(Source& source) {
        constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 30;
        const std::filesystem::path path = source.root / storage::kManifestName;
        std::vector<std::byte> bytes;
        comm::collective_try(everyone, [&] {
            if (node->rank() != 0) return;
            std::error_code error;
            const bool exists = std::filesystem::exists(path, error);
            require(!error, ExitCode::data, "cannot read '{}': {}", path.string(), error.message());
            source.has_manifest = exists;
            if (exists) bytes = storage::read_file_bytes(path, kMaxManifestBytes);
        });
        node->broadcast(std::as_writable_bytes(std::span(&source.has_manifest, 1)), 0);
        bytes = comm::broadcast(*node, std::move(bytes));
        comm::collective_try(everyone, [&] {
            source.digests = storage::parse_manifest(storage::text_of(bytes), path);
        });
    }
    std::unique_ptr<StagingLock::State> open_folder() const {
        return std::make_unique<StagingLock::State>(
            StagingLock::State{staging::StageFolder(config.data.staging_directory),
                               config.data.staging_cleanup, place.node_rank, lost_copies});
    }
    void add(Split split, const StagingRequest& request, bool has_pictures) {
        if (config.data.staging != config::Staging::all && split == Split::validation) return;
        const Stopwatch watch;
        StagedSet set{
            staging::kSetNames[index_of(split)], {request, read_metadata(request)}, has_pictures};
        read_manifest(set.source);
        comm::collective_try(everyone, [&] {
            if (!has_pictures) {
                set.packs = staging::plan_single_file_packs(set.source);
                return;
            }
            const std::vector<std::uint8_t> needed =
                staging::needed_samples(config, split, request.files, place, layout);
            const std::int64_t pack_bytes = std::int64_t{config.data.staging_pack_mib} << 20;
            set.packs = staging::plan_packs(set.source, needed, pack_bytes, kMaxPictureBytes);
            set.unstaged_files = std::ranges::count(needed, std::uint8_t{1}) - files_of(set.packs);
        });
        sets[index_of(split)] = std::move(set);
        result.seconds += watch.seconds();
    }
    /// On the first rank of the node, locks the staging folder, removes old packs, marks the ranks
    /// as running and checks the disk space.
    void prepare() {
        comm::collective_try(everyone, [&] {
            if (node->rank() != 0) return;
            for (const std::optional<StagedSet>& set : sets) {
                if (!set) continue;
                require_disjoint(set->source.root,
                                 staging::stage_path(config.data.staging_directory));
            }
            std::unique_ptr<StagingLock::State> opened = open_folder();
            require(
                opened->folder.lock_exclusive(), ExitCode::usage,
                "data.staging_directory: '{}' on node {} is in use by another run, or by another "
                "node if nodes share the directory",
                opened->folder.path().string(), place.node);
            keep_locked(std::move(opened));
            stage_folder->mark_running(static_cast<int>(place.ranks.size()));
            for (std::size_t split = 0; split < sets.size(); ++split) {
                std::vector<std::byte> is_staged =
                    stage_folder->prepare(staging::kSetNames[split],
                                          sets[split] ? sets[split]->packs : std::vector<Pack>());
                if (sets[split]) sets[split]->is_staged = std::move(is_staged);
            }
            require_disk_space();
        });
    }
    void keep_locked(std::unique_ptr<StagingLock::State> locked) {
        stage_folder = &locked->folder;
        result.lock = std::make_shared<StagingLock>(std::move(locked));
    }
    void require_disk_space() const {
        constexpr std::int64_t kMaxUnusedBytes = 4096;  // in the last disk block of a file
        constexpr std::int64_t kEntryBytes = 67;  // of a quoted SHA-256 and a comma in an index
        std::int64_t needed = 0, sum = 0;
        for (const std::optional<StagedSet>& set : sets) {
            if (!set) continue;
            sum = capped_sum(sum, bytes_of(set->packs));
            for (std::size_t pack = 0; pack < set->packs.size(); ++pack) {
                if (set->is_staged[pack] != std::byte{0}) continue;
                const std::int64_t index_bytes =
                    kEntryBytes * std::ssize(set->packs[pack].files) + 2 * kMaxUnusedBytes;
                needed = capped_sum(needed, capped_sum(set->packs[pack].bytes, index_bytes));
            }
        }
        const std::int64_t reserve = std::int64_t{config.data.staging_reserve_mib} << 20;
        const std::int64_t free = stage_folder->free_bytes();
        require(needed == 0 || capped_sum(needed, reserve) <= free, ExitCode::usage,
                "data.staging_directory: '{}' on node {} has {} free, but staging needs {} ({} of "
                "samples, about {} already staged) and data.staging_reserve_mib keeps {} free",
                config.data.staging_directory, place.node, format_bytes(free), format_bytes(needed),
                format_bytes(sum), format_bytes(sum - std::min(sum, needed)),
                format_bytes(reserve));
    }
    /// Copies this rank's packs in worker threads; the calling thread checks for failed ranks.
    void copy() {
        struct CopyTask {
            StagedSet* set;
            std::size_t pack;
        };
        std::vector<CopyTask> mine;
        std::int64_t task = 0;
        for (std::optional<StagedSet>& set : sets) {
            for (std::size_t pack = 0; set && pack < set->packs.size(); ++pack, ++task) {
                if (task % node->size() == node->rank()) mine.push_back({&*set, pack});
            }
        }
        std::atomic<bool> stop{false};
        const std::function<void(std::int64_t)> work = [&](std::int64_t i) {
            copy_or_check(*mine[i].set, mine[i].pack, stop);
        };
        std::optional<WorkerPool> worker_pool;
        comm::collective_try(everyone,
                             [&] { worker_pool.emplace(std::ssize(mine), threads, work, stop); });
        std::array<double, 2> flags{};  // 1 if any rank has failed; 1 if any rank still copies
        do {
            const bool done = worker_pool->wait(kErrorCheckInterval);
            flags = {worker_pool->has_failed() ? 1.0 : 0.0, done ? 0.0 : 1.0};
            everyone.all_reduce_max(flags);
        } while (flags[0] == 0 && flags[1] != 0);
        stop = true;
        comm::collective_try(everyone, [&] { worker_pool->finish(); });
    }
    void copy_or_check(StagedSet& set, std::size_t pack, std::atomic<bool>& stop) {
        const staging::CopyContext context{
            set.source, set.has_pictures,
            staging::stage_path(config.data.staging_directory) / set.name, stop, counters};
        try {
            if (set.is_staged[pack] != std::byte{0} &&
                staging::verify_or_remove(context, set.packs[pack]))
                return;
            staging::copy_pack(context, set.packs[pack]);
        } catch (const staging::Stopped&) {
            return;  // `stop` also ends the pool's work
        }
    }
    /// Replaces the exclusive lock of the staging folder by a shared lock of each rank.
    void lock_for_reading() {
        const auto lock = [](staging::StageFolder& folder) {
            require(folder.lock_shared(), ExitCode::usage,
                    "data.staging_directory: '{}' was locked by another program after this run had "
                    "copied its samples",
                    folder.path().string());
        };
        comm::collective_try(everyone, [&] {
            if (node->rank() == 0) lock(*stage_folder);
        });
        comm::collective_try(everyone, [&] {
            if (node->rank() == 0) return;
            std::unique_ptr<StagingLock::State> opened = open_folder();
            lock(opened->folder);
            keep_locked(std::move(opened));
        });
    }
    void reduce_result() {
        const std::int64_t unreadable = counters.unreadable_files;
        // Bytes written, bytes verified, files staged, files needed but not staged, files unlisted.
        std::array<std::int64_t, 5> sums{counters.written_bytes, counters.verified_bytes,
                                         -unreadable, unreadable, 0};
        std::array<double, 2> maxima{0, result.seconds};  // bytes on a node, seconds
        for (const std::optional<StagedSet>& set : sets) {
            if (!set || node->rank() != 0) continue;
            maxima[0] += static_cast<double>(bytes_of(set->packs));
            sums[3] += set->unstaged_files;
            sums[4] += unlisted_files(*set);
            sums[2] += files_of(set->packs);
        }
        everyone.all_reduce_sum(sums);
        everyone.all_reduce_max(maxima);
        result.record = {config::value_text(config, "data.staging"), sums[2], sums[0], sums[1],
                         static_cast<std::int64_t>(maxima[0]),       sums[3]};
        result.seconds = maxima[1];
        if (sums[4] == 0) return;
        result.notes.push_back(fmt::format(
            "staged files that are not listed in the manifest.sha256 of their folder and were "
            "not compared with it: {}",
            sums[4]));
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
        if (set) set->is_staged = comm::broadcast(*state_->node, std::move(set->is_staged));
    }
    state_->copy();
    state_->lock_for_reading();
    state_->result.seconds += watch.seconds();
    state_->reduce_result();
}

std::shared_ptr<const StagedPictures> DataDuplicator::pictures(Split split) const {
    const std::optional<StagedSet>& set = state_->sets[index_of(split)];
    if (!set) return nullptr;
    return staging::open_staged(folder(split), set->packs, set->source, state_->lost_copies);
}

std::filesystem::path DataDuplicator::folder(Split split) const {
    const std::optional<StagedSet>& set = state_->sets[index_of(split)];
    if (!set) return {};
    return staging::stage_path(state_->config.data.staging_directory) / set->name;
}

const StagingResult& DataDuplicator::result() const {
    return state_->result;
}

}  // namespace hpcai::data
