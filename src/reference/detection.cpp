// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <hpcai/reference/naive_boxes.hpp>

#include "solver.hpp"

/// The operations of Faster R-CNN in double (definitions and columns: hpcai/ops/detection.hpp).
namespace hpcai::naive {

namespace {

Box box_in(const Tensor& rows, std::int64_t row) {
    const std::int64_t at = row * rows.shape[2];
    return {rows[at], rows[at + 1], rows[at + 2], rows[at + 3]};
}

double smooth_l1(double difference) {
    const double size = std::abs(difference), beta = 1.0 / 9;
    return size < beta ? size * size / 2 / beta : size - beta / 2;
}
double smooth_l1_slope(double difference) {
    return std::clamp(difference * 9, -1.0, 1.0);
}

/// Returns the index of an anchor's first number in `level`. `per_anchor`: 1 logit or 4 deltas.
std::int64_t index_of(const PlacedAnchor& anchor, const Tensor& level, std::int64_t n,
                      std::int64_t per_anchor) {
    return (n * level.shape[1] * level.shape[2] + anchor.pixel) * level.shape[3] +
           anchor.place * per_anchor;
}

}  // namespace

void Solver::operator()(const ops::AnchorTargets& op) {
    const std::int64_t images = op.boxes[0], rows = op.boxes[1];
    const auto anchors = placed(op.anchors);
    solution.output = Tensor(output_shape(op));
    for (std::int64_t n = 0; n < images; ++n) {
        std::vector<Box> boxes;
        for (std::int64_t g = n * rows; g < (n + 1) * rows; ++g) {
            if (x()[g * 5 + 4] > 0 && box_in(x(), g).has_area()) boxes.push_back(box_in(x(), g));
        }
        std::vector<double> best_of_box(boxes.size(), 0);
        for (const auto& anchor : anchors)
            for (std::size_t g = 0; g < boxes.size(); ++g)
                best_of_box[g] = std::max(best_of_box[g], iou(boxes[g], anchor.box));
        std::vector<std::int64_t> positives, negatives;
        std::map<std::int64_t, std::size_t> matches;
        for (std::size_t a = 0; a < anchors.size(); ++a) {
            double best = 0;
            bool is_best_of_a_box = false;
            const auto number = static_cast<std::int64_t>(a);
            for (std::size_t g = 0; g < boxes.size(); ++g) {
                const double overlap = iou(boxes[g], anchors[a].box);
                if (overlap > best) matches[number] = g;
                best = std::max(best, overlap);
                is_best_of_a_box |= overlap > 0 && overlap == best_of_box[g];
            }
            if (best >= op.foreground_iou || is_best_of_a_box) {
                positives.push_back(number);
            } else if (best < op.background_iou) {
                negatives.push_back(number);
            }
        }
        const auto key =
            static_cast<std::uint32_t>(static_cast<std::int32_t>(problem.inputs[1][n]));
        const auto max_positives = op.positive_share * static_cast<double>(op.samples);
        positives = drawn(positives, static_cast<std::int64_t>(max_positives), key, 0);
        const auto rest = op.samples - static_cast<std::int64_t>(positives.size());
        negatives = drawn(negatives, rest, key, 0);
        for (std::int64_t row = 0; row < op.samples; ++row) {
            const std::int64_t at = (n * op.samples + row) * 6;
            const auto p = static_cast<std::int64_t>(positives.size());
            solution.output[at] = -1;
            if (row < p) {
                const std::int64_t number = positives[static_cast<std::size_t>(row)];
                const auto target = encoded(boxes[matches.at(number)],
                                            anchors[static_cast<std::size_t>(number)].box, {});
                solution.output[at] = static_cast<double>(number);
                solution.output[at + 1] = 1;
                for (std::int64_t i = 0; i < 4; ++i) {
                    solution.output[at + 2 + i] = target[static_cast<std::size_t>(i)];
                }
            } else if (row - p < static_cast<std::int64_t>(negatives.size())) {
                solution.output[at] =
                    static_cast<double>(negatives[static_cast<std::size_t>(row - p)]);
            }
        }
    }
}

void Solver::operator()(const ops::RpnLoss& op) {
    const auto anchors = placed(op.anchors);
    const std::size_t levels = op.anchors.levels.size();
    const Tensor& targets = problem.inputs.back();
    const std::int64_t samples = op.targets[1];
    solution.output = Tensor(Shape{op.batch, 2});
    for (const Tensor& input : problem.inputs) solution.input_gradients.emplace_back(input.shape);
    solution.input_gradients.back() = Tensor();
    for (std::int64_t n = 0; n < op.batch; ++n) {
        double count = 0;
        for (std::int64_t row = n * samples; row < (n + 1) * samples; ++row) {
            count += targets[row * 6] >= 0 ? 1 : 0;
        }
        for (std::int64_t row = n * samples; row < (n + 1) * samples; ++row) {
            if (targets[row * 6] < 0) continue;
            const auto& anchor = anchors[static_cast<std::size_t>(targets[row * 6])];
            const double label = targets[row * 6 + 1];
            const Tensor& logits = problem.inputs[anchor.level];
            const std::int64_t at = index_of(anchor, logits, n, 1);
            const double probability = 1 / (1 + std::exp(-logits[at]));
            solution.output[2 * n] -=
                (label > 0 ? std::log(probability) : std::log(1 - probability)) / count;
            solution.input_gradients[anchor.level][at] =
                problem.loss_scale * (probability - label) / count;
            if (label == 0) continue;
            const std::size_t level = levels + anchor.level;
            const std::int64_t first = index_of(anchor, problem.inputs[level], n, 4);
            for (std::int64_t i = 0; i < 4; ++i) {
                const double difference =
                    problem.inputs[level][first + i] - targets[row * 6 + 2 + i];
                solution.output[2 * n + 1] += smooth_l1(difference) / count;
                solution.input_gradients[level][first + i] =
                    problem.loss_scale * smooth_l1_slope(difference) / count;
            }
        }
    }
}

void Solver::operator()(const ops::Proposals& op) {
    const auto anchors = placed(op.anchors);
    const std::size_t levels = op.anchors.levels.size();
    solution.output = Tensor(output_shape(op));
    for (std::int64_t n = 0; n < op.batch; ++n) {
        std::vector<ScoredBox> all;
        for (std::size_t level = 0; level < levels; ++level) {
            std::vector<ScoredBox> best;
            for (std::size_t a = 0; a < anchors.size(); ++a) {
                if (anchors[a].level != level) continue;
                const double logit =
                    problem.inputs[level][index_of(anchors[a], problem.inputs[level], n, 1)];
                const double score = std::isnan(logit) ? -HUGE_VAL : logit;
                best.push_back({{}, score, static_cast<std::int64_t>(a)});
            }
            sort_by_score(best);
            best.resize(std::min(best.size(), static_cast<std::size_t>(op.per_level)));
            std::vector<ScoredBox> good;
            for (ScoredBox one : best) {
                const auto& anchor = anchors[static_cast<std::size_t>(one.candidate)];
                const Tensor& deltas = problem.inputs[levels + level];
                const std::int64_t at = index_of(anchor, deltas, n, 4);
                const double logit =
                    problem.inputs[level][index_of(anchor, problem.inputs[level], n, 1)];
                one.box = decoded({deltas[at], deltas[at + 1], deltas[at + 2], deltas[at + 3]},
                                  anchor.box, {});
                if (std::isnan(logit) || !one.box.is_finite()) continue;
                one.box = clipped(one.box, op.anchors.image_height, op.anchors.image_width);
                const double side = std::min(one.box.width(), one.box.height());
                if (side >= op.minimum_side) good.push_back(one);
            }
            for (const ScoredBox& one : unsuppressed(good, op.nms_iou)) all.push_back(one);
        }
        sort_by_score(all);
        for (std::int64_t row = 0; row < op.limit; ++row) {
            const std::int64_t at = (n * op.limit + row) * 5;
            solution.output[at + 4] = -1;
            if (row >= static_cast<std::int64_t>(all.size())) continue;
            const ScoredBox& one = all[static_cast<std::size_t>(row)];
            for (std::int64_t i = 0; i < 4; ++i) {
                solution.output[at + i] = one.box.numbers()[static_cast<std::size_t>(i)];
            }
            solution.output[at + 4] = 1 / (1 + std::exp(-one.score));
        }
    }
}

void Solver::operator()(const ops::RoiTargets& op) {
    const std::int64_t proposals = op.proposals[1], rows = op.boxes[1];
    const Tensor& boxes = problem.inputs[1];
    solution.output = Tensor(output_shape(op));
    for (std::int64_t n = 0; n < op.boxes[0]; ++n) {
        const auto is_box = [&](std::int64_t g) {
            return boxes[(n * rows + g) * 5 + 4] > 0 && box_in(boxes, n * rows + g).has_area();
        };
        const auto candidate = [&](std::int64_t i) {
            return i < proposals ? box_in(x(), n * proposals + i)
                                 : box_in(boxes, n * rows + i - proposals);
        };
        std::vector<std::int64_t> foreground, background;
        std::map<std::int64_t, std::int64_t> matches;
        for (std::int64_t i = 0; i < proposals + rows; ++i) {
            const bool is_used =
                i < proposals ? x()[(n * proposals + i) * 5 + 4] >= 0 : is_box(i - proposals);
            if (!is_used) continue;
            double best = 0;
            for (std::int64_t g = 0; g < rows; ++g) {
                if (!is_box(g)) continue;
                const double overlap = iou(box_in(boxes, n * rows + g), candidate(i));
                if (overlap > best) matches[i] = g;
                best = std::max(best, overlap);
            }
            (best >= op.foreground_iou ? foreground : background).push_back(i);
        }
        const auto key =
            static_cast<std::uint32_t>(static_cast<std::int32_t>(problem.inputs[2][n]));
        const auto max_positives = op.positive_share * static_cast<double>(op.samples);
        foreground = drawn(foreground, static_cast<std::int64_t>(max_positives), key, 1);
        const auto count = static_cast<std::int64_t>(foreground.size());
        background = drawn(background, op.samples - count, key, 1);
        std::vector<std::int64_t> all = foreground;
        all.insert(all.end(), background.begin(), background.end());
        for (std::int64_t row = 0; row < op.samples; ++row) {
            const std::int64_t at = (n * op.samples + row) * 9;
            solution.output[at + 4] = -1;
            if (row >= static_cast<std::int64_t>(all.size())) continue;
            const std::int64_t i = all[static_cast<std::size_t>(row)];
            std::array<double, 4> target{};
            solution.output[at + 4] = 0;
            if (row < count) {
                const std::int64_t g = n * rows + matches.at(i);
                solution.output[at + 4] = boxes[g * 5 + 4];
                target = encoded(box_in(boxes, g), candidate(i), op.coder);
            }
            for (std::int64_t k = 0; k < 4; ++k) {
                solution.output[at + k] = candidate(i).numbers()[static_cast<std::size_t>(k)];
                solution.output[at + 5 + k] = target[static_cast<std::size_t>(k)];
            }
        }
    }
}

/// A coordinate between two rows or columns of a level: their indices and weights.
struct Between {
    std::int64_t low = 0, high = 0;
    double low_weight = 0, high_weight = 0;

