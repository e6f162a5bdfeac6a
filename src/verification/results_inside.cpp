// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <hpcai/base/text.hpp>
#include <hpcai/verification/results_inside.hpp>

namespace hpcai::verification {

namespace fs = std::filesystem;

std::string describe_results_inside(const fs::path& folder) {
    constexpr std::size_t kMaxNamed = 3;
    std::vector<std::pair<fs::file_time_type, std::string>> found;
    std::error_code error, ignored;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const fs::path config = entry->path() / "config.yaml";
        if (!entry->is_symlink(ignored) && fs::is_regular_file(config, ignored))
            found.emplace_back(fs::last_write_time(config, ignored), entry->path().string());
    }
    std::ranges::sort(found, std::greater<>());
    std::string text;
    for (std::size_t i = 0; i < std::min(found.size(), kMaxNamed); ++i)
        text += (i == 0 ? "; results inside, newest first: " : ", ") + printable(found[i].second);
    return text;
}

}  // namespace hpcai::verification
