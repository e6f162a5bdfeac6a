// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <system_error>

#include <strings.h>

#include <hpcai/base/text.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndexSchema = "hpcai500-index-1";
constexpr const char* kShardsSchema = "hpcai500-shards-1";

bool has_picture_extension(const fs::path& path) {
    constexpr std::array kExtensions{".jpg", ".jpeg", ".jpe", ".png"};
    const std::string extension = path.extension().string();
    return std::ranges::any_of(kExtensions, [&](const char* known) {
        return ::strcasecmp(extension.c_str(), known) == 0;
    });
}

/// Returns the names in a folder, sorted by their bytes.
std::vector<std::string> sorted_names(const fs::path& folder) {
    std::error_code error;
    std::vector<std::string> names;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    require(!error, ExitCode::data, "{}: the folder cannot be listed: {}", folder.string(),
            error.message());
    std::sort(names.begin(), names.end());
    return names;
}

/// Throws naming `where` for a name that does not fit in one line of a result's text files.
void check_name(const std::string& name, const std::string& where) {
    require(printable(name) == name, ExitCode::data,
            "{}: expected names in UTF-8 without control characters, got '{}'", printable(where),
            printable(name));
}

void scan_class(const std::string& name, SampleIndex& index) {
    const auto label = static_cast<std::int32_t>(index.classes.size());
    const std::size_t before = index.samples.size();
    const std::vector<std::string> files = sorted_names(index.root / name);
    for (const std::string& file : files) {
        if (!has_picture_extension(file)) continue;
        const std::string path = name + "/" + file;
        check_name(path, index.root.string());
        std::error_code error;
        if (fs::is_regular_file(index.root / path, error)) {
            index.samples.push_back({path, label});
        } else {
            index.ignored.push_back(path);
        }
    }
    std::error_code error;
    const fs::path training = index.root / "train";
    const auto other = std::ranges::find_if(files, [&](const std::string& file) {
        return fs::is_regular_file(index.root / name / file, error);
    });
    const bool is_parent = before == 0 && fs::is_directory(training, error);
    require(index.samples.size() > before, ExitCode::data,
            "{}: class '{}': expected a regular file *.jpg, *.jpeg, *.jpe or *.png; other files or "
            "folders: {}{}",
            index.root.string(), printable(name), files.size(),
            is_parent ? fmt::format("; did you mean a folder in it, such as {}?", training.string())
            : other == files.end()
                ? ""
                : fmt::format("; convert images of other formats, perhaps {}, for example with "
                              "ImageMagick's `mogrify -format png`",
                              printable(*other)));
    index.classes.push_back(name);
}

std::string dump(const json& value, const fs::path& root) {
    try {
        return value.dump() + "\n";
    } catch (const json::exception&) {
        throw Error(ExitCode::data,
                    fmt::format("{}: the path is not UTF-8", printable(root.string())));
    }
}

std::string to_lines(const SampleIndex& index, const std::string& root) {
    json header{{"schema", index.is_packed() ? kShardsSchema : kIndexSchema},
                {"root", root},
                {"classes", index.classes},
                {"samples", index.samples.size()}};
    for (const Shard& shard : index.shards) {
        header["shards"].push_back({{"name", shard.name}, {"bytes", shard.bytes}});
    }
    std::string text = dump(header, index.root);
    for (std::size_t i = 0; i < index.samples.size(); ++i) {
        json line{{"path", index.samples[i].path}, {"label", index.samples[i].label}};
        if (index.is_packed()) {
            const ShardRange& range = index.ranges[i];
            line.update({{"shard", range.shard},
                         {"offset", range.offset},
                         {"bytes", range.bytes},
                         {"sha256", range.sha256}});
        }
        text += dump(line, index.root);
    }
    return text;
}

/// Reads the lines of an index file. Error messages contain file and line.
class LineReader {
public:
    LineReader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

