// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include <hpcai/base/median.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

/// Returns ceil(log2(ranks)), the rounds of messages until each rank has data from all others.
double message_rounds(int ranks) {
    return std::bit_width(static_cast<unsigned>(std::max(ranks, 1) - 1));
}

/// Returns the seconds of a step of `samples` samples, by a line through the two nearest points.
double interpolate_seconds(const std::vector<CalibrationPoint>& points, double samples) {
    const CalibrationPoint& last = points.back();
    if (points.size() == 1) return last.step_seconds * samples / last.samples;
    std::size_t right = 1;
    while (right + 1 < points.size() && points[right].samples < samples) ++right;
    const CalibrationPoint &a = points[right - 1], &b = points[right];
    const double slope = (b.step_seconds - a.step_seconds) / (b.samples - a.samples);
    const double seconds = a.step_seconds + slope * (samples - a.samples);
    // Measurement noise can make the slope negative.
    return slope > 0 && seconds > 0 ? seconds : last.step_seconds * samples / last.samples;
}

class StepPrediction {
public:
    StepPrediction(const config::Config& config, const EstimateRequest& request,
                   const plan::Layout& layout, PlanRecord& plan)
        : config_(config),
          request_(request),
          plan_(plan),
          roofline_(*request.roofline),
          layout_(layout),
          slowdown_(slowdown()) {}

    PlanTimeRecord predict() {
        time_.source = roofline_.measured_utc.empty()
                           ? "predicted from " + roofline_.device
                           : fmt::format("predicted from {} of {}, measured {}",
                                         counted(roofline_.ranks, "rank"), roofline_.device,
                                         roofline_.measured_utc);
        time_.compute_seconds = {compute_seconds(), ""};
        predict_communication();
        time_.step_seconds = time_.exposed_seconds;
        if (time_.step_seconds.value) *time_.step_seconds.value += *time_.compute_seconds.value;
        return time_;
    }

private:
    void assume(std::string text) { plan_.assumptions.push_back(std::move(text)); }

    /// Returns the ratio of a rank's time in the predicted run to that in the roofline measurement.
    /// It is not 1 if a rank has another number of cores. Assumes equal nodes.
    double slowdown() {
        if (roofline_.is_gpu || roofline_.cores == 0) return 1;  // GPUs, or a given rate per rank
        const double cores = roofline_.cores;
        const auto used_cores = [&](int threads, int ranks) {
            return std::min<double>(threads, cores / ranks);
        };
        const int ranks = plan_.layout.ranks_of_fullest_node;
        const int threads = config_.device.threads > 0 ? config_.device.threads
                                                       : std::max(1, roofline_.cores / ranks);
        const double factor = used_cores(roofline_.threads, roofline_.ranks_of_fullest_node) /
                              used_cores(threads, ranks);
        assume(fmt::format(
            "nodes of {}; with {} of {} on each, a rank takes {:.3g} times as long as the rates "
            "state for {} of {}",
            counted(roofline_.cores, "core"), counted(ranks, "rank"), counted(threads, "thread"),
            factor, counted(roofline_.ranks_of_fullest_node, "rank"),
            counted(roofline_.threads, "thread")));
        return factor;
    }

    bool is_calibrated() const {
        const CalibrationRecord& known = roofline_.calibration;
        const bool has_precision = config_.training.precision == config::Precision::automatic ||
                                   compute_precision(config_).name == known.precision;
        return !known.points.empty() && has_precision && known.model == plan_.model &&
               known.training_flops_per_sample == plan_.work.ledgers.front().training_per_sample;
    }

    /// Returns a rank's seconds for a step with one micro-batch of `samples` samples.
    double micro_batch_seconds(double samples) {
        if (is_calibrated()) return interpolate_seconds(roofline_.calibration.points, samples);
        if (!sample_seconds_) sample_seconds_ = sum_operation_seconds();
        return samples * *sample_seconds_;
    }

