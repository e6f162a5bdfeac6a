// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/run_record.hpp>
#include <hpcai/report/csv.hpp>

#include "result_edits.hpp"

/// Edits of the result of a tiny run that detects weather.
namespace hpcai::end_to_end {

using Json = nlohmann::ordered_json;

inline constexpr const char* kResult = "result.json";

/// Changes a cell of a table whose header is line 0.
inline void change_cell(const ResultCopy& copy, const std::string& file, std::size_t line,
                        std::size_t column, const std::string& value) {
    std::string text = copy.text(file);
    std::size_t from = 0;
    for (std::size_t at = 0; at < line; ++at) from = text.find('\n', from) + 1;
    for (std::size_t cell = 0; cell < column; ++cell) from = text.find(',', from) + 1;
    copy.put(file, text.replace(from, text.find_first_of(",\n", from) - from, value));
}

/// Returns the number of the last line.
inline std::size_t last_of(const ResultCopy& copy, const std::string& file) {
    const std::string text = copy.text(file);
    return static_cast<std::size_t>(std::ranges::count(text, '\n')) - 1;
}

/// Makes all steps a thousand times as fast. The first step also has a pause before its phases,
/// which may be several times as long.
inline void hurry(const ResultCopy& copy, const std::string& file) {
    std::vector<StepRecord> steps = report::steps_from_csv(copy.text(file), file);
    for (StepRecord& step : steps) step.end_seconds /= 1000;
    copy.put(file, report::steps_to_csv(steps));
}

/// Edits the setting at `pointer` in both files.
inline void change_setting(const ResultCopy& copy, const std::string& from, const std::string& to,
                           const std::string& pointer, const Json& value) {
    std::string text = copy.text("config.yaml");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    copy.put("config.yaml", text.replace(at, from.size(), to));
    copy.change_json(kResult, "/config", [&](nlohmann::ordered_json config) {
        config[nlohmann::ordered_json::json_pointer(pointer)] = value;
        return config;
    });
}

/// Converts a key with dots to a JSON pointer.
inline std::string pointer_to(const std::string& key) {
    std::string pointer = "/" + key;
    std::ranges::replace(pointer, '.', '/');
    return pointer;
}

inline Edit increased(const std::string& name, const std::string& key) {
    return {name, kResult, key + " is",
            [=](const ResultCopy& copy) { copy.increase(kResult, pointer_to(key)); }};
}

inline Edit set_to(const std::string& name, const std::string& key, const Json& value) {
    return {name, kResult, key + " is",
            [=](const ResultCopy& copy) { copy.set(kResult, pointer_to(key), value); }};
}

inline std::vector<Edit> edits_of_scores() {
    const std::string record = "groups/1/record.json";
    const Json valid{
        {"status", "VALID"}, {"reasons", Json::array()}, {"exit_code", 0}, {"rankable", true}};
    return {
        increased("FLOPS", "scores.flops"),
        increased("VFLOPS", "scores.vflops"),
        increased("penalty coefficient", "scores.penalty_coefficient"),
        increased("quality of the ensemble", "quality.ensemble"),
        increased("exponent", "quality.exponent"),
        increased("target", "quality.target"),
        increased("time of the run", "time.training_seconds"),
        increased("mean AP10", "quality.ensemble_ap10"),
        set_to("FLOPs of a sample", "flops.training_per_sample", 123'029'665),
        set_to("samples of the run", "work.samples_trained", 1000),
        set_to("seed", "workload.seed", 4),
        set_to("samples of the test set", "workload.validation_samples", 5),
        set_to("samples of the training set", "workload.training_samples", 12),
        set_to("removed reason", "verdict.reasons", Json::array()),
        set_to("target of nothing", "quality.target", 0.0),
        set_to("no rank", "topology.ranks", 0),
        set_to("utilization", "utilization.fraction", 0.75),
        set_to("seconds of the sums", "communication.exposed_seconds", 0.001),
        set_to("time of the forward passes", "time_breakdown.forward.median", 1000.0),
        {"utilization above 2", kResult, "utilization.fraction is 2.5; must be at most 2",
         [](const ResultCopy& copy) { copy.set(kResult, "/utilization/fraction", 2.5); }},
        {"FLOPS above any thread's", kResult, "scores.flops is 2e+17; must be at most 1.1 x",
         [](const ResultCopy& copy) { copy.set(kResult, "/scores/flops", 2e17); }},
        set_to("low ceiling", "roofline.ceiling_flops", 1.0),
        {"who hands it in", kResult, "submission",
         [](const ResultCopy& copy) {
             copy.set(kResult, "/submission/organization", "somebody else");
         }},
        increased("interval of VFLOPS", "scores.vflops_interval.high"),
        {"what a rule found", kResult, "verdict.rules",
         [](const ResultCopy& copy) { copy.set(kResult, "/verdict/rules/0/found", "2"); }},
        set_to("another ceiling", "roofline.source", "NIST"),
        {"surplus row of the summary", kResult, "parameters",
         [](const ResultCopy& copy) {
             copy.change_json(kResult, "/parameters", [](Json rows) {
                 rows.push_back({{"key", "accelerators"}, {"value", "1024"}, {"meaning", "many"}});
                 return rows;
             });
         }},
        {"boxes of a category", kResult, "quality.categories",
         [](const ResultCopy& copy) { copy.set(kResult, "/quality/categories/0/boxes", 1000); }},
        {"AP of a category", kResult, "quality.categories",
         [](const ResultCopy& copy) { copy.set(kResult, "/quality/categories/0/ap50", 0.75); }},
        {"quality of a member", kResult, "quality.members",
         [](const ResultCopy& copy) { copy.increase(kResult, "/quality/members/0"); }},
        {"speed of a group", kResult, "work.groups[1]",
         [](const ResultCopy& copy) {
             copy.increase(kResult, "/work/groups/1/images_per_second");
         }},
        {"quality in a group's record", record, "quality is",
         [=](const ResultCopy& copy) { copy.increase(record, "/quality"); }},
        {"seconds in a group's record", record, "record.training_seconds is",
         [=](const ResultCopy& copy) { copy.increase(record, "/record/training_seconds"); }},
        {"verdict", kResult, "verdict.status is",
         [=](const ResultCopy& copy) {
             copy.change_json(kResult, "/verdict", [&](Json verdict) {
                 verdict.update(valid);
                 return verdict;
             });
         }},
        {"digest of a model", kResult, "training_digest",
         [](const ResultCopy& copy) {
             copy.set(kResult, "/training_digest/0", std::string(64, 'a'));
         }},
    };
}

inline std::vector<Edit> edits_of_steps() {
    const std::string steps = "groups/0/steps.csv", ranks = "groups/0/ranks.csv";
    const std::string record = "groups/0/record.json";
    return {
        {"time of a step", steps, "record.training_seconds is",
         [=](const ResultCopy& copy) { change_cell(copy, steps, last_of(copy, steps), 3, "1000"); },
         record},
        {"samples of a step", steps, "samples of step 1 is 40; must be 4",
         [=](const ResultCopy& copy) { change_cell(copy, steps, 2, 2, "40"); }},
        {"epoch of a step", steps, "epoch of step",
         [=](const ResultCopy& copy) { change_cell(copy, steps, last_of(copy, steps), 1, "1"); }},
        {"a thousandth of the time", steps, "phases of step 0 take",
         [=](const ResultCopy& copy) { hurry(copy, steps); }},
        {"seconds of an epoch", record, "record.epoch_seconds[0] is 0.0001; must be",
         [=](const ResultCopy& copy) {
             copy.set(record, "/record/epoch_seconds", Json::array({0.0001}));
         }},
        {"bad samples below none", record, "",
         [=](const ResultCopy& copy) { copy.set(record, "/bad_samples", -5); }, record},
        {"more decoder warnings than a sum can have", record, "",
         [=](const ResultCopy& copy) { copy.set(record, "/decoder_warnings", INT64_MAX); }, record},
        {"divergence without a failure", record, "record.audit.diverged_at_step is 2; must be 0",
         [=](const ResultCopy& copy) { copy.set(record, "/record/audit/diverged_at_step", 2); }},
        {"size of a bootstrap", record, "record.samples_drawn is 100000; must be near 16",
         [=](const ResultCopy& copy) { copy.set(record, "/record/samples_drawn", 100'000); }},
        {"removed epoch", record, "record.epoch_seconds has 0 epochs; must have 1",
         [=](const ResultCopy& copy) { copy.set(record, "/record/epoch_seconds", Json::array()); }},
        {"median of the leader's steps", ranks, "median_step_seconds of rank 0 is 1000; must be",
         [=](const ResultCopy& copy) { change_cell(copy, ranks, 1, 4, "1000"); }},
        {"signed cell", steps, "",
         [=](const ResultCopy& copy) { change_cell(copy, steps, 2, 2, "+4"); }, steps},
        {"learning rate", steps, "learning_rate of step 1 is 99; must be",
         [=](const ResultCopy& copy) { change_cell(copy, steps, 2, 4, "99"); }},
        {"median of another rank's steps", ranks, "record.time_breakdown.step_seconds is",
         [=](const ResultCopy& copy) { change_cell(copy, ranks, 2, 4, "1000"); }, record},
        {"number of a rank", ranks, "world_rank of rank 0 is 3; must be 0",
         [=](const ResultCopy& copy) { change_cell(copy, ranks, 1, 1, "3"); }},
        {"host of a rank", ranks, "host of rank 0 is elsewhere; must be",
         [=](const ResultCopy& copy) { change_cell(copy, ranks, 1, 2, "elsewhere"); }},
        {"steps of a rank", ranks, "steps of rank 0 is 1; must be",
         [=](const ResultCopy& copy) { change_cell(copy, ranks, 1, 3, "1"); }},
        {"a phase of the leader's steps", ranks, "forward_seconds of rank 0 is 1e-05; must be",
         [=](const ResultCopy& copy) { change_cell(copy, ranks, 1, 8, "1e-05"); }},
        {"removed step", steps, "has",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(steps);
             copy.put(steps, text.substr(0, text.rfind('\n', text.size() - 2) + 1));
         }},
        {"step in half", steps, "",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(steps);
             copy.put(steps, text.substr(0, text.size() - 5));
         },
         steps},
    };
}

/// Replaces the first number after `mark`.
inline void replace_number(const ResultCopy& copy, const std::string& file, const std::string& mark,
                           const std::string& number) {
    std::string text = copy.text(file);
    const std::size_t from = text.find(mark) + mark.size();
    copy.put(file, text.replace(from, text.find_first_of(",}", from) - from, number));
}

inline std::vector<Edit> edits_of_predictions() {
    const std::string member = "groups/0/detections.json", other = "groups/1/detections.json";
    const std::string ensemble = "evaluation/ensemble.json", truth = "evaluation/annotations.json";
    return {
        {"prediction of a member", member, "record.predictions_sha256 is",
         [=](const ResultCopy& copy) { copy.change_digit(member, "\"score\":0."); },
         "groups/0/record.json"},
        {"prediction of the ensemble", ensemble, "detection",
         [=](const ResultCopy& copy) { copy.change_digit(ensemble, "\"score\":0."); }},
        {"labelled box", truth, "quality.labels_sha256 is",
         [=](const ResultCopy& copy) { copy.change_digit(truth, "\"bbox\":["); }, kResult},
        {"truncated predictions", other, "",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(other);
             copy.put(other, text.substr(0, text.size() / 2));
         },
         other},
        {"score above 1", member, "detection 0 has score 2.5 and box",
         [=](const ResultCopy& copy) { replace_number(copy, member, "\"score\":", "2.5"); }},
        {"box outside its image", member, "detection 0 has score 0.",
         [=](const ResultCopy& copy) { replace_number(copy, member, "\"bbox\":[", "900.5"); }},
        {"copied predictions", other, "record.predictions_sha256 is that of group 0",
         [=](const ResultCopy& copy) { copy.put(other, copy.text(member)); },
         "groups/1/record.json"},
        {"removed predictions", other, "is missing",
         [=](const ResultCopy& copy) { fs::remove(copy.path() / other); }},
    };
}

inline std::vector<Edit> edits_of_files() {
    return {
        {"bit of the weights", "groups/0/weights.safetensors", "training_digest is",
         [](const ResultCopy& copy) { copy.flip_bit("groups/0/weights.safetensors", 1000); },
         "groups/0/record.json"},
        {"bytes behind the weights", "groups/0/weights.safetensors", "",
         [](const ResultCopy& copy) {
             const std::string weights = "groups/0/weights.safetensors";
             copy.put(weights, copy.text(weights) + std::string(4096, 'x'));
         },
         "groups/0/weights.safetensors"},
        {"removed group", "groups/1/record.json", "is missing",
         [](const ResultCopy& copy) { fs::remove_all(copy.path() / "groups/1"); }},
        {"swapped groups", "groups/0/record.json", "record.group is",
         [](const ResultCopy& copy) {
             fs::rename(copy.path() / "groups/0", copy.path() / "groups/2");
             fs::rename(copy.path() / "groups/1", copy.path() / "groups/0");
             fs::rename(copy.path() / "groups/2", copy.path() / "groups/1");
         }},
        {"swapped configuration", "config.yaml", "",
         [](const ResultCopy& copy) {
             std::string text = copy.text("config.yaml");
             const std::string old = "learning_rate: 0.01";
             copy.put("config.yaml", text.replace(text.find(old), old.size(), "learning_rate: 1"));
         },
         "config.yaml"},
        {"batch of nothing", "config.yaml", "",
         [](const ResultCopy& copy) {
             change_setting(copy, "batch_size: 4", "batch_size: 0", "/training/batch_size", 0);
         },
         kResult},
        {"unknown setting", "config.yaml", "",
         [](const ResultCopy& copy) {
             change_setting(copy, "\ndevice:\n", "\nnonsense:\n  key: 1\ndevice:\n",
                            "/nonsense/key", 1);
         },
         kResult},
        {"number in another form", kResult, "",
         [](const ResultCopy& copy) {
             std::string text = copy.text(kResult);
             const std::string old = "\"exponent\": 10.0";
             copy.put(kResult, text.replace(text.find(old), old.size(), "\"exponent\": 1.0e+1"));
         },
         kResult},
        {"page", "report.html",
         "does not follow from result.json, evaluation/ and groups/<m>/steps.csv",
         [](const ResultCopy& copy) {
             std::string text = copy.text("report.html");
             copy.put("report.html", text.replace(text.find("CUSTOM"), 6, "VALID"));
         },
         "report.html", false},
        {"quality in a log", "mllog/result_0.txt", "does not follow from result.json",
         [](const ResultCopy& copy) {
             copy.change_digit("mllog/result_0.txt", "\"key\":\"eval_accuracy\",\"value\":");
         }},
        {"another program", "environment.json", "",
         [](const ResultCopy& copy) {
             copy.set("environment.json", "/binary_sha256", std::string(64, 'b'));
         },
         "environment.json"},
        {"line of the summary", "summary.txt", "",
         [](const ResultCopy& copy) { copy.change_digit("summary.txt", "mean of members"); }},
        {"RESULT line", "summary.txt", "",
         [](const ResultCopy& copy) { copy.change_digit("summary.txt", " FLOPS="); }},
        {"linked folder", "groups/1/record.json", "is missing",
         [](const ResultCopy& copy) {
             fs::rename(copy.path() / "groups/1", copy.path().parent_path() / "elsewhere");
             fs::create_symlink("../../elsewhere", copy.path() / "groups/1");
         }},
        {"name that a terminal obeys", R"(groups/0/\x1b[2J)", "exists",
         [](const ResultCopy& copy) {
             fs::create_symlink("/etc/hostname", copy.path() / "groups/0/\x1b[2J");
         }},
        {"link", "groups/0/link", "exists",
         [](const ResultCopy& copy) {
             fs::create_symlink("/etc/hostname", copy.path() / "groups/0/link");
         }},
    };
}

inline std::vector<Edit> edits_of_the_launch() {
    return {
        {"launch that is no JSON", kLaunchName, "",
         [](const ResultCopy& copy) { copy.put(kLaunchName, "not json at all"); }, kLaunchName},
        {"samples of the launch", kLaunchName, "samples_sha256 is",
         [](const ResultCopy& copy) {
             copy.set(kLaunchName, "/samples_sha256", std::string(64, '0'));
         }},
        {"configuration of the launch", kLaunchName, "config_sha256 is",
         [](const ResultCopy& copy) {
             copy.set(kLaunchName, "/config_sha256", std::string(64, '0'));
         }},
        {"host of the launch", kLaunchName, "topology.map",
         [](const ResultCopy& copy) {
             copy.set(kLaunchName, "/topology/map/3/host", "elsewhere");
         }},
    };
}

/// These edits do not affect scores or the verdict.
inline std::vector<Edit> edits_that_only_the_manifest_tells() {
    return {
        {"line of a log", "groups/0/log.txt", "",
         [](const ResultCopy& copy) {
             copy.put("groups/0/log.txt", copy.text("groups/0/log.txt") + "all was well\n");
         }},
        {"added file", "groups/0/more.txt", "",
         [](const ResultCopy& copy) { copy.put("groups/0/more.txt", "more"); }},
        {"another program everywhere", kResult, "",
         [](const ResultCopy& copy) {
             copy.set("environment.json", "/binary_sha256", std::string(64, 'b'));
             copy.set(kResult, "/environment/binary_sha256", std::string(64, 'b'));
             copy.set(kLaunchName, "/environment/binary_sha256", std::string(64, 'b'));
         }},
        {"path with another kind of line", kResult, "",
         [](const ResultCopy& copy) {
             change_setting(copy, "plan_cache: \"\"", "plan_cache: \"/data/\u2028x\"",
                            "/device/plan_cache", "/data/\u2028x");
             const std::string config = copy.text("config.yaml");
             copy.set(kLaunchName, "/config_sha256",
                      storage::sha256_hex(storage::bytes_of(config)));
         }},
        {"seconds of the start-up", kResult, "",
         [](const ResultCopy& copy) { copy.increase(kResult, "/time/startup_seconds"); }},
    };
}

}  // namespace hpcai::end_to_end
