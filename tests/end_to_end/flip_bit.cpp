// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <mpi.h>

/// A library to be loaded before MPI's: memory that fails silently. The sum of floats number
/// HPCAI500_FLIP_SUM (from 1) ends with one wrong bit on world rank HPCAI500_FLIP_RANK, the highest
/// of the mantissa of the first value that is not zero. Without these variables nothing happens.
namespace {

struct Fault {
    std::int64_t sums_before = 0;  // of this rank
    MPI_Request request = MPI_REQUEST_NULL;
    std::span<float> values;
};
Fault fault;  // the only memory that calls of MPI share

std::int64_t number(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? -1 : std::atoll(text);
}

bool strikes(MPI_Datatype type) {
    if (type != MPI_FLOAT) return false;
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == number("HPCAI500_FLIP_RANK") &&
           ++fault.sums_before == number("HPCAI500_FLIP_SUM");
}

void flip_bit(std::span<float> values) {
    for (float& value : values) {
        if (!std::isnormal(value)) continue;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        bits ^= 1U << 22;
        std::memcpy(&value, &bits, sizeof bits);
        return;
    }
}

}  // namespace

extern "C" int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type,
                              MPI_Op operation, MPI_Comm ranks, MPI_Request* request) {
    const int code = PMPI_Iallreduce(send, receive, count, type, operation, ranks, request);
    if (strikes(type)) {
        fault.request = *request;
        fault.values = {static_cast<float*>(receive), static_cast<std::size_t>(count)};
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
        fault = {fault.sums_before};
    }
    return code;
}
