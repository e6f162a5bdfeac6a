// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/launch.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/launch/prepare_run.hpp>
#include <hpcai/launch/run_under_mpi.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>
#include <hpcai/speed/roofline.hpp>

#include "operation_bench.hpp"
#include "rates.hpp"

namespace hpcai::speed {
namespace {

constexpr std::string_view kSamplesKey = "training.batch_size=";

// Shares of request.seconds, in the order of the measurements; other precisions get the rest.
constexpr double kCalibrationShare = 0.25;
constexpr double kBandwidthShare = 0.05;
constexpr double kAllReduceShare = 0.1;
// Share of the large operations in the configured precision. The model's operations get the same.
constexpr double kMinOperationsShare = 0.1, kMaxOperationsShare = 0.25;

struct MeasuredRanks {
    comm::Communicator& everyone;
    std::vector<int> node_of_rank;
    std::string host;  // of this rank

    int nodes() const { return std::ranges::max(node_of_rank) + 1; }
};

BandwidthRate bandwidth_of(std::string name, std::string method, double bytes, double seconds) {
    return {std::move(name), std::move(method), bytes, {seconds, ""}, {bytes / seconds, ""}};
}

BandwidthRate measure_memory(RateMeter& meter, double seconds) {
    const tensor::Shape shape{32, 128, 128, 64};  // 128 MiB in fp32
    OperationBench bench(
        ops::Add{shape},
        {.device = meter.device(), .precision = {}, .mode = device::Mode::inference});
    constexpr int kArrays = 3;
    const double bytes = kArrays * sizeof(float) * static_cast<double>(shape.elements());
    const auto add = [&] { bench.run(ops::Pass::forward); };
    return bandwidth_of("memory", "y = a + b of 128 MiB each in fp32", bytes,
                        meter.measure(add, seconds));
}

std::vector<BandwidthRate> measure_transfers(RateMeter& meter, double seconds) {
    const std::array<std::string, 2> names{"host to device", "device to host"};
    if (meter.device().uuid().empty()) {
        const Quantity none = no_value("the device's memory is the host's");
        return {{names[0], "none", 0, none, none}, {names[1], "none", 0, none, none}};
    }
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    std::vector<std::byte> host(kBytes, std::byte{1});
    const std::unique_ptr<device::Memory> memory = meter.device().allocate(kBytes);
    const double up =
        meter.measure([&] { meter.device().upload(memory->data(), host); }, seconds / 2, true);
    const double down =
        meter.measure([&] { meter.device().download(host, memory->data()); }, seconds / 2, true);
    return {bandwidth_of(names[0], "64 MiB", kBytes, up),
            bandwidth_of(names[1], "64 MiB", kBytes, down)};
}

struct AllReduceGroup {
    std::string scope;
    std::unique_ptr<comm::Communicator> group;
    std::unique_ptr<comm::GradientReducer> reducer;
};

class RooflineSession {
public:
    RooflineSession(const RooflineRequest& request, const MeasuredRanks& ranks)
        : request_(request), ranks_(ranks) {
        config::Sources sources = request.config;
        const bool has_samples = std::ranges::any_of(
            sources.overrides,
            [](const std::string& setting) { return setting.starts_with(kSamplesKey); });
        // The batch size of the default configuration is for many ranks.
        if (sources.files.empty() && !has_samples) {
            sources.overrides.push_back(fmt::format("{}8", kSamplesKey));
        }
        config_ = launch::agree_on_config(sources, ranks.everyone);
        open_device();
        meter_ = std::make_unique<RateMeter>(*device_, ranks.everyone, request.seconds);
    }

    RooflineRecord measure() {
        describe();
        make_all_reduce_groups();
        // Training steps come first, because predictions need them most.
        auto* const reducer = groups_.empty() ? nullptr : groups_.front().reducer.get();
        record_.calibration = calibrate(*meter_, {config_, precision_, reducer, samples_},
                                        request_.seconds * kCalibrationShare);
        record_.bandwidths = {measure_memory(*meter_, request_.seconds * kBandwidthShare / 2)};
        std::ranges::copy(measure_transfers(*meter_, request_.seconds * kBandwidthShare / 2),
                          std::back_inserter(record_.bandwidths));
        measure_all_reduces(request_.seconds * kAllReduceShare);
        const double left = meter_->ensure_left(2 * request_.seconds * kMinOperationsShare);
        measure_precision(precision_, std::min(left / 2, request_.seconds * kMaxOperationsShare));
        measure_other_precisions();
        record_.measured_seconds = meter_->elapsed_seconds();
        if (ranks_.everyone.rank() == 0) core_wait_.log(*log_);
        return record_;
    }

private:
    void open_device() {
        const device::Cores cores = device::count_cores();
        const context::PlaceOnNode place =
            launch::place_on_node(ranks_.node_of_rank, cores, ranks_.everyone);
        comm::collective_try(ranks_.everyone, [&] {
            device_ = context::open_device(config_, cores, place).device;
            precision_ = context::choose_precision(config_.training.precision,
                                                   context::formats_of(*device_));
        });
        // The cores of all bindings on this node; ranks_sharing_cores ranks have equal bindings.
        record_.cores = std::min(cores.machine,
                                 cores.allowed * place.ranks_on_node / place.ranks_sharing_cores);
        // The configured run has bagging.M x P_degree ranks if both are set, else as many ranks as
        // this launch.
        const auto& [groups, degree] = std::pair(config_.bagging.groups, config_.bagging.degree);
        const int ranks = groups && degree ? *groups * *degree : ranks_.everyone.size();
        samples_ = plan::make_layout(config_.bagging, config_.training, config_.parallel, ranks,
                                     plan::ranks_of_fullest_node(ranks_.node_of_rank))
                       .micro_batch_size(config_.training.batch_size);
    }

