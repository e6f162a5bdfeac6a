// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include <hpcai/data/climate_file.hpp>
#include <hpcai/storage/file.hpp>

#include "hdf5_layout.hpp"

namespace hpcai::data {
namespace {

using climate::Hdf5Handle;

void require_written(bool condition, const std::filesystem::path& path) {
    require(condition, ExitCode::usage, "cannot write '{}': HDF5 reports an error", path.string());
}

Hdf5Handle create_dataset(const Hdf5Handle& file, const char* name, hid_t type,
                          const std::vector<hsize_t>& extents, const std::vector<hsize_t>& chunk) {
    const int rank = static_cast<int>(extents.size());
    const Hdf5Handle space(H5Screate_simple(rank, extents.data(), nullptr), H5Sclose);
    const Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(list.id(), false);  // so that the same samples make the same file
    if (!chunk.empty()) H5Pset_chunk(list.id(), rank, chunk.data());
    return {H5Dcreate2(file.id(), name, type, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT),
            H5Dclose};
}

bool add_text(hid_t object, const std::string& name, const std::string& text) {
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.id(), text.size() + 1);
    const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Handle attribute(
        H5Acreate2(object, name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    return attribute.valid() && H5Awrite(attribute.id(), type.id(), text.c_str()) >= 0;
}

/// Writes `data` as entry `sample` of the dataset's first axis.
bool write_entry(const Hdf5Handle& dataset, std::vector<hsize_t> extents, hsize_t sample,
                 hid_t type, const void* data) {
    std::vector<hsize_t> start(extents.size(), 0);
    start[0] = sample;
    extents[0] = 1;
    const Hdf5Handle file_space(H5Dget_space(dataset.id()), H5Sclose);
    const Hdf5Handle memory_space(
        H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    return H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr,
                               extents.data(), nullptr) >= 0 &&
           H5Dwrite(dataset.id(), type, memory_space.id(), file_space.id(), H5P_DEFAULT, data) >= 0;
}

using BoxRows = std::array<climate::BoxRow, kMaxClimateBoxes>;

BoxRows rows_of(std::span<const Box> boxes) {
    ensure(boxes.size() <= kMaxClimateBoxes, "{} boxes of a climate sample", boxes.size());
    BoxRows rows;
    rows.fill({-1, -1, -1, -1, -1});
    const auto whole = [](float edge) { return static_cast<std::int32_t>(std::lround(edge)); };
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const Box& box = boxes[i];
        rows[i] = {whole(box.y1), whole(box.x1), whole(box.y2), whole(box.x2), box.category - 1};
    }
    return rows;
}

}  // namespace

struct ClimateFileWriter::State {
    explicit State(const std::filesystem::path& path) : target(path), pending(path) {}

    std::filesystem::path target;
    storage::PendingPath pending;
    std::vector<hsize_t> image_extents;
    std::vector<hsize_t> box_extents;
    Hdf5Handle file;
    Hdf5Handle images;
    Hdf5Handle boxes;
};

ClimateFileWriter::ClimateFileWriter(const std::filesystem::path& path,
                                     const ClimateFileShape& shape)
    : state_(std::make_unique<State>(path)) {
    climate::configure_hdf5();
    State& s = *state_;
    const auto samples = static_cast<hsize_t>(shape.samples);
    const auto height = static_cast<hsize_t>(shape.height);
    const auto width = static_cast<hsize_t>(shape.width);
    s.image_extents = {samples, kClimateChannels, height, width};
    s.box_extents = {samples, kMaxClimateBoxes, climate::kBoxColumns};
    s.file = Hdf5Handle(
        H5Fcreate(s.pending.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    require(s.file.valid(), ExitCode::usage,
            "cannot write '{}': the folder is missing or not writable", path.string());
    s.images = create_dataset(s.file, climate::kImagesName, H5T_IEEE_F32LE, s.image_extents,
                              {1, kClimateChannels, height, width});
    s.boxes = create_dataset(s.file, climate::kBoxesName, H5T_STD_I32LE, s.box_extents, {});
    bool written = s.images.valid() && s.boxes.valid() &&
                   add_text(s.images.id(), "channels",
                            fmt::format("{}", fmt::join(kClimateChannelNames, ","))) &&
                   add_text(s.boxes.id(), climate::kColumnsName, climate::kCornerColumns);
    for (const auto& [name, text] : shape.attributes) {
        written = written && add_text(s.file.id(), name, text);
    }
    require_written(written, path);
}

ClimateFileWriter::~ClimateFileWriter() = default;

void ClimateFileWriter::write(std::int64_t sample, std::span<const float> fields,
                              std::span<const Box> boxes) {
    State& s = *state_;
    const auto& e = s.image_extents;
    ensure(sample >= 0 && static_cast<hsize_t>(sample) < e[0], "sample {} of {}", sample, e[0]);
    ensure(fields.size() == e[1] * e[2] * e[3], "{} values of a climate sample", fields.size());
    const auto entry = static_cast<hsize_t>(sample);
    const BoxRows rows = rows_of(boxes);
    require_written(write_entry(s.images, e, entry, H5T_NATIVE_FLOAT, fields.data()) &&
                        write_entry(s.boxes, s.box_extents, entry, H5T_NATIVE_INT32, rows.data()),
                    s.target);
}

void ClimateFileWriter::finish() {
    State& s = *state_;
    s.images = {};
    s.boxes = {};
    require_written(H5Fflush(s.file.id(), H5F_SCOPE_GLOBAL) >= 0, s.target);
    s.file = {};
    s.pending.commit();
}

}  // namespace hpcai::data
