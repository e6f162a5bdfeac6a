// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/sample_set.hpp>
#include <hpcai/storage/npy.hpp>

#include "search_run.hpp"

/// Both tools detect a search that was forged.
namespace hpcai::end_to_end {
namespace {

class ForgedSearch : public SearchRun {};

TEST_F(ForgedSearch, IsToldWhereItsHistoryWasChanged) {
    const std::string file = "groups/0/trials.jsonl";
    expect_told(result(), edit_of("accuracy", 3, "trial 1: accuracy is not that of",
                                  [](auto& line) { line["accuracy"].back() = 1.0; }));
    expect_told(result(), edit_of("FLOPs", 3, "trial 1: flops", [](auto& line) {
                    line["flops"][2]["training"] =
                        line["flops"][2]["training"].template get<int>() + 1;
                }));
    expect_told(result(), edit_of("samples", 3, "trial 1: samples_trained is", [](auto& line) {
                    line["samples_trained"] = line["samples_trained"].template get<int>() + 4;
                }));
    Edit seen = edit_of("seen", 8, "", [](auto& line) {
        const int lines = line["seen"][1].template get<int>();
        line["seen"][1] = lines > 8 ? lines - 2 : 1000;
    });
    seen.at = file;
    expect_told(result(), seen);
    expect_told(result(), {"removed line", file, "",
                           [=](const ResultCopy& copy) {
                               auto lines = trials_in(copy.path(), 0);
                               lines.pop_back();
                               put_chained(copy, file, std::move(lines));
                           },
                           file});
    expect_told(result(), {"broken chain", file, "line 4: ",
                           [=](const ResultCopy& copy) {
                               auto lines = lines_of(copy.text(file));
                               lines[2].replace(lines[2].find("\"draw\":0"), 8, "\"draw\":1");
                               copy.put(file, joined(lines));
                           },
                           file});
}

TEST_F(ForgedSearch, IsToldOfAnotherFormOrAHiddenFile) {
    expect_told(result(),
                edit_of("integer", 3, "line 4: ", [](auto& line) { line["begin_seconds"] = 2; }));
    expect_told(result(), edit_of("key", 3, "line 4: ", [](auto& line) { line["more"] = 2; }));
    const ResultCopy copy(result());
    fs::create_directories(copy.path() / "groups/0/trials/.hidden");
    write(copy.path() / "groups/0/trials/.hidden/file", "x");
    for (const Outcome& outcome : {verify_by_program(copy.path()), verify_by_script(copy.path())})
        EXPECT_NE(outcome.out.find("trials/.hidden/file: exists; manifest"), std::string::npos)
            << outcome.out;
}

TEST_F(ForgedSearch, MayRoundALogarithmDifferently) {
    const ResultCopy copy(result());
    const double regulated = json_of(result("result.json"))["search"]["regulated"];
    copy.set("result.json", "/search/regulated", std::nextafter(regulated, 1e300));
    reseal(copy.path(), "result.json");
    expect_verified(copy.path());
}

/// Line 8 proposes trial 4.
TEST_F(ForgedSearch, IsToldOfAForgedProposal) {
    const auto tell = [](const char* name,
                         const std::function<void(nlohmann::ordered_json&)>& change) {
        expect_told(own_result(), edit_of(name, 8, "line 9: ", change));
    };
    tell("parent", [](auto& line) {
        const bool is_root = line["parent"]["group"] == -1;
        const int number = is_root ? 0 : -1;
        line["parent"] = {{"group", number}, {"sequence", number}};
    });
    tell("edit", [](auto& line) {
        line["edits"].back()["amount"] = line["edits"].back()["amount"].template get<int>() + 1;
    });
    tell("number of edits", [](auto& line) {
        for (int edit = 0; edit < 3; ++edit) line["edits"].push_back(line["edits"].back());
    });
    tell("hyper-parameter", [](auto& line) {
        auto& value = line["hyper_parameters"][0]["value"];
        value = value.template get<double>() * (1 - 1e-6);
    });
    tell("draw", [](auto& line) { line["draw"] = 1; });
    tell("number of draws", [](auto& line) { line["draw"] = 2'000'000'000; });
    tell("memory", [](auto& line) { line["memory_bytes"] = 1; });
    tell("negative memory", [](auto& line) { line["memory_bytes"] = -1; });
    tell("missing", [](auto& line) { line["missing"].push_back({{"group", 1}, {"sequence", 7}}); });
}

TEST_F(ForgedSearch, IsToldOfForgedTimesAndDigests) {
    expect_told(result(),
                edit_of("seconds", 3, "trial 1: proposing, building, training and evaluating take",
                        [](auto& line) { line["proposing_seconds"] = 1000.5; }));
    expect_told(result(),
                edit_of("begin", 3, "trial 1: begin_seconds does not fit",
                        [](auto& line) { line["begin_seconds"] = line["epoch_seconds"][0]; }));
    expect_told(result(),
                edit_of("no digest", 3, "line 4: ", [](auto& line) { line["digest"] = "x"; }));
    const nlohmann::json record = json_of(result("groups/0/record.json"));
    Edit digest =
        edit_of("digest", 2 * record["search"]["best"].get<std::size_t>() + 1,
                "training_digest is ", [](auto& line) { line["digest"] = std::string(64, 'a'); });
    digest.at = "groups/0/record.json";
    expect_told(result(), digest);
}

TEST_F(ForgedSearch, IsToldOfAForgedHoldOutCurveOrSpeed) {
    const std::string names = "evaluation/hold_out.txt";
    expect_told(result(), {"name", names, "has '", [=](const ResultCopy& copy) {
                               auto lines = lines_of(copy.text(names));
                               lines.at(1) = lines.at(0);
                               copy.put(names, joined(lines));
                           }});
    expect_told(result(),
                {"line feed", names, "its last line is incomplete", [=](const ResultCopy& copy) {
                     std::string text = copy.text(names);
                     text.pop_back();
                     copy.put(names, text);
                 }});
    const std::string file = "result.json";
    expect_told(result(), {"share", file, "has ",
                           [=](const ResultCopy& copy) {
                               copy.set(file, "/workload/training_samples", 100'000);
                           },
                           names});
    expect_told(result(), {"curve", file, "search", [=](const ResultCopy& copy) {
                               copy.increase(file, "/search/curve/99/best_accuracy");
                           }});
    expect_told(result(), {"OPS", file, "search.ops is 1e+30",
                           [=](const ResultCopy& copy) { copy.set(file, "/search/ops", 1e30); }});
}

TEST_F(ForgedSearch, ComparesTheHoldOutWithTheData) {
    const auto tell = [](const std::string& file, const std::string& finding,
                         const std::function<void(const ResultCopy&)>& apply) {
        const ResultCopy copy(result());
        apply(copy);
        reseal(copy.path(), file);
        expect_verified(copy.path());
        const Outcome outcome =
            cli::run_in(folder_->path(), {"verify", "--explain", copy.path(), "--data", "set"});
        EXPECT_EQ(outcome.exit_code, 10) << outcome.out << outcome.error;
        EXPECT_NE(outcome.out.find(file + ": " + finding), std::string::npos) << outcome.out;
    };
    const std::string names = "evaluation/hold_out.txt";
    tell(names, "line 1", [&](const ResultCopy& copy) {
        int number = 0;
        while (!data::is_held_out("x" + std::to_string(number), 0.3)) ++number;
        auto lines = lines_of(copy.text(names));
        lines.at(0) = "x" + std::to_string(number);
        copy.put(names, joined(lines));
    });
    // Another wrong class instead of a wrong one does not change the accuracy.
    const auto labels = storage::read_npy(result("evaluation/hold_out.npy"));
    for (const int group : {0, 1}) {
        const auto record = json_of(result("groups/" + std::to_string(group) + "/record.json"));
        const std::string file = "groups/" + std::to_string(group) + "/trials/" +
                                 std::to_string(record["search"]["best"].get<int>()) + ".npy";
        const auto classes = storage::read_npy(result(file));
        const auto label = labels.as<std::int32_t>(), found = classes.as<std::int32_t>();
        const auto wrong = std::ranges::mismatch(label, found);
        if (wrong.in1 == label.end()) continue;
        std::vector<std::int32_t> changed(found.begin(), found.end());
        std::int32_t& other = changed[static_cast<std::size_t>(wrong.in1 - label.begin())];
        const std::int32_t before = other;
        while (other == before || other == *wrong.in1) other = (other + 1) % 4;
        tell(file, "has the class", [&](const ResultCopy& copy) {
            fs::remove(copy.path() / file);
            storage::write_npy(copy.path() / file, std::span<const std::int32_t>(changed),
                               {std::ssize(changed)});
        });
    }
}

}  // namespace
}  // namespace hpcai::end_to_end
