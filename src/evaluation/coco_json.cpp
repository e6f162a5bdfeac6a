// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/core.h>

#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::evaluation {
namespace {

using nlohmann::json;
using storage::JsonLocation;

constexpr std::size_t kLimitBytes = std::size_t{4} << 30;  // a hostile file must not fill memory
constexpr storage::JsonLimits kLimits{.depth = 32, .values = 200'000'000};

/// A JSON object and its location in the document, for messages.
class Item {
public:
    Item(const json& object, JsonLocation where) : object_(object), where_(std::move(where)) {
        if (!object.is_object()) where_.fail("an object", object);
    }

    const json& member(const std::string& key) const {
        const auto found = object_.find(key);
        if (found == object_.end()) where_.key(key).fail("a value", "nothing");
        return *found;
    }

    bool has(const std::string& key) const { return object_.contains(key); }

    std::int64_t integer(const std::string& key, std::int64_t lowest) const {
        const json& value = member(key);
        constexpr auto highest = std::numeric_limits<std::int64_t>::max();
        const bool fits = value.is_number_unsigned()
                              ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(highest)
                              : value.is_number_integer();
        if (!fits || value.get<std::int64_t>() < lowest) {
            where_.key(key).fail(fmt::format("an integer from {} to {}", lowest, highest), value);
        }
        return value.get<std::int64_t>();
    }

    std::string text(const std::string& key) const {
        const json& value = member(key);
        if (!value.is_string()) where_.key(key).fail("a string", value);
        return value.get<std::string>();
    }

    double number(const std::string& key) const {
        return number_in(member(key), where_.key(key), -kMaxMagnitude);
    }

    Box box(const std::string& key) const {
        const json& value = member(key);
        const JsonLocation where = where_.key(key);
        if (!value.is_array() || value.size() != 4) {
            where.fail("a list of x, y, width and height", value);
        }
        return {number_in(value[0], where.index(0), -kMaxMagnitude),
                number_in(value[1], where.index(1), -kMaxMagnitude),
                number_in(value[2], where.index(2), 0), number_in(value[3], where.index(3), 0)};
    }

    const JsonLocation& where() const { return where_; }

private:
    static double number_in(const json& value, const JsonLocation& where, double lowest) {
        const double number =
            value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
        if (!(number >= lowest && number <= kMaxMagnitude)) {
            where.fail(fmt::format("a number from {} to {}", lowest, kMaxMagnitude), value);
        }
        return number;
    }

