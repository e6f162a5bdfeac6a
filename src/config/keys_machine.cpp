// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> communication_keys() {
    using C = CommunicationConfig;
    using enum CommunicationBackend;
    using enum AllReduceAlgorithm;
    using enum CommunicationPrecision;
    constexpr SectionKeys<&Config::communication> key;
    return {
        key("backend", &C::backend, {{automatic, "auto"}, {mpi, "mpi"}, {nccl, "nccl"}},
            "Library that carries the gradients; auto is nccl between GPUs, each of one rank, else "
            "mpi, as with BatchNorm statistics of several ranks. NCCL sums by itself in fp32 with "
            "all_reduce, unless run.deterministic; else it carries this program's messages."),
        key("algorithm", &C::algorithm,
            {{all_reduce, "all_reduce"}, {torus_2d, "torus_2d"}, {hierarchical, "hierarchical"}},
            "How a group sums a bucket of gradients: among all ranks at once, 2 (P - 1) messages a "
            "rank; in the rows and then the columns of a grid of ranks, with fewer messages; or "
            "within each node and then between nodes."),
        key("precision", &C::precision,
            {{fp32, "fp32"}, {bf16, "bf16"}, {fp16, "fp16"}, {int8, "int8"}},
            "Number format of the gradients on the wire; sums are formed in fp32. fp16 and int8 "
            "have a scale for each block of 256 values; int8 adds what rounding takes away to the "
            "next step's gradients."),
        key("torus_columns", &C::torus_columns, between(1, kMaxInt, "ranks"),
            "Ranks in a row of torus_2d's grid, a divisor of data_degree; auto makes the grid "
            "nearest to a square."),
        key("ranks_per_node", &C::ranks_per_node, between(1, kMaxInt, "ranks"),
            "Ranks of a group that hierarchical sums take for those of one node, in the order of "
            "ranks; auto finds the nodes."),
        key("bucket_mib", &C::bucket_mib, above_up_to(0, 65536, "MiB"),
            "Size of the gradient buckets that are summed at once."),
        key("overlap", &C::overlap,
            "Sums each bucket while the backward pass, of the last micro-batch, still makes the "
            "next ones."),
    };
}

std::vector<Key> device_keys() {
    using C = DeviceConfig;
    using enum DeviceKind;
    constexpr SectionKeys<&Config::device> key;
    return {
        key("kind", &C::kind, {{automatic, "auto"}, {cpu, "cpu"}, {cuda, "cuda"}},
            "Kind of device that every rank uses; auto is cuda where a GPU is found, else cpu."),
        key("threads", &C::threads, between(0, 4096, "threads"),
            "Threads of each rank, to compute with on a CPU and to decode with; 0 chooses from the "
            "cores that the rank may use."),
        key("layout", &C::layout,
            {{ActivationLayout::automatic, "auto"},
             {ActivationLayout::blocked, "blocked"},
             {ActivationLayout::channels_last, "channels_last"}},
            "Memory layout of activations on a CPU; auto lets the device choose."),
        key("autotune", &C::autotune,
            "Times what a GPU's library offers for each convolution before the training and takes "
            "the fastest, else the library's own first choice; never with run.deterministic."),
        key("plan_cache", &C::plan_cache,
            "File that keeps what device.autotune found on GPUs from run to run; empty keeps "
            "nothing."),
        key("recording", &C::recording,
            "Records a GPU's training step once and replays it; false launches each kernel by "
            "itself, which is slower and tells faults of recordings from faults of kernels."),
    };
}

}  // namespace hpcai::config
