// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/search/history.hpp>

namespace hpcai::search {
namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 30;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

/// Returns the bytes of the file from `offset` to its end.
std::string read_from(const fs::path& path, std::int64_t offset) {
    const storage::Descriptor file = storage::open_for_reading(path);
    std::string text;
    std::size_t count = kChunkBytes;
    while (count == kChunkBytes) {
        const std::size_t before = text.size();
        text.resize(before + kChunkBytes);
        const auto read =
            storage::try_read(file, std::as_writable_bytes(std::span(text).subspan(before)),
                              offset + static_cast<std::int64_t>(before));
        require(read.has_value(), ExitCode::data, "cannot read '{}': {}", path.string(),
                std::strerror(errno));
        count = *read;
        text.resize(before + count);
        require(offset + static_cast<std::int64_t>(text.size()) <= kMaxFileBytes, ExitCode::data,
                "'{}' has more than {} bytes", path.string(), kMaxFileBytes);
    }
    return text;
}

}  // namespace

HistoryReader::HistoryReader(int group, fs::path path)
    : path_(std::move(path)), history_(group, path_.string()) {}

void HistoryReader::update() {
    std::error_code missing;
    const auto size = fs::file_size(path_, missing);
    if (missing && bytes_ == 0 && !storage::path_exists(path_)) return;
    require(!missing && std::cmp_greater_equal(size, bytes_), ExitCode::data,
            "'{}' has become shorter than the {} bytes read before", path_.string(), bytes_);
    if (std::cmp_equal(size, bytes_)) return;
    const std::string text = read_from(path_, bytes_);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
        history_.add_line(std::string_view(text).substr(begin, end - begin));
        bytes_ += static_cast<std::int64_t>(end + 1 - begin);
        begin = end + 1;
    }
}

HistoryWriter::HistoryWriter(int group, const fs::path& path)
    : path_(path),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
      history_(group, path.string()) {
    require(file_.is_open(), ExitCode::usage, "cannot write '{}': {}", path.string(),
            std::strerror(errno));
    read();
    const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
    require(storage::try_sync(folder), ExitCode::usage, "cannot write '{}': {}", path.string(),
            std::strerror(errno));
}

/// Reads the whole lines of the file and removes an incomplete one.
void HistoryWriter::read() {
    HistoryReader reader(history_.group(), path_);
    reader.update();
    history_ = reader.history();
    cut(reader.bytes());
}

void HistoryWriter::cut(std::int64_t bytes) {
    const bool is_cut = ::ftruncate(file_.number(), bytes) == 0 && ::fsync(file_.number()) == 0;
    require(is_cut, ExitCode::usage, "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

void HistoryWriter::reopen(int sequence) {
    const std::string text = read_from(path_, 0);
    std::size_t bytes = 0;
    for (int line = 0; line <= 2 * sequence; ++line) bytes = text.find('\n', bytes) + 1;
    cut(static_cast<std::int64_t>(bytes));
    read();
}

void HistoryWriter::append(ProposedTrial trial) {
    trial.previous = history_.last_sha256();
    append_line(records::to_json_line(trial));
}

void HistoryWriter::append(FinishedTrial trial) {
    trial.previous = history_.last_sha256();
    append_line(records::to_json_line(trial));
}

void HistoryWriter::append_line(const std::string& line) {
    history_.add_line(line);
    const bool is_written =
        storage::try_write(file_, storage::bytes_of(line + "\n")) && ::fsync(file_.number()) == 0;
    require(is_written, ExitCode::usage, "cannot write '{}': {}", path_.string(),
            std::strerror(errno));
}

}  // namespace hpcai::search
