// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/error.hpp>

#include "nvjpeg.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::size_t kAlignment = 256;  // of the offsets of pictures, in bytes

class NvjpegBatch final : public JpegBatch {
public:
    NvjpegBatch(const JpegDecoder& decoder, cudaStream_t user, int gpu)
        : nvjpeg_(decoder.functions), handle_(decoder.handle), user_(user), gpu_(gpu) {
        nvjpeg::State* state = nullptr;
        const nvjpeg::Status status = nvjpeg_.create_state(handle_.get(), &state);
        ensure(status == nvjpeg::kSuccess, "nvJPEG cannot create a state: status {}", int{status});
        state_ = {state, nvjpeg_.destroy_state};
    }
    ~NvjpegBatch() override {
        cudaStreamSynchronize(stream_);
        cudaStreamSynchronize(user_);
    }

    void decode(std::span<JpegFile> files) override {
        check(cudaSetDevice(gpu_), "selecting a GPU");
        std::size_t bytes = 0;
        for (JpegFile& file : files) {
            file.offset_bytes = static_cast<std::int64_t>(bytes);
            bytes = align_up(bytes + std::size_t{3} * file.width * file.height, kAlignment);
        }
        if (bytes > memory_.bytes()) enlarge(bytes);
        released_.block(stream_);
        decode_parts(files);
    }

    const std::uint8_t* pictures() const override {
        return static_cast<const std::uint8_t*>(memory_.data());
    }
    void release() override { released_.record(user_); }

private:
    /// Allocates a quarter more than needed, for later batches; nothing if the GPU lacks memory.
    void enlarge(std::size_t bytes) {
        released_.wait();
        memory_ = {};
        try {
            memory_ = DeviceBytes(bytes + bytes / 4);
        } catch (const Error&) {
            cudaGetLastError();  // clears the error
        }
    }

    /// nvJPEG rejects a batch as a whole, so halves are tried until a file is rejected alone.
    void decode_parts(std::span<JpegFile> files) {
        if (files.empty() || try_to_decode(files)) return;
        if (files.size() == 1 || memory_.bytes() == 0) {
            for (JpegFile& file : files) file.offset_bytes = -1;
            return;
        }
        const std::size_t half = files.size() / 2;
        decode_parts(files.first(half));
        decode_parts(files.subspan(half));
    }

    /// Returns whether nvJPEG reads 3 channels and the size for which decode() reserved memory. In
    /// a forged header, nvJPEG may find another size than the caller.
    bool has_size_of(const JpegFile& file) const {
        int channels = 0, subsampling = 0, widths[4] = {}, heights[4] = {};
        const auto* bytes = reinterpret_cast<const unsigned char*>(file.bytes.data());
        return nvjpeg_.get_image_info(handle_.get(), bytes, file.bytes.size(), &channels,
                                      &subsampling, widths, heights) == nvjpeg::kSuccess &&
               channels == 3 && widths[0] == file.width && heights[0] == file.height;
    }

    bool try_to_decode(std::span<const JpegFile> files) {
        if (memory_.bytes() == 0) return false;
        std::vector<const unsigned char*> inputs;
        std::vector<std::size_t> lengths;
        std::vector<nvjpeg::Image> outputs(files.size());
        for (const JpegFile& file : files) {
            if (!has_size_of(file)) return false;
            nvjpeg::Image& output = outputs[inputs.size()];
            output.channel[0] = static_cast<unsigned char*>(memory_.data()) + file.offset_bytes;
            output.pitch[0] = std::size_t{3} * file.width;
            inputs.push_back(reinterpret_cast<const unsigned char*>(file.bytes.data()));
            lengths.push_back(file.bytes.size());
        }
        nvjpeg::Status status = nvjpeg::kSuccess;
        const auto count = static_cast<int>(files.size());
        if (std::exchange(batch_size_, count) != count) {
            status = nvjpeg_.begin_batches(handle_.get(), state_.get(), count, 1,
                                           nvjpeg::kInterleavedRgb);
        }
        if (status == nvjpeg::kSuccess) {
            status = nvjpeg_.decode_batch(handle_.get(), state_.get(), inputs.data(),
                                          lengths.data(), outputs.data(), stream_);
        }
        if (status != nvjpeg::kSuccess) batch_size_ = 0;
        decoded_.record(stream_);
        decoded_.wait();
        return status == nvjpeg::kSuccess;
    }

    nvjpeg::Functions nvjpeg_;
    std::shared_ptr<nvjpeg::Handle> handle_;
    cudaStream_t user_;  // its work reads the pictures
    int gpu_;
    int batch_size_ = 0;  // of begin_batches(); 0: none, or the batch failed
    DeviceBytes memory_;
    std::unique_ptr<nvjpeg::State, nvjpeg::Status (*)(nvjpeg::State*)> state_{nullptr, nullptr};
    OwnedEvent released_, decoded_{cudaEventBlockingSync};
    OwnedStream stream_;
};

}  // namespace

JpegDecoder open_jpeg_decoder() try {
    JpegDecoder decoder{nvjpeg::open()};
    int version[3] = {};
    for (const auto type : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
        decoder.functions.get_property(type, &version[type]);
    }
    constexpr std::pair<nvjpeg::Backend, const char*> kBackends[] = {
        {nvjpeg::kHardware, "hardware"},
        {nvjpeg::kGpuHybrid, "GPU"},
        {nvjpeg::kDefault, "CPU and GPU"}};
    nvjpeg::Status status = nvjpeg::kSuccess;
    for (const auto& [backend, name] : kBackends) {
        for (const unsigned flags : {nvjpeg::kSmoothUpsampling, 0U}) {
            nvjpeg::Handle* handle = nullptr;
            status = decoder.functions.create(backend, nullptr, nullptr, flags, &handle);
            if (status != nvjpeg::kSuccess) continue;
            decoder.handle = {handle, decoder.functions.destroy};
            decoder.description =
                fmt::format("nvJPEG {}.{}.{} ({}{})", version[0], version[1], version[2], name,
                            flags == 0 ? ", nearest chroma" : "");
            return decoder;
        }
    }
    throw Error(ExitCode::usage, fmt::format("nvjpegCreateEx failed with status {}", int{status}));
} catch (const Error& error) {
    return {.description = fmt::format("no nvJPEG: {}", error.what())};
}

std::unique_ptr<JpegBatch> make_jpeg_batch(const JpegDecoder& decoder, cudaStream_t user, int gpu) {
    if (decoder.handle == nullptr) return nullptr;
    check(cudaSetDevice(gpu), "selecting a GPU");  // a new thread uses GPU 0
    return std::make_unique<NvjpegBatch>(decoder, user, gpu);
}

}  // namespace hpcai::device::cuda