    double compute_seconds() {
        const double rows = layout_.micro_batch_size(config_.training.batch_size);
        const double micro_batch = micro_batch_seconds(rows);
        // Intercept of the time over samples: work that is done once per step, such as the update.
        const double fixed = std::max(0.0, 2 * micro_batch_seconds(rows / 2) - micro_batch);
        const double step = fixed + layout_.micro_batches * (micro_batch - fixed);
        const CalibrationRecord& known = roofline_.calibration;
        assume(
            is_calibrated() && known.points.size() == 1
                ? std::string("one training rate for any number of samples; input is ready in time")
            : is_calibrated()
                ? std::string("training steps as they were measured, interpolated between numbers "
                              "of samples; input is ready in time")
                : std::string("no training steps of this model in this precision were measured: "
                              "the time is the sum of its operations, each at its own rate, "
                              "per sample"));
        if (is_calibrated() && !known.reason.empty() && rows > known.points.back().samples) {
            assume(fmt::format(
                "the roofline has steps of {} at most ({}); for more, repeat `hpcai500 roofline` "
                "with --config, --precision {} --seconds {:.0f}",
                counted(known.points.back().samples, "sample"), printable(known.reason),
                printable(known.precision),
                std::clamp(4 * roofline_.measured_seconds, 60., 3600.)));
        }
        const std::string optimizer = config::value_text(config_, "training.optimizer");
        if (is_calibrated() && known.optimizer != optimizer) {
            assume(fmt::format("steps were measured with {}; those with {} take as long",
                               printable(known.optimizer), optimizer));
        }
        return slowdown_ * step * plan_.parallel.largest_stage_share /
               (1 - plan_.parallel.bubble_fraction);
    }

    /// Returns the measured FLOP/s of an operation, else the median of its kind; 0 if unknown.
    double flops_per_second(const graph::Node& node, ops::Pass pass) const {
        const std::string kind = ops::name_of(node.operation);
        const std::string precision = roofline_.calibration.precision;
        std::vector<double> rates;
        for (const OperationRate& rate : roofline_.operations) {
            if (rate.operation != kind || rate.pass != ops::name_of(pass) ||
                rate.precision != precision || !rate.flops_per_second.value) {
                continue;
            }
            if (rate.of_model && rate.name == node.name) return *rate.flops_per_second.value;
            rates.push_back(*rate.flops_per_second.value);
        }
        return rates.empty() ? 0 : median(std::move(rates));
    }

    double memory_bandwidth() const {
        for (const BandwidthRate& rate : roofline_.bandwidths) {
            if (rate.name == "memory" && rate.bytes_per_second.value) {
                return *rate.bytes_per_second.value;
            }
        }
        return 0;
    }

    /// Returns the training time of one sample, the sum over operations. Convolutions and linear
    /// layers take FLOPs / rate; all others take moved bytes / memory bandwidth.
    double sum_operation_seconds() {
        const graph::Graph model = models::make_model(config_);
        const bool is_narrow = compute_precision(config_).bytes == 2;
        const tensor::DType compute = is_narrow ? tensor::DType::bf16 : tensor::DType::f32;
        double seconds = 0;
        bool is_complete = memory_bandwidth() > 0;
        for (const graph::Node& node : model.nodes()) {
            const bool multiplies = ops::is_one_of<ops::Convolution, ops::Linear>(node.operation);
            const ops::Flops flops = graph::flops(model, node, ops::Ledger::two_mac);
            const std::array passes{std::pair{ops::Pass::forward, flops.forward},
                                    std::pair{ops::Pass::weight_gradient, flops.weight_gradient},
                                    std::pair{ops::Pass::input_gradient, flops.input_gradient}};
            for (const auto& [pass, count] : passes) {
                // Other operations compute their parameters' gradients in the input gradient pass.
                if (!multiplies && pass == ops::Pass::weight_gradient) continue;
                const double rate = multiplies ? flops_per_second(node, pass) : memory_bandwidth();
                is_complete = is_complete && (rate > 0 || count == 0);
                const double work = multiplies ? static_cast<double>(count)
                                               : metrics::moved_bytes(model, node, pass, compute);
                if (rate > 0) seconds += work / rate;
            }
        }
        require(is_complete, ExitCode::data,
                "roofline: expected training steps of {} in {}, or rates of convolutions, linear "
                "layers and memory, got neither; measure with the same --config",
                plan_.model, compute_precision(config_).name);
        return seconds;
    }

    /// Returns the latency of a message and the bandwidth, from the measured all-reduces.
    std::optional<config::Link> measured_link(std::string_view scope) const {
        for (const AllReduceFit& fit : roofline_.all_reduce_fits) {
            const bool is_in_scope = fit.scope == scope || (fit.scope == "run" && scope == "node" &&
                                                            roofline_.nodes == 1);
            if (!is_in_scope || !fit.latency_seconds.value || !fit.bytes_per_second.value) continue;
            if (fit.ranks < 2) continue;
            const double sent = 2.0 * (fit.ranks - 1) / fit.ranks;  // bytes per byte of payload
            return config::Link{*fit.latency_seconds.value / (2 * message_rounds(fit.ranks)),
                                *fit.bytes_per_second.value * sent};
        }
        return std::nullopt;
    }

