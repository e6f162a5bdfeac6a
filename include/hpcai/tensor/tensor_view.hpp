// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <type_traits>

#include <hpcai/base/error.hpp>
#include <hpcai/tensor/dtype.hpp>
#include <hpcai/tensor/shape.hpp>

namespace hpcai::tensor {

template <typename T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, float>) return DType::f32;
    if constexpr (std::is_same_v<T, std::int32_t>) return DType::s32;
    if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
}

/// A non-owning view of memory with a shape and an element type. Copies share the elements.
struct TensorView {
    void* data = nullptr;
    Shape shape;
    DType dtype = DType::f32;

    std::size_t bytes() const {
        return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
    }

    /// The memory of the elements as bytes.
    std::span<std::byte> raw() const { return {static_cast<std::byte*>(data), bytes()}; }

    /// The elements in order. Throws Error(internal) if the elements are not of type T.
    template <typename T>
    std::span<T> as() const {
        ensure(dtype == dtype_of<std::remove_const_t<T>>(),
               "a tensor of {} cannot be read as another type", name_of(dtype));
        return {static_cast<T*>(data), static_cast<std::size_t>(shape.elements())};
    }
};

}  // namespace hpcai::tensor
