// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <hpcai/data/pack.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/data/survey.hpp>
#include <hpcai/storage/sha256.hpp>

#include "staging.hpp"
#include "support/failing_disk.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using testing::AllOf;
using testing::HasSubstr;
using tests::files_below;

constexpr std::size_t kFileBytes = 300'000;  // three in a shard of 1 MiB

/// Two classes of five images, with names that are difficult for a tar file or WebDataset. Their
/// shards of 1 MiB have 3, 3, 3 and 2 samples.
class Pack : public testing::Test {
protected:
    Pack() {
        setenv("HPCAI500_DISK_FOLDER", "/packed", 1);
        const char* names[] = {"a/1.2.jpg",          "a/1.jpeg",  "a/1.jpg",   "a/z.jpe",
                               "a/\u00e9 \"q\".JPG", "b.c/1.jpg", "b.c/2.jpg", "b.c/3.jpg",
                               "b.c/4.jpg",          "b.c/5.jpg"};
        for (const char* name : names) {
            const int number = static_cast<int>(index_.size());
            Bytes bytes = encode_jpeg(
                Image(20 + number, 24, static_cast<std::uint8_t>(20 * number)).view(), 90);
            bytes.resize(kFileBytes +
                         static_cast<std::size_t>(number));  // after the end of the image
            test::write_file_bytes(folder() / name, bytes);
            index_.push_back(name);
        }
        fs::create_symlink("1.jpg", folder() / "b.c/6.jpg");
        fs::create_symlink("nowhere", folder() / "b.c/7.jpg");
    }
    ~Pack() override {
        for (const char* name : {"FOLDER", "CALL", "FAULT"}) {
            unsetenv(("HPCAI500_DISK_" + std::string(name)).c_str());
        }
    }

