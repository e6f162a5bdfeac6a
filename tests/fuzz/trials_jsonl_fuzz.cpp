// SPDX-License-Identifier: Apache-2.0
#include <hpcai/records/json.hpp>
#include <hpcai/search/history.hpp>

#include "outcome.hpp"

using namespace hpcai;

/// Adds the whole lines of a group's file. Those that a history accepts are written as lines that
/// it accepts again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    search::History history(0, "trials.jsonl"), again(0, "again");
    fuzz::refusing([&] {
        std::string_view rest = fuzz::text_of(data, size);
        for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
            history.add_line(rest.substr(0, end));
            rest.remove_prefix(end + 1);
        }
        search::check_histories({&history, 1});
    });
    for (const search::Trial& trial : history.trials()) {
        const auto add = [&](auto record) {
            record.previous = again.last_sha256();
            fuzz::accepting([&] { again.add_line(records::to_json_line(record)); });
        };
        add(trial.proposed);
        if (trial.finished) add(*trial.finished);
    }
    fuzz::expect(again.lines() == history.lines());
    return 0;
}
