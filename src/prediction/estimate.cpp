// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <sstream>

#include <hpcai/base/units.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/group_map.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

constexpr int kMaxRanks = 10'000'000;
constexpr std::int64_t kMaxSamples = std::int64_t{1} << 31;  // the limit of plan::DataSampler
constexpr std::int64_t kImageNetTrainingSamples = 1'281'167;

/// Returns a x b, or the first factor that is unknown, with its reason.
Quantity multiply(const Quantity& a, const Quantity& b) {
    if (!a.value || !b.value) return a.value ? b : a;
    return {*a.value * *b.value, ""};
}

Quantity multiply(const Quantity& quantity, double factor) {
    return multiply(quantity, Quantity{factor, ""});
}

void check(const EstimateRequest& request) {
    require(request.ranks >= 1 && request.ranks <= kMaxRanks, ExitCode::usage,
            "--ranks: expected 1 to {}, got {}", kMaxRanks, request.ranks);
    require(request.ranks_per_node.value_or(1) >= 1, ExitCode::usage,
            "--ranks-per-node: expected at least 1, got {}", request.ranks_per_node.value_or(1));
    require(request.samples.value_or(1) >= 1 && request.samples.value_or(1) <= kMaxSamples,
            ExitCode::usage, "training samples: expected 1 to {}, got {}", kMaxSamples,
            request.samples.value_or(1));
    const int rates = request.roofline.has_value() + request.flops_per_rank.has_value() +
                      request.images_per_second.has_value();
    require(rates <= 1, ExitCode::usage,
            "expected one of --roofline, --flops-per-rank and --images-per-second, got {}", rates);
}

bool is_official_imagenet(const config::Config& config) {
    const config::WorkloadConfig& workload = config.workload;
    if (config::is_search(workload)) return config.run.level == config::Level::aiperf;
    const config::WorkloadConfig official;  // the defaults are ImageNet's
    return workload.kind == official.kind && workload.classes == official.classes &&
           workload.image_size == official.image_size && workload.channels == official.channels &&
           workload.backbone_width == official.backbone_width &&
           workload.target_quality == official.target_quality &&
           workload.penalty_exponent == official.penalty_exponent &&
           workload.epochs == official.epochs;
}

/// Returns the ranks per node. Adds an assumption unless --ranks-per-node is given.
int ranks_per_node(const config::BaggingConfig& bagging, const EstimateRequest& request,
                   std::vector<std::string>& assumptions) {
    if (request.ranks_per_node) return std::min(*request.ranks_per_node, request.ranks);
    int ranks = request.ranks;
    if (bagging.degree) {
        ranks = std::min(ranks, *bagging.degree);
    } else if (bagging.groups) {
        ranks = std::max(1, ranks / *bagging.groups);
    }
    const std::optional<int> measured = measured_ranks_per_node(request);
    ranks = std::min(request.ranks, measured.value_or(ranks));
    assumptions.push_back(
        fmt::format("nodes of {}, as in {}, because --ranks-per-node is not given",
                    counted(ranks, "rank"), measured ? "--roofline" : "a group"));
    return ranks;
}

std::vector<std::string> split_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

class Estimator {
public:
    Estimator(const config::Config& config, const EstimateRequest& request)
        : config_(config), request_(request) {}

    PlanRecord estimate() {
        check(request_);
        plan_.model = config::value_text(config_, "workload.model");
        plan_.epochs = config_.workload.epochs;
        plan_.batch_size = config_.training.batch_size;
        plan_layout();
        fill_data();
        fill_work();
        const ModelShards partition = shard_model(config_, layout());
        plan_.parallel = estimate_parallel(config_, layout(), partition);
        plan_.memory_per_rank = estimate_memory(config_, layout(), partition,
                                                exchange_bytes(partition), plan_.data.samples);
        plan_.memory_per_rank.fullest_node_bytes =
            plan_.memory_per_rank.total_bytes * placement_.ranks_of_fullest_node;
        if (compute_precision(config_).assumed) {
            assume(
                "activations in fp32, the larger format, because training.precision is auto and no "
                "device is queried");
        }
        if (request_.machine)
            for (const std::string& figure : request_.machine->figures) assume(figure);
        fill_staging();
        fill_traffic(partition);
        fill_time();
        if (config::is_search(config_.workload)) fill_search();
        fill_energy();
        return std::move(plan_);
    }

private:
    const plan::Layout& layout() const { return placement_.layout; }
    void assume(std::string text) { plan_.assumptions.push_back(std::move(text)); }

