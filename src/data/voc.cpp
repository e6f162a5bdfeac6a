// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>
#include <string_view>

#include <pugixml.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/storage/file.hpp>

#include "annotations.hpp"
#include "picture_file.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxVocBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxListBytes = std::size_t{1} << 30;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// One annotation file.
class AnnotationFile {
public:
    explicit AnnotationFile(const fs::path& path)
        : name_(path.string()), bytes_(storage::read_file_bytes(path, kMaxVocBytes)) {
        const pugi::xml_parse_result result =
            document_.load_buffer(bytes_.data(), bytes_.size(), pugi::parse_default);
        require(result.status == pugi::status_ok, ExitCode::data, "{}: not XML: {} at byte {}",
                name_, result.description(), result.offset);
        require(root(), ExitCode::data, "{}: no <annotation> at the top level", name_);
    }

    const std::string& name() const { return name_; }
    pugi::xml_node root() const { return document_.child("annotation"); }

    pugi::xml_node child(const pugi::xml_node& parent, const char* tag) const {
        const pugi::xml_node found = parent.child(tag);
        require(found && !found.next_sibling(tag), ExitCode::data, "{}: expected one <{}> in <{}>",
                name_, tag, parent.name());
        return found;
    }
    std::string_view text(const pugi::xml_node& parent, const char* tag) const {
        return trimmed(child(parent, tag).child_value());
    }
    double number(const pugi::xml_node& parent, const char* tag) const {
        const std::string_view given = text(parent, tag);
        const std::optional<double> value = parse_number<double>(given);
        require(value && std::isfinite(*value), ExitCode::data,
                "{}: <{}> in <{}>: expected a number, got '{}'", name_, tag, parent.name(),
                given.substr(0, 60));
        return *value;
    }

private:
    std::string name_;
    std::vector<std::byte> bytes_;
    pugi::xml_document document_;
};

RawObject object_of(const AnnotationFile& file, const pugi::xml_node& node) {
    RawObject object;
    object.class_name = file.text(node, "name");
    require(!object.class_name.empty(), ExitCode::data, "{}: an object has no name", file.name());
    const pugi::xml_node box = file.child(node, "bndbox");
    object.x1 = file.number(box, "xmin");
    object.y1 = file.number(box, "ymin");
    object.x2 = file.number(box, "xmax");
    object.y2 = file.number(box, "ymax");
    // By VOC's rule, equal corners span one pixel, but they are accidental clicks without an area.
    if (object.x1 < object.x2) --object.x1;
    if (object.y1 < object.y2) --object.y1;
    return object;
}

RawPicture read_annotation(const fs::path& root, const std::string& id) {
    const AnnotationFile file(root / "Annotations" / (id + ".xml"));
    RawPicture picture{"JPEGImages/" + id + ".jpg", file.name(), {}, {}};
    require_picture(root, picture.path, file.name());
    const pugi::xml_node size = file.child(file.root(), "size");
    picture.size =
        checked_size(file.number(size, "width"), file.number(size, "height"), file.name());
    for (const pugi::xml_node& node : file.root().children("object")) {
        picture.objects.push_back(object_of(file, node));
    }
    return picture;
}

std::vector<std::string> read_names(const fs::path& list) {
    const std::vector<std::byte> bytes = storage::read_file_bytes(list, kMaxListBytes);
    std::string_view rest = storage::text_of(bytes);
    std::vector<std::string> names;
    std::set<std::string_view> seen;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view name = trimmed(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (name.empty()) continue;
        require(is_path_below(std::string(name)), ExitCode::data, "{}: '{}' is outside the folder",
                list.string(), name.substr(0, 100));
        require(seen.insert(name).second, ExitCode::data, "{}: '{}' occurs twice", list.string(),
                name);
        names.emplace_back(name);
    }
    require(!names.empty(), ExitCode::data, "{}: the list has no image", list.string());
    return names;
}

}  // namespace

AnnotatedPictures read_voc(const fs::path& root, const std::string& split,
                           const ClassChoice& choice) {
    require(is_path_below(split), ExitCode::data, "{}: split '{}' is outside the folder",
            root.string(), split);
    const fs::path list = root / "ImageSets" / "Main" / (split + ".txt");
    std::vector<RawPicture> pictures;
    for (const std::string& id : read_names(list)) pictures.push_back(read_annotation(root, id));
    AnnotatedPictures chosen = select_classes(pictures, choice, list);
    chosen.root = root;
    return chosen;
}

}  // namespace hpcai::data
