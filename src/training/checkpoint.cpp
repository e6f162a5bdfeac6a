// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/checkpoint.hpp>

namespace hpcai::training {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 12;
constexpr std::size_t kMaxMarkerBytes = 4096;

fs::path file_of(const CheckpointLocation& location, std::int64_t step, const char* suffix) {
    return checkpoint_folder(location, step) /
           fmt::format("rank-{}{}", location.group_rank, suffix);
}

CheckpointMarker read_marker(const CheckpointLocation& location, std::int64_t step) {
    const std::string path = file_of(location, step, ".done").string();
    const auto marker = records::read_file<CheckpointMarker>(path, kMaxMarkerBytes);
    const auto check = [&](const char* key, const auto& expected, const auto& got) {
        require(got == expected, ExitCode::data, "'{}': {} is {}; must be {}", path, key, got,
                expected);
    };
    check("step", step, marker.step);
    check("group_rank", location.group_rank, marker.group_rank);
    check("ranks", location.ranks, marker.ranks);
    check("config_sha256", location.config_sha256, marker.config_sha256);
    require(marker.program >= 0, ExitCode::data, "'{}': program is {}; must not be negative", path,
            marker.program);
    return marker;
}

/// Returns the step in the name of a checkpoint folder; empty for another name.
std::optional<std::int64_t> step_of(std::string_view name) {
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
    const auto step = parse_number<std::int64_t>(name.substr(kPrefix.size()));
    return step && *step >= 0 ? step : std::nullopt;
}

}  // namespace

fs::path checkpoint_folder(const CheckpointLocation& location, std::int64_t step) {
    return location.folder / fmt::format("{}{:0{}}", kPrefix, step, kDigits);
}

void write_checkpoint(const CheckpointLocation& location, const Checkpoint& checkpoint) {
    const std::int64_t step = checkpoint.step;
    storage::make_folder_durably(checkpoint_folder(location, step));
    const fs::path file = file_of(location, step, ".safetensors");
    checkpoint.snapshot.write(file);
    const CheckpointMarker marker{.step = step,
                                  .group_rank = location.group_rank,
                                  .ranks = location.ranks,
                                  .config_sha256 = location.config_sha256,
                                  .program = checkpoint.launch_id,
                                  .bytes = static_cast<std::int64_t>(fs::file_size(file)),
                                  .sha256 = storage::sha256_hex_of_file(file)};
    storage::write_file_durably(file_of(location, step, ".done"), records::to_json(marker));
}

Checkpoint read_checkpoint(const CheckpointLocation& location, std::int64_t step) {
    const CheckpointMarker marker = read_marker(location, step);
    const fs::path file = file_of(location, step, ".safetensors");
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    require(!error, ExitCode::data, "cannot read '{}': {}", file.string(), error.message());
    require(std::cmp_equal(bytes, marker.bytes), ExitCode::data,
            "'{}': has {} bytes; its marker states {}", file.string(), bytes, marker.bytes);
    const std::string digest = storage::sha256_hex_of_file(file);
    require(digest == marker.sha256, ExitCode::data,
            "'{}': has the SHA-256 {}; its marker states {}", file.string(), digest, marker.sha256);
    return {step, marker.program, Snapshot::read(file)};
}

bool has_marker(const CheckpointLocation& location, std::int64_t step) {
    std::error_code error;
    return fs::exists(file_of(location, step, ".done"), error);
}

std::vector<std::int64_t> list_checkpoints(const fs::path& folder) {
    std::vector<std::int64_t> steps;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (const auto step = step_of(entry->path().filename().string())) steps.push_back(*step);
    }
    require(!error || error == std::errc::no_such_file_or_directory, ExitCode::data,
            "cannot read '{}': {}", folder.string(), error.message());
    std::ranges::sort(steps, std::greater<>());
    return steps;
}

void remove_checkpoints_except(const fs::path& folder,
                               const std::vector<std::int64_t>& kept) noexcept {
    std::error_code error;
    try {
        for (const std::int64_t step : list_checkpoints(folder)) {
            if (std::ranges::count(kept, step) > 0) continue;
            const fs::path checkpoint = checkpoint_folder({folder, "", 0, 1}, step);
            for (fs::directory_iterator entry(checkpoint, error), end; !error && entry != end;
                 entry.increment(error)) {
                std::error_code ignored;
                if (entry->path().extension() == ".done") fs::remove(entry->path(), ignored);
            }
            fs::remove_all(checkpoint, error);
        }
    } catch (const std::exception&) {
        // A folder that remains only takes space.
    }
}

void BackgroundWork::start(std::function<void()> work) {
    wait();
    result_ = std::async(std::launch::async, [work = std::move(work)] {
        const Stopwatch watch;
        std::string failure;
        try {
            work();
        } catch (const std::exception& error) {
            failure = error.what();
        }
        return std::pair(failure, watch.seconds());
    });
}

std::string BackgroundWork::wait() {
    if (!result_.valid()) return {};
    std::string failure;
    std::tie(failure, seconds_) = result_.get();
    return failure;
}

}  // namespace hpcai::training
