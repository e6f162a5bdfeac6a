// SPDX-License-Identifier: Apache-2.0
#include "device_watch.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "gather_results.hpp"

namespace hpcai::benchmark {
namespace {

constexpr double kHealthIntervalSeconds = 1;
constexpr double kHealthTimeoutSeconds = 60;
constexpr double kPatienceInFailureSeconds = 5;

}  // namespace

DeviceWatch::DeviceWatch(const Start& start) : start_(start) {
    const auto& uuid = start.ranks[static_cast<std::size_t>(start.place.world_rank)].device_uuid;
    if (uuid.empty() || start.config.run.meters == config::Meters::none) return;
    watch_.emplace(meters::NvmlSource{}.library, uuid, kHealthIntervalSeconds);
}

void DeviceWatch::finish() {
    finish(kHealthTimeoutSeconds);
}

void DeviceWatch::finish(double patience_seconds) {
    if (!watch_) return;
    meters::GpuHealth health = watch_->finish(patience_seconds);
    watch_.reset();
    health.record.world_rank = start_.place.world_rank;
    health.record.host = start_.hostnames[static_cast<std::size_t>(start_.place.world_rank)];
    mine_ = {std::move(health.record)};
    xids_unknown_ = std::move(health.xids_unknown);
}

std::vector<DeviceHealthRecord> DeviceWatch::mine() {
    finish(kPatienceInFailureSeconds);
    return mine_;
}

std::vector<DeviceHealthRecord> DeviceWatch::gather(comm::Communicator& group, Logger& log) {
    finish();
    GroupResult carrier;
    carrier.record.device_health = mine_;
    const std::vector<GroupResult> others = gather_results(group, carrier);
    if (group.rank() != 0) return {};
    if (!xids_unknown_.empty()) {
        log.info("the driver tells of no Xids of rank {}: {}", start_.place.world_rank,
                 xids_unknown_);
    }
    std::vector<DeviceHealthRecord> all = std::move(carrier.record.device_health);
    for (const GroupResult& other : others) {
        std::ranges::copy(other.record.device_health, std::back_inserter(all));
    }
    return all;
}

}  // namespace hpcai::benchmark
