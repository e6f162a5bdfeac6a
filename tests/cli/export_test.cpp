// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "child_process.hpp"
#include "cli/commands.hpp"

namespace hpcai::cli {
namespace {

using testing::HasSubstr;

/// Returns the lines after the title if Python can parse them.
std::string parsed_lines(const config::Config& config) {
    const std::string text = python_lines(config, "m.json", "m's.safetensors");
    const std::string lines = text.substr(text.find(":\n") + 2);
    const TemporaryFolder folder;
    std::ofstream(folder / "use.py") << "if True:\n" << lines;
    const Outcome outcome = execute_in(
        folder.path(), {"python3", "-c", "compile(open('use.py').read(), 'use.py', 'exec')"});
    EXPECT_EQ(outcome.error, "");
    EXPECT_THAT(lines, HasSubstr("use = json.load(open(\"m.json\"))\n"));
    EXPECT_THAT(lines, HasSubstr("load_file(\"m's.safetensors\")"));
    return lines;
}

TEST(PythonLines, AreOfTheModelAndItsData) {
    config::Config config;
    EXPECT_THAT(parsed_lines(config), HasSubstr("softmax(1)"));
    config.workload.model = config::Model::faster_rcnn_r50_fpn;
    config.data.kind = config::DataKind::voc;
    EXPECT_THAT(parsed_lines(config), HasSubstr("Image.open("));
    config.data.kind = config::DataKind::climate_synthetic;
    const std::string fields = parsed_lines(config);
    EXPECT_THAT(fields, HasSubstr("FasterRCNN("));
    EXPECT_THAT(fields, testing::Not(HasSubstr("Image.open(")));
}

TEST(PythonLines, LoadTheWrittenNetworkOfAClassifierThatTorchvisionDoesNotHave) {
    const auto network = HasSubstr("runpy.run_path(\"m's.py\")[\"Network\"]()");
    config::Config config;
    EXPECT_THAT(parsed_lines(config), testing::Not(network));
    config.workload.backbone_width = 32;
    EXPECT_THAT(parsed_lines(config), network);
    config.workload.backbone_width = 64;
    config.workload.model = config::Model::resnet50_v1;
    EXPECT_THAT(parsed_lines(config), network);
    config.workload.model = config::Model::resnet50_v1_5;
    config.workload.kind = config::WorkloadKind::architecture_search;
    EXPECT_THAT(parsed_lines(config), network);
}

TEST(PythonLines, AreEmptyForADetectorThatTorchvisionDoesNotHave) {
    config::Config config;
    config.workload.model = config::Model::faster_rcnn_r50_fpn;
    config.workload.backbone_width = 32;
    EXPECT_EQ(python_lines(config, "a", "b"), "");
}

}  // namespace
}  // namespace hpcai::cli
