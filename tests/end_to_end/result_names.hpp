// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace hpcai::end_to_end {

/// Returns the sorted names of all files of a result of two groups. Each group stores
/// `predictions`; `evaluated` are the files for the evaluation of the ensemble.
inline std::vector<std::string> result_names(const std::string& predictions,
                                             std::vector<std::string> evaluated) {
    std::vector<std::string> names = std::move(evaluated);
    names.insert(names.end(),
                 {"result.json", "summary.txt", "config.yaml", "environment.json", "launch.json",
                  "manifest.sha256", "report.html", "mllog/result_0.txt", "mllog/result_1.txt"});
    for (const char* group : {"groups/0/", "groups/1/"}) {
        for (const std::string& name :
             {std::string("record.json"), std::string("steps.csv"), std::string("ranks.csv"),
              std::string("log.txt"), std::string("weights.safetensors"), predictions}) {
            names.push_back(group + name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace hpcai::end_to_end
