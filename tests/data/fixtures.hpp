// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <hpcai/data/image.hpp>

namespace hpcai::data::test {

inline std::filesystem::path fixture_path(const std::string& name) {
    const char* root = std::getenv("HPCAI500_SOURCE_DIR");
    if (root == nullptr) throw std::runtime_error("HPCAI500_SOURCE_DIR is not set");
    return std::filesystem::path(root) / "tests" / "data" / "fixtures" / name;
}

inline std::vector<std::uint8_t> read_file_bytes(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::uint8_t> read_fixture(const std::string& name) {
    return read_file_bytes(fixture_path(name));
}

inline void write_file_bytes(const std::filesystem::path& path,
                             const std::vector<std::uint8_t>& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
}

/// A binary PPM as Pillow writes it.
inline Image read_ppm(const std::string& name) {
    std::ifstream in(fixture_path(name), std::ios::binary);
    std::string magic;
    int width = 0, height = 0, maximum = 0;
    in >> magic >> width >> height >> maximum;
    in.get();
    Image image(width, height);
    in.read(reinterpret_cast<char*>(image.pixels.data()),
            static_cast<std::streamsize>(image.pixels.size()));
    if (!in || magic != "P6") throw std::runtime_error("bad fixture " + name);
    return image;
}

/// A folder of this test that is removed with it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "hpcai500-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace hpcai::data::test
