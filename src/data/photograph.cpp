// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/data/photograph.hpp>

namespace hpcai::data {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;

struct Point {
    float x, y;
};

using LinearColor = std::array<float, kImageChannels>;  // 0 to 1

float length(Point p) {
    return std::sqrt(p.x * p.x + p.y * p.y);
}

float box(Point p, float half_width, float half_height) {
    return std::max(std::abs(p.x) - half_width, std::abs(p.y) - half_height);
}

/// An outline within [-1, 1] squared: negative inside, elsewhere about the distance to the edge.
struct Outline {
    const char* name;
    float (*distance)(Point);
};

constexpr std::array<Outline, 8> kOutlines{{
    {"disc", [](Point p) { return length(p) - 0.9F; }},
    {"square", [](Point p) { return box(p, 0.8F, 0.8F); }},
    {"star",
     [](Point p) { return length(p) - 0.65F - 0.33F * std::cos(5 * std::atan2(p.y, p.x)); }},
    {"triangle",
     [](Point p) { return std::max(std::abs(p.x) * 0.866F + p.y * 0.5F, -p.y) - 0.5F; }},
    {"cross", [](Point p) { return std::min(box(p, 0.98F, 0.34F), box(p, 0.34F, 0.98F)); }},
    {"ring", [](Point p) { return std::abs(length(p) - 0.66F) - 0.3F; }},
    {"bar", [](Point p) { return box(p, 1.0F, 0.42F); }},
    {"crescent",
     [](Point p) {
         return std::max(length(p) - 0.95F, 0.72F - length({p.x - 0.5F, p.y}));
     }},
}};

/// A surface with values 0 to 1 and a period of 2 pi.
struct Surface {
    const char* name;
    float (*value)(Point);
};

float step(float wave) {
    return std::clamp(0.5F + 1.5F * wave, 0.0F, 1.0F);
}

constexpr std::array<Surface, 8> kSurfaces{{
    {"stripes", [](Point p) { return step(std::sin(p.x)); }},
    {"checks", [](Point p) { return step(2 * std::sin(p.x) * std::sin(p.y)); }},
    {"dots", [](Point p) { return step(std::sin(p.x) + std::sin(p.y) - 0.9F); }},
    {"rings", [](Point p) { return step(std::sin(length(p))); }},
    {"spokes", [](Point p) { return step(std::sin(9 * std::atan2(p.y, p.x))); }},
    {"waves", [](Point p) { return step(std::sin(p.y + 1.6F * std::sin(0.7F * p.x))); }},
    {"mesh", [](Point p) { return step(std::max(std::cos(p.x), std::cos(p.y)) - 0.75F); }},
    {"shade", [](Point p) { return std::clamp(0.5F + 0.06F * p.x, 0.0F, 1.0F); }},
}};

constexpr std::array<float, 16> kFineness{1.0F,  1.7F,  0.55F, 2.4F, 1.3F,  0.75F, 2.0F, 1.5F,
                                          0.65F, 1.15F, 1.85F, 2.2F, 0.85F, 1.4F,  1.6F, 0.6F};

struct ClassLook {
    std::size_t outline, surface;
    float fineness;
};

/// Neighbouring classes differ in outline and surface. There are 8 x 8 x 16 looks.
ClassLook look_of(int label) {
    const std::size_t index = label;
    return {index % 8, (index / 8 + 3 * (index % 8)) % 8, kFineness[index / 64 % 16]};
}

/// An object and its position in the picture.
struct Object {
    std::size_t outline, surface;
    Point center;            // pixels
    float radius;            // pixels
    float cosine, sine;      // of its rotation
    float radians_per_unit;  // of its surface
    LinearColor dark, light;
};

float between(CounterStream& random, float low, float high) {
    return low + (high - low) * static_cast<float>(random.uniform());
}

/// Returns a colour of the given brightness and a random hue.
LinearColor any_color(CounterStream& random, float brightness) {
    LinearColor color{};
    const float hue = between(random, 0, 2 * kPi);
    const float strength = between(random, 0.0F, 0.35F);
    for (std::size_t c = 0; c < color.size(); ++c) {
        const float turn = hue + 2 * kPi * static_cast<float>(c) / 3;
        color[c] = std::clamp(brightness + strength * std::cos(turn), 0.0F, 1.0F);
    }
    return color;
}

Object any_object(CounterStream& random, ImageSize size, float radius) {
    Object object{};
    object.radius = radius;
    object.center = {static_cast<float>(size.width) * between(random, 0.32F, 0.68F),
                     static_cast<float>(size.height) * between(random, 0.32F, 0.68F)};
    const float angle = between(random, 0, 2 * kPi);
    object.cosine = std::cos(angle);
    object.sine = std::sin(angle);
    object.radians_per_unit = 2 * kPi * between(random, 1.7F, 2.3F);
    object.dark = any_color(random, between(random, 0.05F, 0.3F));
    object.light = any_color(random, between(random, 0.65F, 0.95F));
    return object;
}

/// Returns a plain object of a random outline near the edge of the picture.
Object any_distractor(CounterStream& random, ImageSize size) {
    const auto shorter = static_cast<float>(std::min(size.width, size.height));
    Object object = any_object(random, size, shorter * between(random, 0.06F, 0.13F));
    const float angle = between(random, 0, 2 * kPi);
    object.center = {static_cast<float>(size.width) * (0.5F + 0.45F * std::cos(angle)),
                     static_cast<float>(size.height) * (0.5F + 0.45F * std::sin(angle))};
    object.outline = random.below(kOutlines.size());
    object.surface = kSurfaces.size() - 1;
    object.dark = object.light;
    return object;
}

/// Smooth random hills over the unit square, 0 to 1.
class Hills {
public:
    Hills(CounterStream& random, int cells) : cells_(cells) {
        heights_.resize((cells + 1) * (cells + 1));
        for (float& height : heights_) height = static_cast<float>(random.uniform());
    }
    float at(float x, float y) const {
        const float column = std::min(x, 0.9999F) * static_cast<float>(cells_);
        const float row = std::min(y, 0.9999F) * static_cast<float>(cells_);
        const int i = static_cast<int>(column);
        const int j = static_cast<int>(row);
        const float fx = column - static_cast<float>(i);
        const float fy = row - static_cast<float>(j);
        return (height(i, j) * (1 - fx) + height(i + 1, j) * fx) * (1 - fy) +
               (height(i, j + 1) * (1 - fx) + height(i + 1, j + 1) * fx) * fy;
    }

private:
    float height(int i, int j) const { return heights_[j * (cells_ + 1) + i]; }
    int cells_;
    std::vector<float> heights_;
};

/// A picture without its noise.
struct Scene {
    ImageSize size;
    Hills coarse, fine;
    LinearColor low, high;        // of the background
    std::vector<Object> objects;  // later ones are in front
    Point light;                  // gradient of the gain across the picture
    float gain;
    float noise;  // standard deviation, 0 to 1
};

ImageSize any_size(CounterStream& random, int longer) {
    const int shorter =
        std::max(1, static_cast<int>(static_cast<float>(longer) * between(random, 0.75F, 1.0F)));
    return random.below(2) == 0 ? ImageSize{longer, shorter} : ImageSize{shorter, longer};
}

Scene make_scene(CounterStream& random, const PhotographSet& set, int label) {
    const ImageSize size = any_size(random, set.size);
    Scene scene{.size = size,
                .coarse = Hills(random, 3),
                .fine = Hills(random, 14),
                .low = any_color(random, between(random, 0.15F, 0.5F)),
                .high = any_color(random, between(random, 0.45F, 0.85F)),
                .objects = {},
                .light = {between(random, -0.5F, 0.5F), between(random, -0.5F, 0.5F)},
                .gain = between(random, 0.7F, 1.15F),
                .noise = between(random, 0.01F, 0.05F)};
    for (std::uint32_t n = 1 + random.below(4); n > 0; --n) {
        scene.objects.push_back(any_distractor(random, size));
    }
    const auto shorter = static_cast<float>(std::min(size.width, size.height));
    Object object = any_object(random, size, shorter * between(random, 0.24F, 0.42F));
    const ClassLook look = look_of(label);
    object.outline = look.outline;
    object.surface = look.surface;
    object.radians_per_unit *= look.fineness;
    scene.objects.push_back(object);
    return scene;
}

void paint(const Object& object, Point pixel, LinearColor& color) {
    const float dx = (pixel.x - object.center.x) / object.radius;
    const float dy = (pixel.y - object.center.y) / object.radius;
    if (std::max(std::abs(dx), std::abs(dy)) > 1.5F) return;
    const Point local{object.cosine * dx + object.sine * dy, object.cosine * dy - object.sine * dx};
    const float distance = kOutlines[object.outline].distance(local) * object.radius;
    const float cover = std::clamp(0.5F - distance, 0.0F, 1.0F);
    if (cover <= 0) return;
    const float scale = object.radians_per_unit;
    const float mix = kSurfaces[object.surface].value({local.x * scale, local.y * scale});
    for (std::size_t c = 0; c < color.size(); ++c) {
        const float own = object.dark[c] + (object.light[c] - object.dark[c]) * mix;
        color[c] += (own - color[c]) * cover;
    }
}

LinearColor color_at(const Scene& scene, int x, int y) {
    const float u = static_cast<float>(x) / static_cast<float>(scene.size.width);
    const float v = static_cast<float>(y) / static_cast<float>(scene.size.height);
    const float mix = 0.65F * scene.coarse.at(u, v) + 0.35F * scene.fine.at(u, v);
    LinearColor color{};
    for (std::size_t c = 0; c < color.size(); ++c) {
        color[c] = scene.low[c] + (scene.high[c] - scene.low[c]) * mix;
    }
    for (const Object& object : scene.objects) {
        paint(object, {static_cast<float>(x), static_cast<float>(y)}, color);
    }
    const float gain = scene.gain * (1 + scene.light.x * (u - 0.5F) + scene.light.y * (v - 0.5F));
    for (float& value : color) value *= gain;
    return color;
}

/// Returns a nearly normal number, mean 0 and standard deviation 1: the sum of four uniform bytes.
float rough_normal(std::uint32_t bits) {
    const std::uint32_t sum =
        (bits & 255U) + (bits >> 8 & 255U) + (bits >> 16 & 255U) + (bits >> 24);
    return (static_cast<float>(sum) - 510.0F) / 147.8F;
}

}  // namespace

std::string photograph_class_name(int label) {
    const ClassLook look = look_of(label);
    return fmt::format("{:04}_{}_{}", label, kOutlines[look.outline].name,
                       kSurfaces[look.surface].name);
}

Image make_photograph(const PhotographSet& set, Split split, int label, std::uint32_t number) {
    ensure(label >= 0 && label < set.classes && set.classes <= kMaxPhotographClasses,
           "photograph of class {} of {}", label, set.classes);
    CounterStream random(set.seed, RandomPurpose::photographs, static_cast<std::uint32_t>(split),
                         static_cast<std::uint32_t>(label), number);
    const Scene scene = make_scene(random, set, label);
    Image image(scene.size.width, scene.size.height);
    std::uint8_t* out = image.pixels.data();
    for (int y = 0; y < image.height; ++y) {
        for (int x = 0; x < image.width; ++x) {
            for (const float value : color_at(scene, x, y)) {
                const float noisy = value + scene.noise * rough_normal(random.next_u32());
                *out++ = static_cast<std::uint8_t>(std::clamp(noisy, 0.0F, 1.0F) * 255.0F + 0.5F);
            }
        }
    }
    return image;
}

}  // namespace hpcai::data
