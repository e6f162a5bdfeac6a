// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <library_types.h>

#include "context.hpp"

/// The functions and numbers of NVIDIA's nvJPEG that the engine uses. They are declared here, so
/// that a build needs neither header nor library; docs.nvidia.com/cuda/nvjpeg describes them.
namespace hpcai::device::cuda::nvjpeg {

struct Handle;
struct State;  // buffers for decoding one batch at a time

enum Status : int { kSuccess = 0 };
enum Backend : int { kDefault = 0, kGpuHybrid = 2, kHardware = 3 };
inline constexpr unsigned kSmoothUpsampling = 1U << 5;  // interpolates chroma, as libjpeg does
inline constexpr int kInterleavedRgb = 5;

/// Where a picture is written. Interleaved pictures have one channel; pitches are in bytes.
struct Image {
    unsigned char* channel[4] = {};
    std::size_t pitch[4] = {};
};

struct Functions {
    Status (*get_property)(libraryPropertyType type, int* value);
    Status (*create)(Backend backend, void* device_allocator, void* pinned_allocator,
                     unsigned flags, Handle** handle);
    Status (*destroy)(Handle* handle);
    /// Reads a file's header. `widths` and `heights` have an element for each of four channels.
    Status (*get_image_info)(Handle* handle, const unsigned char* file, std::size_t length,
                             int* channels, int* subsampling, int* widths, int* heights);
    Status (*create_state)(Handle* handle, State** state);
    Status (*destroy_state)(State* state);
    Status (*begin_batches)(Handle* handle, State* state, int batch_size, int cpu_threads,
                            int format);
    /// Reads the files during the call and enqueues the rest of the work on the stream.
    Status (*decode_batch)(Handle* handle, State* state, const unsigned char* const* files,
                           const std::size_t* lengths, Image* images, cudaStream_t stream);
};

/// Opens libnvjpeg.so.13 or .12, which is never closed. Throws Error(usage) if that fails.
Functions open();

}  // namespace hpcai::device::cuda::nvjpeg

namespace hpcai::device::cuda {

/// nvJPEG on the current GPU, with its first available backend: hardware, GPU, or CPU and GPU.
struct JpegDecoder {
    nvjpeg::Functions functions{};
    std::shared_ptr<nvjpeg::Handle> handle;  // null if the library cannot be used
    std::string description;                 // such as "nvJPEG 13.3.2 (hardware)", "no nvJPEG: ..."
};
JpegDecoder open_jpeg_decoder();

/// Null if `decoder` has no handle. Work on the stream `user` of GPU `gpu` reads the pictures.
std::unique_ptr<JpegBatch> make_jpeg_batch(const JpegDecoder& decoder, cudaStream_t user, int gpu);

}  // namespace hpcai::device::cuda