    void plan_layout() {
        const int per_node = ranks_per_node(config_.bagging, request_, plan_.assumptions);
        const plan::Layout planned = plan::make_layout(config_.bagging, config_.training,
                                                       config_.parallel, request_.ranks, per_node);
        const plan::ParallelismController controller(planned,
                                                     plan::fill_nodes(request_.ranks, per_node));
        check_model(config_, planned);
        placement_ = controller.summary();
        plan_.layout = {.ranks = planned.ranks,
                        .groups = planned.groups,
                        .degree = planned.degree,
                        .nodes = placement_.nodes,
                        .ranks_of_fullest_node = placement_.ranks_of_fullest_node,
                        .groups_on_one_node = placement_.groups_on_one_node,
                        .nodes_of_widest_group = placement_.nodes_of_widest_group,
                        .map = split_lines(plan::draw_group_map(controller, {}))};
        const auto& groups = placement_.groups;
        const auto widest = std::ranges::max_element(
            groups, {}, [](const std::vector<plan::NodeShare>& shares) { return shares.size(); });
        for (int index = 0; index < planned.partitions(); ++index) {
            all_reduces_.push_back(all_reduce_options(config_.communication, controller,
                                                      static_cast<int>(widest - groups.begin()),
                                                      index));
        }
    }

    void find_samples() {
        PlanDataRecord& data = plan_.data;
        if (request_.samples) {
            data.samples = {static_cast<double>(*request_.samples), ""};
            data.source = "counted, given or fixed by the rules";
        } else if (config_.data.kind == config::DataKind::synthetic ||
                   config_.data.kind == config::DataKind::climate_synthetic) {
            data.samples = {static_cast<double>(config_.data.synthetic_samples), ""};
            data.source = "data.synthetic_samples";
        } else if (is_official_imagenet(config_)) {
            data.samples = {static_cast<double>(kImageNetTrainingSamples), ""};
            data.source = "ImageNet-1k's training set";
            assume(
                "ImageNet-1k's 1 281 167 training samples, because the workload is the official "
                "one and the samples in data.path were not counted");
        } else {
            data.samples = no_value(
                "the number of training samples is unknown; expected --samples N, or data.path on "
                "this machine");
        }
    }

    Quantity samples_per_epoch() {
        const config::BaggingConfig& bagging = config_.bagging;
        const Quantity& samples = plan_.data.samples;
        if (!samples.value) return samples;
        if (bagging.sampler == config::Sampler::poisson) {
            assume(
                "a Poisson bootstrap as large as the data set, with N samples; actual sizes differ "
                "by about the square root of N");
        }
        if (config::is_search(config_.workload)) {
            assume(
                "work and traffic of a run are those of one trial, which trains the root's network "
                "for "
                "workload.epochs; all trials are as fast as the root's; the hold-out has its "
                "expected "
                "size");
            return {std::round((1 - config_.search.hold_out) * *samples.value), ""};
        }
        if (bagging.sampler != config::Sampler::subsample) return samples;
        return {std::max(1.0, std::round(bagging.subsample_fraction * *samples.value)), ""};
    }

    void fill_data() {
        find_samples();
        PlanDataRecord& data = plan_.data;
        data.samples_per_epoch = samples_per_epoch();
        data.steps_per_epoch = data.samples_per_epoch;
        if (data.steps_per_epoch.value) {
            data.steps_per_epoch.value =
                std::floor(*data.samples_per_epoch.value / config_.training.batch_size);
            if (*data.steps_per_epoch.value == 0) {
                assume(
                    "no step at all, so a run would fail: an epoch has fewer samples than "
                    "training.batch_size");
            }
        }
        data.steps_per_run = multiply(data.steps_per_epoch, config_.workload.epochs);
    }

