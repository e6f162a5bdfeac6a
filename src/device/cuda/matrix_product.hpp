// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cuda {

/// d = alpha a b + beta c with column-major matrices, as in cuBLAS: a (rows, inner), b (inner,
/// columns), and d and c (rows, columns). alpha is 1; beta is 0 unless `adds`. The leading
/// dimension of a matrix is its stored number of rows; sums are formed in fp32.
struct ProductShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t inner = 0;
    bool a_transposed = false;    // a is stored transposed
    bool b_transposed = false;    // b is stored transposed
    DType operands = DType::f32;  // of a and b
    DType result = DType::f32;    // of d, c and the bias
    bool adds = false;            // adds c; beta is 1 unless `scales`
    bool scales = false;          // alpha and beta are in device memory
    bool bias = false;            // adds a vector (rows) to every column of d
    bool relu = false;            // applies a ReLU after the bias and writes a mask
    bool tf32 = false;            // f32 operands may lose 13 bits
};

/// One matrix product of cuBLASLt. With autotune, it uses the fastest of several algorithms, else
/// the first that the heuristics list. Without a device, it chooses no algorithm and cannot run.
class Product {
public:
    struct Operands {
        const void* a = nullptr;
        const void* b = nullptr;
        const void* c = nullptr;            // may be d
        const float* alpha_beta = nullptr;  // with `scales`: alpha, which must be 1, and beta
        void* d = nullptr;
        const void* bias = nullptr;
        void* mask = nullptr;       // one bit for each element of d, set where it is above 0
        void* workspace = nullptr;  // workspace_bytes(), aligned to 256 bytes
    };

    /// Throws Error(internal) if cuBLASLt has no algorithm for the product. A ReLU also requires a
    /// bias and a multiple of 128 rows.
    Product(const ProductShape& shape, const Context& context);

    /// At most 32 MiB; exactly 32 MiB without a device.
    std::size_t workspace_bytes() const { return algorithm_.workspaceSize; }

    /// Enqueues the product on the context's stream. Addresses are multiples of 16 unless stated.
    void run(const Operands& operands, const Context& context) const;

private:
    void choose_algorithm(const Context& context);
    std::vector<cublasLtMatmulHeuristicResult_t> algorithms(const Context& context) const;
    /// Returns the index of the fastest algorithm; uses temporary memory.
    std::size_t fastest(const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                        const Context& context);

    ProductShape shape_;
    OwnedHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description_;
    OwnedHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a_, b_, d_;
    cublasLtMatmulHeuristicResult_t algorithm_{};
};

}  // namespace hpcai::device::cuda
