// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/report/mllog.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>
#include <hpcai/verification/verify.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

/// Adds the steps of each group to `content`, or the reason why they cannot be read.
void add_steps(const fs::path& directory, report::PageContent& content) {
    const std::size_t groups = content.record.work.groups.size();
    for (std::size_t group = 0; group < groups; ++group) {
        content.steps.emplace_back();
        const std::string name = fmt::format("groups/{}/steps.csv", group);
        if (!storage::path_exists(directory / name)) continue;
        try {
            content.steps.back() = report::steps_from_csv(
                storage::read_file_text(directory / name, kMaxFileBytes), name);
        } catch (const Error& damaged) {
            content.remarks.emplace_back(damaged.what());
        }
    }
}

/// Lists the stored files that the page links, with the files of the first groups only.
void add_files(const fs::path& directory, report::PageContent& content) {
    constexpr std::size_t kLinkedGroups = 16;
    std::vector<std::string> names{"result.json", "config.yaml", "launch.json", "environment.json"};
    const std::size_t groups = content.record.work.groups.size();
    for (std::size_t group = 0; group < std::min(groups, kLinkedGroups); ++group) {
        names.push_back(fmt::format("groups/{}/steps.csv", group));
        names.push_back(fmt::format("groups/{}/ranks.csv", group));
    }
    std::ranges::copy_if(names, std::back_inserter(content.files), [&](const std::string& name) {
        return storage::path_exists(directory / name);
    });
}

std::vector<report::LayerRecord> layers_of(const config::Config& config) {
    const metrics::FlopsLedger ledger(models::make_model(config));
    std::vector<report::LayerRecord> layers;
    for (const metrics::LedgerRow& row : ledger.rows()) {
        const ops::Flops& flops = row.flops_in(metrics::kOfficialLedger);
        std::vector<std::int64_t> output(row.output.begin(), row.output.end());
        if (output.size() > 1 && output.front() == 1) output.erase(output.begin());
        layers.push_back({row.node, row.operation, fmt::format("{}", fmt::join(output, "x")),
                          row.parameters, flops.forward, flops.training()});
    }
    return layers;
}

std::vector<report::MllogSetting> mllog_settings(const config::Config& config) {
    const config::TrainingConfig& training = config.training;
    std::vector<report::MllogSetting> settings;
    const auto add = [&](const char* key, double value) { settings.push_back({key, {value, ""}}); };
    const auto add_text = [&](const char* key, const std::string& name) {
        settings.push_back({key, {}, config::value_text(config, name)});
    };
    add_text("opt_name", "training.optimizer");
    add("opt_base_learning_rate", training.learning_rate);
    add("opt_learning_rate_warmup_epochs", training.warmup_epochs);
    add_text("opt_learning_rate_schedule", "training.schedule");
    add("opt_weight_decay", training.weight_decay);
    if (training.optimizer == config::Optimizer::sgd ||
        training.optimizer == config::Optimizer::lars) {
        add("opt_momentum", training.momentum);
    } else if (training.optimizer != config::Optimizer::adagrad) {
        add("opt_beta_1", training.beta1);
        add("opt_beta_2", training.beta2);
    }
    add("label_smoothing", training.label_smoothing);
    return settings;
}

}  // namespace

std::map<std::string, std::string> render_report_files(const fs::path& directory,
                                                       const RunRecord& record) {
    const config::Config config = config::parse(record.config.text, "result.json: config", {});
    report::PageContent content{record, {}, {}, layers_of(config)};
    content.confusions = workloads::find_confusions(config.workload, directory / "evaluation");
    add_steps(directory, content);
    add_files(directory, content);
    std::map<std::string, std::string> files{{"report.html", report::html(content)}};
    const std::vector<report::MllogSetting> settings = mllog_settings(config);
    for (std::size_t group = 0; group < record.work.groups.size(); ++group) {
        files[fmt::format("mllog/result_{}.txt", group)] = report::mllog(record, group, settings);
    }
    return files;
}

void write_report_files(const fs::path& directory, const RunRecord& record) {
    const std::map<std::string, std::string> files = render_report_files(directory, record);
    std::error_code error;
    fs::create_directories(directory / "mllog", error);
    for (const auto& [name, text] : files) storage::write_file_durably(directory / name, text);
}

RunRecord read_result(const fs::path& directory) {
    verification::require_result(directory);
    return records::read_file<RunRecord>(directory / "result.json", kMaxFileBytes);
}

void rerender_report_files(const fs::path& directory) {
    const RunRecord record = read_result(directory);
    const fs::path manifest = directory / storage::kManifestName;
    if (fs::exists(manifest)) {
        const std::string listing = storage::read_file_text(manifest, kMaxFileBytes);
        const auto sealed = storage::parse_manifest(listing, manifest);
        for (const auto& [name, text] : render_report_files(directory, record)) {
            const auto listed = sealed.find(name);
            require(listed != sealed.end() &&
                        listed->second == storage::sha256_hex(storage::bytes_of(text)),
                    ExitCode::usage,
                    "{} lists {}; a result with a manifest must not change, but --output writes "
                    "the page to another file",
                    manifest.string(),
                    listed == sealed.end() ? "no " + name : "another digest of " + name);
        }
        const fs::path summary = directory / report::kSummaryName;
        if (!fs::exists(summary)) {
            const std::string digest = storage::sha256_hex(storage::bytes_of(listing));
            storage::write_file_durably(summary, report::summary(record, digest));
        }
    }
    write_report_files(directory, record);
}

verification::Verification verify_result(const fs::path& directory) {
    verification::Verification verification = verification::verify(directory);
    const auto add_finding = [&](const std::string& file, const std::string& text) {
        verification.findings.push_back({printable(file), printable(text)});
    };
    if (!verification.record) return verification;
    try {
        for (const auto& [name, text] : render_report_files(directory, *verification.record)) {
            std::error_code error;
            if (!fs::is_regular_file(fs::symlink_status(directory / name, error))) {
                add_finding(name, "is missing or not a regular file");
            } else if (storage::read_file_text(directory / name, kMaxFileBytes) != text) {
                add_finding(
                    name, "does not follow from result.json, evaluation/ and groups/<m>/steps.csv");
            }
        }
    } catch (const Error& error) {
        add_finding("report.html", error.what());
    }
    return verification;
}

}  // namespace hpcai::results