    const json& object_;
    JsonLocation where_;
};

template <typename Body>
void for_each_item(const json& list, const JsonLocation& where, Body body) {
    if (!list.is_array()) where.fail("a list", list);
    for (std::size_t index = 0; index < list.size(); ++index) {
        body(Item(list[index], where.index(index)));
    }
}

/// Returns the index of the entry with the id item.`key`; `entries` are sorted by id.
template <typename Entry>
std::int64_t index_of(const std::vector<Entry>& entries, const Item& item, const std::string& key,
                      std::string_view what) {
    const std::int64_t id = item.integer(key, std::numeric_limits<std::int64_t>::min());
    const auto found = std::ranges::lower_bound(entries, id, {}, &Entry::id);
    if (found == entries.end() || found->id != id) {
        item.where().key(key).fail(fmt::format("the id of {} of the annotations", what), id);
    }
    return found - entries.begin();
}

std::int64_t image_index(const Annotations& annotations, const Item& item) {
    return index_of(annotations.images, item, "image_id", "an image");
}

std::int32_t category_number(const Annotations& annotations, const Item& item) {
    const auto index = index_of(annotations.categories, item, "category_id", "a category");
    return static_cast<std::int32_t>(index + 1);
}

template <typename Entry>
void sort_by_id(std::vector<Entry>& entries, const JsonLocation& where) {
    std::ranges::sort(entries, {}, &Entry::id);
    const auto duplicate = std::ranges::adjacent_find(entries, {}, &Entry::id);
    if (duplicate != entries.end()) where.fail("unique ids", duplicate->id);
}

TestImage image_in(const Item& item) {
    TestImage image{.id = item.integer("id", std::numeric_limits<std::int64_t>::min())};
    if (item.has("file_name")) image.file_name = item.text("file_name");
    if (item.has("width")) image.width = item.integer("width", 0);
    if (item.has("height")) image.height = item.integer("height", 0);
    return image;
}

Category category_in(const Item& item) {
    Category category{.id = item.integer("id", std::numeric_limits<std::int64_t>::min())};
    if (item.has("name")) category.name = item.text("name");
    return category;
}

void check_counts(const Annotations& annotations) {
    ensure(std::ssize(annotations.images) == annotations.truth.images &&
               std::ssize(annotations.categories) == annotations.truth.categories,
           "annotations of {} images and {} categories, but labels of {} images and {} categories",
           annotations.images.size(), annotations.categories.size(), annotations.truth.images,
           annotations.truth.categories);
}

template <typename Entry>
void append_common_keys(std::string& text, const Annotations& annotations, const Entry& entry) {
    ensure(entry.image >= 0 && entry.image < std::ssize(annotations.images) &&
               entry.category >= 1 && entry.category <= std::ssize(annotations.categories),
           "a box has image {} and category {}", entry.image, entry.category);
    fmt::format_to(
        std::back_inserter(text), R"("image_id":{},"category_id":{},"bbox":[{},{},{},{}])",
        annotations.images[entry.image].id, annotations.categories[entry.category - 1].id,
        entry.box.x, entry.box.y, entry.box.width, entry.box.height);
}

/// Returns a string as JSON. Replaces invalid UTF-8, which file names may contain.
std::string quoted(const std::string& text) {
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view separator(bool& first) {
    return std::exchange(first, false) ? "\n" : ",\n";
}

void append_annotation_list(std::string& text, const Annotations& annotations) {
    bool first = true;
    std::int64_t id = 0;
    for (const LabelledBox& box : annotations.truth.boxes) {
        ensure(is_valid({box.image, box.category, 0, box.box}), "a labelled box is invalid");
        // Ids begin at 1, because pycocotools interprets 0 as "no box".
        fmt::format_to(std::back_inserter(text), R"({}{{"id":{},)", separator(first), ++id);
        append_common_keys(text, annotations, box);
        fmt::format_to(std::back_inserter(text), R"(,"area":{},"iscrowd":{}}})", area(box.box),
                       static_cast<int>(box.crowd));
    }
}

}  // namespace

std::string coco_annotations(const Annotations& annotations) {
    check_counts(annotations);
    std::string text = "{\"images\":[";
    bool first = true;
    for (const TestImage& image : annotations.images) {
        fmt::format_to(std::back_inserter(text),
                       R"({}{{"id":{},"file_name":{},"width":{},"height":{}}})", separator(first),
                       image.id, quoted(image.file_name), image.width, image.height);
    }
    text += "],\n\"categories\":[";
    first = true;
    for (const Category& category : annotations.categories) {
        fmt::format_to(std::back_inserter(text), R"({}{{"id":{},"name":{}}})", separator(first),
                       category.id, quoted(category.name));
    }
    text += "],\n\"annotations\":[";
    append_annotation_list(text, annotations);
    return text + "]}\n";
}

std::string coco_detections(const Annotations& annotations, std::span<const Detection> detections) {
    std::string text = "[";
    bool first = true;
    for (const Detection& detection : detections) {
        if (!is_valid(detection)) continue;
        fmt::format_to(std::back_inserter(text), "{}{{", separator(first));
        append_common_keys(text, annotations, detection);
        fmt::format_to(std::back_inserter(text), R"(,"score":{}}})", detection.score);
    }
    return text + "]\n";
}

Annotations parse_coco_annotations(std::string_view text, std::string_view name) {
    const json document = storage::parse_strict_json(text, name, kLimits);
    const JsonLocation where(name);
    const Item root(document, where);
    Annotations annotations;
    for_each_item(root.member("images"), where.key("images"),
                  [&](const Item& item) { annotations.images.push_back(image_in(item)); });
    sort_by_id(annotations.images, where.key("images"));
    for_each_item(root.member("categories"), where.key("categories"),
                  [&](const Item& item) { annotations.categories.push_back(category_in(item)); });
    sort_by_id(annotations.categories, where.key("categories"));
    DetectionTruth& truth = annotations.truth;
    truth.images = std::ssize(annotations.images);
    truth.categories = static_cast<std::int32_t>(annotations.categories.size());
    for_each_item(root.member("annotations"), where.key("annotations"), [&](const Item& item) {
        LabelledBox& box = truth.boxes.emplace_back(LabelledBox{
            image_index(annotations, item), category_number(annotations, item), item.box("bbox")});
        if (item.has("iscrowd")) box.crowd = item.integer("iscrowd", 0) != 0;
    });
    return annotations;
}

std::vector<Detection> parse_coco_detections(std::string_view text, std::string_view name,
                                             const Annotations& annotations) {
    const json document = storage::parse_strict_json(text, name, kLimits);
    std::vector<Detection> detections;
    for_each_item(document, JsonLocation(name), [&](const Item& item) {
        detections.push_back({image_index(annotations, item), category_number(annotations, item),
                              item.number("score"), item.box("bbox")});
    });
    std::ranges::stable_sort(detections, {}, &Detection::image);
    return detections;
}

Annotations read_coco_annotations(const std::filesystem::path& path) {
    return parse_coco_annotations(storage::read_file_text(path, kLimitBytes), path.string());
}

std::vector<Detection> read_coco_detections(const std::filesystem::path& path,
                                            const Annotations& annotations) {
    return parse_coco_detections(storage::read_file_text(path, kLimitBytes), path.string(),
                                 annotations);
}

}  // namespace hpcai::evaluation
