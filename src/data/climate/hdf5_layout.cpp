// SPDX-License-Identifier: Apache-2.0
#include "hdf5_layout.hpp"

#include <hpcai/base/error.hpp>

namespace hpcai::data::climate {
namespace {

constexpr std::size_t kMaxTextBytes = 256;
constexpr std::array<H5Z_filter_t, 3> kKnownFilters{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE,
                                                    H5Z_FILTER_FLETCHER32};

void require_type(const Hdf5Dataset& dataset, const Hdf5Expectation& expected) {
    const Hdf5Handle type(H5Dget_type(dataset.handle.id()), H5Tclose);
    const char* const type_name =
        expected.type == H5T_FLOAT ? "floating-point numbers" : "integers";
    require(type.valid() && H5Tget_class(type.id()) == expected.type, ExitCode::data,
            "{}: expected {}, found another type", dataset.location, type_name);
    const std::size_t bytes = H5Tget_size(type.id());
    require(expected.element_bytes == 0 || bytes == expected.element_bytes, ExitCode::data,
            "{}: expected {} of {} bytes, found {} bytes", dataset.location, type_name,
            expected.element_bytes, bytes);
}

void read_extents(Hdf5Dataset& dataset, int dimensions) {
    const Hdf5Handle space(H5Dget_space(dataset.handle.id()), H5Sclose);
    const int found = space.valid() ? H5Sget_simple_extent_ndims(space.id()) : -1;
    require(found == dimensions, ExitCode::data, "{}: expected {} dimensions, found {}",
            dataset.location, dimensions, std::max(found, 0));
    dataset.extents.resize(dimensions);
    require(H5Sget_simple_extent_dims(space.id(), dataset.extents.data(), nullptr) == dimensions,
            ExitCode::data, "{}: the dimensions cannot be read", dataset.location);
}

/// Rejects a layout or filter that would use another file or library. Sets the chunk_extent.
void check_storage(Hdf5Dataset& dataset) {
    const Hdf5Handle list(H5Dget_create_plist(dataset.handle.id()), H5Pclose);
    require(list.valid(), ExitCode::data, "{}: cannot be opened", dataset.location);
    const H5D_layout_t layout = H5Pget_layout(list.id());
    require(layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS || layout == H5D_COMPACT,
            ExitCode::data, "{}: is a virtual dataset of other files", dataset.location);
    require(H5Pget_external_count(list.id()) == 0, ExitCode::data, "{}: is stored in other files",
            dataset.location);
    const int filters = H5Pget_nfilters(list.id());
    for (int i = 0; i < filters; ++i) {
        unsigned flags = 0, configuration = 0;
        std::size_t values = 0;
        const H5Z_filter_t filter = H5Pget_filter2(list.id(), static_cast<unsigned>(i), &flags,
                                                   &values, nullptr, 0, nullptr, &configuration);
        require(std::ranges::find(kKnownFilters, filter) != kKnownFilters.end(), ExitCode::data,
                "{}: expected filter deflate, shuffle or fletcher32, found filter {}",
                dataset.location, filter);
    }
    if (layout != H5D_CHUNKED) return;
    std::vector<hsize_t> chunk(dataset.extents.size());
    const int found = H5Pget_chunk(list.id(), static_cast<int>(chunk.size()), chunk.data());
    require(found == static_cast<int>(chunk.size()), ExitCode::data,
            "{}: the shape of its chunks cannot be read", dataset.location);
    dataset.chunk_extent =
        std::clamp<hsize_t>(chunk[0], 1, std::max<hsize_t>(dataset.extents[0], 1));
}

constexpr const char* kChooseOrder =
    "choose the order with --box-order corners or ranges; for a run, write records with "
    "`hpcai500 data transcode PATH --box-order ... --output DIR` and set data.path to DIR";
constexpr BoxRow kPadding{-1, -1, -1, -1, -1};

struct Edges {
    std::int32_t top, left, bottom, right;
};

Edges edges_of(const BoxRow& row, BoxOrder order) {
    if (order == BoxOrder::corners) return {row[0], row[1], row[2], row[3]};
    return {row[0], row[2], row[1], row[3]};
}

/// Returns the first row that is impossible in `order`; rows.size() if there is none.
std::size_t first_impossible(const BoxTable& table, BoxOrder order) {
    const auto impossible = [&](const BoxRow& row) {
        if (row == kPadding) return false;
        const Edges e = edges_of(row, order);
        return e.top > e.bottom || e.left > e.right || e.bottom > table.height ||
               e.right > table.width;
    };
    return std::ranges::find_if(table.rows, impossible) - table.rows.begin();
}

std::string where(const BoxTable& table, std::size_t row) {
    return fmt::format("{}: sample {}, row {}", table.location, row / kMaxClimateBoxes,
                       row % kMaxClimateBoxes);
}

}  // namespace

Hdf5Dataset open_dataset(const Hdf5Handle& file, const std::filesystem::path& path,
                         const Hdf5Expectation& expected) {
    Hdf5Dataset dataset;
    dataset.location = fmt::format("'{}': {}", path.string(), expected.name);
    require(H5Lexists(file.id(), expected.name, H5P_DEFAULT) > 0, ExitCode::data,
            "{}: there is no such dataset", dataset.location);
    H5L_info_t link{};
    require(H5Lget_info(file.id(), expected.name, &link, H5P_DEFAULT) >= 0 &&
                link.type == H5L_TYPE_HARD,
            ExitCode::data, "{}: is a soft or external link, expected a dataset", dataset.location);
    dataset.handle = Hdf5Handle(H5Dopen2(file.id(), expected.name, H5P_DEFAULT), H5Dclose);
    require(dataset.handle.valid(), ExitCode::data, "{}: cannot be opened as a dataset",
            dataset.location);
    require_type(dataset, expected);
    read_extents(dataset, expected.dimensions);
    check_storage(dataset);
    return dataset;
}

std::optional<std::string> text_attribute(const Hdf5Handle& object, const char* name) {
    if (H5Aexists(object.id(), name) <= 0) return std::nullopt;
    const Hdf5Handle attribute(H5Aopen(object.id(), name, H5P_DEFAULT), H5Aclose);
    if (!attribute.valid()) return std::nullopt;
    const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
    const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
    if (!type.valid() || !space.valid()) return std::nullopt;
    const std::size_t bytes = H5Tget_size(type.id());
    const bool is_short_text =
        H5Tget_class(type.id()) == H5T_STRING && H5Tis_variable_str(type.id()) == 0 && bytes > 0 &&
        bytes <= kMaxTextBytes && H5Sget_simple_extent_npoints(space.id()) == 1;
    if (!is_short_text) return std::nullopt;
    std::string text(bytes, '\0');
    if (H5Aread(attribute.id(), type.id(), text.data()) < 0) return std::nullopt;
    return text.substr(0, text.find('\0'));
}

void require_classes(const BoxTable& table) {
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const BoxRow& row = table.rows[i];
        require(row == kPadding || (row[4] >= 0 && row[4] < kClimateCategories), ExitCode::data,
                "{}: class {}: expected 0 to {}", where(table, i), row[4], kClimateCategories - 1);
    }
}

