// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> communication_keys() {
    using C = CommunicationConfig;
    using enum CommunicationBackend;
    using enum AllReduceAlgorithm;
    using enum CommunicationPrecision;
    constexpr SectionKeys<&Config::communication> key{"communication"};
    return {
        key("backend", &C::backend, {{automatic, "auto"}, {mpi, "mpi"}, {nccl, "nccl"}},
            "Transport of gradients; auto is nccl if each rank has its own GPU and no BatchNorm "
            "statistics span ranks, else mpi. NCCL does the whole all-reduce for native, and for "
            "all_reduce in fp32 without run.deterministic; otherwise it only transports messages."),
        key("algorithm", &C::algorithm,
            {{all_reduce, "all_reduce"},
             {torus_2d, "torus_2d"},
             {hierarchical, "hierarchical"},
             {native, "native"}},
            "All-reduce of a gradient bucket: among all replicas with 2 (data_degree - 1) "
            "messages each (all_reduce); in rows, then columns of a grid of ranks, with fewer "
            "messages "
            "(torus_2d); within nodes, then between nodes (hierarchical); or by the library "
            "(native: fp32, without run.deterministic)."),
        key("precision", &C::precision,
            {{fp32, "fp32"}, {bf16, "bf16"}, {fp16, "fp16"}, {int8, "int8"}},
            "Number format of gradients in messages; sums use fp32. fp16 and int8 have one scale "
            "factor per 256 values; int8 adds its rounding error to the next step's gradients."),
        key("torus_columns", &C::torus_columns, between(1, kMaxInt, "ranks"),
            "Ranks in a row of the torus_2d grid, a divisor of data_degree; auto makes the grid "
            "as square as possible."),
        key("ranks_per_node", &C::ranks_per_node, between(1, kMaxInt, "ranks"),
            "Consecutive ranks of a group that hierarchical treats as one node; auto detects "
            "nodes."),
        key("bucket_mib", &C::bucket_mib, above_up_to(0, 65536, "MiB"),
            "Size of a gradient bucket."),
        key("overlap", &C::overlap,
            "All-reduces buckets during the backward pass (of the last micro-batch)."),
    };
}

std::vector<Key> device_keys() {
    using C = DeviceConfig;
    using enum DeviceKind;
    constexpr SectionKeys<&Config::device> key{"device"};
    return {
        key("kind", &C::kind, {{automatic, "auto"}, {cpu, "cpu"}, {cuda, "cuda"}},
            "Device of every rank; auto is cuda if there is a GPU, else cpu."),
        key("threads", &C::threads, between(0, 4096, "threads"),
            "Threads per rank for CPU computation and decoding; 0 derives them from the rank's "
            "cores."),
        key("layout", &C::layout,
            {{ActivationLayout::automatic, "auto"},
             {ActivationLayout::blocked, "blocked"},
             {ActivationLayout::channels_last, "channels_last"}},
            "Memory layout of activations on a CPU; auto lets the device choose."),
        key("autotune", &C::autotune,
            "Times the GPU library's kernels for each convolution before training and uses the "
            "fastest. Ignored with run.deterministic."),
        key("plan_cache", &C::plan_cache,
            "File that keeps GPU autotuning results between runs; empty is none."),
        key("recording", &C::recording,
            "Captures a GPU training step as a CUDA graph and replays it. false launches each "
            "kernel separately, which is slower but locates errors."),
    };
}

}  // namespace hpcai::config