    fs::path folder() const { return temporary_.path() / "pictures"; }
    fs::path packed() const { return temporary_.path() / "packed"; }
    fs::path shard(int number) const {
        return packed() / ("pictures-00000" + std::to_string(number) + ".tar");
    }
    PackOptions options() const { return {folder().string(), packed().string(), 1, 1}; }
    std::shared_ptr<const SampleSet> samples(const fs::path& path) const {
        return make_folder_samples(load_samples(path), config::DataConfig(), 16);
    }
    test::Staged stage(const SampleIndex& index) const {
        fs::create_directories(temporary_.path() / "local");
        return test::stage_at_one_rank(
            test::staging_config(temporary_.path() / "local"),
            {index.root, 11, [&](std::uint32_t i) { return index.samples[i].path; }, &index});
    }
    std::string usage_error() const {
        const auto [code, message] = test::refused([&] { pack_pictures(options()); });
        EXPECT_EQ(code, ExitCode::usage) << message;
        return message;
    }
    void flip_byte(const fs::path& path, std::size_t offset) const {
        Bytes bytes = test::read_file_bytes(path);
        bytes.at(offset) ^= 1;
        test::write_file_bytes(path, bytes);
    }
    /// Packs in a separate process, whose call number `call` to change the output kills it.
    int pack_until(int call) const {
        const pid_t child = fork();
        if (child == 0) {
            setenv("HPCAI500_DISK_FAULT", "kill", 1);
            setenv("HPCAI500_DISK_CALL", std::to_string(call).c_str(), 1);
            pack_pictures(options());
            _exit(0);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return status;
    }
    std::string index_text() const {
        const Bytes bytes = test::read_file_bytes(packed() / kShardIndexName);
        return {bytes.begin(), bytes.end()};
    }
    std::string refusal(const std::string& from, const std::string& to) const {
        const std::string text = index_text();
        std::string other = text;
        EXPECT_NE(other.find(from), std::string::npos) << from;
        other.replace(other.find(from), from.size(), to);
        test::write_file_bytes(packed() / kShardIndexName, {other.begin(), other.end()});
        const auto [code, message] = test::refused([&] { load_samples(packed()); });
        test::write_file_bytes(packed() / kShardIndexName, {text.begin(), text.end()});
        EXPECT_EQ(code, ExitCode::data) << message;
        return message;
    }

    test::TemporaryFolder temporary_;
    std::vector<std::string> index_;
};

TEST_F(Pack, HasTheSamplesOfItsFolder) {
    const PackReport report = pack_pictures(options());
    EXPECT_EQ(report.kept_shards, 0);
    EXPECT_EQ(
        files_below(packed()),
        (std::vector<std::string>{"pictures-000000.tar", "pictures-000001.tar",
                                  "pictures-000002.tar", "pictures-000003.tar", kShardIndexName}));
    const SampleIndex scanned = load_samples(folder());
    ASSERT_EQ(scanned.samples.size(), 11U) << "the link to a file is a sample";
    for (const fs::path& path : {packed(), packed() / kShardIndexName}) {
        const SampleIndex index = load_samples(path);
        EXPECT_EQ(index.classes, scanned.classes);
        EXPECT_EQ(index.samples, scanned.samples);
        EXPECT_EQ(index.root, packed());
        EXPECT_EQ(class_names(path), scanned.classes);
    }
    const auto of_folder = samples(folder()), of_shards = samples(packed());
    for (std::uint32_t sample = 0; sample < 11; ++sample) {
        EXPECT_EQ(of_shards->contents(sample), of_folder->contents(sample)) << sample;
        EXPECT_EQ(of_shards->name(sample), of_folder->name(sample));
        EXPECT_EQ(of_shards->label(sample), of_folder->label(sample));
    }
    EXPECT_EQ(of_shards->location(0),
              shard(0).string() + ": a/1.2.jpg (300000 bytes at offset 512)");
}

TEST_F(Pack, HasTheBatchesOfItsFolderAlsoAfterAMove) {
    pack_pictures(options());
    fs::rename(packed(), temporary_.path() / "moved");
    const auto batches = [&](const fs::path& path) {
        SourceSettings settings;
        settings.batch_size = 4;
        settings.decode_threads = 2;
        TrainingSource source(samples(path), settings, 7, 0);
        source.begin_epoch(0, {9, 3, 0, 10, 5, 5, 2, 8});
        std::vector<std::byte> pixels;
        for (int batch = 0; batch < 2; ++batch) {
            const Batch& next = source.next();
            const auto* const first = static_cast<const std::byte*>(next.images.data);
            pixels.insert(pixels.end(), first, first + next.images.bytes());
        }
        return pixels;
    };
    EXPECT_EQ(batches(temporary_.path() / "moved"), batches(folder()));
}

std::uint64_t octal(const std::string& field) {
    return std::stoull(field, nullptr, 8);
}

TEST_F(Pack, WritesMembersThatOtherProgramsRead) {
    pack_pictures(options());
    const SampleIndex index = load_samples(packed());
    const Bytes bytes = test::read_file_bytes(shard(0));
    const std::string tar(bytes.begin(), bytes.end());
    EXPECT_EQ(std::ssize(tar), index.shards[0].bytes);
    std::size_t offset = 0;
    std::vector<std::string> members;
    while (tar[offset] != '\0') {
        const std::string header = tar.substr(offset, 512);
        std::uint64_t sum = 8 * ' ';
        for (std::size_t i = 0; i < 512; ++i) {
            if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
        }
        EXPECT_EQ(octal(header.substr(148, 6)), sum);
        EXPECT_EQ(header.substr(257, 8), std::string("ustar\00000", 8));
        members.push_back(std::string(header.substr(345).c_str()) + "/" + header.c_str());
        const std::uint64_t size = octal(header.substr(124, 11));
        const std::string content = tar.substr(offset + 512, size);
        const std::size_t sample = (members.size() - 1) / 2;
        if (members.size() % 2 == 0) {
            EXPECT_EQ(content, "0");
        } else {
            EXPECT_EQ(index.ranges[sample].offset, static_cast<std::int64_t>(offset + 512));
            EXPECT_EQ(index.ranges[sample].sha256, storage::sha256_hex(storage::bytes_of(content)));
        }
        offset += 512 + (size + 511) / 512 * 512;
    }
    EXPECT_EQ(members,
              (std::vector<std::string>{"a/000000000.jpg", "a/000000000.cls", "a/000000001.jpg",
                                        "a/000000001.cls", "a/000000002.jpg", "a/000000002.cls"}));
    EXPECT_EQ(tar.substr(offset), std::string(1024, '\0'));
}

TEST_F(Pack, ResumesAfterAKillBetweenAnyTwoCalls) {
    pack_pictures(options());
    std::map<std::string, Bytes> expected;
    for (const std::string& name : files_below(packed())) {
        expected[name] = test::read_file_bytes(packed() / name);
    }
    std::int64_t most_kept = 0;
    int call = 1;
    for (;; ++call) {
        fs::remove_all(packed());
        if (WIFEXITED(pack_until(call))) break;
        if (fs::exists(packed() / kShardIndexName)) continue;  // complete but for its clean-up
        const std::int64_t kept = pack_pictures(options()).kept_shards;
        EXPECT_GE(kept, most_kept) << "a later kill leaves as many shards";
        most_kept = kept;
        ASSERT_EQ(files_below(packed()).size(), expected.size()) << call;
        for (const auto& [name, bytes] : expected) {
            EXPECT_EQ(test::read_file_bytes(packed() / name), bytes) << call << " " << name;
        }
    }
    EXPECT_EQ(most_kept, 4);
    EXPECT_GT(call, 30) << "calls that change the output";
}

TEST_F(Pack, WritesAShardAgainWhoseImagesHaveChanged) {
    int call = 1;
    while (!fs::exists(shard(1))) {
        fs::remove_all(packed());
        ASSERT_TRUE(WIFSIGNALED(pack_until(call++)));
    }
    flip_byte(folder() / index_[0], 1000);
    const fs::path interrupted = temporary_.path() / "interrupted";
    fs::copy(packed(), interrupted);
    EXPECT_EQ(pack_pictures(options()).kept_shards, 1) << "the second shard";
    const auto contents = samples(folder())->contents(0);
    for (int again = 1; again < 17; ++again) {  // the calls that replace the first shard
        EXPECT_TRUE(samples(packed())->contents(0) == contents) << again;
        EXPECT_TRUE(survey(load_samples(packed()), 1).bad.empty()) << again;
        fs::remove_all(packed());
        fs::copy(interrupted, packed());
        ASSERT_TRUE(WIFSIGNALED(pack_until(again)));
        pack_pictures(options());
    }
}

TEST_F(Pack, DoesNotReplaceOtherFiles) {
    pack_pictures(options());
    EXPECT_THAT(usage_error(), HasSubstr("packed' is packed already"));
    fs::remove(packed() / kShardIndexName);
    const Bytes before = test::read_file_bytes(shard(0));
    EXPECT_THAT(usage_error(), AllOf(HasSubstr("pictures-00000"), HasSubstr("was not written by")));
    EXPECT_EQ(before, test::read_file_bytes(shard(0)));
}

TEST_F(Pack, CheckNamesFileOffsetAndSamplesOfADamagedShard) {
    pack_pictures(options());
    const SampleIndex index = load_samples(packed());
    flip_byte(shard(1), static_cast<std::size_t>(index.ranges[4].offset) + kFileBytes - 1);
    fs::resize_file(shard(2), static_cast<std::uintmax_t>(index.ranges[7].offset) + 10);
    fs::remove(shard(3));
    const FolderReport report = survey(index, 2);
    ASSERT_EQ(report.bad.size(), 5U);
    const std::string range =
        fmt::format("{} bytes at offset {}", kFileBytes + 4, index.ranges[4].offset);
    EXPECT_EQ(report.bad[0].name, shard(1).string() + ": a/\u00e9 \"q\".JPG (" + range + ")");
    EXPECT_THAT(report.bad[0].reason, HasSubstr("damaged"));
    EXPECT_THAT(report.bad[1].name, HasSubstr("b.c/3.jpg"));
    EXPECT_THAT(report.bad[1].reason, HasSubstr("the shard ends before"));
    EXPECT_THAT(report.bad[4].name, HasSubstr("pictures-000003.tar: b.c/6.jpg"));
    EXPECT_THAT(report.bad[4].reason, HasSubstr("cannot be read: No such file"));
}

TEST_F(Pack, AnImageThatCannotBeReadIsABadSampleAsInItsFolder) {
    write_index(load_samples(folder()), temporary_.path() / "index.jsonl");
    fs::remove(folder() / index_[2]);
    PackOptions from_index = options();
    from_index.input = (temporary_.path() / "index.jsonl").string();
    const PackReport report = pack_pictures(from_index);
    EXPECT_EQ(report.index.ranges[2].sha256, "");
    const auto pixels = [](const SampleSet& set) {
        Bytes grey(set.format().pixel_bytes());
        EXPECT_NE(set.evaluation_sample(2, {std::as_writable_bytes(std::span(grey)), {}}), "");
        return grey;
    };
    EXPECT_EQ(pixels(*samples(packed())), pixels(*samples(temporary_.path() / "index.jsonl")));
    EXPECT_EQ(samples(packed())->contents(3), samples(folder())->contents(2));
}

TEST_F(Pack, AnIndexThatPackDoesNotWriteIsRejected) {
    pack_pictures(options());
    const std::int64_t end = load_samples(packed()).shards[0].bytes;
    const std::string shards = R"("name":"pictures-000000.tar")";
    for (const char* name : {"", ".tar", "../x.tar", "/etc/x", "a/b.tar"}) {
        EXPECT_THAT(refusal(shards, R"("name":")" + std::string(name) + '"'),
                    HasSubstr("shards.jsonl:1: shard '" + std::string(name) + "'"));
    }
    EXPECT_THAT(refusal(shards, R"("name":"a\n.tar")"), HasSubstr("control characters"));
    EXPECT_THAT(refusal(R"("root":".")", R"("root":"/etc")"), HasSubstr("root '/etc'"));
    EXPECT_THAT(refusal("hpcai500-shards-1", "hpcai500-shards-9"), HasSubstr("schema"));
    const std::string offset = R"("offset":512,)";
    EXPECT_THAT(refusal(offset, R"("offset":-1,)"), HasSubstr(":2: \"offset\": expected 0 to"));
    EXPECT_THAT(refusal(offset, R"("offset":1.5,)"), HasSubstr("got 1.5"));
    EXPECT_THAT(refusal(offset, R"("offset":18446744073709551615,)"), HasSubstr("got 184"));
    EXPECT_THAT(refusal(offset, fmt::format(R"("offset":{},)", end - 9)),
                HasSubstr(":2: \"bytes\": expected 0 to 9, got 300000"));
    EXPECT_THAT(refusal(R"("bytes":300000,)", R"("bytes":"1",)"), HasSubstr("got \"1\""));
    EXPECT_THAT(refusal(R"("shard":0)", R"("shard":4)"),
                HasSubstr("\"shard\": expected 0 to 3, got 4"));
    EXPECT_THAT(refusal(R"("label":0)", R"("label":2)"),
                HasSubstr("\"label\": expected 0 to 1, got 2"));
    EXPECT_THAT(refusal(R"("path":"a/1.2.jpg")", R"("path":"../1.jpg")"), HasSubstr("outside the"));
    EXPECT_THAT(refusal(R"("sha256":")", R"("sha256":"x)"), HasSubstr("64 hexadecimal digits"));
    EXPECT_THAT(refusal(R"(,"shard":0)", ""), HasSubstr("\"shard\" is missing"));
}

TEST_F(Pack, StagesImagesFromTheShards) {
    pack_pictures(options());
    const SampleIndex index = load_samples(packed());
    const test::Staged staged = stage(index);
    for (std::uint32_t sample = 0; sample < 11; ++sample) {
        EXPECT_EQ(staged.pictures->read(sample),
                  test::read_file_bytes(folder() / index.samples[sample].path));
    }
    EXPECT_EQ(staged.record.copied_bytes, 11 * std::int64_t{kFileBytes} + 45 + 5);
}

TEST_F(Pack, RanksLoadTheDigestsThatStagingCompares) {
    pack_pictures(options());
    const std::string digest = load_samples(packed()).ranges[4].sha256;
    comm::run_as_threads(2, [&](comm::Communicator& ranks) {
        EXPECT_EQ(load_samples(packed(), ranks, true).ranges[4].sha256, digest);
        EXPECT_EQ(load_samples(packed(), ranks).ranges[4].sha256, "");
    });
}

TEST_F(Pack, StagingRejectsAnImageThatDiffersFromTheIndex) {
    pack_pictures(options());
    SampleIndex index = load_samples(packed());
    flip_byte(shard(1), static_cast<std::size_t>(index.ranges[4].offset) + kFileBytes - 1);
    const std::string right = std::exchange(index.ranges[4].sha256, "");
    stage(index);  // as from an index without digests
    index.ranges[4].sha256 = right;
    const auto [code, message] = test::refused([&] { stage(index); });
    EXPECT_EQ(code, ExitCode::data);
    EXPECT_THAT(message, AllOf(HasSubstr(index.location_of(4)),
                               HasSubstr("its SHA-256 is not the one that shards.jsonl in")));
}

}  // namespace
}  // namespace hpcai::data
