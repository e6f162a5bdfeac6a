// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/transforms.hpp>
#include <hpcai/results/export_weights.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/pytorch_network.hpp>
#include <hpcai/storage/file.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct ExportOptions {
    std::string directory;
    std::optional<int> group;
    std::string output;
};

constexpr const char* kPython = R"(
Python with torchvision:
  import json, torch, torchvision, torchvision.transforms as T
  from PIL import Image
  from safetensors.torch import load_file
  use = json.load(open({settings}))
)";
constexpr const char* kTorchvisionNetwork = R"(
  model = torchvision.models.resnet50(num_classes=len(use["classes"])).eval()
)";
constexpr const char* kWrittenNetwork = R"(
  import runpy
  model = runpy.run_path({network})["Network"]().eval()
)";
constexpr const char* kClassifier = R"(
  model.load_state_dict(load_file({weights}))
  prepare = T.Compose([T.Resize(use["resize"]), T.CenterCrop(use["crop"]), T.ToTensor(),
                       T.Normalize(use["mean"], use["standard_deviation"])])
  scores = model(prepare(Image.open("picture.jpg").convert("RGB"))[None]).softmax(1)
  print(use["classes"][scores.argmax()])
)";
constexpr const char* kDetector = R"(
  from torchvision.models.detection import faster_rcnn as rcnn
  from torchvision.models.detection.backbone_utils import BackboneWithFPN
  norms = {{"batch": torch.nn.BatchNorm2d, "group": lambda n: torch.nn.GroupNorm(32, n),
           "frozen_batch": torchvision.ops.FrozenBatchNorm2d}}
  body = torchvision.models.resnet50(norm_layer=norms[use["normalization"]])
  body.conv1 = torch.nn.Conv2d(use["channels"], 64, 7, 2, 3, bias=False)
  stages = {{"layer1": "0", "layer2": "1", "layer3": "2", "layer4": "3"}}
  pyramid, size = use["pyramid_channels"], (use["height"], use["width"])
  sizes, features = [(size,) for size in use["anchor_sizes"]], use["head_features"]
  model = rcnn.FasterRCNN(
      BackboneWithFPN(body, stages, [256, 512, 1024, 2048], pyramid),
      min_size=min(size), max_size=max(size),
      image_mean=use["mean"], image_std=use["standard_deviation"],
      rpn_anchor_generator=rcnn.AnchorGenerator(sizes, [use["anchor_ratios"]] * len(sizes)),
      rpn_pre_nms_top_n_test=use["proposals"], rpn_post_nms_top_n_test=use["proposals"],
      box_score_thresh=use["score_threshold"], box_head=rcnn.TwoMLPHead(49 * pyramid, features),
      box_predictor=rcnn.FastRCNNPredictor(features, use["num_classes"] + 1)).eval()
  model.load_state_dict(load_file({weights}), strict=False)
)";
constexpr const char* kPicture = R"(
  picture = Image.open("picture.jpg").convert("RGB").resize(size[::-1], Image.BILINEAR)
  print(model([T.ToTensor()(picture)])[0])  # label n is use["classes"][n - 1]
)";
constexpr const char* kFields = R"(
  fields = torch.zeros(use["channels"], *size)  # normalized as by `hpcai500 data stats`
  print(model([fields])[0])  # label n is use["classes"][n - 1]
)";

