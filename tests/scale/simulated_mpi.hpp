// SPDX-License-Identifier: Apache-2.0
// Functions that replace those of SMPI in `comm`, and what they count. All ranks share its globals.
#pragma once

#include <cstdint>
#include <vector>

#include <mpi.h>

struct Sent {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
};
extern std::vector<Sent> sent_by_rank;  // [world_rank], in this phase
extern int ranks_per_node;

int world_rank();

extern "C" {
int scale_MPI_Ibarrier(MPI_Comm comm, MPI_Request* request);
int scale_MPI_Iallreduce(const void*, void* values, int count, MPI_Datatype type, MPI_Op operation,
                         MPI_Comm comm, MPI_Request* request);
}