    bool at_end() const { return rest_.empty(); }
    std::string where() const { return fmt::format("{}:{}", name_, line_); }
    json next() {
        ++line_;
        const std::size_t end = rest_.find('\n');
        require(end != std::string_view::npos, ExitCode::data, "{}: the index ends early", where());
        const std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        json value = storage::parse_strict_json(line, where());
        require(value.is_object(), ExitCode::data, "{}: expected a JSON object", where());
        return value;
    }
    template <typename T>
    T member(const json& object, const char* key) const {
        const auto found = object.find(key);
        require(found != object.end(), ExitCode::data, "{}: \"{}\" is missing", where(), key);
        try {
            return found->get<T>();
        } catch (const json::exception&) {
            throw Error(ExitCode::data, fmt::format("{}: \"{}\" has the wrong type: {}", where(),
                                                    key, found->dump()));
        }
    }
    std::int64_t integer(const json& object, const char* key, std::int64_t maximum) const {
        const json value = member<json>(object, key);
        require(value.is_number_integer() && value >= 0 && value <= maximum, ExitCode::data,
                "{}: \"{}\": expected 0 to {}, got {}", where(), key, maximum, value.dump());
        return value.get<std::int64_t>();
    }

private:
    std::string_view rest_;
    std::string name_;
    std::int64_t line_ = 0;
};

std::vector<Shard> read_shards(const LineReader& lines, const json& header) {
    std::vector<Shard> shards;
    for (const json& row : lines.member<std::vector<json>>(header, "shards")) {
        shards.push_back({lines.member<std::string>(row, "name"),
                          lines.integer(row, "bytes", std::numeric_limits<std::int64_t>::max())});
        const std::string& name = shards.back().name;
        check_name(name, lines.where());
        require(!name.empty() && !name.starts_with('.') && name.find('/') == std::string::npos,
                ExitCode::data, "{}: shard '{}' is not a plain file name", lines.where(), name);
    }
    require(!shards.empty(), ExitCode::data, "{}: \"shards\" is empty", lines.where());
    return shards;
}

ShardRange read_range(const LineReader& lines, const json& line, const std::vector<Shard>& shards) {
    ShardRange range;
    range.shard = static_cast<std::int32_t>(lines.integer(line, "shard", std::ssize(shards) - 1));
    const std::int64_t end = shards[range.shard].bytes;
    range.offset = lines.integer(line, "offset", end);
    range.bytes = lines.integer(line, "bytes", std::min(end - range.offset, kMaxPictureBytes));
    range.sha256 = lines.member<std::string>(line, "sha256");
    require(range.sha256.empty() || storage::is_sha256_hex(range.sha256), ExitCode::data,
            "{}: \"sha256\": expected 64 hexadecimal digits, got '{}'", lines.where(),
            printable(range.sha256));
    return range;
}

void read_sample(LineReader& lines, SampleIndex& index) {
    const json line = lines.next();
    Sample sample{lines.member<std::string>(line, "path"), 0};
    check_name(sample.path, lines.where());
    require(is_path_below(sample.path), ExitCode::data, "{}: path '{}' is outside the folder",
            lines.where(), sample.path);
    sample.label =
        static_cast<std::int32_t>(lines.integer(line, "label", std::ssize(index.classes) - 1));
    // Compare labels first, like the scan: class a precedes a-b, though "a-b/x" precedes "a/x".
    const Sample* const last = index.samples.empty() ? nullptr : &index.samples.back();
    const bool in_order = last == nullptr || last->label < sample.label ||
                          (last->label == sample.label && last->path < sample.path);
    require(in_order, ExitCode::data, "{}: path '{}' is out of order or occurs twice",
            lines.where(), sample.path);
    if (index.is_packed()) index.ranges.push_back(read_range(lines, line, index.shards));
    index.samples.push_back(std::move(sample));
}

