// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include <hpcai/storage/safetensors.hpp>
#include <hpcai/storage/strict_json.hpp>

#include "temporary_folder.hpp"

namespace hpcai::storage {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t element_bytes) {
    std::vector<std::byte> bytes(8 + header.size() + element_bytes);
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    std::memcpy(bytes.data() + 8, header.data(), header.size());
    return bytes;
}

std::string rejection_of(const std::vector<std::byte>& bytes) {
    return error_of(ExitCode::data, [&] { SafetensorsFile file(bytes, "the name"); });
}

TEST(Safetensors, ComeBackAsTheyWereWritten) {
    TemporaryFolder folder;
    const std::array<float, 6> weights{1, 2, 3, 4, 5, -0.5F};
    const std::array<std::int64_t, 1> counter{-7};
    const std::array<std::uint16_t, 3> half{1, 2, 3};
    const std::vector<StoredTensor> tensors{
        {"half", ElementType::bf16, {3}, std::as_bytes(std::span(half))},
        {"fc.weight", ElementType::f32, {2, 3}, std::as_bytes(std::span(weights))},
        {"bn.count", ElementType::i64, {}, std::as_bytes(std::span(counter))},
        {"empty", ElementType::f16, {0, 4}, {}},
    };
    write_safetensors(folder / "w.safetensors", tensors, {{"format", "pt"}});
    const SafetensorsFile file = read_safetensors(folder / "w.safetensors");
    EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
    ASSERT_EQ(file.tensors().size(), tensors.size());
    for (const StoredTensor& written : tensors) {
        const StoredTensor* read = file.find(written.name);
        ASSERT_NE(read, nullptr) << written.name;
        EXPECT_EQ(read->type, written.type);
        EXPECT_EQ(read->shape, written.shape);
        EXPECT_EQ(text_of(read->bytes), text_of(written.bytes));
    }
    EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Safetensors, ViewsStayValidWhenTheFileMoves) {
    const auto bytes = file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3);
    SafetensorsFile file(bytes, "a");
    const std::byte* before = file.find("a")->bytes.data();
    const SafetensorsFile moved = std::move(file);
    EXPECT_EQ(moved.find("a")->bytes.data(), before);
}

TEST(Safetensors, PutTheLargestElementsFirstSoThatAllAreAligned) {
    TemporaryFolder folder;
    const std::array<std::byte, 8> bytes{};
    const std::vector<StoredTensor> tensors{{"a", ElementType::u8, {3}, Bytes(bytes).first(3)},
                                            {"b", ElementType::f32, {1}, Bytes(bytes).first(4)},
                                            {"c", ElementType::i64, {1}, bytes}};
    write_safetensors(folder / "w", tensors);
    const SafetensorsFile file = read_safetensors(folder / "w");
    EXPECT_EQ(file.tensors()[0].name, "c");
    EXPECT_EQ(file.tensors()[1].name, "b");
    EXPECT_EQ(file.tensors()[2].name, "a");
    const auto whole = read_file_bytes(folder / "w", 1000);
    EXPECT_EQ(std::to_integer<int>(whole[0]) % 8, 0);
}

TEST(Safetensors, WithoutTensorsAreLegal) {
    EXPECT_TRUE(SafetensorsFile(file_of("{}", 0), "a").tensors().empty());
    EXPECT_TRUE(SafetensorsFile(file_of("{}      ", 0), "a").tensors().empty());
}

