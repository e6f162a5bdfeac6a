// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/data/transforms.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/export_weights.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/compare.hpp>
#include <hpcai/verification/ranking.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct VerifyOptions {
    std::string directory;
    bool json = false;
};

std::string lines_of(const std::vector<verification::Finding>& findings) {
    std::string text;
    for (const verification::Finding& finding : findings) {
        text += finding.file + ": " + finding.text + "\n";
    }
    return text;
}

std::string findings_text(const verification::Verification& verification) {
    if (!verification.findings.empty()) return lines_of(verification.findings);
    return report::result_line(*verification.record, verification.manifest) + "\n";
}

std::string findings_text(const verification::SeriesVerification& series) {
    if (!series.findings.empty()) return lines_of(series.findings);
    return report::repetitions_line(*series.record, series.digest) + "\n";
}

nlohmann::ordered_json findings_json(const verification::Verification& verification) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const verification::Finding& finding : verification.findings) {
        findings.push_back({{"file", finding.file}, {"finding", finding.text}});
    }
    return {{"schema", "hpcai500-verify/1"},
            {"verified", verification.findings.empty()},
            {"manifest", verification.manifest},
            {"findings", std::move(findings)}};
}

nlohmann::ordered_json findings_json(const verification::SeriesVerification& series) {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const verification::Verification& run : series.runs) runs.push_back(findings_json(run));
    nlohmann::ordered_json document =
        findings_json(verification::Verification{"", series.findings, std::nullopt});
    document["manifest"] = series.digest;
    document["repetitions"] = std::move(runs);
    return document;
}

ExitCode verify(const VerifyOptions& options, const Context& context) {
    if (verification::has_repetitions(options.directory)) {
        const auto series =
            verification::verify_repetitions(options.directory, results::verify_result);
        context.out << (options.json ? json_text(findings_json(series)) : findings_text(series));
        return series.findings.empty() ? ExitCode::ok : ExitCode::mismatch;
    }
    const verification::Verification verification = results::verify_result(options.directory);
    context.out << (options.json ? json_text(findings_json(verification))
                                 : findings_text(verification));
    return verification.findings.empty() ? ExitCode::ok : ExitCode::mismatch;
}

struct CompareOptions {
    std::string first;
    std::string second;
    bool json = false;
};

ExitCode compare(const CompareOptions& options, const Context& context) {
    const auto comparison = verification::compare(options.first, options.second);
    context.out << (options.json ? verification::to_json(comparison)
                                 : verification::to_text(comparison));
    return ExitCode::ok;
}

struct RankOptions {
    std::vector<std::string> directories;
    std::string output;
    std::string (*print)(const std::vector<verification::Ranking>&) = verification::to_text;
    bool unverified = false;
};

/// Returns true if there are no findings. Throws if there are and `--unverified` does not apply.
bool is_verified(const std::string& directory, const std::vector<verification::Finding>& findings,
                 bool is_unverified_allowed, bool can_be_read) {
    if (findings.empty()) return true;
    const verification::Finding& first = findings.front();
    require(is_unverified_allowed && can_be_read, ExitCode::mismatch,
            "rank: {}: does not verify ({} findings; {}: {}); `hpcai500 verify` lists them{}",
            printable(directory), findings.size(), first.file, first.text,
            is_unverified_allowed ? " and its numbers cannot be read"
                                  : ", --unverified lists it anyway");
    return false;
}

verification::Submission submission_of(const std::string& directory, bool unverified) {
    if (!verification::has_repetitions(directory)) {
        const verification::Verification checked = results::verify_result(directory);
        const bool verified =
            is_verified(directory, checked.findings, unverified, checked.record.has_value());
        return {directory, *checked.record, verified, checked.manifest};
    }
    const verification::SeriesVerification series =
        verification::verify_repetitions(directory, results::verify_result);
    const std::size_t index = series.record ? verification::median_repetition(*series.record) : 0;
    const bool can_be_read = index < series.runs.size() && series.runs[index].record;
    const bool verified = is_verified(directory, series.findings, unverified, can_be_read);
    const verification::Verification& median = series.runs[index];
    const int runs = static_cast<int>(series.runs.size());
    const int ranked_runs = static_cast<int>(
        std::ranges::count_if(series.record->repetitions, [&](const RepetitionRecord& one) {
            const bool is_mini = median.record->workload.problem_class == "mini";
            return one.counted && one.vflops.value && (!is_mini || one.status == Status::valid);
        }));
    return {directory, *median.record, verified, median.manifest, ranked_runs, runs - ranked_runs};
}

ExitCode rank(const RankOptions& options, const Context& context) {
    std::vector<verification::Submission> submissions;
    std::vector<Error> skipped;
    for (const std::string& directory : options.directories) {
        try {
            submissions.push_back(submission_of(directory, options.unverified));
        } catch (const Error& error) {
            if (error.code() != ExitCode::mismatch && error.code() != ExitCode::usage) throw;
            skipped.push_back(error);
        }
    }
    if (submissions.empty()) throw skipped.front();
    for (const Error& error : skipped) std::cerr << "hpcai500: " << error.what() << "; skipped\n";
    const std::string text = options.print(verification::rank(submissions));
    if (options.output.empty()) {
        context.out << text;
    } else {
        storage::write_file_durably(options.output, text);
        context.out << "wrote " << printable(options.output) << '\n';
    }
    return skipped.empty() ? ExitCode::ok : ExitCode::mismatch;
}

struct ReportOptions {
    std::string directory;
    std::string output;
};