    std::optional<config::Link> link(bool between_nodes) const {
        if (request_.machine) {
            const auto& described =
                between_nodes ? request_.machine->between_nodes : request_.machine->within_node;
            if (described) return described;
        }
        return measured_link(between_nodes ? "between nodes" : "node");
    }

    void predict_communication() {
        const double message_bytes =
            plan_.parallel.message_bytes_per_step + plan_.parallel.shard_bytes_per_step;
        if (layout_.degree == 1) {
            time_.communication_seconds = time_.exposed_seconds = {0.0, ""};
            return;
        }
        const bool spans_nodes = plan_.layout.nodes_of_widest_group > 1;
        const bool shares_node = layout_.degree > plan_.layout.nodes_of_widest_group;
        const std::optional<config::Link> inter_node = link(true);
        const std::optional<config::Link> intra_node = shares_node ? link(false) : inter_node;
        const auto missing = [&](const char* where) {
            time_.communication_seconds = time_.exposed_seconds =
                no_value(fmt::format("no all-reduces {} were measured (--roofline), and "
                                     "--machine describes no link there",
                                     where));
        };
        if (shares_node && !intra_node) return missing("within a node");
        if (spans_nodes && !inter_node) return missing("between nodes");
        const config::Link& slowest = spans_nodes ? *inter_node : *intra_node;
        const double all_reduces = all_reduce_seconds(*intra_node, slowest, spans_nodes);
        const double messages = message_bytes > 0
                                    ? message_bytes / slowest.bytes_per_second +
                                          2 * layout_.micro_batches * slowest.latency_seconds
                                    : 0;
        time_.communication_seconds = {all_reduces + messages, ""};
        time_.exposed_seconds = {exposed_seconds(all_reduces) + messages, ""};
    }

    bool uses_all_reduce_of_mpi() const {
        const config::CommunicationConfig& communication = config_.communication;
        if (communication.algorithm != config::AllReduceAlgorithm::native) return false;
        if (communication.backend != config::CommunicationBackend::automatic)
            return communication.backend == config::CommunicationBackend::mpi;
        return !roofline_.is_gpu || plan_.traffic_per_rank.statistics_ranks > 1;
    }

    /// Returns the seconds of Rabenseifner's all-reduce (Thakur, Rabenseifner, Gropp 2005). Within
    /// and between nodes, it takes 2 x message_rounds() latencies plus sent bytes / bandwidth.
    double all_reduce_seconds(const config::Link& intra_node, const config::Link& inter_node,
                              bool spans_nodes) {
        const int ranks = layout_.data_degree();
        if (ranks == 1) return 0;
        const PlanTrafficRecord& traffic = plan_.traffic_per_rank;
        const int nodes = spans_nodes ? std::min(ranks, plan_.layout.nodes_of_widest_group) : 1;
        double rounds_within = 2 * message_rounds(ceil_div(ranks, nodes));
        const double rounds_between = 2 * message_rounds(nodes);
        double within = traffic.sent_bytes_per_step - traffic.between_nodes_bytes_per_step;
        double out_of_node = traffic.out_of_node_bytes_per_step;
        if (uses_all_reduce_of_mpi()) {
            assume("the MPI library sums gradients as Open MPI 4.1 does");
            if (ranks < 4) {  // in a tree, in which each message has all gradients
                within *= ranks;
                out_of_node *= ranks;
            } else if (!std::has_single_bit(static_cast<unsigned>(ranks))) {
                // Some ranks send their gradients to neighbors and receive the sums (see METRICS).
                rounds_within += 3;
                within += 2 * traffic.gradient_bytes;
            }
        }
        // The cores that ranks share execute the copies within a node.
        const bool is_link_known = request_.machine && request_.machine->within_node;
        const double factor = is_link_known ? 1 : slowdown_;
        return rounds_within * intra_node.latency_seconds +
               factor * within / intra_node.bytes_per_second +
               (spans_nodes ? rounds_between * inter_node.latency_seconds +
                                  out_of_node / inter_node.bytes_per_second
                            : 0);
    }

