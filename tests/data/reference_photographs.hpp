// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/sources.hpp>
#include <hpcai/storage/safetensors.hpp>
#include <hpcai/storage/sha256.hpp>

#include "fixtures.hpp"
#include "pixel_errors.hpp"
#include "real_data.hpp"
#include "support/reference_json.hpp"

/// The output of scripts/reference/photograph_cases.py: results of Pillow and torchvision for real
/// photographs, at sampled pixels.
namespace hpcai::data::test {

inline std::string sha256_of(const std::vector<std::uint8_t>& bytes) {
    return storage::sha256_hex(std::as_bytes(std::span(bytes)));
}

struct View {
    PixelBox box;
    bool flip = false;
    bool vertical_flip = false;
};

struct Photograph {
    std::string file;                  // below the folder of photographs
    std::string sha256;                // of the file
    std::vector<std::string> decoded;  // SHA-256 of the pixels at 1/1, 1/2, 1/4, 1/8
    std::vector<PixelBox> boxes;       // given crops
    std::vector<View> views;           // drawn for training, one for each repetition
};

inline PixelBox to_box(const nlohmann::json& box) {
    return {box[0], box[1], box[2], box[3]};
}

class Photographs {
public:
    Photographs()
        : pixels_(storage::read_safetensors(fixture_path("../reference/photographs.safetensors"))) {
        for (const auto& entry : facts["photographs"]) {
            Photograph photograph{entry["file"], entry["sha256"], {}, {}, {}};
            for (const char* denominator : {"1", "2", "4", "8"}) {
                photograph.decoded.push_back(entry["decoded"][denominator]);
            }
            for (const auto& box : entry["boxes"]) photograph.boxes.push_back(to_box(box));
            for (const auto& view : entry["views"]) {
                photograph.views.push_back(
                    {to_box(view["box"]), view["flip"], view["vertical_flip"]});
            }
            all.push_back(std::move(photograph));
        }
    }

    static std::filesystem::path folder() { return real_data(""); }

    std::vector<std::uint8_t> bytes(const Photograph& photograph) const {
        return read_file_bytes(folder() / photograph.file);
    }

    /// The photographs as a set of samples of one class, numbered as in `all`.
    std::shared_ptr<const SampleSet> samples(const config::DataConfig& data, int image_size) const {
        SampleIndex index;
        index.root = folder();
        index.classes = {"photographs"};
        for (const Photograph& photograph : all) index.samples.push_back({photograph.file, 0});
        return make_folder_samples(std::move(index), data, image_size);
    }

    /// Returns row `row` of a tensor with the reference's pixels. The tensor has one or several
    /// rows per photograph.
    template <typename Number>
    std::vector<Number> row(const std::string& name, std::size_t row) const {
        const storage::StoredTensor* tensor = pixels_.find(name);
        if (tensor == nullptr) throw std::runtime_error("no reference " + name);
        const std::size_t numbers = static_cast<std::size_t>(*(tensor->shape.end() - 2) * 3);
        std::vector<Number> values(numbers);
        const auto part = tensor->bytes.subspan(row * numbers * sizeof(Number));
        std::memcpy(values.data(), part.data(), numbers * sizeof(Number));
        return values;
    }

    /// Returns the sampled pixels of an image of `size` x `size`: some everywhere, some near the
    /// border.
    std::vector<std::uint8_t> sample(std::span<const std::uint8_t> pixels, int size) const {
        std::vector<std::uint8_t> values;
        for (const int place : places(size)) {
            const auto* pixel = pixels.data() + 3 * place;
            values.insert(values.end(), pixel, pixel + 3);
        }
        return values;
    }

    /// Returns places() of the script.
    std::vector<int> places(int size) const {
        std::vector<int> numbers;
        const int spread = facts["spread"], border = facts["border"], side = size - 1;
        for (int k = 0; k < spread; ++k) numbers.push_back(k * 40503 % (size * size));
        for (int k = 0; k < border; ++k) {
            const int along = k * 4 * side / border;
            const int step = along % side;
            const int rows[] = {0, step, side, side - step};
            const int columns[] = {step, side, side - step, 0};
            numbers.push_back(rows[along / side] * size + columns[along / side]);
        }
        return numbers;
    }

    nlohmann::json facts = tests::read_reference_json("photographs.json");
    std::vector<Photograph> all;

private:
    storage::SafetensorsFile pixels_;
};

}  // namespace hpcai::data::test
