// SPDX-License-Identifier: Apache-2.0
#include <limits>

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
