// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/plan/pipeline.hpp>

namespace hpcai::plan {

std::vector<PipelineTask> pipeline_tasks(config::PipelineSchedule schedule, int stages, int stage,
                                         int micro_batches) {
    // With one stage, gpipe would only keep more activations in memory.
    const bool is_gpipe = schedule == config::PipelineSchedule::gpipe && stages > 1;
    const int warmup = is_gpipe ? micro_batches : std::min(stages - 1 - stage, micro_batches);
    std::vector<PipelineTask> tasks;
    for (int forward = 0; forward < warmup; ++forward) {
        tasks.push_back({PipelinePass::forward, forward});
    }
    for (int backward = 0; backward < micro_batches; ++backward) {
        const int forward = backward + warmup;
        if (forward < micro_batches) tasks.push_back({PipelinePass::forward, forward});
        tasks.push_back({PipelinePass::backward, backward});
    }
    return tasks;
}

int micro_batches_in_flight(const std::vector<PipelineTask>& tasks) {
    int in_flight = 0, maximum = 0;
    for (const PipelineTask& task : tasks) {
        in_flight += task.pass == PipelinePass::forward ? 1 : -1;
        maximum = std::max(maximum, in_flight);
    }
    return maximum;
}

double bubble_fraction(int stages, int micro_batches) {
    return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace hpcai::plan
