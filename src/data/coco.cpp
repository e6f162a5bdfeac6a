// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/strict_json.hpp>

#include "annotations.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
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

/// Calls read(row) for each element of the list `key`.
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
