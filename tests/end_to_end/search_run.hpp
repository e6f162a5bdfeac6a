// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>

#include "result_edits.hpp"

/// An architecture search on a few small images.
namespace hpcai::end_to_end {

inline constexpr const char* kSearch =
    R"(run: {name: tiny, seed: 3, roofline: off, deterministic: true}
workload: {kind: architecture_search, classes: 4, image_size: 32, backbone_width: 8,
           target_quality: 0.25, epochs: 2}
search: {trials: 5, epochs: [1, 2], root_blocks: [1, 1, 1, 1], hold_out: 0.3}
bagging: {M: 2, P_degree: 1, sampler: none, out_of_bag: false}
data: {kind: image_folder, path: set/train, validation_path: set/val}
training: {batch_size: 4, learning_rate: 0.05, learning_rate_batch: 4, schedule: constant,
           warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
)";

inline constexpr int kTrials = 5;

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

inline std::vector<nlohmann::ordered_json> trials_in(const fs::path& result, int group) {
    std::vector<nlohmann::ordered_json> lines;
    const fs::path file = result / ("groups/" + std::to_string(group) + "/trials.jsonl");
    for (const std::string& line : lines_of(text_of(file)))
        lines.push_back(nlohmann::ordered_json::parse(line));
    return lines;
}

/// Writes lines with hashes that fit, as one who hides an edit would.
inline void put_chained(const ResultCopy& copy, const std::string& file,
                        std::vector<nlohmann::ordered_json> lines) {
    std::string text, previous(64, '0');
    for (nlohmann::ordered_json& line : lines) {
        line["previous"] = previous;
        const std::string written = line.dump();
        previous = storage::sha256_hex(storage::bytes_of(written));
        text += written + "\n";
    }
    copy.put(file, text);
}

class SearchRun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kSearch);
        outcome_ = new Outcome(run_ranks(folder_->path(), 2, {}));
        ASSERT_EQ(outcome_->exit_code, 0) << outcome_->error;
    }
    static void TearDownTestSuite() {
        delete folder_;
        delete outcome_;
    }

    static fs::path result(const std::string& name = "") { return *folder_ / ("result/" + name); }

    /// A search whose groups have not seen each other.
    static fs::path own_result() {
        const fs::path own = *folder_ / "own";
        if (fs::exists(own)) return own;
        const Outcome outcome = run_ranks(folder_->path(), 2, {"search.history=own"}, "own");
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return own;
    }

    static std::vector<nlohmann::json> digests_of(const std::string& output) {
        return json_of(*folder_ / output / "result.json")["training_digest"];
    }

    inline static storage::TemporaryFolder* folder_ = nullptr;
    inline static Outcome* outcome_ = nullptr;
};

/// An edit of one line, whose later lines are chained again.
inline Edit edit_of(const std::string& name, std::size_t line, const std::string& finding,
                    const std::function<void(nlohmann::ordered_json&)>& change) {
    const std::string file = "groups/0/trials.jsonl";
    return {name, file, finding, [=](const ResultCopy& copy) {
                auto lines = trials_in(copy.path(), 0);
                change(lines.at(line));
                put_chained(copy, file, std::move(lines));
            }};
}

}  // namespace hpcai::end_to_end
