// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/search/history.hpp>

#include "example_search.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::search {
namespace {

using storage::error_of;
using storage::TemporaryFolder;

/// A history of group 1 of two with two finished trials and a running one.
Chain example_chain() {
    Chain chain(1);
    for (int sequence = 0; sequence < 3; ++sequence) {
        chain.add(proposed_trial(1, sequence));
        if (sequence < 2) chain.add(finished_trial(sequence, 0.3 + 0.1 * sequence));
    }
    return chain;
}

std::string text_of(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

void append(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::app) << text;
}

HistoryReader reader_of(const fs::path& path, std::string_view text) {
    append(path, text);
    HistoryReader reader(1, path);
    reader.update();
    return reader;
}

TEST(HistoryWriter, WritesWhatTheReaderReads) {
    const TemporaryFolder folder;
    HistoryWriter writer(1, folder / "trials.jsonl");
    ProposedTrial proposed = proposed_trial(1, 0);
    proposed.edits = {{"skip", "layer1.0.relu", "layer2.0.bn2", 2}};
    proposed.hyper_parameters = {{"rate_factor", 0.1 + 0.2}};
    proposed.missing = {{0, 3}};
    writer.append(proposed);
    HistoryReader reader(1, folder / "trials.jsonl");
    reader.update();
    ASSERT_EQ(reader.history().trials().size(), 1);
    EXPECT_EQ(reader.history().trials()[0].accuracy(), std::nullopt);
    FinishedTrial finished = finished_trial(0, 0.7);
    finished.flops = {{"aiperf", 23'053'458'315, 7'806'583'495}};
    writer.append(finished);
    reader.update();
    const Trial& trial = reader.history().trials().at(0);
    proposed.previous = std::string(64, '0');
    finished.previous = trial.finished->previous;
    EXPECT_EQ(trial.proposed, proposed);
    EXPECT_EQ(trial.finished, finished);
    EXPECT_EQ(trial.accuracy(), 0.7);
    EXPECT_EQ(reader.history().last_sha256(), writer.history().last_sha256());
}

TEST(HistoryWriter, RefusesARecordThatDoesNotFollow) {
    const TemporaryFolder folder;
    HistoryWriter writer(1, folder / "trials.jsonl");
    error_of(ExitCode::data, [&] { writer.append(finished_trial(0, 0.5)); });
    error_of(ExitCode::data, [&] { writer.append(proposed_trial(1, 1)); });
    writer.append(proposed_trial(1, 0));
    error_of(ExitCode::data, [&] { writer.append(finished_trial(1, 0.5)); });
    EXPECT_EQ(writer.history().lines(), 1);
    EXPECT_EQ(fs::file_size(folder / "trials.jsonl"),
              1 + records::to_json_line(writer.history().trials()[0].proposed).size());
}

TEST(HistoryWriter, ContinuesAfterACrashInALine) {
    const TemporaryFolder folder;
    const Chain chain = example_chain();
    const fs::path path = folder / "trials.jsonl";
    append(path, text_of(chain.lines()) + R"({"schema": "hpcai500-tri)");
    HistoryWriter writer(1, path);
    EXPECT_EQ(writer.history().lines(), 5);
    writer.append(finished_trial(2, 0.9));
    EXPECT_EQ(reader_of(path, "").history().trials().back().accuracy(), 0.9);
}

TEST(HistoryWriter, ReopensATrial) {
    const TemporaryFolder folder;
    const fs::path path = folder / "trials.jsonl";
    append(path, text_of(example_chain().lines()));
    HistoryWriter writer(1, path);
    writer.reopen(1);
    EXPECT_EQ(writer.history().lines(), 3);
    EXPECT_FALSE(writer.history().trials().at(1).finished);
    writer.append(finished_trial(1, 0.9));
    EXPECT_EQ(HistoryWriter(1, path).history().trials().at(1).accuracy(), 0.9);
}

TEST(HistoryWriter, NamesAFileThatItCannotWrite) {
    const TemporaryFolder folder;
    const std::string message =
        error_of(ExitCode::usage, [&] { HistoryWriter(1, folder / "missing" / "trials.jsonl"); });
    EXPECT_NE(message.find("trials.jsonl"), std::string::npos);
}

TEST(HistoryReader, ReadsWholeLinesOnly) {
    const TemporaryFolder folder;
    const fs::path path = folder / "trials.jsonl";
    HistoryReader reader(1, path);
    reader.update();  // no file yet
    EXPECT_EQ(reader.history().lines(), 0);
    const std::string text = text_of(example_chain().lines());
    std::size_t lines = 0;
    for (std::size_t i = 0; i < text.size(); i += 37) {
        append(path, std::string_view(text).substr(i, 37));
        reader.update();
        lines = static_cast<std::size_t>(
            std::ranges::count(text.substr(0, std::min(text.size(), i + 37)), '\n'));
        ASSERT_EQ(reader.history().lines(), lines);
    }
    EXPECT_EQ(lines, 5);
}

TEST(HistoryReader, NoticesAFileThatBecameShorter) {
    const TemporaryFolder folder;
    const fs::path path = folder / "trials.jsonl";
    HistoryReader reader = reader_of(path, text_of(example_chain().lines()));
    fs::resize_file(path, 10);
    error_of(ExitCode::data, [&] { reader.update(); });
    fs::remove(path);
    error_of(ExitCode::data, [&] { reader.update(); });
}

TEST(History, FindsARemovedOrMovedLine) {
    const std::vector<std::string> lines = example_chain().lines();
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
        std::vector<std::string> removed = lines, moved = lines;
        removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
        std::swap(moved[i], moved[i + 1]);
        for (const auto& changed : {removed, moved}) {
            const TemporaryFolder folder;
            const std::string message = error_of(
                ExitCode::data, [&] { reader_of(folder / "trials.jsonl", text_of(changed)); });
            EXPECT_NE(message.find("trials.jsonl, line "), std::string::npos) << message;
        }
    }
}