    Between(double at, std::int64_t extent) {
        if (!(at >= -1 && at <= static_cast<double>(extent)))
            return;  // more than a pixel outside the level: no weights
        at = std::clamp(at, 0.0, static_cast<double>(extent - 1));
        low = static_cast<std::int64_t>(at);
        high = std::min(low + 1, extent - 1);
        high_weight = at - static_cast<double>(low);
        low_weight = 1 - high_weight;
    }
};

void Solver::operator()(const ops::RoiAlign& op) {
    const Tensor& regions = problem.inputs.back();
    const std::int64_t columns = op.pooled * op.pooled * op.pyramid[0][3];
    const Tensor dy = backward() ? output_gradient() : Tensor(output_shape(op));
    solution.output = Tensor(output_shape(op));
    for (const Shape& level : op.pyramid) solution.input_gradients.emplace_back(level);
    solution.input_gradients.emplace_back();
    const auto pooled = static_cast<double>(op.pooled),
               ratio = static_cast<double>(op.sampling_ratio);
    for (std::int64_t row = 0; row < op.regions[0] * op.regions[1]; ++row) {
        if (regions[row * op.regions[2] + 4] < 0) continue;
        const Box box = box_in(regions, row);
        const double size = std::sqrt(box.width() * box.height());
        const double level = std::clamp(std::floor(4 + std::log2(size / 224) + 1e-6), 2.0, 5.0);
        const auto index = static_cast<std::size_t>(level - 2);
        const Shape& shape = op.pyramid[index];
        const double scale = std::exp2(-level);
        const double height = std::max(box.height() * scale, 1.0);
        const double width = std::max(box.width() * scale, 1.0);
        for (std::int64_t bin = 0; bin < op.pooled * op.pooled; ++bin)
            for (std::int64_t i = 0; i < op.sampling_ratio; ++i)
                for (std::int64_t j = 0; j < op.sampling_ratio; ++j) {
                    const auto bin_row = static_cast<double>(bin / op.pooled);
                    const auto bin_column = static_cast<double>(bin % op.pooled);
                    const Between v(
                        box.y1 * scale +
                            height / pooled * (bin_row + (static_cast<double>(i) + 0.5) / ratio),
                        shape[1]);
                    const Between h(
                        box.x1 * scale +
                            width / pooled * (bin_column + (static_cast<double>(j) + 0.5) / ratio),
                        shape[2]);
                    for (const auto& [r, wr] :
                         {std::pair{v.low, v.low_weight}, {v.high, v.high_weight}})
                        for (const auto& [s, ws] :
                             {std::pair{h.low, h.low_weight}, {h.high, h.high_weight}})
                            for (std::int64_t c = 0; c < shape[3]; ++c) {
                                const std::int64_t from =
                                    image_index(shape, row / op.regions[1], r, s, c);
                                const std::int64_t to = row * columns + bin * shape[3] + c;
                                const double weight = wr * ws / (ratio * ratio);
                                solution.output[to] += weight * problem.inputs[index][from];
                                solution.input_gradients[index][from] += weight * dy[to];
                            }
                }
    }
}

void Solver::operator()(const ops::RoiLoss& op) {
    const Tensor &deltas = problem.inputs[1], &targets = problem.inputs[2];
    const std::int64_t samples = op.targets[1], classes = op.classes;
    solution.output = Tensor(output_shape(op));
    solution.input_gradients = {Tensor(x().shape), Tensor(deltas.shape), Tensor()};
    for (std::int64_t n = 0; n < op.targets[0]; ++n) {
        double count = 0;
        for (std::int64_t row = n * samples; row < (n + 1) * samples; ++row) {
            count += targets[row * 9 + 4] >= 0 ? 1 : 0;
        }
        for (std::int64_t row = n * samples; row < (n + 1) * samples; ++row) {
            const auto label = static_cast<std::int64_t>(targets[row * 9 + 4]);
            if (label < 0) continue;
            double total = 0;
            for (std::int64_t k = 0; k < classes; ++k) total += std::exp(x()[row * classes + k]);
            solution.output[2 * n] += (std::log(total) - x()[row * classes + label]) / count;
            for (std::int64_t k = 0; k < classes; ++k) {
                const double probability = std::exp(x()[row * classes + k]) / total;
                solution.input_gradients[0][row * classes + k] =
                    problem.loss_scale * (probability - (k == label ? 1 : 0)) / count;
            }
            for (std::int64_t i = 0; i < 4 && label > 0; ++i) {
                const std::int64_t at = (row * classes + label) * 4 + i;
                const double difference = deltas[at] - targets[row * 9 + 5 + i];
                solution.output[2 * n + 1] += smooth_l1(difference) / count;
                solution.input_gradients[1][at] =
                    problem.loss_scale * smooth_l1_slope(difference) / count;
            }
        }
    }
}

void Solver::operator()(const ops::Detections& op) {
    const Tensor &deltas = problem.inputs[1], &proposals = problem.inputs[2];
    const std::int64_t regions = op.proposals[1], classes = op.classes;
    solution.output = Tensor(output_shape(op));
    for (std::int64_t n = 0; n < op.proposals[0]; ++n) {
        std::vector<ScoredBox> all;
        for (std::int64_t label = 1; label < classes; ++label) {
            std::vector<ScoredBox> good;
            for (std::int64_t row = n * regions; row < (n + 1) * regions; ++row) {
                if (proposals[row * 5 + 4] < 0) continue;
                double total = 0;
                for (std::int64_t k = 0; k < classes; ++k) {
                    total += std::exp(x()[row * classes + k] - x()[row * classes + label]);
                }
                const std::int64_t at = (row * classes + label) * 4;
                const Box moved =
                    decoded({deltas[at], deltas[at + 1], deltas[at + 2], deltas[at + 3]},
                            box_in(proposals, row), op.coder);
                if (!moved.is_finite()) continue;
                const Box box = clipped(moved, op.image_height, op.image_width);
                const double side = std::min(box.width(), box.height());
                if (1 / total > op.score_threshold && side >= op.minimum_side) {
                    good.push_back({box, 1 / total, label * regions + row % regions, label});
                }
            }
            for (const ScoredBox& one : unsuppressed(good, op.nms_iou)) all.push_back(one);
        }
        sort_by_score(all);
        for (std::int64_t row = 0; row < op.limit; ++row) {
            if (row >= static_cast<std::int64_t>(all.size())) continue;
            const ScoredBox& one = all[static_cast<std::size_t>(row)];
            const std::int64_t at = (n * op.limit + row) * 6;
            for (std::int64_t i = 0; i < 4; ++i) {
                solution.output[at + i] = one.box.numbers()[static_cast<std::size_t>(i)];
            }
            solution.output[at + 4] = one.score;
            solution.output[at + 5] = static_cast<double>(one.label);
        }
    }
}

}  // namespace hpcai::naive
