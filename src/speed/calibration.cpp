// SPDX-License-Identifier: Apache-2.0
#include "calibration.hpp"

#include <algorithm>
#include <memory>

#include <hpcai/base/median.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>

#include "whole_step.hpp"

namespace hpcai::speed {
namespace {

constexpr int kFewestSteps = 3;
constexpr int kMaxSteps = 15;

class Calibration {
public:
    Calibration(RateMeter& meter, const CalibrationSetup& setup)
        : meter_(meter), setup_(setup), alone_(comm::make_mpi_reducer(*self_)) {}

    /// Median seconds of a step; of the slowest rank in each.
    double step_seconds(int samples, comm::GradientReducer& reducer, double seconds) {
        std::unique_ptr<WholeStep> step;
        comm::collective_try(meter_.everyone(), [&] {
            step = std::make_unique<WholeStep>(WholeStep::Setup{
                setup_.config, meter_.device(), setup_.precision, reducer, samples});
        });
        const double before = meter_.agree(step->seconds());  // libraries may allocate in the first
        const int steps =
            static_cast<int>(std::clamp(seconds / before, double{kFewestSteps}, double{kMaxSteps}));
        std::vector<double> all;
        for (int i = 0; i < steps; ++i) {
            all.push_back(meter_.agree(step->seconds()));
            if (meter_.is_over()) break;
        }
        gradient_bytes_ = static_cast<std::int64_t>(step->store().gradients().size_bytes());
        return median(std::move(all));
    }

    CalibrationPoint point(int samples, double seconds) {
        CalibrationPoint point{.samples = samples};
        const double share = setup_.reducer != nullptr ? seconds / 2 : seconds;
        point.step_seconds = step_seconds(samples, *alone_, share);
        point.summed_step_seconds = {std::nullopt, "one rank has nothing to sum"};
        if (setup_.reducer != nullptr) {
            point.summed_step_seconds = {step_seconds(samples, *setup_.reducer, share), ""};
        }
        return point;
    }

    std::int64_t gradient_bytes() const { return gradient_bytes_; }

private:
    RateMeter& meter_;
    const CalibrationSetup& setup_;
    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
    std::unique_ptr<comm::GradientReducer> alone_;
    std::int64_t gradient_bytes_ = 0;
};

}  // namespace

CalibrationRecord calibrate(RateMeter& meter, const CalibrationSetup& setup, double seconds) {
    CalibrationRecord record;
    const config::Config& config = setup.config;
    record.model = config::value_text(config, "workload.model");
    record.precision = name_of(setup.precision);
    record.optimizer = config::value_text(config, "training.optimizer");
    record.image_size = config.workload.image_size;
    record.image_width = image_width(config);
    record.training_flops_per_sample = metrics::FlopsLedger(models::make_model(config))
                                           .training_per_sample(metrics::kOfficialLedger);
    if (setup.reducer != nullptr) record.sums = setup.reducer->description();
    const double end = meter.elapsed_seconds() + seconds;
    Calibration calibration(meter, setup);
    constexpr int kPoints = 3;
    for (int i = 0, samples = setup.samples; i < kPoints && samples > 0; ++i, samples /= 2) {
        if (i > 0 && meter.elapsed_seconds() > end) break;
        record.points.insert(record.points.begin(), calibration.point(samples, seconds / kPoints));
    }
    record.gradient_bytes = calibration.gradient_bytes();
    return record;
}

}  // namespace hpcai::speed
