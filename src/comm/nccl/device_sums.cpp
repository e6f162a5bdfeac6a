// SPDX-License-Identifier: Apache-2.0
#include "device_sums.hpp"

#include "kernels/wire_format.hpp"

#include "hpcai/base/error.hpp"

namespace hpcai::comm {

namespace {

SentBytes bytes_of(const SumProgram& program, const std::vector<int>& node_of_rank, int rank) {
    const auto node = [&](int of) { return node_of_rank[static_cast<std::size_t>(of)]; };
    SentBytes sent;
    for (const SumStep& step : program.steps) {
        for (const WireMessage& one : step.sends) {
            const auto bytes = static_cast<std::int64_t>(one.bytes);
            sent.all += bytes;
            if (node(one.rank) != node(rank)) sent.to_other_nodes += bytes;
        }
    }
    return sent;
}

void add(SentBytes& sum, const SentBytes& term) {
    sum.all += term.all;
    sum.to_other_nodes += term.to_other_nodes;
}

std::span<float> part(std::span<float> values, const WirePiece& piece) {
    return values.subspan(piece.values.begin, piece.values.count());
}

int* flag(const DeviceBlock& block) {
    return reinterpret_cast<int*>(block.data());
}

}  // namespace

DeviceBlock::DeviceBlock(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* block = nullptr;
    check_cuda(cudaMalloc(&block, bytes), "memory for sums of gradients");
    data_ = static_cast<std::byte*>(block);
    try {
        check_cuda(cudaMemset(block, 0, bytes), "memory for sums of gradients");
        // On the null stream, which the streams of sums do not wait for.
        check_cuda(cudaStreamSynchronize(nullptr), "memory for sums of gradients");
    } catch (...) {
        cudaFree(block);
        throw;
    }
}

DeviceBlock::~DeviceBlock() {
    cudaFree(data_);
}

DeviceSums::Sum::Sum(const SumOptions& options, int rank, std::span<float> device_values)
    : values(device_values),
      program(make_sum_program(options, rank, device_values.size())),
      wire(program.wire_bytes),
      residual(options.format == WireFormat::int8 ? device_values.size_bytes() : 0),
      sent(bytes_of(program, options.node_of_rank, rank)) {}

DeviceSums::DeviceSums(const SumOptions& options, int rank)
    : options_(options), rank_(rank), is_left_out_(sizeof(int)) {
    place_in_sum(options_, rank);
}

DeviceSums::Sum& DeviceSums::sum_of(std::span<float> device_values) {
    auto& sum = sums_[{device_values.data(), device_values.size()}];
    if (!sum) sum = std::make_unique<Sum>(options_, rank_, device_values);
    return *sum;
}

void DeviceSums::enqueue(NcclGroup& nccl, std::span<float> device_values, cudaStream_t stream) {
    const Sum& sum = sum_of(device_values);
    for (const SumStep& step : sum.program.steps) {
        begin(sum, step, stream);
        nccl.enqueue_exchange({step.sends, step.receives, sum.wire.data()}, stream);
        end(sum, step, stream);
    }
    add(of_step_, sum.sent);
    if (sum.residual.empty()) return;
    kernels::leave_out_unless_finite(sum.values, flag(is_left_out_), stream);
}

void DeviceSums::begin(const Sum& sum, const SumStep& step, cudaStream_t stream) const {
    for (const WirePiece& piece : step.encode) {
        float* const residual =
            sum.residual.empty() ? nullptr : sum.residual.floats().data() + piece.values.begin;
        kernels::encode_for_wire(options_.format, part(sum.values, piece), residual,
                                 sum.wire.data() + piece.offset, stream);
    }
}

void DeviceSums::end(const Sum& sum, const SumStep& step, cudaStream_t stream) const {
    for (const WirePiece& piece : step.add) {
        kernels::add_from_wire(options_.format, sum.wire.data() + piece.offset,
                               part(sum.values, piece), stream);
    }
    for (const WirePiece& piece : step.decode) {
        kernels::decode_from_wire(options_.format, sum.wire.data() + piece.offset,
                                  part(sum.values, piece), stream);
    }
}

void DeviceSums::leave_out_step(cudaStream_t stream) {
    check_cuda(cudaMemsetAsync(is_left_out_.data(), 1, is_left_out_.bytes(), stream),
               "leaving out a step");
}

/// A recording's sums are enqueued when it is recorded, and run again in every step after.
void DeviceSums::end_step(cudaStream_t stream) {
    if (of_step_.all > 0) of_recording_ = std::exchange(of_step_, SentBytes{});
    add(sent_, of_recording_);
    if (options_.format != WireFormat::int8) return;
    for (const auto& [values, sum] : sums_) {
        kernels::forget_if_left_out(flag(is_left_out_), sum->residual.floats(), stream);
    }
    check_cuda(cudaMemsetAsync(is_left_out_.data(), 0, is_left_out_.bytes(), stream),
               "ending a step");
}

}  // namespace hpcai::comm
