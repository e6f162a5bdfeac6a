// SPDX-License-Identifier: Apache-2.0
#include <hpcai/group/training_state.hpp>

namespace hpcai::group {
namespace {

/// Reserves the device memory that data.resident_mib asks for; null if that is 0. Throws
/// Error(usage) when the memory does not suffice.
std::unique_ptr<data::ResidentPictures> make_resident_pictures(
    const context::RunContext& context, const context::Resources& resources) {
    // GPU memory that images leave free for buffers of all-reduces, for kernels that load at
    // their first use, and for the recorded step.
    constexpr std::size_t kSpareBytes = std::size_t{1} << 30;
    const config::Config& config = context.config;
    if (config.data.resident_mib == 0) return nullptr;
    return std::make_unique<data::ResidentPictures>(
        *resources.device,
        data::ResidentPictures::MemoryBudget{
            static_cast<std::size_t>(config.data.resident_mib) << 20,
            context.controller.layout().micro_batch_size(config.training.batch_size), kSpareBytes});
}

}  // namespace

TrainingState::TrainingState(const context::RunContext& context,
                             const context::Resources& resources)
    : model(make_training_graph(context, *resources.samples.training), context, resources),
      pictures(make_resident_pictures(context, resources)) {}

void TrainingState::free_training_memory() {
    model.drop_networks();
    pictures.reset();
}

}  // namespace hpcai::group