BoxOrder determine_box_order(const BoxTable& table, BoxOrder stated) {
    const std::size_t rows = table.rows.size();
    if (stated != BoxOrder::detect) {
        const std::size_t wrong = first_impossible(table, stated);
        require(wrong == rows, ExitCode::data,
                "{}: the box is not possible in the column order that the file states; {}",
                where(table, wrong), kChooseOrder);
        return stated;
    }
    const std::size_t wrong_corners = first_impossible(table, BoxOrder::corners);
    const std::size_t wrong_ranges = first_impossible(table, BoxOrder::ranges);
    const bool has_box =
        std::ranges::any_of(table.rows, [](const BoxRow& row) { return row != kPadding; });
    require(!has_box || wrong_corners != rows || wrong_ranges != rows, ExitCode::data,
            "{}: columns ymin,xmin,ymax,xmax (corners) and ymin,ymax,xmin,xmax (ranges) are both "
            "possible for all rows; {}",
            table.location, kChooseOrder);
    require(wrong_corners == rows || wrong_ranges == rows, ExitCode::data,
            "{}: the rows fit neither ymin,xmin,ymax,xmax (corners) nor ymin,ymax,xmin,xmax "
            "(ranges) within {} x {} pixels; corners first fail at {}, ranges at {}",
            table.location, table.height, table.width, where(table, wrong_corners),
            where(table, wrong_ranges));
    return wrong_corners == rows ? BoxOrder::corners : BoxOrder::ranges;
}

DecodedBoxes decode_boxes(const BoxTable& table, BoxOrder order) {
    DecodedBoxes result;
    result.boxes_by_sample.resize(table.rows.size() / kMaxClimateBoxes);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const BoxRow& row = table.rows[i];
        if (row == kPadding) continue;
        const Edges e = edges_of(row, order);
        const Box box{static_cast<float>(std::max(e.left, 0)),
                      static_cast<float>(std::max(e.top, 0)),
                      static_cast<float>(std::min(e.right, table.width)),
                      static_cast<float>(std::min(e.bottom, table.height)), row[4] + 1};
        if (box.x1 < box.x2 && box.y1 < box.y2) {
            result.boxes_by_sample[i / kMaxClimateBoxes].push_back(box);
        } else {
            ++result.dropped;
        }
    }
    return result;
}

}  // namespace hpcai::data::climate
