// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>

#include "hdf5_layout.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using climate::Hdf5Dataset;
using climate::Hdf5Handle;

constexpr unsigned kOpenTimeoutSeconds = 120;
constexpr hsize_t kMaxSamples = 200'000;
constexpr hsize_t kMaxSide = 16'384;  // pixels
constexpr hsize_t kMaxSampleBytes = hsize_t{4} << 30;
constexpr double kHeightBoundary = 2000;  // m; heights at 1000 hPa are lower, at 100 hPa higher
constexpr std::size_t kLevelChannel = index_of(ClimateChannel::geopotential_height_1000);

enum class ChildResult : std::uint8_t { survived, crashed, too_slow };

/// In a child process, disables MPI's signal handlers, core files and output, and sets an alarm.
void isolate_child() {
    constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGALRM};
    for (const int number : kSignals) std::signal(number, SIG_DFL);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const int null_device = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null_device >= 0) {
        ::dup2(null_device, STDOUT_FILENO);
        ::dup2(null_device, STDERR_FILENO);
    }
    ::alarm(kOpenTimeoutSeconds);
}

[[noreturn]] void run_and_exit(const std::function<void()>& action,
                               const storage::Descriptor& out) {
    try {
        action();
    } catch (const std::exception&) {  // the parent gets the same error when it opens the file
    }
    constexpr std::byte kSurvived{1};
    ::_exit(storage::try_write(out, {&kSurvived, 1}) ? 0 : 1);
}

/// Runs `action` in a child process without output and waits for it. Returns survived if `action`
/// returned or threw, too_slow after kOpenTimeoutSeconds, and crashed otherwise. If SIGCHLD is
/// ignored, returns crashed, never too_slow. Throws Error(internal) if no process can be started.
ChildResult run_in_child(const std::function<void()>& action) {
    std::array<int, 2> pipe_ends{-1, -1};
    const bool has_pipe = ::pipe2(pipe_ends.data(), O_CLOEXEC) == 0;
    const storage::Descriptor in(pipe_ends[0]);
    storage::Descriptor out(pipe_ends[1]);
    const pid_t child = has_pipe ? ::fork() : -1;
    require(child >= 0, ExitCode::internal, "cannot start a process to open the file: {}",
            std::strerror(errno));
    if (child == 0) {
        isolate_child();
        run_and_exit(action, out);
    }
    out.close();
    std::byte byte{};
    const bool has_survived = storage::try_read(in, {&byte, 1}) == 1;
    int status = 0;
    const bool has_status = TEMP_FAILURE_RETRY(::waitpid(child, &status, 0)) == child;
    if (has_survived) return ChildResult::survived;
    const bool is_slow = has_status && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    return is_slow ? ChildResult::too_slow : ChildResult::crashed;
}

Hdf5Handle open_file(const fs::path& path) {
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_file_locking(access.id(), false, true);  // some folders, as on NFS, have no locks
    Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
    require(file.valid(), ExitCode::data,
            "'{}' cannot be opened as HDF5: it is damaged or has another format", path.string());
    return file;
}

std::string text_of(const std::vector<hsize_t>& extents) {
    return fmt::format("{}", fmt::join(extents, " x "));
}

/// Returns the requirements for the datasets of a file, for error messages.
std::string expected_layout() {
    return fmt::format(
        "a file needs {} (float32, samples x {} x height x width) and {} (integers, samples x {} x "
        "{}). Box rows have ymin, xmin, ymax, xmax in pixels and class 0 to {}, or -1 in all "
        "columns; the fixed-length string \"{}\" as the boxes' attribute {} states this order",
        climate::kImagesName, kClimateChannels, climate::kBoxesName, kMaxClimateBoxes,
        climate::kBoxColumns, kClimateCategories - 1, climate::kCornerColumns,
        climate::kColumnsName);
}

