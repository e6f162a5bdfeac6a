// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include <hpcai/meters/gpu_health.hpp>

#include "nvml.hpp"

namespace hpcai::meters {
namespace {

/// Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h) for clocks below the GPU's settings.
/// Omits the reasons idle, application clocks, sync boost and display clocks.
constexpr std::pair<std::uint64_t, const char*> kClockEventReasons[] = {
    {0x08, "hw_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
    {0x20, "sw_thermal_slowdown"},
    {0x04, "sw_power_cap"}};

constexpr std::size_t kMaxXids = 256;

/// Stores the result of read(), or its error in `failure`. Does nothing if `failure` has a text.
template <typename Number, typename Read>
void read_into(Number& number, std::string& failure, const Read& read) {
    if (!failure.empty()) return;
    try {
        number = read();
    } catch (const Error& error) {
        failure = error.what();
    }
}

class EccCount {
public:
    EccCount(const Nvml& nvml, NvmlDevice device, EccErrors kind) : device_(device), kind_(kind) {
        read_into(begin_, failure_, [&] { return nvml.ecc_errors(device, kind); });
    }
    Quantity since_begin(const Nvml& nvml) {
        std::uint64_t now = 0;
        read_into(now, failure_, [&] { return nvml.ecc_errors(device_, kind_); });
        if (failure_.empty() && now < begin_) failure_ = "NVML: the count was reset";
        if (!failure_.empty()) return no_value(failure_);
        return {static_cast<double>(now - begin_), ""};
    }

private:
    NvmlDevice device_;
    EccErrors kind_;
    std::uint64_t begin_ = 0;
    std::string failure_;
};

}  // namespace

struct GpuHealthLog::State {
    DeviceHealthRecord record;  // has only the UUID and the Xids
    std::string failure = {};   // why the GPU cannot be queried at all
    std::shared_ptr<const Nvml> nvml = {};
    NvmlDevice device = nullptr;
    std::optional<EccCount> corrected = {}, uncorrected = {};
    std::unique_ptr<NvmlXids> xids = {};
    std::string xids_failure = {};
    std::string reasons_failure = {};
    std::uint64_t reasons = 0;  // bits of all polls
    std::int64_t polls = 0;
    std::int64_t slowed_polls = 0;
};

GpuHealthLog::GpuHealthLog(const std::string& library, const std::string& uuid)
    : state_(std::make_unique<State>(State{{.device = uuid}})) {
    State& state = *state_;
    try {
        state.nvml = std::make_shared<const Nvml>(library);
        state.device = state.nvml->device(uuid);
        state.corrected.emplace(*state.nvml, state.device, EccErrors::corrected);
        state.uncorrected.emplace(*state.nvml, state.device, EccErrors::uncorrected);
        read_into(state.xids, state.xids_failure,
                  [&] { return std::make_unique<NvmlXids>(state.nvml, state.device); });
    } catch (const Error& error) {
        state.failure = error.what();
    }
    poll();
}

GpuHealthLog::~GpuHealthLog() = default;

void GpuHealthLog::poll() {
    State& state = *state_;
    if (!state.failure.empty()) return;
    std::vector<std::int64_t> xids;
    read_into(xids, state.xids_failure, [&] { return state.xids->read_new(); });
    xids.resize(std::min(xids.size(), kMaxXids - state.record.xids.size()));
    std::ranges::copy(xids, std::back_inserter(state.record.xids));
    std::uint64_t reasons = 0;
    read_into(reasons, state.reasons_failure,
              [&] { return state.nvml->clock_event_reasons(state.device); });
    if (!state.reasons_failure.empty()) return;
    const bool is_slowed = std::ranges::any_of(
        kClockEventReasons, [&](const auto& reason) { return (reasons & reason.first) != 0; });
    state.reasons |= reasons;
    state.slowed_polls += is_slowed ? 1 : 0;
    ++state.polls;
}

GpuHealth GpuHealthLog::snapshot() const {
    const State& state = *state_;
    GpuHealth health;
    DeviceHealthRecord& record = health.record = state.record;
    if (!state.failure.empty()) {
        record.slowed_share = record.corrected_ecc_errors = record.uncorrected_ecc_errors =
            no_value(state.failure);
        health.xids_failure = state.failure;
        return health;
    }
    for (const auto& [bit, name] : kClockEventReasons) {
        if ((state.reasons & bit) != 0) record.slowed_by.emplace_back(name);
    }
    record.slowed_share = no_value(state.reasons_failure);
    if (state.reasons_failure.empty()) {
        record.slowed_share.value =
            static_cast<double>(state.slowed_polls) / static_cast<double>(state.polls);
    }
    health.xids_failure = state.xids_failure;
    return health;
}

GpuHealth GpuHealthLog::finish() {
    poll();
    State& state = *state_;
    GpuHealth health = snapshot();
    if (!state.failure.empty()) return health;
    health.record.corrected_ecc_errors = state.corrected->since_begin(*state.nvml);
    health.record.uncorrected_ecc_errors = state.uncorrected->since_begin(*state.nvml);
    return health;
}

struct GpuHealthPoller::SharedHealth {
    explicit SharedHealth(const std::string& uuid) { health.record.device = uuid; }

    std::mutex mutex;
    GpuHealth health = {};
    std::unique_ptr<GpuHealthLog> log = {};  // used only by the poller's thread

    void publish(GpuHealth latest) {
        const std::lock_guard lock(mutex);
        health = std::move(latest);
    }
};

GpuHealthPoller::GpuHealthPoller(const std::string& library, const std::string& uuid,
                                 double interval_seconds)
    : shared_(std::make_shared<SharedHealth>(uuid)),
      repeater_({.begin =
                     [shared = shared_, library, uuid] {
                         shared->log = std::make_unique<GpuHealthLog>(library, uuid);
                         shared->publish(shared->log->snapshot());
                     },
                 .repeat =
                     [shared = shared_] {
                         shared->log->poll();
                         shared->publish(shared->log->snapshot());
                     },
                 .end =
                     [shared = shared_] {
                         shared->publish(shared->log->finish());
                         shared->log.reset();
                     },
                 .interval_seconds = interval_seconds}) {}

GpuHealth GpuHealthPoller::finish(double timeout_seconds) {
    const bool has_answered = repeater_.stop_within(timeout_seconds);
    const std::lock_guard lock(shared_->mutex);
    GpuHealth health = shared_->health;
    if (has_answered) return health;
    const std::string reason = fmt::format("NVML has not answered for {} s", timeout_seconds);
    DeviceHealthRecord& record = health.record;
    for (Quantity* const unknown :
         {&record.slowed_share, &record.corrected_ecc_errors, &record.uncorrected_ecc_errors}) {
        if (!unknown->value && unknown->reason.empty()) unknown->reason = reason;
    }
    if (health.xids_failure.empty()) health.xids_failure = reason;
    return health;
}

}  // namespace hpcai::meters
