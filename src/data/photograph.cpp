// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include <hpcai/data/photograph.hpp>

namespace hpcai::data {
namespace {

// An image has the same bytes on all machines. The sines and arc tangents of C libraries differ in
// the last bits, but with doubles the differences do not change a pixel.
constexpr double kPi = std::numbers::pi;

struct Point {
    double x, y;
};

using LinearColor = std::array<double, kImageChannels>;  // 0 to 1

double length(Point p) {
    return std::sqrt(p.x * p.x + p.y * p.y);
}

double box(Point p, double half_width, double half_height) {
    return std::max(std::abs(p.x) - half_width, std::abs(p.y) - half_height);
}

struct NamedFunction {
    const char* name;
    double (*value)(Point);
};

/// Outlines within [-1, 1]^2. The value is roughly the distance to the outline, negative inside.
constexpr std::array<NamedFunction, 8> kOutlines{{
    {"disc", [](Point p) { return length(p) - 0.9; }},
    {"square", [](Point p) { return box(p, 0.8, 0.8); }},
    {"star", [](Point p) { return length(p) - 0.65 - 0.33 * std::cos(5 * std::atan2(p.y, p.x)); }},
    {"triangle", [](Point p) { return std::max(std::abs(p.x) * 0.866 + p.y * 0.5, -p.y) - 0.5; }},
    {"cross", [](Point p) { return std::min(box(p, 0.98, 0.34), box(p, 0.34, 0.98)); }},
    {"ring", [](Point p) { return std::abs(length(p) - 0.66) - 0.3; }},
    {"bar", [](Point p) { return box(p, 1.0, 0.42); }},
    {"crescent",
     [](Point p) {
         return std::max(length(p) - 0.95, 0.72 - length({p.x - 0.5, p.y}));
     }},
}};

double step(double wave) {
    return std::clamp(0.5 + 1.5 * wave, 0.0, 1.0);
}

/// Surfaces with values from 0 to 1; the coordinates are in radians.
constexpr std::array<NamedFunction, 8> kSurfaces{{
    {"stripes", [](Point p) { return step(std::sin(p.x)); }},
    {"checks", [](Point p) { return step(2 * std::sin(p.x) * std::sin(p.y)); }},
    {"dots", [](Point p) { return step(std::sin(p.x) + std::sin(p.y) - 0.9); }},
    {"rings", [](Point p) { return step(std::sin(length(p))); }},
    {"spokes", [](Point p) { return step(std::sin(9 * std::atan2(p.y, p.x))); }},
    {"waves", [](Point p) { return step(std::sin(p.y + 1.6 * std::sin(0.7 * p.x))); }},
    {"mesh", [](Point p) { return step(std::max(std::cos(p.x), std::cos(p.y)) - 0.75); }},
    {"shade", [](Point p) { return std::clamp(0.5 + 0.06 * p.x, 0.0, 1.0); }},
}};

constexpr std::array<double, 16> kFrequencyFactors{1.0,  1.7,  0.55, 2.4, 1.3,  0.75, 2.0, 1.5,
                                                   0.65, 1.15, 1.85, 2.2, 0.85, 1.4,  1.6, 0.6};

struct ClassAppearance {
    std::size_t outline, surface;
    double frequency_factor;
};

/// Neighbouring classes differ in outline and surface. There are 8 x 8 x 16 appearances.
ClassAppearance appearance_of(int label) {
    const std::size_t index = label;
    return {index % 8, (index / 8 + 3 * (index % 8)) % 8, kFrequencyFactors[index / 64 % 16]};
}

/// An object and its position in the image.
struct Object {
    std::size_t outline, surface;
    Point center;             // pixels
    double radius;            // pixels
    double cosine, sine;      // of the rotation
    double radians_per_unit;  // of the surface; the unit is the radius
    LinearColor dark, light;
};

double uniform(CounterStream& random, double low, double high) {
    return low + (high - low) * random.uniform();
}

/// Returns a colour of the given brightness and a random hue.
LinearColor random_color(CounterStream& random, double brightness) {
    LinearColor color{};
    const double hue = uniform(random, 0, 2 * kPi);
    const double strength = uniform(random, 0.0, 0.35);
    for (std::size_t c = 0; c < color.size(); ++c) {
        const double angle = hue + 2 * kPi * static_cast<double>(c) / 3;
        color[c] = std::clamp(brightness + strength * std::cos(angle), 0.0, 1.0);
    }
    return color;
}

Object random_object(CounterStream& random, ImageSize size, double radius) {
    Object object{};
    object.radius = radius;
    object.center = {static_cast<double>(size.width) * uniform(random, 0.32, 0.68),
                     static_cast<double>(size.height) * uniform(random, 0.32, 0.68)};
    const double angle = uniform(random, 0, 2 * kPi);
    object.cosine = std::cos(angle);
    object.sine = std::sin(angle);
    object.radians_per_unit = 2 * kPi * uniform(random, 1.7, 2.3);
    object.dark = random_color(random, uniform(random, 0.05, 0.3));
    object.light = random_color(random, uniform(random, 0.65, 0.95));
    return object;
}

/// Returns a plain object with a random outline near the edge of the image.
Object random_distractor(CounterStream& random, ImageSize size) {
    const auto shorter = static_cast<double>(std::min(size.width, size.height));
    Object object = random_object(random, size, shorter * uniform(random, 0.06, 0.13));
    const double angle = uniform(random, 0, 2 * kPi);
    object.center = {static_cast<double>(size.width) * (0.5 + 0.45 * std::cos(angle)),
                     static_cast<double>(size.height) * (0.5 + 0.45 * std::sin(angle))};
    object.outline = random.below(kOutlines.size());
    object.surface = kSurfaces.size() - 1;
    object.dark = object.light;
    return object;
}

/// Smooth random noise over the unit square, 0 to 1.
class SmoothNoise {
public:
    SmoothNoise(CounterStream& random, int cells) : cells_(cells) {
        heights_.resize((cells + 1) * (cells + 1));
        for (double& height : heights_) height = random.uniform();
    }
    double at(double x, double y) const {
        const double column = std::min(x, 0.9999) * static_cast<double>(cells_);
        const double row = std::min(y, 0.9999) * static_cast<double>(cells_);
        const int i = static_cast<int>(column);
        const int j = static_cast<int>(row);
        const double fx = column - static_cast<double>(i);
        const double fy = row - static_cast<double>(j);
        return (height(i, j) * (1 - fx) + height(i + 1, j) * fx) * (1 - fy) +
               (height(i, j + 1) * (1 - fx) + height(i + 1, j + 1) * fx) * fy;
    }

private:
    double height(int i, int j) const { return heights_[j * (cells_ + 1) + i]; }
    int cells_;
    std::vector<double> heights_;
};

/// The contents of an image, without pixel noise.
struct Scene {
    ImageSize size;
    SmoothNoise coarse, fine;
    LinearColor low, high;        // of the background
    std::vector<Object> objects;  // from back to front
    Point gain_slope;             // relative change of the gain across the image
    double gain;
    double noise;  // standard deviation of pixel noise; colours are 0 to 1
};

ImageSize random_size(CounterStream& random, int longer) {
    const int shorter =
        std::max(1, static_cast<int>(static_cast<double>(longer) * uniform(random, 0.75, 1.0)));
    return random.below(2) == 0 ? ImageSize{longer, shorter} : ImageSize{shorter, longer};
}

Scene make_scene(CounterStream& random, const PhotographSet& set, int label) {
    const ImageSize size = random_size(random, set.size);
    Scene scene{.size = size,
                .coarse = SmoothNoise(random, 3),
                .fine = SmoothNoise(random, 14),
                .low = random_color(random, uniform(random, 0.15, 0.5)),
                .high = random_color(random, uniform(random, 0.45, 0.85)),
                .objects = {},
                .gain_slope = {uniform(random, -0.5, 0.5), uniform(random, -0.5, 0.5)},
                .gain = uniform(random, 0.7, 1.15),
                .noise = uniform(random, 0.01, 0.05)};
    for (std::uint32_t n = 1 + random.below(4); n > 0; --n) {
        scene.objects.push_back(random_distractor(random, size));
    }
    const auto shorter = static_cast<double>(std::min(size.width, size.height));
    Object object = random_object(random, size, shorter * uniform(random, 0.24, 0.42));
    const ClassAppearance appearance = appearance_of(label);
    object.outline = appearance.outline;
    object.surface = appearance.surface;
    object.radians_per_unit *= appearance.frequency_factor;
    scene.objects.push_back(object);
    return scene;
}

void paint(const Object& object, Point pixel, LinearColor& color) {
    const double dx = (pixel.x - object.center.x) / object.radius;
    const double dy = (pixel.y - object.center.y) / object.radius;
    if (std::max(std::abs(dx), std::abs(dy)) > 1.5) return;
    const Point local{object.cosine * dx + object.sine * dy, object.cosine * dy - object.sine * dx};
    const double distance = kOutlines[object.outline].value(local) * object.radius;
    const double cover = std::clamp(0.5 - distance, 0.0, 1.0);
    if (cover <= 0) return;
    const double scale = object.radians_per_unit;
    const double mix = kSurfaces[object.surface].value({local.x * scale, local.y * scale});
    for (std::size_t c = 0; c < color.size(); ++c) {
        const double own = object.dark[c] + (object.light[c] - object.dark[c]) * mix;
        color[c] += (own - color[c]) * cover;
    }
}

LinearColor color_at(const Scene& scene, int x, int y) {
    const double u = static_cast<double>(x) / static_cast<double>(scene.size.width);
    const double v = static_cast<double>(y) / static_cast<double>(scene.size.height);
    const double mix = 0.65 * scene.coarse.at(u, v) + 0.35 * scene.fine.at(u, v);
    LinearColor color{};
    for (std::size_t c = 0; c < color.size(); ++c) {
        color[c] = scene.low[c] + (scene.high[c] - scene.low[c]) * mix;
    }
    for (const Object& object : scene.objects) {
        paint(object, {static_cast<double>(x), static_cast<double>(y)}, color);
    }
    const Point slope = scene.gain_slope;
    const double gain = scene.gain * (1 + slope.x * (u - 0.5) + slope.y * (v - 0.5));
    for (double& value : color) value *= gain;
    return color;
}

/// Returns a nearly normal number with mean 0 and variance 1, from the sum of four uniform bytes.
double rough_normal(std::uint32_t bits) {
    const std::uint32_t sum =
        (bits & 255U) + (bits >> 8 & 255U) + (bits >> 16 & 255U) + (bits >> 24);
    return (static_cast<double>(sum) - 510.0) / 147.8;  // mean and standard deviation of the sum
}

}  // namespace

std::string photograph_class_name(int label) {
    const ClassAppearance appearance = appearance_of(label);
    return fmt::format("{:04}_{}_{}", label, kOutlines[appearance.outline].name,
                       kSurfaces[appearance.surface].name);
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
            for (const double value : color_at(scene, x, y)) {
                const double noisy = value + scene.noise * rough_normal(random.next_u32());
                *out++ = static_cast<std::uint8_t>(std::clamp(noisy, 0.0, 1.0) * 255.0 + 0.5);
            }
        }
    }
    return image;
}

}  // namespace hpcai::data
