// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_index.hpp>

#include "fixtures.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

void touch(const fs::path& path) {
    test::write_file_bytes(path, {1, 2, 3});
}

std::string data_error(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data) << error.what();
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(SampleIndex, SortsClassesAndSamplesByTheirNames) {
    const test::TemporaryFolder folder;
    for (const char* path :
         {"a/2.jpg", "a/10.JPEG", "a-b/x.jpeg", "Z/1.Jpg", "Z/2.PNG", "a/notes.txt"}) {
        touch(folder.path() / path);
    }
    touch(folder.path() / ".cache" / "1.jpg");
    touch(folder.path() / "README");
    const SampleIndex index = scan_image_folder(folder.path());
    EXPECT_EQ(index.classes, (std::vector<std::string>{"Z", "a", "a-b"}));
    EXPECT_EQ(
        index.samples,
        (std::vector<Sample>{
            {"Z/1.Jpg", 0}, {"Z/2.PNG", 0}, {"a/10.JPEG", 1}, {"a/2.jpg", 1}, {"a-b/x.jpeg", 2}}));
    EXPECT_EQ(index.path_of(2), folder.path() / "a/10.JPEG");
}

TEST(SampleIndex, TakesOnlyRegularFilesAndLinksToThem) {
    const test::TemporaryFolder folder;
    const fs::path one = folder.path() / "one";
    touch(one / "good.jpg");
    fs::create_directory(one / "folder.jpg");
    ASSERT_EQ(mkfifo((one / "pipe.jpg").c_str(), 0600), 0);
    fs::create_symlink("good.jpg", one / "link.jpg");
    fs::create_symlink("nowhere", one / "dangling.jpg");
    fs::create_symlink("/dev/zero", one / "endless.jpg");
    const SampleIndex index = scan_image_folder(folder.path());
    EXPECT_EQ(index.samples, (std::vector<Sample>{{"one/good.jpg", 0}, {"one/link.jpg", 0}}));
    EXPECT_EQ(index.ignored, (std::vector<std::string>{"one/dangling.jpg", "one/endless.jpg",
                                                       "one/folder.jpg", "one/pipe.jpg"}));
}

TEST(SampleIndex, NamesWhatIsWrongWithAFolder) {
    const test::TemporaryFolder folder;
    const fs::path root = folder.path() / "set";
    EXPECT_TRUE(contains(data_error([&] { scan_image_folder(root); }), root.string()));
    EXPECT_TRUE(contains(data_error([&] { scan_image_folder(""); }), "data.path"));
    touch(root);
    EXPECT_TRUE(contains(data_error([&] { scan_image_folder(root); }), "not a folder"));
    fs::remove(root);
    fs::create_directory(root);
    EXPECT_TRUE(contains(data_error([&] { scan_image_folder(root); }), "no class folder"));
    touch(root / "full" / "1.jpg");
    fs::create_directory(root / "hollow");
    EXPECT_TRUE(
        contains(data_error([&] { scan_image_folder(root); }), "'hollow': expected a regular"));
}

TEST(SampleIndex, RejectsNamesThatAreNotOneLineOfText) {
    for (const auto& [name, shown] :
         std::vector<std::pair<const char*, const char*>>{{"two\nlines/1.jpg", "two\\nlines/1.jpg"},
                                                          {"caf\xe9/1.jpg", "caf\\xe9/1.jpg"},
                                                          {"a/\x1b.jpg", "a/\\x1b.jpg"}}) {
        const test::TemporaryFolder folder;
        touch(folder.path() / name);
        EXPECT_EQ(data_error([&] { scan_image_folder(folder.path()); }),
                  folder.path().string() +
                      ": expected names in UTF-8 without control characters, got '" + shown + "'");
    }
}

TEST(SampleIndex, ChecksTheNumberAndNamesOfClasses) {
    SampleIndex training{"train", {"a", "b", "c"}, {}, {}};
    EXPECT_NO_THROW(require_classes(training, 3));
    EXPECT_TRUE(contains(data_error([&] { require_classes(training, 4); }),
                         "class folders: 3, but workload.classes is 4"));
    EXPECT_NO_THROW(require_same_classes(training, training));
    const SampleIndex shorter{"val", {"a", "b"}, {}, {}};
    const SampleIndex other{"val", {"a", "bb", "c"}, {}, {}};
    EXPECT_EQ(data_error([&] { require_same_classes(training, shorter); }),
              "class 'c' is in train but not in val");
    EXPECT_EQ(data_error([&] { require_same_classes(shorter, training); }),
              "class 'c' is in train but not in val");
    EXPECT_EQ(data_error([&] { require_same_classes(training, other); }),
              "class 'b' is in train but not in val");
}

