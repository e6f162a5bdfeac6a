// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>

namespace hpcai::report {

/// The cost of one sample in a layer, in the convention of the scores.
struct LayerRecord {
    std::string node;  // of the graph
    std::string operation;
    std::string output;  // "112x112x64"
    std::int64_t parameters = 0;
    std::int64_t forward_flops = 0;
    std::int64_t training_flops = 0;
};

struct PageContent {
    const RunRecord& record;
    std::vector<std::vector<StepRecord>> steps;    // [group][step]; none without a valid steps.csv
    std::vector<std::string> remarks;              // about unreadable steps
    std::vector<LayerRecord> layers;               // may be empty
    std::vector<ConfusionRecord> confusions = {};  // most samples first
    std::vector<std::string> files = {};           // to link, relative to the page
};

/// Returns `report.html`, the whole result as one HTML page with plots in SVG. It has no scripts
/// and uses no other files except the targets of links. It suits light and dark mode, screens of
/// any width, and paper. The VFLOPS of a valid or custom result have the largest font. External
/// text is escaped. A missing number is "n/a", with its reason if known, never NaN. Long lists are
/// folded; plots of more than eight groups show their median and spread.
std::string html(const PageContent& content);

/// Returns an HTML page with the style sheet of `report.html`. `body` is HTML, `title` any text.
std::string page(std::string_view title, std::string_view body);

}  // namespace hpcai::report
