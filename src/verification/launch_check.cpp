// SPDX-License-Identifier: Apache-2.0
#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/storage/sha256.hpp>

#include "checks.hpp"

namespace hpcai::verification {

void check_launch(const Claim& claim, Inspector& inspector) {
    const auto stored = inspector.parse(kLaunchName, records::from_json<LaunchRecord>,
                                        records::to_json<LaunchRecord>);
    if (!stored) return;
    const RunRecord& record = claim.record;
    LaunchRecord expected = *stored;
    expected.started_utc = record.time.started_utc;
    expected.config_sha256 = storage::sha256_hex(storage::bytes_of(config::to_yaml(claim.config)));
    expected.samples_sha256 = record.workload.samples_sha256;
    expected.precision = record.workload.precision;
    expected.staging = record.staging;
    expected.determinism = record.determinism;
    expected.invocations = record.invocations;
    if (record.work.groups.front().failure.empty()) {
        expected.roofline = record.roofline;
        expected.environment = record.environment;
        if (record.time.staging_seconds.value)
            expected.staging_seconds = record.time.staging_seconds;
    }
    expected.topology = record.topology;
    const std::vector<PlaceRecord>& places = stored->topology.map;
    // launch.json has the hosts of the latest launch; groups may have finished on other hosts.
    if (record.invocations.size() > 1 && places.size() == record.topology.map.size()) {
        expected.topology.nodes = stored->topology.nodes;
        for (std::size_t rank = 0; rank < places.size(); ++rank) {
            PlaceRecord& place = expected.topology.map[rank];
            place.host = places[rank].host;
            place.node = places[rank].node;
            place.local_rank = places[rank].local_rank;
        }
    }
    inspector.compare_keys(kLaunchName, records::to_json(*stored), records::to_json(expected),
                           [](const std::string& key) {
                               return key == "config_sha256" ? "according to config.yaml"
                                                             : "according to result.json";
                           });
}

}  // namespace hpcai::verification
