// SPDX-License-Identifier: Apache-2.0
#include "key_builder.hpp"

namespace hpcai::config {

std::vector<Key> communication_keys() {
    const SectionBuilder<CommunicationConfig> communication("communication",
                                                            &Config::communication);
    return {
        communication.choice<CommunicationBackend>(
            "backend", &CommunicationConfig::backend,
            {{{CommunicationBackend::automatic, "auto"},
              {CommunicationBackend::mpi, "mpi"},
              {CommunicationBackend::nccl, "nccl"}}},
            {.meaning = "Library that carries the gradients; auto is nccl between GPUs, each of "
                        "one rank, else mpi, as with BatchNorm statistics of several ranks. NCCL "
                        "sums by itself in fp32 with all_reduce, unless run.deterministic; else it "
                        "carries this program's messages."}),
        communication.choice<AllReduceAlgorithm>(
            "algorithm", &CommunicationConfig::algorithm,
            {{{AllReduceAlgorithm::all_reduce, "all_reduce"},
              {AllReduceAlgorithm::torus_2d, "torus_2d"},
              {AllReduceAlgorithm::hierarchical, "hierarchical"}}},
            {.meaning =
                 "How a group sums a bucket of gradients: among all ranks at once, 2 (P - 1) "
                 "messages a rank; in the rows and then the columns of a grid of ranks, with "
                 "fewer messages; or within each node and then between nodes."}),
        communication.choice<CommunicationPrecision>(
            "precision", &CommunicationConfig::precision,
            {{{CommunicationPrecision::fp32, "fp32"},
              {CommunicationPrecision::bf16, "bf16"},
              {CommunicationPrecision::fp16, "fp16"},
              {CommunicationPrecision::int8, "int8"}}},
            {.meaning = "Number format of the gradients on the wire; sums are formed in fp32. fp16 "
                        "and int8 have a scale for each block of 256 values; int8 adds what "
                        "rounding takes away to the next step's gradients."}),
        communication.integer("torus_columns", &CommunicationConfig::torus_columns,
                              {.meaning = "Ranks in a row of torus_2d's grid, a divisor of "
                                          "data_degree; auto makes the grid nearest to a square.",
                               .unit = "ranks",
                               .bounds = between(1, kMaxInt)}),
        communication.integer(
            "ranks_per_node", &CommunicationConfig::ranks_per_node,
            {.meaning = "Ranks of a group that hierarchical sums take for those of one node, in "
                        "the order of ranks; auto finds the nodes.",
             .unit = "ranks",
             .bounds = between(1, kMaxInt)}),
        communication.number("bucket_mib", &CommunicationConfig::bucket_mib,
                             {.meaning = "Size of the gradient buckets that are summed at once.",
                              .unit = "MiB",
                              .bounds = above_up_to(0, 65536)}),
        communication.boolean("overlap", &CommunicationConfig::overlap,
                              {.meaning = "Sums each bucket while the backward pass, of the last "
                                          "micro-batch, still makes the next ones."}),
    };
}

std::vector<Key> device_keys() {
    const SectionBuilder<DeviceConfig> device("device", &Config::device);
    return {
        device.choice<DeviceKind>(
            "kind", &DeviceConfig::kind,
            {{{DeviceKind::automatic, "auto"},
              {DeviceKind::cpu, "cpu"},
              {DeviceKind::cuda, "cuda"}}},
            {.meaning = "Kind of device that every rank uses; auto is cuda where a GPU is found, "
                        "else cpu."}),
        device.integer("threads", &DeviceConfig::threads,
                       {.meaning = "Threads of each rank, to compute with on a CPU and to "
                                   "decode with; 0 chooses from the cores that "
                                   "the rank may use.",
                        .unit = "threads",
                        .bounds = between(0, 4096)}),
        device.choice<ActivationLayout>(
            "layout", &DeviceConfig::layout,
            {{{ActivationLayout::automatic, "auto"},
              {ActivationLayout::blocked, "blocked"},
              {ActivationLayout::channels_last, "channels_last"}}},
            {.meaning = "Memory layout of activations on a CPU; auto lets the device choose."}),
        device.boolean("autotune", &DeviceConfig::autotune,
                       {.meaning = "Times what a GPU's library offers for each convolution before "
                                   "the training and takes the fastest, else the library's "
                                   "own first choice; never with run.deterministic."}),
        device.text("plan_cache", &DeviceConfig::plan_cache,
                    {.meaning = "File that keeps what device.autotune found on GPUs from run to "
                                "run; empty keeps nothing."}),
        device.boolean("recording", &DeviceConfig::recording,
                       {.meaning = "Records a GPU's training step once and replays it; false "
                                   "launches each kernel by itself, which is slower and tells "
                                   "faults of recordings from faults of kernels."}),
    };
}

}  // namespace hpcai::config