TEST(Safetensors, RejectEveryBrokenRule) {
    const auto entry = [](const std::string& dtype, const std::string& shape,
                          const std::string& offsets) {
        return R"("a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
               offsets + "}";
    };
    const std::string good = entry("U8", "[4]", "[0,4]");
    const std::string second = R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":)";
    const std::vector<std::pair<std::string, std::size_t>> wrong{
        {"", 0},
        {" {}", 0},             // does not begin with a brace
        {"\xef\xbb\xbf{}", 0},  // nor with a byte order mark
        {"[]", 0},
        {"{", 0},
        {"{}x", 0},
        {"{\"\xff\":1}", 0},    // not UTF-8
        {"{" + good + "}", 3},  // too few bytes
        {"{" + good + "}", 5},  // bytes that no tensor describes
        {"{}", 1},
        {"{" + good + "," + good + "}", 4},            // key twice
        {"{" + good + second + "[5,9]}}", 9},          // hole
        {"{" + good + second + "[3,7]}}", 7},          // overlap
        {"{" + good + second + "[0,4]}}", 4},          // same bytes
        {"{" + entry("U8", "[4]", "[4,0]") + "}", 4},  // backwards
        {"{" + entry("U8", "[4]", "[0,4,4]") + "}", 4},
        {"{" + entry("U8", "[4]", "[0]") + "}", 4},
        {"{" + entry("U8", "[4]", "[-4,0]") + "}", 4},
        {"{" + entry("U8", "[4]", "[0,4.0]") + "}", 4},
        {"{" + entry("U8", "[4]", "[0,1e30]") + "}", 4},
        {"{" + entry("U8", "[4]", "[0,18446744073709551616]") + "}", 4},
        {"{" + entry("U8", "[4]", "[0,18446744073709551615]") + "}", 4},
        {"{" + entry("U8", "[-4]", "[0,4]") + "}", 4},
        {"{" + entry("U8", "4", "[0,4]") + "}", 4},
        {"{" + entry("F32", "[4]", "[0,4]") + "}", 4},  // 16 bytes needed
        {"{" + entry("F31", "[1]", "[0,4]") + "}", 4},
        {"{" + entry("F32", "[4294967296,4294967296]", "[0,0]") + "}", 0},  // 2^66 bytes
        {"{" + entry("U8", "[2,9223372036854775807,2]", "[0,0]") + "}", 0},
        {"{" + entry("U8", "[9223372036854775808]", "[0,0]") + "}", 0},
        {"{" + entry("F32", "[4611686018427387904]", "[0,0]") + "}", 0},  // bytes are 2^64
        {R"({"a":{"dtype":"U8","shape":[4]}})", 4},
        {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}})", 4},
        {R"({"a":{"dtype":5,"shape":[4],"data_offsets":[0,4]}})", 4},
        {R"({"a":[0,4]})", 4},
        {R"({"__metadata__":{"k":1}})", 0},
        {R"({"__metadata__":"text"})", 0},
        {R"({"__metadata__":{"k":{"deep":"er"}}})", 0},
    };
    for (const auto& [header, element_bytes] : wrong) {
        const std::string message = rejection_of(file_of(header, element_bytes));
        EXPECT_NE(message.find("the name"), std::string::npos) << header;
    }
    EXPECT_NO_THROW(SafetensorsFile(file_of("{" + good + second + "[4,8]}}", 8), "a"));
}

TEST(Safetensors, RejectWrongHeaderLengths) {
    auto bytes = file_of("{}", 0);
    for (const std::uint64_t length :
         {std::uint64_t{3}, std::uint64_t{100'000'000}, std::uint64_t{100'000'001},
          std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
        std::memcpy(bytes.data(), &length, 8);
        rejection_of(bytes);
    }
    rejection_of({});
    rejection_of(std::vector<std::byte>(7));
}

TEST(Safetensors, RejectADeeplyNestedHeaderQuickly) {
    const std::string deep = "{\"a\":" + std::string(1'000'000, '[');
    EXPECT_NE(rejection_of(file_of(deep, 0)).find("nested"), std::string::npos);
}

TEST(Safetensors, SurviveTwoThousandMutationsAndEveryTruncation) {
    const auto bytes = file_of(
        R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
        R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})",
        32);
    EXPECT_NO_THROW(SafetensorsFile(bytes, "a"));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        rejection_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
    }
    Dice dice(2);
    int refused = 0;
    for (int round = 0; round < 2000; ++round) {
        const auto hostile = mutated(bytes, dice);
        try {
            const SafetensorsFile file(hostile, "a");
            std::size_t described = 0;
            for (const StoredTensor& tensor : file.tensors()) described += tensor.bytes.size();
            EXPECT_LE(described, hostile.size());
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            ++refused;
        }
    }
    EXPECT_GT(refused, 1000);
}

TEST(Safetensors, AreNotWrittenWithADuplicateNameOrAWrongShape) {
    TemporaryFolder folder;
    const std::array<std::byte, 4> bytes{};
    const StoredTensor tensor{"a", ElementType::f32, {1}, bytes};
    const StoredTensor reserved{"__metadata__", ElementType::f32, {1}, bytes};
    const StoredTensor wrong_shape{"a", ElementType::f32, {2}, bytes};
    for (const auto& tensors :
         {std::vector{tensor, tensor}, std::vector{reserved}, std::vector{wrong_shape}}) {
        error_of(ExitCode::internal, [&] { write_safetensors(folder / "w", tensors); });
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

TEST(StrictJson, RejectsKeysThatOccurTwiceOnAnyLevelOnly) {
    EXPECT_NO_THROW(parse_strict_json(R"([{"a":{"a":1}},{"a":2},{"b":{"a":3},"a":4}])", "j"));
    for (const char* text : {R"({"a":1,"a":1})", R"([{"b":{"a":1,"c":{},"a":2}}])"}) {
        error_of(ExitCode::data, [&] { parse_strict_json(text, "j"); });
    }
}

TEST(StrictJson, HasLimits) {
    EXPECT_NO_THROW(parse_strict_json("[[1]]", "j", {.depth = 2, .values = 10}));
    error_of(ExitCode::data, [] { parse_strict_json("[[[1]]]", "j", {.depth = 2}); });
    error_of(ExitCode::data,
             [] { parse_strict_json("[1,2,3,4,5,6,7,8]", "j", {.depth = 2, .values = 4}); });
    error_of(ExitCode::data, [] { parse_strict_json("[1e999]", "j"); });
    error_of(ExitCode::data, [] { parse_strict_json("[NaN]", "j"); });
}

}  // namespace
}  // namespace hpcai::storage
