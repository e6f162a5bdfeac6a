// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include <hpcai/config/writer.hpp>
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
    const std::string shown = show("high.h5", "Z100").out;
    EXPECT_TRUE(shown.starts_with("wrote x.png: Z100 of sample 0"));
    EXPECT_TRUE(shown.ends_with("\nthe sample has no box\n")) << shown;
    expect_refused(show("high.h5", "Z1000"), 2, "got 'Z1000'; did you mean 'Z100'?");
    write_sample(folder / "low.h5", 70);
    EXPECT_TRUE(show("low.h5", "Z1000").out.starts_with("wrote x.png: Z1000 of sample 0"));
    expect_refused(show("low.h5", "Z100"), 2, "got 'Z100'; did you mean 'Z1000'?");
    write_sample(folder / "unknown.h5", std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(show("unknown.h5", "Z1000").out.starts_with("wrote x.png: Z1000 of sample 0"));
}

TEST(DataShow, StatesFromWhereTheRowsOfABoxCount) {
    const TemporaryFolder folder;
    data::ClimateFileWriter writer(folder / "a.h5", {.samples = 1, .height = 64, .width = 96});
    const std::vector<data::Box> boxes{{10, 20, 40, 50, 1}};
    writer.write(0, std::vector<float>(16 * 64 * 96, 70), boxes);
    writer.finish();
    const Outcome shown = run_in(folder.path(), {"data", "show", "a.h5", "--output", "x.png"});
    EXPECT_TRUE(
        shown.out.ends_with("\ny counts rows from the south, at the bottom of the picture\n"
                            "tropical depression    x 10.0 to 40.0, y 20.0 to 50.0\n"))
        << shown.out;
}

TEST(DataShow, CountsTheSamplesOfAllFilesInAFolder) {
    const TemporaryFolder folder;
    write_sample(folder / "a.h5", 70);
    write_sample(folder / "b.h5", 16000);
    const auto show = [&](const std::string& sample, const std::string& channel) {
        return run_in(folder.path(), {"data", "show", ".", "--sample", sample, "--channel", channel,
                                      "--output", "x.png"});
    };
    EXPECT_TRUE(show("0", "Z1000").out.starts_with("wrote x.png: Z1000 of sample 0"));
    EXPECT_TRUE(show("1", "Z100").out.starts_with("wrote x.png: Z100 of sample 1"));
    expect_refused(show("2", "TMQ"), 2, "data show: --sample: expected 0 to 1, got 2");
}

TEST(DataShow, RefusesAResultWithoutDetectionsOfWeather) {
    const TemporaryFolder folder;
    std::ofstream(folder / "config.yaml") << config::to_yaml({});
    expect_refused(run_in(folder.path(), {"data", "show", ".", "--output", "x.png"}), 2,
                   "data show: .: expected a result of workload extreme_weather");
    expect_refused(run_in(folder.path(), {"data", "show", ".", "--output", "x.jpg"}), 2,
                   "data show: --output: expected a file *.png, got 'x.jpg'");
    config::Config series;
    series.run.repeat = 3;
    std::ofstream(folder / "config.yaml") << config::to_yaml(series);
    expect_refused(run_in(folder.path(), {"data", "show", ".", "--output", "x.png"}), 2,
                   ".: expected one run, got several repetitions; name one of them, such as "
                   "./repetition_1");
}

}  // namespace
}  // namespace hpcai::cli