/// Returns the classes of the test images "class/image.jpg"; none before the evaluation.
std::vector<std::string> classes_of(const std::string& directory) {
    std::ifstream samples(directory + "/evaluation/samples.txt");
    std::vector<std::string> names;
    for (std::string line; std::getline(samples, line);) {
        const std::string name = line.substr(0, line.find('/'));
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
}

nlohmann::ordered_json classifier_json(const config::Config& config,
                                       const std::vector<std::string>& classes) {
    const int size = config.workload.image_size;
    return {{"resize", data::evaluation_request({1, 1}, size).width},
            {"crop", size},
            {"mean", config.data.mean},
            {"standard_deviation", config.data.standard_deviation},
            {"classes", classes}};
}

nlohmann::ordered_json detector_json(const config::Config& config) {
    const config::DetectorConfig& detector = config.detector;
    const auto channels = static_cast<std::size_t>(config.workload.channels);
    nlohmann::ordered_json json{
        {"height", config.workload.image_size},
        {"width", config::image_width(config)},
        {"channels", channels},
        {"normalization", config::value_text(config, "detector.normalization")},
        {"pyramid_channels", detector.pyramid_channels},
        {"head_features", detector.head_features},
        {"anchor_sizes", detector.anchor_sizes},
        {"anchor_ratios", detector.anchor_ratios},
        {"proposals", detector.inference_proposals},
        {"score_threshold", detector.score_threshold},
        {"mean", config.data.mean},
        {"standard_deviation", config.data.standard_deviation},
        {"num_classes", config.workload.classes},
        {"classes", config.data.class_names}};
    if (config::has_fields(config.data)) {
        json["mean"] = std::vector<double>(channels, 0);
        json["standard_deviation"] = std::vector<double>(channels, 1);
        json["classes"] = data::kClimateCategoryNames;
    }
    return json;
}

/// Whether the model is a classifier that torchvision does not have, such as that of a search.
bool needs_network(const config::WorkloadConfig& workload) {
    const bool is_v1_5 = workload.model == config::Model::resnet50_v1_5;
    return (is_v1_5 || workload.model == config::Model::resnet50_v1) &&
           (!is_v1_5 || workload.backbone_width != 64 || workload.channels != 3 ||
            config::is_search(workload));
}

std::string network_file(std::filesystem::path weights) {
    return weights.replace_extension(".py").string();
}

ExitCode export_group(const ExportOptions& options, const Context& context) {
    std::filesystem::path settings = options.output;
    require(settings.extension() == ".safetensors", ExitCode::usage,
            "export: --output: expected a file *.safetensors, got {}", in_quotes(options.output));
    require_place("export: --output", options.output);
    settings.replace_extension(".json");
    const std::string network = network_file(options.output);
    for (const std::string& file : {options.output, settings.string(), network}) {
        std::error_code ignored;
        require(!std::filesystem::exists(file, ignored), ExitCode::usage,
                "export: --output: {} exists; name another file", printable(file));
    }
    const auto [group, graph] =
        results::export_weights(options.directory, options.group, options.output);
    context.out << fmt::format("wrote {}: base model {}\n", printable(options.output), group);
    const config::Config config = results::read_config(options.directory);
    if (needs_network(config.workload)) {
        storage::write_file_durably(network, results::pytorch_network(graph));
        context.out << "wrote " << printable(network) << ": the network in PyTorch\n";
    }
    const std::vector<std::string> classes = classes_of(options.directory);
    nlohmann::ordered_json json{{"schema", "hpcai500-preprocessing/1"},
                                {"model", config::value_text(config, "workload.model")}};
    if (config.workload.model == config::Model::faster_rcnn_r50_fpn) {
        json.update(detector_json(config));
    } else if (config.data.kind == config::DataKind::image_folder &&
               std::ssize(classes) == config.workload.classes) {
        json.update(classifier_json(config, classes));
    } else {  // neither a detector nor a classifier whose classes are known
        return ExitCode::ok;
    }
    storage::write_file_durably(settings, json_text(json));
    context.out << "wrote " << printable(settings.string()) << '\n'
                << python_lines(config, settings.string(), options.output);
    return ExitCode::ok;
}

}  // namespace

std::string python_lines(const config::Config& config, const std::string& settings,
                         const std::string& weights) {
    const config::Model model = config.workload.model;
    const bool is_detector = model == config::Model::faster_rcnn_r50_fpn;
    const bool is_written = needs_network(config.workload);
    if (model == config::Model::segmentation_net ||
        (is_detector && config.workload.backbone_width != 64))
        return "";
    std::string text = kPython;  // without the first line feeds
    if (!is_detector) text += is_written ? kWrittenNetwork + 1 : kTorchvisionNetwork + 1;
    text += is_detector ? kDetector + 1 : kClassifier + 1;
    if (is_detector) text += config::has_fields(config.data) ? kFields + 1 : kPicture + 1;
    return fmt::format(fmt::runtime(text),
                       fmt::arg("settings", nlohmann::json(printable(settings)).dump()),
                       fmt::arg("network", nlohmann::json(printable(network_file(weights))).dump()),
                       fmt::arg("weights", nlohmann::json(printable(weights)).dump()));
}

void add_export_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"export",
         "Write a model's weights as safetensors under torchvision's names, the preprocessing of "
         "a classifier or detector as JSON, and a network that torchvision lacks as Python.",
         {"hpcai500 export results/quickstart --output best.safetensors",
          "hpcai500 export results/ucmerced --group 1 --output /data/member-1.safetensors"}},
        export_group);
    command.add_argument("DIR", options.directory, "result directory of a run");
    command.add_integer("--group", options.group, {0, 1'000'000'000},
                        "number of the base model, from 0; default: the best");
    command.add_text("--output", options.output, "FILE", "file *.safetensors to write",
                     Presence::required);
}

}  // namespace hpcai::cli
