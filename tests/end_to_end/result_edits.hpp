// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

#include "launch.hpp"

/// Manipulations of a result directory.
namespace hpcai::end_to_end {

/// Returns the record in `result`; empty if an edit has made it unreadable.
inline std::optional<RunRecord> record_of(const fs::path& result) {
    try {
        return records::from_json<RunRecord>(text_of(result / "result.json"), "result.json");
    } catch (const Error&) {
        return std::nullopt;
    }
}

inline void put(const fs::path& path, const std::string& content) {
    fs::remove(path);  // the path may be a link to the original
    write(path, content);
}

/// Makes an edit consistent: updates the summary, its digest in the record, page and logs (except
/// the one that is `changed`) and the manifest.
inline void reseal(const fs::path& result, const std::string& changed) {
    const auto record = record_of(result);
    const std::string stored = text_of(result / report::kSummaryName);
    std::string summary = stored.substr(0, stored.rfind("manifest=")) + "manifest=";
    if (record) {
        const std::string printed = report::summary(*record, "");
        summary = printed.substr(0, printed.rfind("manifest=")) + "manifest=";
        std::string text = text_of(result / "result.json");
        const std::string key = "\"summary_sha256\": \"";
        text.replace(text.find(key) + key.size(), 64,
                     storage::sha256_hex(storage::bytes_of(printed)));
        put(result / "result.json", text);
    }
    fs::remove(result / storage::kManifestName);
    const bool is_page = changed == "report.html" || changed.starts_with("mllog/");
    if (!is_page) cli::run_in(result.parent_path(), {"report", result});
    const std::string manifest = storage::make_manifest(result, {report::kSummaryName});
    put(result / storage::kManifestName, manifest);
    put(result / report::kSummaryName,
        summary + storage::sha256_hex(storage::bytes_of(manifest)) + "\n");
}

/// A copy of a result directory, for one edit at a time.
class ResultCopy {
public:
    /// Unchanged files are links to those of `original`.
    explicit ResultCopy(const fs::path& original) {
        fs::copy(original, path(),
                 fs::copy_options::recursive | fs::copy_options::create_hard_links);
    }

    fs::path path() const { return folder_ / "result"; }
    std::string text(const std::string& file) const { return text_of(path() / file); }
    void put(const std::string& file, const std::string& content) const {
        end_to_end::put(path() / file, content);
    }

    /// Replaces the first digit after `mark`.
    void change_digit(const std::string& file, const std::string& mark) const {
        std::string content = text(file);
        const std::size_t from = content.find(mark);
        ASSERT_NE(from, std::string::npos) << file << ": " << mark;
        const std::size_t at = content.find_first_of("0123456789", from + mark.size());
        ASSERT_NE(at, std::string::npos) << file << ": " << mark;
        content[at] = content[at] == '9' ? '8' : static_cast<char>(content[at] + 1);
        put(file, content);
    }

    /// Replaces the value at `pointer` by the result of `change` without changing the layout.
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
    /// Adds an eighth, which is visible in numbers in [0, 1].
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
    std::string file;     // the edited file, which the manifest shows
    std::string finding;  // first finding of both tools after the result is sealed again
    std::function<void(const ResultCopy&)> apply;
    std::string at = {};  // file of `finding`, if it is not the edited file
    bool is_told_by_script = true;

    /// Returns whether only the different manifest shows the edit.
    bool is_hidden() const { return finding.empty() && at.empty(); }
};

inline Outcome verify_by_program(const fs::path& directory) {
    return cli::run_in(directory.parent_path(), {"verify", "--explain", directory});
}

inline Outcome verify_by_script(const fs::path& directory) {
    return cli::execute_in(
        directory.parent_path(),
        {"python3", cli::source("scripts/verify_result"), "--explain", directory});
}

inline void expect_found(const Outcome& outcome, const std::string& line, const Edit& edit,
                         const char* when) {
    EXPECT_EQ(outcome.exit_code, 10) << edit.name << ", " << when << outcome.error;
    EXPECT_NE(("\n" + outcome.out).find("\n" + line), std::string::npos)
        << edit.name << ", " << when << ", expected: " << line << "\n"
        << outcome.out << outcome.error;
}

inline void expect_verified(const fs::path& directory) {
    const std::string summary = text_of(directory / report::kSummaryName);
    for (const Outcome& outcome : {verify_by_program(directory), verify_by_script(directory)}) {
        EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
        EXPECT_EQ(outcome.out, last_line(summary) + "\n");
    }
}

/// Expects that both tools detect the edit: first by the manifest, then in a result with a new
/// manifest.
inline void expect_told(const fs::path& original, const Edit& edit) {
    const ResultCopy copy(original);
    edit.apply(copy);
    expect_found(verify_by_program(copy.path()), edit.file + ": ", edit, "program, old manifest");
    expect_found(verify_by_script(copy.path()), edit.file + ": ", edit, "script, old manifest");
    if (edit.file == report::kSummaryName) return;
    reseal(copy.path(), edit.file);
    if (edit.is_hidden()) {
        expect_verified(copy.path());
        EXPECT_NE(last_line(copy.text(report::kSummaryName)),
                  last_line(text_of(original / report::kSummaryName)));
        return;
    }
    const std::string line = (edit.at.empty() ? edit.file : edit.at) + ": " + edit.finding;
    expect_found(verify_by_program(copy.path()), line, edit, "program, sealed again");
    if (!edit.is_told_by_script) return;
    expect_found(verify_by_script(copy.path()), line, edit, "script, sealed again");
}

/// Makes the result agree with the edited files of its groups. `folder` has the data.
inline void score_again(const fs::path& folder, const ResultCopy& copy) {
    for (const char* name : {"result.json", "manifest.sha256", "summary.txt", "evaluation"})
        fs::remove_all(copy.path() / name);
    const Outcome outcome = cli::run_in(folder, {"score", copy.path()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
}

}  // namespace hpcai::end_to_end
