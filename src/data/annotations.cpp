// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <pugixml.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/strict_json.hpp>

#include "picture_file.hpp"

namespace hpcai::data {
namespace {

/// An object as annotated, in pixels: [x1, x2) x [y1, y2). The box may exceed the image or have no
/// area.
struct RawObject {
    std::string class_name;
    double x1 = 0;
    double y1 = 0;
    double x2 = 0;
    double y2 = 0;
};

struct RawPicture {
    std::string path;
    std::string annotation;  // file or entry with the annotation, for messages
    ImageSize size;
    std::vector<RawObject> objects;
};

namespace fs = std::filesystem;

std::vector<std::string> all_class_names(const std::vector<RawPicture>& pictures) {
    std::set<std::string> names;
    for (const RawPicture& picture : pictures) {
        for (const RawObject& object : picture.objects) names.insert(object.class_name);
    }
    return {names.begin(), names.end()};
}

Box clipped(const RawObject& object, ImageSize size) {
    const auto clamped = [](double value, int side) {
        return static_cast<float>(std::clamp(value, 0.0, static_cast<double>(side)));
    };
    return {clamped(object.x1, size.width), clamped(object.y1, size.height),
            clamped(object.x2, size.width), clamped(object.y2, size.height)};
}

bool exceeds(const RawObject& object, ImageSize size) {
    return object.x1 < 0 || object.y1 < 0 || object.x2 > size.width || object.y2 > size.height;
}

/// Selects the objects of the chosen classes and clips boxes.
AnnotatedPictures select_classes(const std::vector<RawPicture>& pictures, const ClassChoice& choice,
                                 const fs::path& file) {
    AnnotatedPictures chosen;
    chosen.classes = choice.names.empty() ? all_class_names(pictures) : choice.names;
    require(!chosen.classes.empty(), ExitCode::data, "{}: no object in any image", file.string());
    std::map<std::string, std::int32_t> categories;
    for (const std::string& name : chosen.classes) {
        const auto category = static_cast<std::int32_t>(categories.size()) + 1;
        require(categories.emplace(name, category).second, ExitCode::usage,
                "data.class_names: expected each class once, got '{}' twice", name);
    }
    for (const RawPicture& picture : pictures) {
        chosen.pictures.push_back({picture.path, picture.size, {}});
        for (const RawObject& object : picture.objects) {
            const auto found = categories.find(object.class_name);
            require(found != categories.end() || choice.ignore_others, ExitCode::data,
                    "{}: an object has class '{}', which the training set does not have",
                    picture.annotation, object.class_name);
            if (found == categories.end()) {
                ++chosen.omitted.other_classes;
                continue;
            }
            Box box = clipped(object, picture.size);
            box.category = found->second;
            if (box.x1 < box.x2 && box.y1 < box.y2) {
                chosen.pictures.back().boxes.push_back(box);
                chosen.clipped_boxes += exceeds(object, picture.size);
            } else {
                ++chosen.omitted.without_area;
            }
        }
    }
    return chosen;
}

/// Throws Error(data) naming the location `where` unless `path` is a regular file below `root`.
void require_picture(const fs::path& root, const std::string& path, const std::string& where) {
    require(is_path_below(path), ExitCode::data, "{}: '{}' is outside its folder", where, path);
    std::error_code error;
    require(fs::is_regular_file(root / path, error), ExitCode::data,
            "{}: the image {} does not exist", where, (root / path).string());
}

/// Throws Error(data) naming `where` for sides that are not integers from 1 to kMaxImageSide.
ImageSize checked_size(double width, double height, const std::string& where) {
    const auto is_side = [](double side) {
        return side >= 1 && side <= kMaxImageSide && side == std::floor(side);
    };
    require(is_side(width) && is_side(height), ExitCode::data,
            "{}: an image has {} x {} pixels, expected integers from 1 to {}", where, width, height,
            kMaxImageSide);
    return {static_cast<int>(width), static_cast<int>(height)};
}

constexpr std::size_t kMaxVocBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxListBytes = std::size_t{1} << 30;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

class VocFile {
public:
    explicit VocFile(const fs::path& path) : name_(path.string()) {
        const std::string text = storage::read_file_text(path, kMaxVocBytes);
        const pugi::xml_parse_result result = document_.load_buffer(text.data(), text.size());
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
    pugi::xml_document document_;
};

RawObject object_of(const VocFile& file, const pugi::xml_node& node) {
    RawObject object;
    object.class_name = file.text(node, "name");
    require(!object.class_name.empty(), ExitCode::data, "{}: an object has no name", file.name());
    const pugi::xml_node box = file.child(node, "bndbox");
    object.x1 = file.number(box, "xmin");
    object.y1 = file.number(box, "ymin");
    object.x2 = file.number(box, "xmax");
    object.y2 = file.number(box, "ymax");
    // VOC counts pixels from 1 and includes both edges. Equal edges (a mere click) get no area.
    if (object.x1 < object.x2) --object.x1;
    if (object.y1 < object.y2) --object.y1;
    return object;
}

RawPicture read_annotation(const fs::path& root, const std::string& id) {
    const VocFile file(root / "Annotations" / (id + ".xml"));
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
    std::istringstream lines(storage::read_file_text(list, kMaxListBytes));
    std::vector<std::string> names;
    std::set<std::string> seen;
    for (std::string line; std::getline(lines, line);) {
        const std::string name(trimmed(line));
        if (name.empty()) continue;
        require(is_path_below(name), ExitCode::data, "{}: '{}' is outside the folder",
                list.string(), name.substr(0, 100));
        require(seen.insert(name).second, ExitCode::data, "{}: '{}' occurs twice", list.string(),
                name);
        names.push_back(name);
    }
    require(!names.empty(), ExitCode::data, "{}: the list has no image", list.string());
    return names;
}

using nlohmann::json;
using storage::JsonLocation;

constexpr std::size_t kMaxCocoBytes = std::size_t{4} << 30;  // a hostile file must not fill memory
constexpr storage::JsonLimits kLimits{.depth = 32, .values = 200'000'000};

/// A JSON object in the file, with accessors that check the type of a member.
class CheckedObject {
public:
    CheckedObject(const json& object, const JsonLocation& where) : object_(object), where_(where) {
        if (!object.is_object()) where.fail("an object", object);
    }
    const JsonLocation& where() const { return where_; }

