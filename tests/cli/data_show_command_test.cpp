// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include <hpcai/data/climate_file.hpp>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

/// A file with one sample that is `value` everywhere.
void write_sample(const std::filesystem::path& path, float value) {
    data::ClimateFileWriter writer(path, {.samples = 1, .height = 64, .width = 96});
    writer.write(0, std::vector<float>(16 * 64 * 96, value), {});
    writer.finish();
}

TEST(DataShow, CallsChannel13ByThePressureLevelOfTheFile) {
    const TemporaryFolder folder;
    const auto show = [&](const std::string& file, const std::string& channel) {
        return run_in(folder.path(),
                      {"data", "show", file, "--channel", channel, "--output", "x.png"});
    };
    write_sample(folder / "high.h5", 16000);
    EXPECT_TRUE(show("high.h5", "Z100").out.starts_with("wrote x.png: Z100 of sample 0"));
    expect_refused(show("high.h5", "Z1000"), 2, "got 'Z1000'; did you mean 'Z100'?");
    write_sample(folder / "low.h5", 70);
    EXPECT_TRUE(show("low.h5", "Z1000").out.starts_with("wrote x.png: Z1000 of sample 0"));
    expect_refused(show("low.h5", "Z100"), 2, "got 'Z100'; did you mean 'Z1000'?");
    write_sample(folder / "unknown.h5", std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(show("unknown.h5", "Z1000").out.starts_with("wrote x.png: Z1000 of sample 0"));
}

}  // namespace
}  // namespace hpcai::cli