void require_extents(const Hdf5Dataset& images, const Hdf5Dataset& boxes) {
    const auto& e = images.extents;
    require(e[0] >= 1 && e[0] <= kMaxSamples && e[1] == kClimateChannels && e[2] >= 1 &&
                e[2] <= kMaxSide && e[3] >= 1 && e[3] <= kMaxSide,
            ExitCode::data,
            "{}: expected samples x {} x height x width with at most {} samples and {} pixels per "
            "side, found {}",
            images.location, kClimateChannels, kMaxSamples, kMaxSide, text_of(e));
    require(e[1] * e[2] * e[3] * sizeof(float) <= kMaxSampleBytes, ExitCode::data,
            "{}: with extents {}, a sample has more than 4 GiB", images.location, text_of(e));
    const std::vector<hsize_t> expected{e[0], kMaxClimateBoxes, climate::kBoxColumns};
    require(boxes.extents == expected, ExitCode::data, "{}: expected {}, found {}", boxes.location,
            text_of(expected), text_of(boxes.extents));
}

std::vector<climate::BoxRow> read_rows(const Hdf5Dataset& boxes) {
    std::vector<climate::BoxRow> rows(boxes.extents[0] * kMaxClimateBoxes);
    const herr_t status =
        H5Dread(boxes.handle.id(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data());
    require(status >= 0, ExitCode::data, "{}: is damaged and cannot be read", boxes.location);
    return rows;
}

/// Returns the order that the attribute `columns` states; `detect` if it states none.
BoxOrder stated_order(const Hdf5Dataset& boxes) {
    const std::string columns =
        climate::text_attribute(boxes.handle, climate::kColumnsName).value_or("");
    if (columns == climate::kCornerColumns) return BoxOrder::corners;
    if (columns == climate::kRangeColumns) return BoxOrder::ranges;
    return BoxOrder::detect;
}

/// Reads the hyperslab of `count` elements from `start` on.
void read_block(const Hdf5Dataset& images, const std::array<hsize_t, 4>& start,
                const std::array<hsize_t, 4>& count, float* target) {
    const Hdf5Handle file_space(H5Dget_space(images.handle.id()), H5Sclose);
    const Hdf5Handle memory_space(H5Screate_simple(4, count.data(), nullptr), H5Sclose);
    const bool read = file_space.valid() && memory_space.valid() &&
                      H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr,
                                          count.data(), nullptr) >= 0 &&
                      H5Dread(images.handle.id(), H5T_NATIVE_FLOAT, memory_space.id(),
                              file_space.id(), H5P_DEFAULT, target) >= 0;
    require(read, ExitCode::data, "{}: samples {} to {} are damaged", images.location, start[0],
            start[0] + count[0] - 1);
}

/// Reads the middle row of channel 13 of the first sample.
std::vector<float> middle_row(const Hdf5Dataset& images) {
    const auto& e = images.extents;
    std::vector<float> row(e[3]);
    read_block(images, {0, kLevelChannel, e[2] / 2, 0}, {1, 1, 1, e[3]}, row.data());
    return row;
}

GeopotentialLevel level_of(const std::vector<float>& row) {
    double sum = 0;
    std::int64_t count = 0;
    for (const float value : row) {
        if (!std::isfinite(value)) continue;
        sum += value;
        ++count;
    }
    if (count == 0) return GeopotentialLevel::unknown;
    return sum / static_cast<double>(count) < kHeightBoundary ? GeopotentialLevel::hpa_1000
                                                              : GeopotentialLevel::hpa_100;
}

std::string generator_of(const Hdf5Handle& file) {
    if (H5Aexists(file.id(), climate::kGeneratorName) <= 0) return "";
    const std::string name = climate::text_attribute(file, climate::kGeneratorName).value_or("");
    const auto is_plain = [](char letter) { return letter >= ' ' && letter <= '~'; };
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), is_plain);
    return is_name ? name : "an unnamed generator";
}

}  // namespace

std::vector<std::string> channel_names(GeopotentialLevel level) {
    std::vector<std::string> names(kClimateChannelNames.begin(), kClimateChannelNames.end());
    if (level == GeopotentialLevel::hpa_100) {
        names[index_of(ClimateChannel::geopotential_height_1000)] = "Z100";
    }
    return names;
}

struct ClimateFile::State {
    Hdf5Handle file;
    Hdf5Dataset images;
};

