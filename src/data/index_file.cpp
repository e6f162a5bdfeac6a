// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <limits>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/strict_json.hpp>

#include "path_below.hpp"

namespace hpcai::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndexSchema = "hpcai500-index-1";

std::string dump(const json& value, const fs::path& root) {
    try {
        return value.dump() + "\n";
    } catch (const json::exception&) {
        throw Error(ExitCode::data,
                    fmt::format("{}: a file or class name in it is not UTF-8", root.string()));
    }
}

std::string to_lines(const SampleIndex& index, const std::string& root) {
    std::string text = dump({{"schema", kIndexSchema},
                             {"root", root},
                             {"classes", index.classes},
                             {"samples", index.samples.size()}},
                            index.root);
    for (const Sample& sample : index.samples) {
        text += dump({{"path", sample.path}, {"label", sample.label}}, index.root);
    }
    return text;
}

/// Hands out the lines of an index file and says where it is when something is wrong.
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
        require(found != object.end(), ExitCode::data, "{}: no \"{}\"", where(), key);
        try {
            return found->get<T>();
        } catch (const json::exception&) {
            throw Error(ExitCode::data, fmt::format("{}: \"{}\" has the wrong type: {}", where(),
                                                    key, found->dump()));
        }
    }

private:
    std::string_view rest_;
    std::string name_;
    std::int64_t line_ = 0;
};

Sample read_sample(LineReader& lines, const SampleIndex& index) {
    const json line = lines.next();
    Sample sample{lines.member<std::string>(line, "path"), 0};
    const auto label = lines.member<std::int64_t>(line, "label");
    require(is_path_below(sample.path), ExitCode::data, "{}: path '{}' leaves the folder",
            lines.where(), sample.path);
    require(label >= 0 && label < static_cast<std::int64_t>(index.classes.size()), ExitCode::data,
            "{}: label {} of {} classes", lines.where(), label, index.classes.size());
    sample.label = static_cast<std::int32_t>(label);
    // By class first, as the scan sorts: "a-b/x" precedes "a/x" by bytes, but class a precedes a-b.
    const Sample* const last = index.samples.empty() ? nullptr : &index.samples.back();
    const bool in_order = last == nullptr || last->label < sample.label ||
                          (last->label == sample.label && last->path < sample.path);
    require(in_order, ExitCode::data, "{}: path '{}' is out of order or occurs twice",
            lines.where(), sample.path);
    return sample;
}

void require_no_empty_class(const SampleIndex& index, const std::string& name) {
    std::vector<bool> seen(index.classes.size(), false);
    for (const Sample& sample : index.samples) seen[sample.label] = true;
    for (std::size_t label = 0; label < seen.size(); ++label) {
        require(seen[label], ExitCode::data, "{}: class '{}' is empty", name, index.classes[label]);
    }
}

SampleIndex from_lines(std::string_view text, const std::string& name) {
    LineReader lines(text, name);
    const json header = lines.next();
    const auto schema = lines.member<std::string>(header, "schema");
    require(schema == kIndexSchema, ExitCode::data, "{}: schema '{}', expected '{}'", lines.where(),
            schema, kIndexSchema);
    SampleIndex index;
    index.root = lines.member<std::string>(header, "root");
    index.classes = lines.member<std::vector<std::string>>(header, "classes");
    require(!index.classes.empty(), ExitCode::data, "{}: no classes", lines.where());
    const auto samples = lines.member<std::uint64_t>(header, "samples");
    while (!lines.at_end()) index.samples.push_back(read_sample(lines, index));
    require(index.samples.size() == samples, ExitCode::data, "{}: {} samples, the header says {}",
            name, index.samples.size(), samples);
    require_no_empty_class(index, name);
    return index;
}

}  // namespace

void write_index(const SampleIndex& index, const fs::path& file) {
    const fs::path root = fs::absolute(index.root).lexically_normal();
    const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
    const fs::path relative = root.lexically_relative(folder);
    const bool beside = !relative.empty() && *relative.begin() != "..";
    storage::write_file_durably(file, to_lines(index, beside ? relative.string() : root.string()));
}

SampleIndex read_index(const fs::path& file) {
    const std::vector<std::byte> bytes =
        storage::read_file_bytes(file, std::numeric_limits<std::size_t>::max());
    SampleIndex index = from_lines(storage::text_of(bytes), file.string());
    if (index.root.is_relative()) index.root = file.parent_path() / index.root;
    return index;
}

SampleIndex load_samples(const fs::path& path, comm::Communicator& communicator) {
    if (communicator.size() == 1) return load_samples(path);
    std::string text;  // of up to 100 MB, so it is sent as it is
    comm::collective_try(communicator, [&] {
        if (communicator.rank() != 0) return;
        const SampleIndex index = load_samples(path);
        text = to_lines(index, index.root.string());
    });
    text = comm::broadcast(communicator, std::move(text));
    return from_lines(text, path.string());
}

}  // namespace hpcai::data
