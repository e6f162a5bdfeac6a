// SPDX-License-Identifier: Apache-2.0
#include "jpeg_decoder.hpp"

#include <fmt/core.h>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda {
namespace {

constexpr std::size_t kAlignment = 256;  // bytes, of the offset of a picture

class NvjpegBatch final : public JpegBatch {
public:
    NvjpegBatch(const nvjpeg::Functions& functions, std::shared_ptr<nvjpeg::Handle> handle,
                cudaStream_t user, int gpu)
        : functions_(functions), handle_(std::move(handle)), user_(user), gpu_(gpu) {
        nvjpeg::State* state = nullptr;
        const nvjpeg::Status status = functions_.create_state(handle_.get(), &state);
        ensure(status == nvjpeg::kSuccess, "nvJPEG: status {} of a decoding state", int{status});
        state_ = {state, functions_.destroy_state};
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
        if (!reserve(bytes)) {
            for (JpegFile& file : files) file.offset_bytes = -1;
            return;
        }
        released_.block(stream_);
        decode_parts(files);
    }

    const std::uint8_t* pictures() const override {
        return static_cast<const std::uint8_t*>(memory_.data());
    }
    void release() override { released_.record(user_); }

private:
    /// Returns whether the memory suffices. It is larger than needed now, so that it rarely grows.
    bool reserve(std::size_t bytes) {
        if (bytes <= memory_.bytes()) return true;
        released_.wait();
        memory_ = {};
        try {
            memory_ = DeviceBytes(bytes + bytes / 4);
        } catch (const Error&) {
            cudaGetLastError();  // clears the error
        }
        return bytes <= memory_.bytes();
    }

    /// nvJPEG refuses a batch as a whole, so halves are tried until a file is refused alone.
    void decode_parts(std::span<JpegFile> files) {
        if (files.empty() || try_to_decode(files)) return;
        if (files.size() == 1) {
            files[0].offset_bytes = -1;
            return;
        }
        const std::size_t half = files.size() / 2;
        decode_parts(files.first(half));
        decode_parts(files.subspan(half));
    }

    bool try_to_decode(std::span<const JpegFile> files) {
        inputs_.clear();
        lengths_.clear();
        outputs_.clear();
        for (const JpegFile& file : files) {
            inputs_.push_back(reinterpret_cast<const unsigned char*>(file.bytes.data()));
            lengths_.push_back(file.bytes.size());
            nvjpeg::Image& output = outputs_.emplace_back();
            output.channel[0] = static_cast<unsigned char*>(memory_.data()) + file.offset_bytes;
            output.pitch[0] = std::size_t{3} * file.width;
        }
        nvjpeg::Status status = nvjpeg::kSuccess;
        // A failed batch also needs a new beginning.
        if (batch_size_ != files.size()) {
            batch_size_ = files.size();
            status =
                functions_.begin_batches(handle_.get(), state_.get(), static_cast<int>(batch_size_),
                                         1, nvjpeg::kInterleavedRgb);
        }
        if (status == nvjpeg::kSuccess) {
            status = functions_.decode_batch(handle_.get(), state_.get(), inputs_.data(),
                                             lengths_.data(), outputs_.data(), stream_);
        }
        if (status != nvjpeg::kSuccess) batch_size_ = 0;
        decoded_.record(stream_);
        decoded_.wait();
        return status == nvjpeg::kSuccess;
    }

    nvjpeg::Functions functions_;
    std::shared_ptr<nvjpeg::Handle> handle_;
    cudaStream_t user_;
    int gpu_;
    std::size_t batch_size_ = 0;  // of begin_batches(); 0: none
    std::vector<const unsigned char*> inputs_;
    std::vector<std::size_t> lengths_;
    std::vector<nvjpeg::Image> outputs_;
    DeviceBytes memory_;
    std::unique_ptr<nvjpeg::State, nvjpeg::Status (*)(nvjpeg::State*)> state_{nullptr, nullptr};
    OwnedEvent released_, decoded_{cudaEventBlockingSync};
    OwnedStream stream_;
};

}  // namespace

JpegDecoder::JpegDecoder() {
    try {
        open();
    } catch (const Error& error) {
        description_ = fmt::format("no nvJPEG: {}", error.what());
    }
}

void JpegDecoder::open() {
    functions_ = nvjpeg::open();
    int version[3] = {};
    for (const auto type : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
        functions_.get_property(type, &version[type]);
    }
    constexpr std::pair<nvjpeg::Backend, const char*> kBackends[] = {
        {nvjpeg::kHardware, "hardware"},
        {nvjpeg::kGpuHybrid, "GPU"},
        {nvjpeg::kDefault, "CPU and GPU"}};
    nvjpeg::Status status = nvjpeg::kSuccess;
    for (const auto& [backend, name] : kBackends) {
        for (const unsigned flags : {nvjpeg::kSmoothUpsampling, 0U}) {
            nvjpeg::Handle* handle = nullptr;
            status = functions_.create(backend, nullptr, nullptr, flags, &handle);
            if (status != nvjpeg::kSuccess) continue;
            handle_ = {handle, functions_.destroy};
            description_ = fmt::format("nvJPEG {}.{}.{} ({}{})", version[0], version[1], version[2],
                                       name, flags == 0 ? ", nearest chroma" : "");
            return;
        }
    }
    throw Error(ExitCode::usage, fmt::format("status {} of its start", int{status}));
}

std::unique_ptr<JpegBatch> JpegDecoder::make_batch(cudaStream_t stream, int gpu) const {
    if (handle_ == nullptr) return nullptr;
    return std::make_unique<NvjpegBatch>(functions_, handle_, stream, gpu);
}

}  // namespace hpcai::device::cuda
