// SPDX-License-Identifier: Apache-2.0
#include <hpcai/group/training_state.hpp>

#include "epoch_source.hpp"

namespace hpcai::group {

TrainingState::TrainingState(const context::RunContext& context,
                             const context::Resources& resources)
    : model(make_training_graph(context, *resources.samples.training), context, resources),
      pictures(make_resident_pictures(context, resources)) {}

void TrainingState::drop_training() {
    model.drop_networks();
    pictures.reset();
}

}  // namespace hpcai::group
