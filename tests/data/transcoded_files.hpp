// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/transcode.hpp>

#include "climate_files.hpp"
#include "fixtures.hpp"

namespace hpcai::data::test {

inline constexpr std::size_t kPixels = 6 * 8;
inline constexpr std::size_t kOne = kPixels * kClimateChannels;  // values of a sample

/// Small files, and records of them.
class Transcode : public testing::Test {
protected:
    Transcode() {
        options_.output = folder_.path() / "records";
        options_.source.box_order = BoxOrder::corners;
    }
    /// Two files of two and three samples whose values are 0, 1, 2, ... in each file.
    void write_two_files() {
        RawClimateFile raw;
        raw.boxes = {{1, 5, 3, 7, 0}, {1, 2, 3, 4, 3}};
        add_file("a.h5", raw);
        raw.image_extents[0] = raw.box_extents[0] = 3;
        raw.chunk = {2, 1, 6, 8};
        add_file("b.h5", raw);
    }
    void add_file(const std::string& name, const RawClimateFile& raw) {
        write_raw(folder_.path() / name, raw);
        options_.files.push_back(folder_.path() / name);
    }
    std::string refusal(ExitCode code) {
        try {
            transcode(options_);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code);
            EXPECT_FALSE(std::filesystem::exists(options_.output));
            return error.what();
        }
        return "no error";
    }

    TemporaryFolder folder_;
    TranscodeOptions options_;
};

}  // namespace hpcai::data::test
