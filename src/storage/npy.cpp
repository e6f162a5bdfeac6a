// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>
#include <regex>

#include <hpcai/base/text.hpp>
#include <hpcai/storage/npy.hpp>

namespace hpcai::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are stored as in memory");

constexpr std::string_view kMagic{"\x93NUMPY\x01\x00", 8};  // including version 1.0
constexpr std::size_t kPrefixBytes = kMagic.size() + 2;     // and 16 bits for the header's length
constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

std::string header_of(tensor::DType dtype, const tensor::Shape& shape) {
    const std::string extents = shape.rank() == 1 ? fmt::format("({},)", shape[0])
                                                  : fmt::format("({}, {})", shape[0], shape[1]);
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   dtype == tensor::DType::f32 ? "<f4" : "<i4", extents);
    const std::size_t used = kPrefixBytes + text.size() + 1;
    text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
    text += '\n';
    const auto low = static_cast<char>(text.size() & 0xff);
    const auto high = static_cast<char>(text.size() >> 8);
    return std::string(kMagic) + low + high + text;
}

void write_array(const fs::path& path, Bytes elements, tensor::DType dtype,
                 const tensor::Shape& shape) {
    ensure(shape.rank() == 1 || shape.rank() == 2, "npy: got {} dimensions", shape.rank());
    ensure(static_cast<std::size_t>(shape.elements()) * sizeof(float) == elements.size(),
           "npy: {} bytes do not fit shape {}", elements.size(), tensor::to_string(shape));
    const std::string header = header_of(dtype, shape);
    const std::array parts{bytes_of(header), elements};
    write_file_durably(path, parts);
}

struct Header {
    tensor::DType dtype;
    tensor::Shape shape;
};

/// Reads the Python dictionary of the header. Its items may be in any order.
Header parse_header(std::string_view text, std::string_view name) {
    constexpr const char* kDescr = "'descr' *: *'<([fi])4'";
    constexpr const char* kOrder = "'fortran_order' *: *False";
    constexpr const char* kShape = R"('shape' *: *\( *(\d{1,15}) *,(?: *(\d{1,15}) *,?)? *\))";
    constexpr std::size_t kMaxLength = 512;  // std::regex needs stack for each character
    if (text.ends_with('\n')) text.remove_suffix(1);
    text = text.substr(0, text.find_last_not_of(' ') + 1);
    const auto find = [text](const char* pattern) {
        std::cmatch match;
        std::regex_search(text.begin(), text.end(), match, std::regex(pattern));
        return match;
    };
    const std::string item = fmt::format("(?:{}|{}|{})", kDescr, kOrder, kShape);
    const std::regex dictionary(fmt::format(R"( *\{{ *{0} *, *{0} *, *{0} *,? *\}})", item));
    const bool is_dictionary =
        text.size() <= kMaxLength && std::regex_match(text.begin(), text.end(), dictionary);
    const std::cmatch descr = is_dictionary ? find(kDescr) : std::cmatch();
    const std::cmatch shape = is_dictionary ? find(kShape) : std::cmatch();
    require(!descr.empty() && !shape.empty() && !find(kOrder).empty(), ExitCode::data,
            "'{}' is not an npy file that can be read: expected a header with 'descr' ('<f4' or "
            "'<i4'), 'fortran_order' (False) and 'shape' (one or two dimensions), got {}",
            name, printable(text.substr(0, 100)));
    const bool is_matrix = shape[2].matched;
    const std::int64_t rows = std::stoll(shape[1]);
    const std::int64_t columns = is_matrix ? std::stoll(shape[2]) : 1;
    require(
        std::max(rows, columns) <= kMaxElements && (columns == 0 || rows <= kMaxElements / columns),
        ExitCode::data, "'{}' is not an npy file that can be read: 'shape' is too large", name);
    return {descr[1] == "f" ? tensor::DType::f32 : tensor::DType::s32,
            is_matrix ? tensor::Shape{rows, columns} : tensor::Shape{rows}};
}

}  // namespace

void write_npy(const fs::path& path, std::span<const float> values, const tensor::Shape& shape) {
    write_array(path, std::as_bytes(values), tensor::DType::f32, shape);
}

void write_npy(const fs::path& path, std::span<const std::int32_t> values,
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
    const Header header = parse_header(text.substr(kPrefixBytes, header_bytes), name);
    const Bytes elements = bytes.subspan(kPrefixBytes + header_bytes);
    const std::size_t expected = header.shape.elements() * tensor::size_of(header.dtype);
    require(elements.size() == expected, ExitCode::data,
            "'{}' has {} bytes of elements; its shape {} needs {}", name, elements.size(),
            tensor::to_string(header.shape), expected);
    return {header.shape, header.dtype, {elements.begin(), elements.end()}};
}

NpyArray read_npy(const fs::path& path) {
    return parse_npy(read_file_bytes(path, std::numeric_limits<std::size_t>::max()), path.string());
}

}  // namespace hpcai::storage