/// An edit of the last line alone changes last_sha256(), which other files contain.
TEST(History, FindsEveryEdit) {
    const Chain chain = example_chain();
    const std::string text = text_of(chain.lines());
    storage::Dice dice(34);
    for (int attempt = 0; attempt < 2000; ++attempt) {
        const auto bytes = storage::bytes_of(text);
        const auto mutated = storage::mutated({bytes.begin(), bytes.end()}, dice);
        if (std::ranges::equal(mutated, bytes)) continue;
        History history(1, "trials.jsonl");
        std::string_view rest = storage::text_of(mutated);
        try {
            for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
                history.add_line(rest.substr(0, end));
                rest.remove_prefix(end + 1);
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data) << error.what();
            continue;
        }
        EXPECT_TRUE(history.last_sha256() != chain.history().last_sha256() || !rest.empty());
    }
}

/// Applies `change` to a line of the chain and adds all lines up to it.
template <typename Record>
std::string error_after(const std::function<void(Record&)>& change) {
    Chain chain(1);
    chain.add(proposed_trial(1, 0));
    chain.add(finished_trial(0, 0.5));
    chain.add(proposed_trial(1, 1));
    ProposedTrial proposed = proposed_trial(1, 2);
    FinishedTrial finished = finished_trial(1, 0.6);
    if constexpr (std::is_same_v<Record, FinishedTrial>) {
        change(finished);
        return error_of(ExitCode::data, [&] { chain.add(finished); });
    } else {
        chain.add(finished);
        change(proposed);
        return error_of(ExitCode::data, [&] { chain.add(proposed); });
    }
}

