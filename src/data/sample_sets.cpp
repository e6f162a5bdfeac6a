// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

SampleSets make_sample_sets(const config::Config& config, comm::Communicator& group) {
    if (config.data.kind == config::DataKind::synthetic) {
        return {make_synthetic_samples(config, Split::training),
                make_synthetic_samples(config, Split::validation)};
    }
    require(config.workload.channels == kImageChannels, ExitCode::usage,
            "workload.channels: data.kind image_folder has 3 channels, got {}",
            config.workload.channels);
    SampleIndex training = load_samples(config.data.path, group);
    SampleIndex validation = load_samples(config.data.validation_path, group);
    require_classes(training, config.workload.classes);
    require_same_classes(training, validation);
    const int image_size = config.workload.image_size;
    return {make_folder_samples(std::move(training), config.data, image_size),
            make_folder_samples(std::move(validation), config.data, image_size)};
}

}  // namespace hpcai::data
