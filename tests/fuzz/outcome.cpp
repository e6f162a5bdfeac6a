// SPDX-License-Identifier: Apache-2.0
#include "outcome.hpp"

#include <fstream>

namespace hpcai::fuzz {

Readings& readings() {
    static Readings made;
    return made;
}

std::filesystem::path Scratch::write(const char* name, std::string_view bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    expect(file.flush().good());
    return path;
}

}  // namespace hpcai::fuzz