/// A group of two ranks in one thread: rank 0 stores what it broadcasts, rank 1 receives it later.
class ReplayedGroup : public comm::Communicator {
public:
    void become_rank_one() { rank_ = 1; }
    int rank() const override { return rank_; }
    int size() const override { return 2; }
    void broadcast(std::span<std::byte> bytes, int root) override {
        EXPECT_EQ(root, 0);
        if (rank_ == 0) {
            sent_.emplace_back(bytes.begin(), bytes.end());
            return;
        }
        ASSERT_LT(replayed_, sent_.size());
        const auto& message = sent_[replayed_++];
        ASSERT_EQ(message.size(), bytes.size());
        std::copy(message.begin(), message.end(), bytes.begin());
    }
    void all_reduce_sum(std::span<float>) override {}
    void all_reduce_sum(std::span<double>) override {}
    void all_reduce_sum(std::span<std::int64_t>) override {}
    void all_reduce_max(std::span<double> values) override {
        broadcast(std::as_writable_bytes(values), 0);
    }
    void reduce_sum(std::span<float>, int) override {}
    void all_gather(std::span<const std::byte>, std::span<std::byte>) override {}
    void send(std::span<const std::byte>, int, int) override {}
    void receive(std::span<std::byte>, int, int) override {}
    std::unique_ptr<comm::Request> start_exchange(std::span<const comm::Outgoing>,
                                                  std::span<const comm::Incoming>, int) override {
        return {};
    }
    void wait_until(const std::function<bool()>&) override {}
    void barrier() override {}
    std::unique_ptr<comm::Communicator> split(int, int) override { return {}; }

private:
    int rank_ = 0;
    std::size_t replayed_ = 0;
    std::vector<std::vector<std::byte>> sent_;
};

class IndexFile : public testing::Test {
protected:
    void SetUp() override {
        for (const char* path : {"a/1.jpg", "a-b/1.jpg", "a-b/2 \"q\"\u00e9.jpg"}) {
            touch(folder_.path() / "set" / path);
        }
    }
    std::string refusal(const std::string& text) {
        test::write_file_bytes(file(), {text.begin(), text.end()});
        return data_error([this] { read_index(file()); });
    }
    fs::path root() const { return folder_.path() / "set"; }
    fs::path file() const { return folder_.path() / "index.jsonl"; }

    test::TemporaryFolder folder_;
};

TEST_F(IndexFile, HoldsTheScanAndMovesWithItsFolder) {
    const SampleIndex scanned = scan_image_folder(root());
    write_index(scanned, file());
    SampleIndex read = load_samples(file());
    EXPECT_EQ(read.classes, scanned.classes);
    EXPECT_EQ(read.samples, scanned.samples);
    EXPECT_TRUE(fs::equivalent(read.path_of(0), scanned.path_of(0)));
    fs::create_directory(folder_.path() / "moved");
    fs::rename(root(), folder_.path() / "moved" / "set");
    fs::rename(file(), folder_.path() / "moved" / "index.jsonl");
    read = read_index(folder_.path() / "moved" / "index.jsonl");
    EXPECT_TRUE(fs::exists(read.path_of(0)));
}

TEST_F(IndexFile, IsRejectedWhereItIsNotWhatWasWritten) {
    const std::string header =
        R"({"schema":"hpcai500-index-1","root":"set","classes":["a","b"],"samples":2})"
        "\n";
    const std::string first = R"({"path":"a/1.jpg","label":0})"
                              "\n";
    for (const char* other : {"", "[]\n", "# a configuration\nrun:\n"})
        EXPECT_TRUE(contains(refusal(other), "or its index (JSON lines), got another file"))
            << other;
    EXPECT_TRUE(contains(refusal(R"({"schema":"x","root":"","classes":["a"],"samples":0})"
                                 "\n"),
                         "schema 'x'"));
    EXPECT_TRUE(contains(refusal(header + first), "1 samples, but the header has 2"));
    EXPECT_TRUE(contains(refusal(header + first + first), ":3: path 'a/1.jpg' is out of order"));
    EXPECT_TRUE(contains(refusal(header + first +
                                 R"({"path":"b/1.jpg","label":2})"
                                 "\n"),
                         ":3: \"label\": expected 0 to 1, got 2"));
    EXPECT_TRUE(contains(refusal(header + first +
                                 R"({"path":"../1.jpg","label":1})"
                                 "\n"),
                         "outside the folder"));
    EXPECT_TRUE(contains(refusal(header + first +
                                 R"({"path":7,"label":1})"
                                 "\n"),
                         "wrong type"));
    EXPECT_TRUE(contains(refusal(header + first + R"({"path":"b/1.jpg","la)"), "ends early"));
    EXPECT_TRUE(contains(refusal(header + first +
                                 R"({"path":"a/2.jpg","label":0})"
                                 "\n"),
                         "class 'b' is empty"));
}

TEST_F(IndexFile, AProcessAloneLoadsWithoutMessages) {
    const auto alone = comm::make_self_communicator();
    EXPECT_EQ(load_samples(root(), *alone).samples, load_samples(root()).samples);
    EXPECT_TRUE(contains(data_error([&] { load_samples(root() / "none", *alone); }), "none"));
}

TEST_F(IndexFile, OneRankReadsForItsGroup) {
    ReplayedGroup group;
    const SampleIndex scanned = load_samples(root(), group);
    test::TemporaryFolder elsewhere;
    std::filesystem::rename(root(), elsewhere.path() / "set");  // rank 1 cannot list the folder
    group.become_rank_one();
    const SampleIndex received = load_samples(root(), group);
    EXPECT_EQ(received.root, scanned.root);
    EXPECT_EQ(received.classes, scanned.classes);
    EXPECT_EQ(received.samples, scanned.samples);
}

TEST_F(IndexFile, EveryRankThrowsWhatTheReadingOneDid) {
    ReplayedGroup group;
    const std::string first = data_error([&] { load_samples(root() / "none", group); });
    group.become_rank_one();
    EXPECT_EQ(data_error([&] { load_samples(root() / "none", group); }), first);
    EXPECT_TRUE(contains(first, "none"));
}

}  // namespace
}  // namespace hpcai::data