    void fill_work() {
        const metrics::FlopsLedger ledger(models::make_model(config_));
        PlanWorkRecord& work = plan_.work;
        for (const ops::LedgerName& name : ops::kLedgers) {
            work.ledgers.push_back({std::string(name.name), ledger.forward_per_sample(name.ledger),
                                    ledger.training_per_sample(name.ledger)});
            if (name.ledger == metrics::kOfficialLedger) work.convention = name.name;
        }
        const double step =
            static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger)) *
            config_.training.batch_size;
        work.model_flops = {step, multiply(plan_.data.steps_per_epoch, step),
                            multiply(plan_.data.steps_per_run, step)};
        const double groups = layout().groups;
        work.ensemble_flops = {groups * step, multiply(work.model_flops.epoch, groups),
                               multiply(work.model_flops.run, groups)};
    }

    void fill_staging() {
        plan_.staging = estimate_staging(config_, request_, placement_, plan_.data.samples);
        if (config_.data.staging == config::Staging::all) {
            assume("staging without the test samples, which are not counted");
        }
    }

    std::size_t gradients(std::size_t stage) const {
        return plan_.parallel.stages[stage].parameters;
    }

    /// Returns the bytes of a rank's buffers for messages, shards and all-reduces, [stage].
    std::vector<double> exchange_bytes(const ModelShards& partition) const {
        std::vector<double> bytes =
            shard_buffer_bytes(layout(), partition, plan_.parallel.micro_batch_samples);
        double received = 0;
        for (std::size_t stage = 0; stage < bytes.size(); ++stage) {
            const PlanStageRecord& described = plan_.parallel.stages[stage];
            // In each direction, buffers hold one awaited message and in_flight sent messages.
            const double sent = described.boundary_bytes;
            const double messages = (1 + described.in_flight) * (received + sent);
            received = sent;
            bytes[stage] += messages + all_reduce_buffer_bytes(stage);
        }
        return bytes;
    }

    double all_reduce_buffer_bytes(std::size_t stage) const {
        if (layout().data_degree() == 1) return 0;
        const comm::AllReduceOptions& options = all_reduces_[stage * layout().shards];
        const auto wire = comm::make_all_reduce_schedule(options, 0, gradients(stage)).wire_bytes;
        const bool has_residuals = options.format == comm::WireFormat::int8;
        return static_cast<double>(wire + (has_residuals ? gradients(stage) * sizeof(float) : 0));
    }

    void fill_traffic(const ModelShards& partition) {
        PlanTrafficRecord& traffic = plan_.traffic_per_rank;
        const std::vector<double> statistics_of_stage = statistics_bytes(layout(), partition);
        traffic.algorithm = config::value_text(config_, "communication.algorithm");
        traffic.precision = config::value_text(config_, "communication.precision");
        traffic.statistics_ranks = plan::statistics_ranks(config_.training, layout());
        std::vector<comm::PlannedAllReduce> planned;
        for (std::size_t index = 0; index < all_reduces_.size(); ++index) {
            const std::size_t stage = index / layout().shards;
            const double statistics = traffic.statistics_ranks > 1 ? statistics_of_stage[stage] : 0;
            planned.push_back({all_reduces_[index], gradients(stage),
                               comm::sync_batch_norm_traffic(traffic.statistics_ranks,
                                                             all_reduces_[index].node_of_rank,
                                                             std::llround(statistics))});
            if (layout().data_degree() > 1) {
                traffic.gradient_bytes = std::max(
                    traffic.gradient_bytes, static_cast<double>(gradients(stage) * sizeof(float)));
            }
            traffic.statistics_bytes_per_step =
                std::max(traffic.statistics_bytes_per_step, statistics);
        }
        const comm::AllReduceTraffic maxima = comm::estimate_traffic(planned);
        traffic.sent_bytes_per_step = static_cast<double>(maxima.sent);
        traffic.between_nodes_bytes_per_step = static_cast<double>(maxima.between_nodes);
        traffic.out_of_node_bytes_per_step = static_cast<double>(maxima.out_of_node);
        traffic.sent_bytes_per_run =
            multiply(plan_.data.steps_per_run, traffic.sent_bytes_per_step);
    }

    void fill_time() {
        PlanTimeRecord& time = plan_.time;
        time.step_seconds = time.compute_seconds =
            no_value(request_.machine ? "--machine has no rate of this precision"
                                      : "no rate was given (--roofline, --machine, "
                                        "--images-per-second, --flops-per-rank)");
        time.communication_seconds = time.exposed_seconds =
            no_value("there are no rates of communication (--roofline, --machine)");
        if (request_.roofline) {
            time = predict_step(config_, request_, layout(), plan_);
        } else if (request_.flops_per_rank || request_.images_per_second) {
            const double rank_flops = plan_.work.model_flops.step *
                                      plan_.parallel.largest_stage_share / layout().data_degree();
            const double busy = 1 - plan_.parallel.bubble_fraction;
            const double rate = request_.flops_per_rank.value_or(
                request_.images_per_second.value_or(0) *
                static_cast<double>(plan_.work.ledgers.front().training_per_sample));
            time.source =
                fmt::format("computation alone, at the rate of {}",
                            request_.flops_per_rank ? "--flops-per-rank" : "--images-per-second");
            time.step_seconds = {rank_flops / busy / rate, ""};
            time.compute_seconds = time.step_seconds;
        }
        time.epoch_seconds = multiply(time.step_seconds, plan_.data.steps_per_epoch);
        time.run_seconds = multiply(time.step_seconds, plan_.data.steps_per_run);
    }

    void fill_energy() {
        plan_.energy.joules =
            request_.watts_per_rank
                ? multiply(plan_.time.run_seconds, *request_.watts_per_rank * request_.ranks)
                : no_value("no power was given (--watts-per-rank)");
    }

    /// Returns the seconds of the search, which search.duration_seconds or the epochs of all trials
    /// limit.
    Quantity search_seconds(const Quantity& epoch_seconds) const {
        const config::SearchConfig& search = config_.search;
        std::int64_t epochs = 0;
        for (int trial = 0; trial < search.trials; ++trial)
            epochs += config::trial_epochs(search, trial);
        Quantity seconds = multiply(epoch_seconds, static_cast<double>(epochs));
        const double limit = search.duration_seconds;
        const bool is_limit =
            search.trials == 0 || (limit > 0 && seconds.value && limit < *seconds.value);
        return is_limit ? Quantity{limit, ""} : seconds;
    }

    /// Assumes that a FLOP of evaluation takes as long as a FLOP of training.
    void fill_search() {
        PlanSearchRecord& search = plan_.search.emplace();
        const LedgerRecord& ledger = plan_.work.ledgers.front();
        const double forward = static_cast<double>(ledger.forward_per_sample) /
                               static_cast<double>(ledger.training_per_sample);
        const Quantity held_out = multiply(plan_.data.samples, config_.search.hold_out);
        const Quantity evaluation = multiply(multiply(held_out, plan_.time.step_seconds),
                                             forward / config_.training.batch_size);
        search.epochs = config_.search.epochs.back();
        Quantity epoch = evaluation;
        if (evaluation.value && plan_.time.epoch_seconds.value)
            *epoch.value += *plan_.time.epoch_seconds.value;
        search.trial_seconds = multiply(epoch, search.epochs);
        plan_.time.run_seconds = search_seconds(epoch);
        search.trials_per_hour = search.trial_seconds;
        if (search.trials_per_hour.value)
            search.trials_per_hour.value = 3600 * layout().groups / *search.trial_seconds.value;
    }

    const config::Config& config_;
    const EstimateRequest& request_;
    PlanRecord plan_;
    plan::LayoutSummary placement_;
    std::vector<comm::AllReduceOptions>
        all_reduces_;  // [layout().partition_of(rank)] of the widest group
};

}  // namespace

std::optional<int> measured_ranks_per_node(const EstimateRequest& request) {
    const int ranks = request.roofline ? request.roofline->ranks_of_fullest_node : 1;
    return ranks > 1 ? std::optional(ranks) : std::nullopt;
}

PlanRecord estimate(const config::Config& config, const EstimateRequest& request) {
    return Estimator(config, request).estimate();
}

}  // namespace hpcai::prediction