    bool has(const char* key) const { return object_.contains(key); }
    const json& at(const char* key) const {
        const auto found = object_.find(key);
        if (found == object_.end()) where_.fail(fmt::format("an object with \"{}\"", key), object_);
        return *found;
    }
    std::int64_t integer(const char* key) const {
        const json& value = at(key);
        if (!value.is_number_integer()) where_.key(key).fail("an integer", value);
        return value.get<std::int64_t>();
    }
    double number(const char* key) const { return number(at(key), where_.key(key)); }
    std::string text(const char* key) const {
        const json& value = at(key);
        if (!value.is_string()) where_.key(key).fail("a string", value);
        return value.get<std::string>();
    }
    static double number(const json& value, const JsonLocation& where) {
        if (!value.is_number()) where.fail("a number", value);
        return value.get<double>();
    }

private:
    const json& object_;
    JsonLocation where_;
};

template <typename Read>
void for_each(const CheckedObject& document, const char* key, const Read& read) {
    const json& list = document.at(key);
    const JsonLocation where = document.where().key(key);
    if (!list.is_array()) where.fail("a list", list);
    for (std::size_t i = 0; i < list.size(); ++i) read(CheckedObject(list[i], where.index(i)));
}

template <typename Value>
const Value& find_by_id(const std::map<std::int64_t, Value>& table, const CheckedObject& row,
                        const char* key) {
    const auto found = table.find(row.integer(key));
    if (found == table.end()) row.where().key(key).fail("an existing id", row.at(key));
    return found->second;
}

std::map<std::int64_t, std::string> read_categories(const CheckedObject& document) {
    std::map<std::int64_t, std::string> names;
    std::set<std::string> seen;
    for_each(document, "categories", [&](const CheckedObject& row) {
        const std::string name = row.text("name");
        if (!seen.insert(name).second)
            row.where().key("name").fail("a unique name", row.at("name"));
        if (!names.emplace(row.integer("id"), name).second) {
            row.where().key("id").fail("a unique id", row.at("id"));
        }
    });
    return names;
}

RawObject object_of(const CheckedObject& row, std::string name) {
    const json& box = row.at("bbox");
    const JsonLocation where = row.where().key("bbox");
    if (!box.is_array() || box.size() != 4) where.fail("a list of x, y, width and height", box);
    double numbers[4];
    for (std::size_t i = 0; i < 4; ++i) numbers[i] = CheckedObject::number(box[i], where.index(i));
    return {std::move(name), numbers[0], numbers[1], numbers[0] + numbers[2],
            numbers[1] + numbers[3]};
}

}  // namespace

std::string size_mismatch(ImageSize annotated, ImageSize found) {
    if (found == annotated) return "";
    return fmt::format("{} x {} pixels, but annotated as {} x {}", found.width, found.height,
                       annotated.width, annotated.height);
}

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

AnnotatedPictures read_coco(const fs::path& file_path, const fs::path& root,
                            const ClassChoice& choice) {
    const std::string name = file_path.string();
    const json parsed = storage::parse_strict_json(
        storage::read_file_text(file_path, kMaxCocoBytes), name, kLimits);
    const CheckedObject document(parsed, JsonLocation(name));
    const std::map<std::int64_t, std::string> categories = read_categories(document);
    std::vector<RawPicture> pictures;
    std::map<std::int64_t, std::size_t> index_of_image;
    for_each(document, "images", [&](const CheckedObject& row) {
        const std::int64_t id = row.integer("id");
        if (!index_of_image.emplace(id, pictures.size()).second) {
            row.where().key("id").fail("a unique id", row.at("id"));
        }
        const std::string where = fmt::format("{}: image {}", name, id);
        const std::string path = row.text("file_name");
        require_picture(root, path, where);
        pictures.push_back(
            {path, where, checked_size(row.number("width"), row.number("height"), where), {}});
    });
    require(!pictures.empty(), ExitCode::data, "{}: the file has no image", name);
    std::int64_t crowds = 0;
    for_each(document, "annotations", [&](const CheckedObject& row) {
        RawPicture& picture = pictures[find_by_id(index_of_image, row, "image_id")];
        RawObject object = object_of(row, find_by_id(categories, row, "category_id"));
        if (row.has("iscrowd") && row.number("iscrowd") != 0) {
            ++crowds;
        } else {
            picture.objects.push_back(std::move(object));
        }
    });
    AnnotatedPictures chosen = select_classes(pictures, choice, file_path);
    chosen.root = root;
    chosen.omitted.crowds = crowds;
    return chosen;
}

}  // namespace hpcai::data
