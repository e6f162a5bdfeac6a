// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <hpcai/report/json.hpp>
#include <hpcai/report/steps_csv.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/manifest.hpp>

#include "launch.hpp"

/// Changes of a result directory that somebody might try.
namespace hpcai::end_to_end {

/// Makes the manifest, and the RESULT line of the summary, fit what was changed.
inline void rewrite_manifest(const fs::path& result) {
    fs::remove(result / storage::kManifestName);
    const std::string digest = storage::write_manifest(result, {report::kSummaryName});
    const std::string summary = text_of(result / report::kSummaryName);
    fs::remove(result / report::kSummaryName);
    write(result / report::kSummaryName,
          summary.substr(0, summary.rfind("manifest=")) + "manifest=" + digest + "\n");
}

/// Of groups that have stored no steps, equal ones that fit their records.
inline void add_missing_steps(const fs::path& result) {
    for (const auto& folder : fs::directory_iterator(result / "groups")) {
        const nlohmann::json record = json_of(folder.path() / "record.json")["record"];
        if (record["failure"] != "" || fs::exists(folder.path() / "steps.csv")) continue;
        const std::int64_t count = record["iterations"];
        const double seconds = record["training_seconds"];
        std::vector<StepRecord> steps;
        for (std::int64_t step = 0; step < count; ++step) {
            steps.push_back(
                {.step = step, .samples = record["samples_trained"].get<int>() / count});
            steps.back().end_seconds = step + 1 == count ? seconds
                                                         : seconds * static_cast<double>(step + 1) /
                                                               static_cast<double>(count);
        }
        write(folder.path() / "steps.csv", report::steps_to_csv(steps));
    }
    rewrite_manifest(result);
}

/// A copy of a result directory, whose files are changed one at a time.
class ResultCopy {
public:
    /// Files that are not changed stay those of `original`.
    explicit ResultCopy(const fs::path& original) {
        fs::copy(original, path(),
                 fs::copy_options::recursive | fs::copy_options::create_hard_links);
    }

    fs::path path() const { return folder_ / "result"; }
    std::string text(const std::string& file) const { return text_of(path() / file); }
    void put(const std::string& file, const std::string& content) const {
        fs::remove(path() / file);
        write(path() / file, content);
    }

    /// The first digit behind `mark` becomes another.
    void change_digit(const std::string& file, const std::string& mark) const {
        std::string content = text(file);
        const std::size_t from = content.find(mark);
        ASSERT_NE(from, std::string::npos) << file << ": " << mark;
        const std::size_t at = content.find_first_of("0123456789", from + mark.size());
        ASSERT_NE(at, std::string::npos) << file << ": " << mark;
        content[at] = content[at] == '9' ? '8' : static_cast<char>(content[at] + 1);
        put(file, content);
    }

    /// The value at `pointer` becomes what `change` makes of it; the layout stays.
    void change_json(
        const std::string& file, const std::string& pointer,
        const std::function<nlohmann::ordered_json(nlohmann::ordered_json)>& change) const {
        nlohmann::ordered_json all = nlohmann::ordered_json::parse(text(file));
        nlohmann::ordered_json& value = all.at(nlohmann::ordered_json::json_pointer(pointer));
        value = change(value);
        put(file, all.dump(2) + "\n");
    }
    void set(const std::string& file, const std::string& pointer,
             const nlohmann::ordered_json& value) const {
        change_json(file, pointer, [&](const auto&) { return value; });
    }
    /// By an eighth, which numbers in [0, 1] show.
    void increase(const std::string& file, const std::string& pointer) const {
        change_json(file, pointer, [](const nlohmann::ordered_json& value) {
            return value.get<double>() + 0.125;
        });
    }

    void flip_bit(const std::string& file, std::size_t bytes_from_end) const {
        std::string content = text(file);
        char& letter = content[content.size() - bytes_from_end];
        letter = static_cast<char>(letter ^ 1);
        put(file, content);
    }

private:
    storage::TemporaryFolder folder_;
};

struct Edit {
    std::string name;
    std::string file;  // that both tools must name
    std::function<void(const ResultCopy&)> apply;
    // What a manifest that was made to fit still hides.
    bool only_manifest_tells = false;
};

inline Outcome verify_by_program(const fs::path& directory) {
    return cli::run_in(directory.parent_path(), {"verify", directory});
}

inline Outcome verify_by_script(const fs::path& directory) {
    return cli::execute_in(directory.parent_path(),
                           {"python3", cli::source("scripts/verify_result.py"), directory});
}

inline void expect_found(const Outcome& outcome, const Edit& edit, const char* when) {
    EXPECT_EQ(outcome.exit_code, 10) << edit.name << ", " << when << outcome.error;
    EXPECT_NE(outcome.out.find(edit.file), std::string::npos) << edit.name << ", " << when << ":\n"
                                                              << outcome.out << outcome.error;
}

inline void expect_verified(const fs::path& directory) {
    const std::string summary = text_of(directory / report::kSummaryName);
    for (const Outcome& outcome : {verify_by_program(directory), verify_by_script(directory)}) {
        EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
        EXPECT_EQ(outcome.out, last_line(summary) + "\n");
    }
}

/// Both tools find the edit, first by the manifest, then with one that was made to fit.
inline void expect_told(const fs::path& original, const Edit& edit) {
    const ResultCopy copy(original);
    edit.apply(copy);
    expect_found(verify_by_program(copy.path()), edit, "program, old manifest");
    expect_found(verify_by_script(copy.path()), edit, "script, old manifest");
    if (edit.file == storage::kManifestName || edit.file == report::kSummaryName) return;
    rewrite_manifest(copy.path());
    if (edit.only_manifest_tells) {
        expect_verified(copy.path());
        EXPECT_NE(last_line(copy.text(report::kSummaryName)),
                  last_line(text_of(original / report::kSummaryName)));
        return;
    }
    expect_found(verify_by_program(copy.path()), edit, "program, new manifest");
    expect_found(verify_by_script(copy.path()), edit, "script, new manifest");
}

}  // namespace hpcai::end_to_end
