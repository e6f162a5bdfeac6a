// SPDX-License-Identifier: Apache-2.0
#include "workload.hpp"

namespace hpcai::benchmark {

std::unique_ptr<const Workload> make_workload(const Start& start) {
    switch (task_of(start.config.workload)) {
        case config::Task::classification:
            return make_classification(start);
        case config::Task::detection:
            return make_detection(start);
        case config::Task::segmentation:
            return make_segmentation(start);
    }
    return nullptr;
}

}  // namespace hpcai::benchmark
