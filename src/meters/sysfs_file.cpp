// SPDX-License-Identifier: Apache-2.0
#include "sysfs_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>

namespace hpcai::meters {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, int error) {
    throw Error(ExitCode::data, fmt::format("{}: {}{}", printable(file.string()),
                                            std::generic_category().message(error),
                                            error == EACCES ? " (EACCES)" : ""));
}

}  // namespace

std::string read_first_line(const std::filesystem::path& file) {
    struct Close {
        void operator()(std::FILE* open) const { std::fclose(open); }
    };
    const std::unique_ptr<std::FILE, Close> open(std::fopen(file.c_str(), "re"));
    if (!open) fail(file, errno);
    std::array<char, 256> buffer{};
    errno = 0;
    if (std::fgets(buffer.data(), buffer.size(), open.get()) == nullptr && errno != 0) {
        fail(file, errno);
    }
    std::string line = buffer.data();
    line.erase(std::min(line.find('\n'), line.size()));
    return line;
}

std::uint64_t read_unsigned(const std::filesystem::path& file) {
    const std::string line = read_first_line(file);
    const auto value = parse_number<std::uint64_t>(line);
    require(value.has_value(), ExitCode::data, "{}: expected a whole number, found \"{}\"",
            printable(file.string()), printable(line));
    return *value;
}

std::vector<std::string> list_names(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        names.push_back(at->path().filename().string());
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace hpcai::meters
