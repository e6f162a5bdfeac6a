// SPDX-License-Identifier: Apache-2.0
#include <hpcai/group/workload.hpp>

namespace hpcai::group {

std::unique_ptr<const Workload> make_workload(const config::Config& config,
                                              const data::SampleSets& samples) {
    switch (task_of(config.workload)) {
        case config::Task::classification:
            return make_classification(config, samples);
        case config::Task::detection:
            return make_detection(config, samples);
        case config::Task::segmentation:
            return make_segmentation(config, samples);
    }
    return nullptr;
}

}  // namespace hpcai::group
