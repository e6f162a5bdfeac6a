// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <mpi.h>

/// A preloaded library that emulates silent memory errors. All-reduce HPCAI500_FLIP_SUM (from 1)
/// of world rank HPCAI500_FLIP_RANK gets one wrong bit: the highest mantissa bit of the largest
/// value that another rank has summed. Without these variables it does nothing. Supports algorithm
/// all_reduce in fp32 with at least 256 values per rank.
namespace {

constexpr int kFirstTag = 16384;  // of the first all-reduce; the next one has the next tag
constexpr int kLastTag = 32383;

struct Fault {
    int receives = 0;  // of the all-reduce
    MPI_Request request = MPI_REQUEST_NULL;
    std::span<float> values;
};
Fault fault;  // the only state that MPI calls share

std::int64_t number(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? -1 : std::atoll(text);
}

/// Returns true for the all-reduce's first message with values that another rank has summed;
/// earlier messages have the terms of this rank's sum.
bool strikes(int tag, MPI_Comm ranks) {
    if (tag < kFirstTag || tag > kLastTag) return false;
    int rank = 0, size = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(ranks, &size);
    return rank == number("HPCAI500_FLIP_RANK") &&
           tag - kFirstTag + 1 == number("HPCAI500_FLIP_SUM") && ++fault.receives == size;
}

void flip_bit(std::span<float> values) {
    const auto largest = std::ranges::max_element(
        values, {}, [](float value) { return std::isfinite(value) ? std::abs(value) : 0.0F; });
    if (largest == values.end()) return;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &*largest, sizeof bits);
    bits ^= 1U << 22;
    std::memcpy(&*largest, &bits, sizeof bits);
}

}  // namespace

extern "C" int MPI_Irecv(void* receive, int count, MPI_Datatype type, int source, int tag,
                         MPI_Comm ranks, MPI_Request* request) {
    const int code = PMPI_Irecv(receive, count, type, source, tag, ranks, request);
    if (strikes(tag, ranks)) {
        fault.request = *request;
        fault.values = {static_cast<float*>(receive),
                        static_cast<std::size_t>(count) / sizeof(float)};
    }
    return code;
}

extern "C" int MPI_Testall(int count, MPI_Request requests[], int* complete,
                           MPI_Status statuses[]) {
    bool among_them = false;
    for (int index = 0; index < count; ++index) {
        among_them =
            among_them || (requests[index] != MPI_REQUEST_NULL && requests[index] == fault.request);
    }
    const int code = PMPI_Testall(count, requests, complete, statuses);
    if (among_them && *complete != 0) {
        flip_bit(fault.values);
        fault = {fault.receives};
    }
    return code;
}
