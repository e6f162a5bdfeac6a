// SPDX-License-Identifier: Apache-2.0
// The parts of nvJPEG that the engine uses, in place of src/device/cuda/nvjpeg.cpp: libjpeg on the
// CPU decodes, with the pixels of data::decode_image().
#include "device/cuda/nvjpeg.hpp"

#include <cstdio>
#include <memory>
#include <vector>

#include <jpeglib.h>  // needs <cstdio> before it

#include <hpcai/base/error.hpp>

#include "libraries.hpp"
#include "runtime.hpp"

namespace hpcai::device::cuda::nvjpeg {
namespace {

using simt::NvjpegBehaviour;

struct Emulation {
    std::mutex mutex;  // guards the members below
    NvjpegBehaviour behaviour;
    simt::NvjpegCalls calls;
};

Emulation& emulation() {
    static Emulation emulation;
    return emulation;
}

enum Refusals : int { kInvalid = 2, kBadJpeg = 3, kUnsupported = 4, kNoHardware = 7 };

Status refusal(Refusals number) {
    return static_cast<Status>(number);
}

struct Size {
    int width = 0, height = 0;
};

/// Reads the header of a file, and all its rows to `image` unless that is null.
Status read(const std::vector<unsigned char>& file, const Image* image, Size* size) {
    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr) { throw refusal(kBadJpeg); };
    errors.emit_message = [](j_common_ptr, int) {};
    const std::unique_ptr<jpeg_decompress_struct, decltype(&jpeg_destroy_decompress)> owner(
        &info, jpeg_destroy_decompress);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file.data(), static_cast<unsigned long>(file.size()));
    jpeg_read_header(&info, TRUE);
    if (size != nullptr) {
        *size = {static_cast<int>(info.image_width), static_cast<int>(info.image_height)};
        return kSuccess;
    }
    const int rejected_width = emulation().behaviour.rejected_width;
    if (info.progressive_mode != FALSE || info.num_components != 3 ||
        static_cast<int>(info.image_width) == rejected_width) {
        return refusal(kUnsupported);
    }
    if (image == nullptr) return kSuccess;
    ensure(simt::runtime().memory.holds(image->channel[0], image->pitch[0] * info.image_height),
           "a picture is not within a block of device memory");
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = image->channel[0] + image->pitch[0] * info.output_scanline;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return kSuccess;
}

Status status_of(const std::vector<unsigned char>& file, const Image* image, Size* size = nullptr) {
    try {
        return read(file, image, size);
    } catch (Status status) {
        return status;
    }
}

}  // namespace

struct Handle {};
struct State {
    int batch_size = 0;  // 0: the last batch failed
};

Functions open() {
    require(!emulation().behaviour.is_missing, ExitCode::usage,
            "libnvjpeg.so.13: cannot open shared object file: No such file or directory");
    Functions functions{};
    functions.get_property = [](libraryPropertyType type, int* value) {
        *value = type == MAJOR_VERSION ? 13 : 0;
        return kSuccess;
    };
    functions.create = [](Backend backend, void*, void*, unsigned, Handle** handle) {
        if (backend == kHardware && !emulation().behaviour.has_hardware)
            return refusal(kNoHardware);
        *handle = new Handle;
        return kSuccess;
    };
    functions.destroy = [](Handle* handle) {
        delete handle;
        return kSuccess;
    };
    functions.get_image_info = [](Handle*, const unsigned char* file, std::size_t length,
                                  int* channels, int*, int* widths, int* heights) {
        Size size;
        const Status status = status_of({file, file + length}, nullptr, &size);
        *channels = 3;
        widths[0] = size.width;
        heights[0] = size.height;
        return status;
    };
    functions.create_state = [](Handle*, State** state) {
        *state = new State;
        return kSuccess;
    };
    functions.destroy_state = [](State* state) {
        delete state;
        return kSuccess;
    };
    functions.begin_batches = [](Handle*, State* state, int batch_size, int, int format) {
        if (format != kInterleavedRgb) return refusal(kInvalid);
        state->batch_size = batch_size;
        return kSuccess;
    };
    functions.decode_batch = [](Handle*, State* state, const unsigned char* const* files,
                                const std::size_t* lengths, Image* images, cudaStream_t stream) {
        const auto batch_size = std::exchange(state->batch_size, 0);
        if (batch_size == 0) return refusal(kInvalid);
        const std::lock_guard lock(emulation().mutex);
        ++emulation().calls.batches;
        for (int i = 0; i < batch_size; ++i) {
            const Status status = status_of({files[i], files[i] + lengths[i]}, nullptr);
            if (status != kSuccess) return status;
        }
        emulation().calls.pictures += batch_size;
        for (int i = 0; i < batch_size; ++i) {
            simt::enqueue(stream,
                          [file = std::vector(files[i], files[i] + lengths[i]), image = images[i]] {
                              ensure(status_of(file, &image) == kSuccess, "a damaged JPEG");
                          });
        }
        state->batch_size = batch_size;
        return kSuccess;
    };
    return functions;
}

}  // namespace hpcai::device::cuda::nvjpeg

namespace hpcai::simt {

void set_nvjpeg(const NvjpegBehaviour& behaviour) {
    device::cuda::nvjpeg::emulation().behaviour = behaviour;
    device::cuda::nvjpeg::emulation().calls = {};
}

NvjpegCalls nvjpeg_calls() {
    return device::cuda::nvjpeg::emulation().calls;
}

}  // namespace hpcai::simt