SampleIndex from_lines(std::string_view text, const std::string& name) {
    const char* const got = text.starts_with("\xff\xd8")  ? "a JPEG"
                            : text.starts_with("\x89PNG") ? "a PNG"
                                                          : "another file";
    require(text.starts_with('{'), ExitCode::data,
            "{}: expected the folder above <class>/<image>.jpg or its index (JSON lines), got {}",
            name, got);
    LineReader lines(text, name);
    const json header = lines.next();
    const auto schema = lines.member<std::string>(header, "schema");
    require(schema == kIndexSchema || schema == kShardsSchema, ExitCode::data,
            "{}: schema '{}', expected '{}' or '{}'", lines.where(), schema, kIndexSchema,
            kShardsSchema);
    SampleIndex index;
    if (schema == kShardsSchema) index.shards = read_shards(lines, header);
    index.root = lines.member<std::string>(header, "root");
    index.classes = lines.member<std::vector<std::string>>(header, "classes");
    require(!index.classes.empty(), ExitCode::data, "{}: \"classes\" is empty", lines.where());
    for (const std::string& listed : index.classes) check_name(listed, lines.where());
    const auto samples = lines.member<std::uint64_t>(header, "samples");
    while (!lines.at_end()) read_sample(lines, index);
    require(index.samples.size() == samples, ExitCode::data,
            "{}: {} samples, but the header has {}", name, index.samples.size(), samples);
    std::vector<bool> has_sample(index.classes.size());
    for (const Sample& sample : index.samples) has_sample[sample.label] = true;
    for (std::size_t label = 0; label < has_sample.size(); ++label) {
        require(has_sample[label], ExitCode::data, "{}: class '{}' is empty", name,
                index.classes[label]);
    }
    return index;
}

/// Returns the sorted names of the class folders, at least one.
std::vector<std::string> class_folders(const fs::path& root) {
    require(!root.empty(), ExitCode::data,
            "no folder of images is given (data.path, data.validation_path)");
    std::error_code error;
    require(fs::exists(root, error), ExitCode::data, "{}: the folder of images does not exist",
            root.string());
    require(fs::is_directory(root, error), ExitCode::data,
            "{}: not a folder; expected <folder>/<class>/<image>.jpg", root.string());
    std::vector<std::string> names = sorted_names(root);
    std::erase_if(names, [&](const std::string& name) {
        return name.starts_with('.') || !fs::is_directory(root / name, error);
    });
    require(!names.empty(), ExitCode::data,
            "{}: has no class folder; expected <folder>/<class>/<image>.jpg", root.string());
    return names;
}

/// Returns the index file of `path`; "" if it is not an index or a folder of shards.
fs::path index_file_of(const fs::path& path) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path;
    const fs::path file = path / kShardIndexName;
    return !path.empty() && fs::is_regular_file(file, error) ? file : fs::path();
}

bool are_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_wordnet_number(std::string_view name) {
    return name.size() == 9 && name.front() == 'n' && are_digits(name.substr(1));
}

bool is_training_name(const std::string& class_name, const fs::path& path) {
    const std::string name = path.stem().string();
    return name.starts_with(class_name + "_") && are_digits(name.substr(class_name.size() + 1));
}

std::optional<std::int32_t> test_number(const fs::path& path) {
    constexpr std::string_view kPrefix = "ILSVRC2012_val_";
    constexpr std::size_t kDigits = 8;
    constexpr std::int32_t kSamples = 50000;
    const std::string name = path.stem().string();
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
    const auto number = parse_number<std::int32_t>(name.substr(kPrefix.size()));
    return number && *number >= 1 && *number <= kSamples ? number : std::nullopt;
}

/// Adds to `reasons` the number and the first of `names`, which are not as in ImageNet-1k.
void report_names(const std::vector<const std::string*>& names, std::string_view what,
                  std::string_view expected, std::vector<std::string>& reasons) {
    if (names.empty()) return;
    reasons.push_back(fmt::format("{} not named as in ImageNet-1k ({}): {}, the first '{}'", what,
                                  expected, names.size(), printable(*names[0])));
}

}  // namespace

std::string SampleIndex::location_of(std::size_t sample) const {
    if (!is_packed()) return path_of(sample).string();
    return fmt::format("{}: {} ({} bytes at offset {})", path_of(sample).string(),
                       samples[sample].path, ranges[sample].bytes, ranges[sample].offset);
}

