// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/image_codec.hpp>

#include "fixtures.hpp"

namespace hpcai::data::test {

inline void write_text(const std::filesystem::path& path, const std::string& text) {
    write_file_bytes(path, {text.begin(), text.end()});
}

/// Returns an image with red increasing to the right and green to the bottom.
inline Image slope_picture(int width, int height) {
    Image image(width, height);
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            auto* const pixel = image.pixels.data() + (y * width + x) * 3;
            pixel[0] = static_cast<std::uint8_t>(255 * x / width);
            pixel[1] = static_cast<std::uint8_t>(255 * y / height);
        }
    }
    return image;
}

inline std::string voc_object(const std::string& name, const std::string& xmin,
                              const std::string& ymin, const std::string& xmax,
                              const std::string& ymax) {
    return fmt::format(
        "<object><name>{}</name><difficult>0</difficult><bndbox><xmin>{}</xmin><ymin>{}</ymin>"
        "<xmax>{}</xmax><ymax>{}</ymax></bndbox></object>\n",
        name, xmin, ymin, xmax, ymax);
}

inline std::string voc_text(int width, int height, const std::string& objects) {
    return fmt::format(
        "<?xml version=\"1.0\"?>\n<annotation><filename>x.jpg</filename>\n<size><width>{}</width>"
        "<height>{}</height><depth>3</depth></size>\n{}</annotation>\n",
        width, height, objects);
}

/// A VOC folder that a test fills; split "train" lists the added images.
class VocFolder {
public:
    std::filesystem::path path() const { return folder_.path(); }
    std::filesystem::path annotation(const std::string& id) const {
        return path() / "Annotations" / (id + ".xml");
    }
    std::filesystem::path picture(const std::string& id) const {
        return path() / "JPEGImages" / (id + ".jpg");
    }
    std::filesystem::path list(const std::string& split = "train") const {
        return path() / "ImageSets" / "Main" / (split + ".txt");
    }

    void add(const std::string& id, int width, int height, const std::string& objects) {
        write_text(annotation(id), voc_text(width, height, objects));
        write_file_bytes(picture(id), encode_jpeg(slope_picture(width, height).view(), 95));
        names_ += id + "\n";
        write_text(list(), names_);
    }

private:
    TemporaryFolder folder_;
    std::string names_;
};

/// Returns the message of the error that `read` throws.
template <typename Read>
std::string refusal(const Read& read) {
    try {
        read();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data) << error.what();
        return error.what();
    }
    return "accepted";
}

}  // namespace hpcai::data::test
