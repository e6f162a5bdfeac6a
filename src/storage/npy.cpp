// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <string>

#include <hpcai/storage/npy.hpp>

namespace hpcai::storage {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are stored as they lie in memory");

constexpr std::string_view kMagic{"\x93NUMPY\x01\x00", 8};  // with version 1.0
constexpr std::size_t kPrefixBytes = kMagic.size() + 2;     // then the header's length, 16 bits
constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

std::string_view descr_of(tensor::DType dtype) {
    return dtype == tensor::DType::f32 ? "<f4" : "<i4";
}

std::string header_of(tensor::DType dtype, const tensor::Shape& shape) {
    const std::string extents = shape.rank() == 1 ? fmt::format("({},)", shape[0])
                                                  : fmt::format("({}, {})", shape[0], shape[1]);
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   descr_of(dtype), extents);
    const std::size_t used = kPrefixBytes + text.size() + 1;
    text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
    text += '\n';
    const auto low = static_cast<char>(text.size() & 0xff);
    const auto high = static_cast<char>(text.size() >> 8);
    return std::string(kMagic) + low + high + text;
}

void write_array(const std::filesystem::path& path, Bytes elements, tensor::DType dtype,
                 const tensor::Shape& shape) {
    ensure(shape.rank() == 1 || shape.rank() == 2, "npy array of {} dimensions", shape.rank());
    ensure(static_cast<std::size_t>(shape.elements()) * sizeof(float) == elements.size(),
           "npy array of {} bytes with shape {}", elements.size(), tensor::to_string(shape));
    const std::string header = header_of(dtype, shape);
    const std::array parts{bytes_of(header), elements};
    write_file_durably(path, parts);
}

/// Reads the Python dictionary of the header, token by token.
class HeaderParser {
public:
    HeaderParser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

    void parse() {
        expect("{");
        while (!accept("}")) {
            parse_item();
            if (!accept(",")) {
                expect("}");
                break;
            }
        }
        skip_spaces();
        check(rest_ == "\n" || rest_.empty(), "text after the dictionary");
        check(dtype_seen_ && order_seen_ && shape_.has_value(),
              "not all of 'descr', 'fortran_order', 'shape'");
    }

    tensor::DType dtype() const { return dtype_; }
    tensor::Shape shape() const { return *shape_; }

private:
    void check(bool condition, std::string_view problem) const {
        require(condition, ExitCode::data, "'{}' is not an npy file that can be read: {}", name_,
                problem);
    }

    void skip_spaces() {
        while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    }

    bool accept(std::string_view token) {
        skip_spaces();
        if (!rest_.starts_with(token)) return false;
        rest_.remove_prefix(token.size());
        return true;
    }

    void expect(std::string_view token) {
        check(accept(token), fmt::format("'{}' is missing in the header", token));
    }

    void parse_item() {
        if (accept("'descr'")) {
            expect(":");
            check(!dtype_seen_, "'descr' twice");
            dtype_seen_ = true;
            parse_descr();
        } else if (accept("'fortran_order'")) {
            expect(":");
            check(!order_seen_, "'fortran_order' twice");
            order_seen_ = true;
            check(accept("False"), "'fortran_order' is not False");
        } else if (accept("'shape'")) {
            expect(":");
            check(!shape_, "'shape' twice");
            parse_shape();
        } else {
            check(false, "the header has a key other than 'descr', 'fortran_order', 'shape'");
        }
    }

    void parse_descr() {
        if (accept("'<f4'")) {
            dtype_ = tensor::DType::f32;
        } else {
            check(accept("'<i4'"), "'descr' is not '<f4' or '<i4'");
            dtype_ = tensor::DType::s32;
        }
    }

    void parse_shape() {
        expect("(");
        const std::int64_t first = parse_extent();
        expect(",");
        if (accept(")")) {
            shape_ = tensor::Shape{first};
            return;
        }
        const std::int64_t second = parse_extent();
        accept(",");
        check(accept(")"), "'shape' has not one or two dimensions");
        check(second == 0 || first <= kMaxElements / second, "'shape' is too large");
        shape_ = tensor::Shape{first, second};
    }

    std::int64_t parse_extent() {
        skip_spaces();
        std::int64_t extent = -1;
        const auto [end, error] =
            std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
        check(error == std::errc{} && extent >= 0, "'shape' has an extent that is not a number");
        check(extent <= kMaxElements, "'shape' is too large");
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return extent;
    }

    std::string_view rest_;
    std::string_view name_;
    tensor::DType dtype_ = tensor::DType::f32;
    bool dtype_seen_ = false;
    bool order_seen_ = false;
    std::optional<tensor::Shape> shape_;
};

}  // namespace

void write_npy(const std::filesystem::path& path, std::span<const float> values,
               const tensor::Shape& shape) {
    write_array(path, std::as_bytes(values), tensor::DType::f32, shape);
}

void write_npy(const std::filesystem::path& path, std::span<const std::int32_t> values,
               const tensor::Shape& shape) {
    write_array(path, std::as_bytes(values), tensor::DType::s32, shape);
}

NpyArray parse_npy(Bytes bytes, std::string_view name) {
    const std::string_view text = text_of(bytes);
    require(text.size() >= kPrefixBytes && text.starts_with(kMagic), ExitCode::data,
            "'{}' is not an npy file of version 1.0", name);
    const auto header_bytes = static_cast<std::size_t>(std::to_integer<unsigned>(bytes[8]) |
                                                       std::to_integer<unsigned>(bytes[9]) << 8);
    require(text.size() - kPrefixBytes >= header_bytes, ExitCode::data,
            "'{}' ends within its npy header", name);
    HeaderParser header(text.substr(kPrefixBytes, header_bytes), name);
    header.parse();
    const Bytes elements = bytes.subspan(kPrefixBytes + header_bytes);
    const std::size_t expected =
        static_cast<std::size_t>(header.shape().elements()) * tensor::size_of(header.dtype());
    require(elements.size() == expected, ExitCode::data,
            "'{}' has {} bytes of elements where its shape {} needs {}", name, elements.size(),
            tensor::to_string(header.shape()), expected);
    return {header.shape(), header.dtype(), {elements.begin(), elements.end()}};
}

NpyArray read_npy(const std::filesystem::path& path, std::size_t limit_bytes) {
    return parse_npy(read_file_bytes(path, limit_bytes), path.string());
}

}  // namespace hpcai::storage
