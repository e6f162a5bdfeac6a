// SPDX-License-Identifier: Apache-2.0
#include "key_builder.hpp"

namespace hpcai::config {

std::vector<Key> communication_keys() {
    const SectionBuilder<CommunicationConfig> communication("communication",
                                                            &Config::communication);
    return {
        communication.choice<CommunicationBackend>(
            "backend", &CommunicationConfig::backend,
            {{{CommunicationBackend::automatic, "auto"}, {CommunicationBackend::mpi, "mpi"}},
             {"nccl"}},
            {.meaning = "Library that carries the gradients; auto is mpi."}),
        communication.choice<AllReduceAlgorithm>(
            "algorithm", &CommunicationConfig::algorithm,
            {{{AllReduceAlgorithm::all_reduce, "all_reduce"}}, {"torus_2d", "hierarchical"}},
            {.meaning = "How gradients are summed: one synchronous all-reduce per bucket."}),
        communication.choice<CommunicationPrecision>(
            "precision", &CommunicationConfig::precision,
            {{{CommunicationPrecision::fp32, "fp32"}}, {"bf16", "fp16", "int8"}},
            {.meaning = "Number format of the gradients on the wire."}),
        communication.number("bucket_mib", &CommunicationConfig::bucket_mib,
                             {.meaning = "Size of the gradient buckets that are summed at once.",
                              .unit = "MiB",
                              .bounds = above_up_to(0, 65536)}),
        communication.boolean("overlap", &CommunicationConfig::overlap,
                              {.meaning = "Sums each bucket while the backward pass still makes "
                                          "the next ones."}),
    };
}

std::vector<Key> device_keys() {
    const SectionBuilder<DeviceConfig> device("device", &Config::device);
    return {
        device.choice<DeviceKind>(
            "kind", &DeviceConfig::kind,
            {{{DeviceKind::automatic, "auto"}, {DeviceKind::cpu, "cpu"}}, {"cuda"}},
            {.meaning = "Kind of device that every rank uses; auto is cpu."}),
        device.integer("threads", &DeviceConfig::threads,
                       {.meaning = "Compute threads of each rank; 0 chooses from the cores that "
                                   "the rank may use.",
                        .unit = "threads",
                        .bounds = between(0, 4096)}),
        device.choice<ActivationLayout>(
            "layout", &DeviceConfig::layout,
            {{{ActivationLayout::automatic, "auto"},
              {ActivationLayout::blocked, "blocked"},
              {ActivationLayout::channels_last, "channels_last"}}},
            {.meaning = "Memory layout of activations; auto lets the device choose."}),
    };
}

}  // namespace hpcai::config
