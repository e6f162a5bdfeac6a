// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "context.hpp"

namespace hpcai::device::cuda {

/// d = a b with matrices stored column by column, as in cuBLAS: d (rows, columns), a (rows, inner)
/// and b (inner, columns). a and b are stored transposed where the flag is set. The leading
/// dimension of a matrix is its stored number of rows; sums are formed in fp32.
struct ProductShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t inner = 0;
    bool a_transposed = false;
    bool b_transposed = false;
    DType factors = DType::f32;  // of a and b
    DType result = DType::f32;   // of d
    bool bias = false;           // adds a vector (rows) f32 to every column of d
    bool tf32 = false;           // f32 factors may lose 13 bits
};

/// One product, planned by cuBLASLt's heuristics. Without a device nothing is planned, and it
/// cannot run.
class Product {
public:
    struct Operands {
        const void* a = nullptr;
        const void* b = nullptr;
        void* d = nullptr;
        const float* bias = nullptr;
        void* workspace = nullptr;  // workspace_bytes() at a multiple of 256
    };

    Product();
    /// Throws Error(internal) when cuBLASLt has no way to compute it.
    Product(const ProductShape& shape, const Context& context);
    ~Product();
    Product(Product&&) noexcept;
    Product& operator=(Product&&) noexcept;

    /// At most 32 MiB; exactly 32 MiB without a device; 0 after Product().
    std::size_t workspace_bytes() const;
    /// Enqueues it on the context's stream. Addresses are multiples of 16.
    void run(const Operands& operands, const Context& context) const;

private:
    struct Plan;
    std::unique_ptr<Plan> plan_;
};

}  // namespace hpcai::device::cuda