ExitCode report(const ReportOptions& options, const Context& context) {
    if (options.output.empty()) {
        results::rerender_report_files(options.directory);
        context.out << "wrote report.html and mllog in " << printable(options.directory) << '\n';
        return ExitCode::ok;
    }
    const RunRecord record = results::read_result(options.directory);
    const auto files = results::render_report_files(options.directory, record);
    storage::write_file_durably(options.output, files.at("report.html"));
    context.out << "wrote " << printable(options.output) << '\n';
    return ExitCode::ok;
}

struct ExportOptions {
    std::string directory;
    std::optional<int> group;
    std::string output;
};

constexpr const char* kPython = R"(
Python with torchvision:
  import json, torchvision, torchvision.transforms as T
  from PIL import Image
  from safetensors.torch import load_file
  use = json.load(open({settings}))
  model = torchvision.models.resnet50(num_classes=len(use["classes"])).eval()
  model.load_state_dict(load_file({weights}))
  prepare = T.Compose([T.Resize(use["resize"]), T.CenterCrop(use["crop"]), T.ToTensor(),
                       T.Normalize(use["mean"], use["standard_deviation"])])
  scores = model(prepare(Image.open("picture.jpg").convert("RGB"))[None]).softmax(1)
  print(use["classes"][scores.argmax()])
)";

/// Returns the classes of the test pictures "class/picture.jpg"; none before the evaluation.
std::vector<std::string> classes_of(const std::string& directory) {
    std::ifstream samples(directory + "/evaluation/samples.txt");
    std::vector<std::string> names;
    for (std::string line; std::getline(samples, line);) {
        const std::string name = line.substr(0, line.find('/'));
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
}

/// Returns the preprocessing of the evaluation of a classifier.
nlohmann::ordered_json preprocessing_of(const config::Config& config,
                                        const std::vector<std::string>& classes) {
    require(std::ssize(classes) == config.workload.classes, ExitCode::data,
            "evaluation/samples.txt: expected pictures of {} classes, got {}",
            config.workload.classes, classes.size());
    const int size = config.workload.image_size;
    return {{"schema", "hpcai500-preprocessing/1"},
            {"model", config::value_text(config, "workload.model")},
            {"resize", data::evaluation_request({1, 1}, size).width},
            {"crop", size},
            {"mean", config.data.mean},
            {"standard_deviation", config.data.standard_deviation},
            {"classes", classes}};
}

ExitCode export_group(const ExportOptions& options, const Context& context) {
    std::filesystem::path settings = options.output;
    require(settings.extension() == ".safetensors", ExitCode::usage,
            "export: --output: expected a file *.safetensors, got {}", in_quotes(options.output));
    settings.replace_extension(".json");
    const int group = results::export_weights(options.directory, options.group, options.output);
    context.out << fmt::format("wrote {}: base model {}\n", printable(options.output), group);
    const config::Config config = results::read_config(options.directory);
    const std::vector<std::string> classes = classes_of(options.directory);
    if (config.data.kind != config::DataKind::image_folder || classes.empty()) return ExitCode::ok;
    storage::write_file_durably(settings, json_text(preprocessing_of(config, classes)));
    context.out << "wrote " << printable(settings.string()) << '\n';
    if (config.workload.model != config::Model::resnet50_v1_5 ||
        config.workload.backbone_width != 64)
        return ExitCode::ok;
    context.out << fmt::format(
        kPython, fmt::arg("settings", nlohmann::json(printable(settings.string())).dump()),
        fmt::arg("weights", nlohmann::json(printable(options.output)).dump()));
    return ExitCode::ok;
}

}  // namespace

void add_verify_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"verify",
         "Check the files of a result, and recompute its numbers from steps and predictions.",
         {"hpcai500 verify results/quickstart", "hpcai500 verify /archive/2026-11/run-17 --json"}},
        verify);
    command.add_argument("DIR", options.directory,
                         "result directory of a run or of several (run.repeat)");
    add_json_flag(command, options.json);
}

void add_compare_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"compare",
         "Compare two results: settings that differ, and metrics with statistical tests.",
         {"hpcai500 compare results/fp32 results/bf16",
          "hpcai500 compare results/before results/after --json"}},
        compare);
    command.add_argument("A", options.first, "result directory of the first run");
    command.add_argument("B", options.second, "result directory of the second run");
    add_json_flag(command, options.json);
}

void add_rank_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"rank",
         "Rank verified results by VFLOPS. Results without a rank are listed below; those that do "
         "not verify are skipped, and the exit code is then 10.",
         {"hpcai500 rank results/site-a results/site-b",
          "hpcai500 rank results/* --format html --output ranking.html"}},
        rank);
    command.add_texts("DIR", options.directories, "TEXT",
                      "result directories of runs or of repeated runs", Presence::required);
    command.add_choice("--format", options.print,
                       {{"text", verification::to_text},
                        {"csv", verification::to_csv},
                        {"json", verification::to_json},
                        {"html", verification::to_html}},
                       "NAME", "text, csv, json or html; default: text");
    command.add_text("--output", options.output, "FILE", "write to this file");
    command.add_flag("--unverified", options.unverified,
                     "also list results that do not verify, marked as such");
}

void add_report_command(Command parent) {
    const auto [command, options] =
        parent.add_command({"report",
                            "Write report.html and the MLPerf logs of a result again.",
                            {"hpcai500 report results/quickstart --output /tmp/quickstart.html",
                             "hpcai500 report results/quickstart"}},
                           report);
    command.add_argument("DIR", options.directory, "result directory of a run");
    command.add_text("--output", options.output, "FILE", "write only the page, to this file");
}

void add_export_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"export",
         "Write a model's weights as safetensors under torchvision's names, and a classifier's "
         "preprocessing as JSON.",
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