std::shared_ptr<ClimateFile::State> ClimateFile::open(const fs::path& path,
                                                      const ClimateFileSettings& settings,
                                                      Metadata& metadata) {
    auto state = std::make_shared<State>();
    state->file = open_file(path);
    const Hdf5Dataset& images = state->images;
    Hdf5Dataset boxes;
    try {
        state->images =
            climate::open_dataset(state->file, path, {climate::kImagesName, H5T_FLOAT, 4, 4});
        boxes = climate::open_dataset(state->file, path, {climate::kBoxesName, H5T_INTEGER, 0, 3});
        require_extents(images, boxes);
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}; {}", error.what(), expected_layout()));
    }
    metadata.path = path;
    metadata.height = static_cast<int>(images.extents[2]);
    metadata.width = static_cast<int>(images.extents[3]);
    metadata.chunk_samples = static_cast<std::int64_t>(images.chunk_extent);
    const climate::BoxTable table{read_rows(boxes), metadata.height, metadata.width,
                                  boxes.location};
    climate::require_classes(table);
    metadata.order = settings.box_order != BoxOrder::detect
                         ? settings.box_order
                         : climate::determine_box_order(table, stated_order(boxes));
    climate::DecodedBoxes decoded = climate::decode_boxes(table, metadata.order);
    metadata.boxes = std::move(decoded.boxes_by_sample);
    metadata.dropped_boxes = decoded.dropped;
    const std::vector<float> row = middle_row(images);
    metadata.level = level_of(row);
    metadata.generator = generator_of(state->file);
    metadata.fingerprint = checksum_of(std::as_bytes(std::span(images.extents)));
    metadata.fingerprint = checksum_of(std::as_bytes(std::span(table.rows)), metadata.fingerprint);
    metadata.fingerprint = checksum_of(std::as_bytes(std::span(row)), metadata.fingerprint);
    return state;
}

ClimateFile::ClimateFile(const fs::path& path, const ClimateFileSettings& settings) {
    climate::configure_hdf5();
    // HDF5 1.10 crashes on some damaged files. A file that matches a manifest is not damaged.
    const auto try_open = [&] {
        const auto state = open(path, settings, metadata_);
        const hid_t images = state->images.handle.id();
        const Hdf5Handle space(H5Dget_space(images), H5Sclose);
        hsize_t chunks = 0;
        H5Dget_num_chunks(images, space.id(), &chunks);  // reads the index of all chunks
    };
    storage::open_for_reading(path);  // throws unless it is a readable regular file
    if (!settings.is_verified && !storage::matches_manifest(path)) {
        const ChildResult result = run_in_child(try_open);
        require(result != ChildResult::too_slow, ExitCode::data,
                "'{}' is damaged or its disk is too slow: opening it took more than {} s",
                path.string(), kOpenTimeoutSeconds);
        require(result == ChildResult::survived, ExitCode::data,
                "'{}' is damaged: the HDF5 library crashes when it opens the file", path.string());
    }
    state_ = open(path, settings, metadata_);
}

std::string ClimateFile::name(std::int64_t sample) const {
    return fmt::format("{}/{}", path().filename().string(), sample);
}

const std::vector<Box>& ClimateFile::boxes(std::int64_t sample) const {
    ensure(sample >= 0 && sample < samples(), "sample {} of {}", sample, samples());
    return metadata_.boxes[sample];
}

void ClimateFile::read(std::int64_t first, std::int64_t count, std::span<float> fields) const {
    climate::configure_hdf5();
    const auto& e = state_->images.extents;
    ensure(first >= 0 && count >= 1 && first <= samples() - count, "samples {} to {} of {}", first,
           first + count - 1, samples());
    const auto start = static_cast<hsize_t>(first), size = static_cast<hsize_t>(count);
    ensure(fields.size() == size * e[1] * e[2] * e[3], "{} values for {} samples", fields.size(),
           count);
    read_block(state_->images, {start, 0, 0, 0}, {size, e[1], e[2], e[3]}, fields.data());
}

}  // namespace hpcai::data