TEST(History, RejectsHostileProposals) {
    using Change = std::function<void(ProposedTrial&)>;
    const std::vector<std::pair<const char*, Change>> changes{
        {"schema", [](auto& trial) { trial.schema = "hpcai500-trial-proposed/2"; }},
        {"sequence", [](auto& trial) { trial.sequence = 1; }},
        {"parent",
         [](auto& trial) {
             trial.parent = {-1, 0};
         }},
        {"parent",
         [](auto& trial) {
             trial.parent = {0, -1};
         }},
        {"missing[0]",
         [](auto& trial) {
             trial.missing = {{-1, -1}};
         }},
        {"draw", [](auto& trial) { trial.draw = -1; }},
        {"draw", [](auto& trial) { trial.draw = 101; }},
        {"seen[1]", [](auto& trial) { trial.seen[1] = 3; }},
        {"seen[1]", [](auto& trial) { trial.seen.resize(1); }},
        {"seen", [](auto& trial) { trial.seen.push_back(0); }},
        {"seen[0]", [](auto& trial) { trial.seen[0] = -1; }},
        {"hyper_parameters[0].value",
         [](auto& trial) {
             trial.hyper_parameters = {{"x", 1.0 / 0.0}};
         }},
        {"bytes",
         [](auto& trial) {
             trial.edits = {{std::string(5'000'000, 'x'), "", "", 0}};
         }},
    };
    for (const auto& [key, change] : changes) {
        const std::string message = error_after<ProposedTrial>(change);
        EXPECT_NE(message.find("line 5"), std::string::npos) << message;
        EXPECT_NE(message.find(key), std::string::npos) << message;
    }
}

TEST(History, RejectsHostileResults) {
    using Change = std::function<void(FinishedTrial&)>;
    const std::vector<std::pair<const char*, Change>> changes{
        {"sequence", [](auto& trial) { trial.sequence = 2; }},
        {"accuracy[1]", [](auto& trial) { trial.accuracy[1] = 1.5; }},
        {"accuracy[0]", [](auto& trial) { trial.accuracy[0] = -0.1; }},
        {"accuracy", [](auto& trial) { trial.accuracy = {}, trial.epoch_seconds = {}; }},
        {"epoch_seconds", [](auto& trial) { trial.epoch_seconds.pop_back(); }},
        {"epoch_seconds[0]", [](auto& trial) { trial.epoch_seconds[0] = 0.5; }},
        {"end_seconds", [](auto& trial) { trial.end_seconds = 0.5; }},
        {"training_seconds", [](auto& trial) { trial.training_seconds = -1; }},
        {"samples_trained", [](auto& trial) { trial.samples_trained = -1; }},
        {"digest", [](auto& trial) { trial.digest.pop_back(); }},
        {"digest", [](auto& trial) { trial.digest[3] = 'D'; }},
        {"accuracy", [](auto& trial) { trial.state = TrialState::failed; }},
        {"samples_evaluated",
         [](auto& trial) {
             trial = failed_trial(1);
             trial.samples_evaluated = 4;
         }},
        {"flops[0].training",
         [](auto& trial) {
             trial.flops = {{"aiperf", -1, 0}};
         }},
    };
    for (const auto& [key, change] : changes) {
        const std::string message = error_after<FinishedTrial>(change);
        EXPECT_NE(message.find("line 4"), std::string::npos) << message;
        EXPECT_NE(message.find(key), std::string::npos) << message;
    }
}

TEST(SeenTrials, AreOrderedBySequenceAndHideWhatWasNotSeen) {
    const auto histories = example_search(example_basis(ParentRule::random), 3, 40);
    const std::vector<std::int64_t> seen{5, 0, 4};
    const auto trials = seen_trials(pointers_to(histories), seen);
    std::vector<TrialId> ids;
    for (const SeenTrial& trial : trials) ids.push_back(trial.id);
    EXPECT_EQ(ids, (std::vector<TrialId>{{0, 0}, {2, 0}, {0, 1}, {2, 1}, {0, 2}}));
    EXPECT_TRUE(trials.back().is_running);
    EXPECT_EQ(trials.back().accuracy, std::nullopt);
    EXPECT_TRUE(trials.back().trial->finished.has_value());
}

}  // namespace
}  // namespace hpcai::search
