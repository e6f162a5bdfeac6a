// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/storage/strict_json.hpp>
#include <hpcai/training/checkpoint.hpp>

namespace hpcai::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "hpcai500-checkpoint/1";
constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 12;
constexpr std::size_t kLargestMarker = 4096;  // bytes

fs::path file_of(const CheckpointPlace& place, std::int64_t step, const char* suffix) {
    return checkpoint_folder(place, step) / fmt::format("rank-{}{}", place.group_rank, suffix);
}

/// What a rank says of its file.
struct Marker {
    std::string sha256;
    std::int64_t bytes = 0;
    std::int64_t program = 0;
};

std::string text_of(const CheckpointPlace& place, std::int64_t step, const Marker& marker) {
    const nlohmann::ordered_json json{{"schema", kSchema},
                                      {"step", step},
                                      {"group_rank", place.group_rank},
                                      {"ranks", place.ranks},
                                      {"config_sha256", place.config_sha256},
                                      {"program", marker.program},
                                      {"bytes", marker.bytes},
                                      {"sha256", marker.sha256}};
    return json.dump(2) + "\n";
}

/// Of one marker, with messages that name it.
class MarkerReader {
public:
    explicit MarkerReader(const fs::path& path)
        : path_(path.string()),
          json_(storage::parse_strict_json(
              storage::text_of(storage::read_file_bytes(path, kLargestMarker)), path_)) {
        const storage::JsonPlace place(path_);
        if (!json_.is_object()) place.fail("an object", json_);
    }

    const nlohmann::json& value(const char* key) const {
        require(json_.contains(key), ExitCode::data, "'{}': {} is missing", path_, key);
        return json_.at(key);
    }
    std::string text(const char* key) const {
        const nlohmann::json& found = value(key);
        if (!found.is_string()) storage::JsonPlace(path_).key(key).fail("a text", found);
        return found.get<std::string>();
    }
    std::int64_t number(const char* key) const {
        const nlohmann::json& found = value(key);
        const bool fits =
            found.is_number_unsigned() &&
            found.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
        if (!fits) storage::JsonPlace(path_).key(key).fail("a whole number", found);
        return found.get<std::int64_t>();
    }
    template <typename T>
    void must_be(const char* key, const T& expected, const T& got) const {
        require(got == expected, ExitCode::data, "'{}': {} is {}; must be {}", path_, key, got,
                expected);
    }

private:
    std::string path_;
    nlohmann::json json_;
};

Marker read_marker(const CheckpointPlace& place, std::int64_t step) {
    const MarkerReader reader(file_of(place, step, ".done"));
    reader.must_be("schema", std::string(kSchema), reader.text("schema"));
    reader.must_be("step", step, reader.number("step"));
    reader.must_be("group_rank", std::int64_t{place.group_rank}, reader.number("group_rank"));
    reader.must_be("ranks", std::int64_t{place.ranks}, reader.number("ranks"));
    reader.must_be("config_sha256", place.config_sha256, reader.text("config_sha256"));
    return {reader.text("sha256"), reader.number("bytes"), reader.number("program")};
}

/// None of a folder with another name.
std::optional<std::int64_t> step_of(const std::string& name) {
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
    const char* const begin = name.data() + kPrefix.size();
    const char* const end = name.data() + name.size();
    std::int64_t step = 0;
    const auto [rest, error] = std::from_chars(begin, end, step);
    if (error != std::errc() || rest != end || step < 0) return std::nullopt;
    return step;
}

}  // namespace

fs::path checkpoint_folder(const CheckpointPlace& place, std::int64_t step) {
    return place.folder / fmt::format("{}{:0{}}", kPrefix, step, kDigits);
}

void write_checkpoint(const CheckpointPlace& place, const Checkpoint& checkpoint) {
    const std::int64_t step = checkpoint.step;
    storage::make_folder_durably(checkpoint_folder(place, step));
    const fs::path file = file_of(place, step, ".safetensors");
    checkpoint.snapshot.write(file);
    const Marker marker{storage::sha256_hex_of_file(file),
                        static_cast<std::int64_t>(fs::file_size(file)), checkpoint.program};
    storage::write_file_durably(file_of(place, step, ".done"), text_of(place, step, marker));
}

Checkpoint read_checkpoint(const CheckpointPlace& place, std::int64_t step) {
    const Marker marker = read_marker(place, step);
    const fs::path file = file_of(place, step, ".safetensors");
    std::error_code error;
    const auto bytes = fs::file_size(file, error);
    require(!error, ExitCode::data, "cannot read '{}': {}", file.string(), error.message());
    require(std::cmp_equal(bytes, marker.bytes), ExitCode::data,
            "'{}': has {} bytes; its marker says {}", file.string(), bytes, marker.bytes);
    const std::string digest = storage::sha256_hex_of_file(file);
    require(digest == marker.sha256, ExitCode::data, "'{}': has the SHA-256 {}; its marker says {}",
            file.string(), digest, marker.sha256);
    return {step, marker.program, Snapshot::read(file)};
}

bool has_marker(const CheckpointPlace& place, std::int64_t step) {
    std::error_code error;
    return fs::exists(file_of(place, step, ".done"), error);
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

void remove_checkpoints_before(const fs::path& folder, std::int64_t step) noexcept {
    std::error_code error;
    try {
        for (const std::int64_t old : list_checkpoints(folder)) {
            if (old >= step) continue;
            const fs::path whole = checkpoint_folder({folder, "", 0, 1}, old);
            for (fs::directory_iterator entry(whole, error), end; !error && entry != end;
                 entry.increment(error)) {
                std::error_code ignored;
                if (entry->path().extension() == ".done") fs::remove(entry->path(), ignored);
            }
            fs::remove_all(whole, error);
        }
    } catch (const std::exception&) {
        // What stays takes room, no more.
    }
}

void BackgroundWork::start(std::function<void()> work) {
    wait();
    failure_.clear();
    thread_ = std::thread([this, work = std::move(work)] {
        const Stopwatch watch;
        try {
            work();
        } catch (const std::exception& error) {
            failure_ = error.what();
        }
        seconds_ = watch.seconds();
    });
}

std::string BackgroundWork::wait() noexcept {
    if (thread_.joinable()) thread_.join();
    return std::exchange(failure_, {});
}

}  // namespace hpcai::training
