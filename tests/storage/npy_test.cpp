// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include <hpcai/storage/npy.hpp>

#include "temporary_folder.hpp"

namespace hpcai::storage {
namespace {

/// Returns a file of version 1.0 with `header` unchanged, then `element_bytes` zeros.
std::vector<std::byte> npy_bytes(const std::string& header, std::size_t element_bytes) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    text += header;
    text.append(element_bytes, '\0');
    const Bytes bytes = bytes_of(text);
    return {bytes.begin(), bytes.end()};
}

TEST(Npy, ComesBackWithShapeTypeAndElements) {
    TemporaryFolder folder;
    std::vector<float> values(12);
    std::iota(values.begin(), values.end(), -1.5F);
    write_npy(folder / "a.npy", std::span<const float>(values), {3, 4});
    const NpyArray array = read_npy(folder / "a.npy");
    EXPECT_EQ(array.shape(), (tensor::Shape{3, 4}));
    const std::span<const float> back = array.as<float>();
    EXPECT_TRUE(std::equal(back.begin(), back.end(), values.begin(), values.end()));
    EXPECT_THROW(array.as<std::int32_t>(), Error);

    const std::vector<std::int32_t> labels{-1, 0, 2'000'000'000};
    write_npy(folder / "b.npy", std::span<const std::int32_t>(labels), {3});
    const NpyArray array_1d = read_npy(folder / "b.npy");
    EXPECT_EQ(array_1d.shape(), (tensor::Shape{3}));
    EXPECT_EQ(array_1d.as<std::int32_t>()[2], 2'000'000'000);
}

TEST(Npy, IsByteForByteWhatNumpyWrites) {
    // numpy.save of np.arange(3, dtype='<i4'): 128 bytes of prefix and header, then the elements.
    TemporaryFolder folder;
    const std::vector<std::int32_t> values{0, 1, 2};
    write_npy(folder / "a.npy", std::span<const std::int32_t>(values), {3});
    const auto bytes = read_file_bytes(folder / "a.npy", 1000);
    ASSERT_EQ(bytes.size(), 128U + 12U);
    std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
    expected += "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
    expected.append(127 - expected.size(), ' ');
    expected += '\n';
    EXPECT_EQ(text_of(bytes).substr(0, 128), expected);
}

TEST(Npy, OfNoElementsComesBack) {
    TemporaryFolder folder;
    write_npy(folder / "a.npy", std::span<const float>(), {0, 7});
    EXPECT_EQ(read_npy(folder / "a.npy").shape(), (tensor::Shape{0, 7}));
}

TEST(Npy, TakesAnyKeyOrderAndNoTrailingComma) {
    const auto bytes = npy_bytes("{'shape': (2, 1), 'fortran_order': False, 'descr': '<f4'}\n", 8);
    EXPECT_EQ(parse_npy(bytes, "a").shape(), (tensor::Shape{2, 1}));
}

TEST(Npy, RejectsArraysThatItCannotRead) {
    const std::string head = "{'descr': '<f4', 'fortran_order': False, ";
    const std::vector<std::pair<std::string, std::size_t>> wrong{
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", 4},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n", 8},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", 8},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n", 16},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4},
        {"{'descr': '<f4', 'fortran_order': False}\n", 4},
        {head + "'shape': ()}\n", 4},
        {head + "'shape': (1, 1, 1)}\n", 4},
        {head + "'shape': (-1,)}\n", 4},
        {head + "'shape': (1)}\n", 4},
        {head + "'shape': (2,)}\n", 4},                      // too few
        {head + "'shape': (1,)}\n", 5},                      // too many
        {head + "'shape': (4294967296, 4294967296)}\n", 0},  // product is 2^64
        {head + "'shape': (99999999999999999999,)}\n", 0},   // over 64 bits
        {head + "'shape': (4611686018427387904,)}\n", 0},    // bytes are 2^64
        {head + "'shape': (1,)} import os\n", 4},
        {head + "'shape': (1,), 'extra': 1}\n", 4},
        {"", 0},
    };
    for (const auto& [header, element_bytes] : wrong) {
        const auto bytes = npy_bytes(header, element_bytes);
        const std::string message = error_of(ExitCode::data, [&] { parse_npy(bytes, "the name"); });
        EXPECT_NE(message.find("the name"), std::string::npos) << header;
    }
}

TEST(Npy, RejectsOtherVersionsAndAHeaderLongerThanTheFile) {
    auto bytes = npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4);
    EXPECT_NO_THROW(parse_npy(bytes, "a"));
    auto version = bytes;
    version[6] = std::byte{2};
    error_of(ExitCode::data, [&] { parse_npy(version, "a"); });
    auto length = bytes;
    length[9] = std::byte{0xff};
    error_of(ExitCode::data, [&] { parse_npy(length, "a"); });
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        error_of(ExitCode::data, [&] { parse_npy(Bytes(bytes).first(size), "a"); });
    }
}

TEST(Npy, SurvivesAThousandMutations) {
    const auto bytes =
        npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n", 24);
    Dice dice(1);
    int refused = 0;
    for (int round = 0; round < 1000; ++round) {
        const auto hostile = mutated(bytes, dice);
        try {
            const NpyArray array = parse_npy(hostile, "a");
            const auto elements = static_cast<std::size_t>(array.shape().elements());
            EXPECT_LE(elements * 4, hostile.size());
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            ++refused;
        }
    }
    EXPECT_GT(refused, 500);
}

TEST(Npy, DoesNotWriteAShapeThatDoesNotFit) {
    TemporaryFolder folder;
    const std::vector<float> values(6);
    error_of(ExitCode::internal, [&] {
        write_npy(folder / "a.npy", std::span<const float>(values), {2, 2});
    });
    EXPECT_FALSE(std::filesystem::exists(folder / "a.npy"));
}

}  // namespace
}  // namespace hpcai::storage