    void describe() {
        record_.program_version = HPCAI500_VERSION;
        record_.measured_utc = utc_now();
        record_.device = device_->description();
        record_.is_gpu = !device_->uuid().empty();
        record_.ranks = ranks_.everyone.size();
        record_.nodes = ranks_.nodes();
        record_.ranks_of_fullest_node = plan::ranks_of_fullest_node(ranks_.node_of_rank);
        record_.threads = device_->threads();
    }

    /// Takes about `half_seconds` for large operations, then `half_seconds` for the model's.
    void measure_precision(const device::Precision& precision, double half_seconds) {
        const auto add_rates = [&](const std::vector<MeasuredOperation>& operations, double share) {
            std::ranges::copy(
                measure_operations(*meter_, operations, precision, half_seconds * share),
                std::back_inserter(record_.operations));
        };
        if (!precision.int8) add_rates(large_matrix_products(), 0.5);
        add_rates(large_convolutions(), 0.5);
        add_rates(operations_of_model(config_, samples_, precision.compute), 1);
    }

    void measure_other_precisions() {
        if (request_.one_precision) return;
        std::vector<device::Precision> others =
            context::available_precisions(context::formats_of(*device_));
        std::erase_if(others, [&](const device::Precision& other) {
            return other == precision_ || other.is_pure;  // pure fp16 has the kernels of mixed fp16
        });
        meter_->share_left(others.size(), [&](std::size_t index, double seconds) {
            measure_precision(others[index], seconds / 2);
        });
    }

    void make_all_reduce_groups() {
        const int ranks = ranks_.everyone.size();
        if (ranks == 1) return;
        const plan::ParallelismController one_group({.ranks = ranks, .degree = ranks},
                                                    ranks_.node_of_rank);
        const plan::RankPlace& place = one_group.place(ranks_.everyone.rank());
        add_all_reduce_group("run", 0, place.group_rank,
                             prediction::all_reduce_options(config_.communication, one_group, 0));
        if (ranks_.nodes() == 1) return;
        add_all_reduce_group("node", place.node, place.world_rank, {});
        add_all_reduce_group("between nodes", place.node_rank, place.world_rank, {});
    }

    void add_all_reduce_group(const std::string& scope, int color, int key,
                              comm::AllReduceOptions options) {
        auto group = ranks_.everyone.split(color, key);
        if (options.node_of_rank.empty()) {
            // Reducers expect a node for each rank; the default algorithm ignores the nodes.
            options.node_of_rank.resize(static_cast<std::size_t>(group->size()));
            std::iota(options.node_of_rank.begin(), options.node_of_rank.end(), 0);
        }
        auto reducer = group::make_gradient_reducer(
            group::ReducerSettings{config_, *device_, ranks_.host, options}, *group, *log_);
        groups_.push_back({scope, std::move(group), std::move(reducer)});
    }

    void measure_all_reduces(double seconds) {
        for (const AllReduceGroup& measured : groups_) {
            const std::vector<AllReduceRate> rates =
                measure_all_reduce(*meter_, {measured.scope, *measured.group, *measured.reducer},
                                   seconds / static_cast<double>(groups_.size()));
            record_.all_reduce_fits.push_back(fit(rates, measured.reducer->description()));
            record_.all_reduce.insert(record_.all_reduce.end(), rates.begin(), rates.end());
        }
    }

    const RooflineRequest& request_;
    const MeasuredRanks& ranks_;
    config::Config config_;
    std::unique_ptr<Logger> log_{make_logger("roofline", "")};
    std::unique_ptr<device::Device> device_;
    device::Precision precision_;
    int samples_ = 1;  // of a micro-batch of the configured run
    std::unique_ptr<RateMeter> meter_;
    CoreWait core_wait_;
    std::vector<AllReduceGroup> groups_;
    RooflineRecord record_;
};

}  // namespace

ExitCode run_roofline(const RooflineRequest& request,
                      const std::function<void(const RooflineRecord&)>& use) {
    if (comm::launched_ranks(std::getenv) == 1) {
        const std::unique_ptr<comm::Communicator> self = comm::make_self_communicator();
        const MeasuredRanks ranks{*self, {0}, "this machine"};
        use(RooflineSession(request, ranks).measure());
        return ExitCode::ok;
    }
    return launch::run_under_mpi(request.command_line, [&](comm::MpiWorld& world) {
        comm::StartUp start_up = world.start_up();
        const auto rank = static_cast<std::size_t>(world.rank());
        const MeasuredRanks ranks{start_up.everyone(), start_up.node_of_world_rank(),
                                  start_up.host(rank)};
        const RooflineRecord record = RooflineSession(request, ranks).measure();
        comm::collective_try(start_up.everyone(), [&] {
            if (world.rank() == 0) use(record);
        });
        return ExitCode::ok;
    });
}

}  // namespace hpcai::speed