SampleIndex scan_image_folder(const fs::path& root) {
    SampleIndex index;
    index.root = root;
    for (const std::string& name : class_folders(root)) scan_class(name, index);
    return index;
}

std::vector<std::string> class_names(const fs::path& path) {
    const fs::path file = index_file_of(path);
    return file.empty() ? class_folders(path) : read_index(file).classes;
}

SampleIndex load_samples(const fs::path& path) {
    const fs::path file = index_file_of(path);
    return file.empty() ? scan_image_folder(path) : read_index(file);
}

void require_classes(const SampleIndex& index, int classes) {
    require(index.classes.size() == static_cast<std::size_t>(classes), ExitCode::data,
            "{0}: class folders: {1}, but workload.classes is {2}; add --set workload.classes={1}",
            index.root.string(), index.classes.size(), classes);
}

void require_same_classes(const SampleIndex& training, const SampleIndex& validation) {
    const auto [first, second] =
        std::mismatch(training.classes.begin(), training.classes.end(), validation.classes.begin(),
                      validation.classes.end());
    const bool training_ends = first == training.classes.end();
    const bool validation_ends = second == validation.classes.end();
    if (training_ends && validation_ends) return;
    const bool only_training = validation_ends || (!training_ends && *first < *second);
    throw Error(ExitCode::data,
                fmt::format("class '{}' is in {} but not in {}", only_training ? *first : *second,
                            (only_training ? training : validation).root.string(),
                            (only_training ? validation : training).root.string()));
}

void write_index(const SampleIndex& index, const fs::path& file) {
    const fs::path root = fs::absolute(index.root).lexically_normal();
    const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
    const fs::path relative = root.lexically_relative(folder);
    const bool is_below = !relative.empty() && *relative.begin() != "..";
    storage::write_file_durably(file,
                                to_lines(index, is_below ? relative.string() : root.string()));
}

SampleIndex read_index(const fs::path& file) {
    constexpr auto kNoLimit = std::numeric_limits<std::size_t>::max();
    SampleIndex index = from_lines(storage::read_file_text(file, kNoLimit), file.string());
    require(!index.is_packed() || index.root == ".", ExitCode::data,
            "{}:1: root '{}', expected '.' for shards", file.string(), index.root.string());
    const fs::path folder = file.parent_path();
    index.root = index.is_packed() && !folder.empty() ? folder : folder / index.root;
    return index;
}

SampleIndex load_samples(const fs::path& path, comm::Communicator& communicator,
                         bool with_digests) {
    if (communicator.size() == 1) return load_samples(path);
    std::string text;  // up to 100 MB, so not encoded a second time for the broadcast
    comm::collective_try(communicator, [&] {
        if (communicator.rank() != 0) return;
        SampleIndex index = load_samples(path);
        for (ShardRange& range : index.ranges) {
            if (!with_digests) range.sha256.clear();
        }
        text = to_lines(index, index.root.string());
    });
    text = comm::broadcast(communicator, std::move(text));
    return from_lines(text, path.string());
}

std::vector<std::string> disqualifications_of_names(const SampleIndex& training,
                                                    const SampleIndex& validation) {
    std::vector<const std::string*> classes, training_files, test_files;
    for (const std::string& name : training.classes) {
        if (!is_wordnet_number(name)) classes.push_back(&name);
    }
    for (const Sample& sample : training.samples) {
        const std::string& name = training.classes[sample.label];
        if (!is_training_name(name, sample.path)) training_files.push_back(&sample.path);
    }
    std::set<std::int32_t> known;
    for (const Sample& sample : validation.samples) {
        const auto number = test_number(sample.path);
        if (!number || !known.insert(*number).second) test_files.push_back(&sample.path);
    }
    std::vector<std::string> disqualifications;
    report_names(classes, "classes", "n01440764", disqualifications);
    report_names(training_files, "training files", "n01440764_10026.JPEG", disqualifications);
    report_names(test_files, "test files", "ILSVRC2012_val_00000001.JPEG, each once",
                 disqualifications);
    return disqualifications;
}

}  // namespace hpcai::data
