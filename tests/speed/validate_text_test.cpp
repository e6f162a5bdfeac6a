// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/speed/validate.hpp>

namespace hpcai::speed {
namespace {

ValidateReport report_of(const OperationCheck& check) {
    ValidateReport report;
    report.device = "a CPU";
    report.precision = "bf16";
    report.operations = {check};
    report.passed = check.passed;
    return report;
}

TEST(ValidateText, CountsTheOperationsThatAreNotChecked) {
    ValidateReport report = report_of({.passed = true});
    report.unchecked = {"proposals 1: no naive loops", "norm 2: no naive loops"};
    const std::string text = validate_text(report);
    EXPECT_NE(text.find("\nnot checked: proposals 1: no naive loops\n"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(
        "\nVALIDATE PASSED: 1 operation in bf16 on a CPU; 2 operations not checked\n"))
        << text;
}

TEST(ValidateText, HasTheErrorOfAnOperationThatTheDeviceCannotCompute) {
    const ValidateReport report =
        report_of({.operation = "relu", .shape = "2 x 3", .node = "act", .failure = "no memory"});
    const std::string text = validate_text(report);
    EXPECT_NE(text.find("relu 2 x 3\n  1 node, first act\n  FAILED: no memory\n"),
              std::string::npos)
        << text;
    EXPECT_TRUE(text.ends_with("\nVALIDATE FAILED: 1 of 1 operation in bf16 on a CPU\n")) << text;
    EXPECT_EQ(nlohmann::json::parse(validate_json(report))["operations"][0]["failure"],
              "no memory");
}

TEST(ValidateText, HasALineForANaiveGradientThatIsNotANumber) {
    const ValidateReport report =
        report_of({.gradient_error = std::numeric_limits<double>::quiet_NaN()});
    EXPECT_NE(validate_text(report).find("  FAILED: the naive gradient differs"),
              std::string::npos);
}

TEST(ValidateText, HasLinesOfAPageExceptTheLast) {
    const TensorCheck tensor{.tensor = "parameter_gradient 0",
                             .shape = {1024, 3, 3, 1024},
                             .place = {1023, 2, 2, 1023},
                             .computed = {-448.12345678, ""},
                             .expected = -447.12345678,
                             .largest_error = {1e-5, ""},
                             .l2_error = {1e-6, ""},
                             .tolerance = 1.6e-2};
    const PassCheck pass{.pass = "weight_gradient",
                         .tensors = {tensor},
                         .median_seconds = 1.234567,
                         .low_seconds = {1.233567, ""},
                         .high_seconds = {1.235567, ""}};
    PassCheck quick = pass;
    quick.median_seconds = 1.23456e-5;
    quick.low_seconds = quick.high_seconds = {0.1234567, ""};
    ValidateReport report = report_of(
        {.operation = "convolution",
         .shape = "10 x 224 x 224 x 3, 64 filters of 7 x 7, stride 2, padding 3, no input gradient",
         .node = "layer1.0.downsample.convolution",
         .passes = {pass, quick}});
    report.unchecked = {"proposals 1 x 256 x 256: " + std::string(60, 'x')};
    const std::string text = validate_text(report);
    EXPECT_NE(text.find("  weight_gradient 1.0e-05 of 1.6e-02, L2 1.0e-06  1234.6 ms [1233.6, "
                        "1235.6]\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("  0.012 ms [123.457, 123.457]\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\nThe checks took 0 s.\nWorst: convolution 10 x "), std::string::npos);
    const std::string before = text.substr(0, text.find("VALIDATE"));
    std::istringstream lines(before);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ValidateText, HasNoneForAComputedNumberThatIsNotFinite) {
    const TensorCheck tensor{.tensor = "output",
                             .shape = {2},
                             .place = {1},
                             .computed = no_value("it is NaN"),
                             .expected = 3,
                             .largest_error = no_value("it is NaN")};
    const ValidateReport report = report_of({.passes = {{.pass = "forward", .tensors = {tensor}}}});
    EXPECT_NE(validate_text(report).find("FAILED output at (1) of (2): none, naive 3\n"),
              std::string::npos)
        << validate_text(report);
    const auto json = nlohmann::json::parse(validate_json(report));
    const auto& got = json["operations"][0]["passes"][0]["tensors"][0];
    EXPECT_TRUE(got["computed"].is_null());
    EXPECT_EQ(got["computed_reason"], "it is NaN");
}

}  // namespace
}  // namespace hpcai::speed