    /// Returns the part of the all-reduces' `seconds` that does not overlap with computation.
    double exposed_seconds(double seconds) {
        if (seconds == 0) return 0;
        if (!config_.communication.overlap) return seconds;
        // The backward pass is two of the three passes of a step.
        const double max_overlap = 2.0 / 3 * *time_.compute_seconds.value;
        if (request_.machine && request_.machine->overlapped_share) {
            return seconds - std::min(*request_.machine->overlapped_share * seconds, max_overlap);
        }
        if (const auto ratio = measured_exposure()) return *ratio * seconds;
        if (!roofline_.is_gpu) {
            assume("all-reduces overlap no computation: the computing cores execute them");
            return seconds;
        }
        assume(
            "all-reduces overlap the backward pass, two thirds of computation, except for the "
            "last bucket");
        const double bucket = config_.communication.bucket_mib * 1024 * 1024;
        const double last = seconds * std::min(1.0, bucket / plan_.traffic_per_rank.gradient_bytes);
        return std::max(last, seconds - max_overlap);
    }

    /// Returns the extra time of measured steps with all-reduces / the time of all-reduces alone.
    std::optional<double> measured_exposure() {
        if (!is_calibrated()) return std::nullopt;
        const CalibrationPoint& point = roofline_.calibration.points.back();
        if (!point.summed_step_seconds.value) return std::nullopt;
        for (const AllReduceFit& fit : roofline_.all_reduce_fits) {
            if (fit.scope != "run" || !fit.bytes_per_second.value || !fit.latency_seconds.value)
                continue;
            const double alone = *fit.latency_seconds.value +
                                 static_cast<double>(roofline_.calibration.gradient_bytes) /
                                     *fit.bytes_per_second.value;
            const double extra =
                std::max(0.0, *point.summed_step_seconds.value - point.step_seconds);
            assume(
                fmt::format("all-reduces lengthen a step by {:.2f} x their time alone, as measured",
                            extra / alone));
            return extra / alone;
        }
        return std::nullopt;
    }

    const config::Config& config_;
    const EstimateRequest& request_;
    PlanRecord& plan_;
    const RooflineRecord& roofline_;
    const plan::Layout& layout_;
    PlanTimeRecord time_;
    double slowdown_;
    std::optional<double> sample_seconds_;
};

void add_peaks(RooflineRecord& record, double flops_per_second, double bytes_per_second) {
    for (const char* operation : {"convolution", "linear"}) {
        for (const ops::Pass pass :
             {ops::Pass::forward, ops::Pass::weight_gradient, ops::Pass::input_gradient}) {
            record.operations.push_back({.operation = operation,
                                         .precision = record.calibration.precision,
                                         .pass = std::string(ops::name_of(pass)),
                                         .flops_per_second = {flops_per_second, ""}});
        }
    }
    record.bandwidths.push_back({.name = "memory", .bytes_per_second = {bytes_per_second, ""}});
}

}  // namespace

PlanTimeRecord predict_step(const config::Config& config, const EstimateRequest& request,
                            const plan::Layout& layout, PlanRecord& plan) {
    return StepPrediction(config, request, layout, plan).predict();
}

void set_machine_rates(const config::Config& config, EstimateRequest& request) {
    if (request.roofline || (request.flops_per_rank && request.images_per_second)) return;
    const config::Machine& machine = *request.machine;
    const std::string precision = compute_precision(config).name;
    const std::int64_t flops = metrics::FlopsLedger(models::make_model(config))
                                   .training_per_sample(metrics::kOfficialLedger);
    RooflineRecord record;
    record.is_gpu = machine.device_value("gpus_per_node").has_value();
    record.cores = record.threads =
        static_cast<int>(machine.device_value("cores_per_node").value_or(0));
    record.calibration.model = config::value_text(config, "workload.model");
    record.calibration.precision = precision;
    record.calibration.optimizer = config::value_text(config, "training.optimizer");
    record.calibration.training_flops_per_sample = flops;
    std::optional<double> rate = request.flops_per_rank;
    if (request.images_per_second) rate = *request.images_per_second * static_cast<double>(flops);
    record.device = "the given training rate";
    if (rate) {
        record.cores = 0;
    } else {
        rate = machine.device_value(precision + "_training_tflops");
        record.device = fmt::format("the training rate of {} in {}", machine.name, precision);
    }
    const std::optional<double> peak = machine.device_value(precision + "_tflops");
    const std::optional<double> bandwidth = machine.device_value("memory_gb_per_second");
    if (rate) {
        record.calibration.points = {{1, static_cast<double>(flops) / *rate, {std::nullopt, ""}}};
    } else if (peak && bandwidth) {
        add_peaks(record, *peak, *bandwidth);
        record.device = fmt::format("the peak rates of {} in {}", machine.name, precision);
    } else {
        return;
    }
    request.roofline = std::move(record);
    request.flops_per_rank = request.images_per_second = std::nullopt;
}

}  // namespace hpcai::prediction
