// SPDX-License-Identifier: Apache-2.0
#include "launch_file.hpp"

#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::benchmark {
namespace {

constexpr const char* kName = "launch.json";
constexpr const char* kSchema = "hpcai500-launch/1";
constexpr std::size_t kLimitBytes = 4096;

int number_of(const nlohmann::json& json, const storage::JsonPlace& place, const char* key) {
    const nlohmann::json found = json.value(key, nlohmann::json());
    const bool fits = found.is_number_unsigned() && found.get<std::uint64_t>() >= 1 &&
                      found.get<std::uint64_t>() <= 1'000'000'000;
    if (!fits) place.key(key).fail("a whole number from 1 on", found);
    return found.get<int>();
}

std::string text_of(const nlohmann::json& json, const storage::JsonPlace& place, const char* key) {
    const nlohmann::json found = json.value(key, nlohmann::json());
    if (!found.is_string()) place.key(key).fail("a text", found);
    return found.get<std::string>();
}

}  // namespace

std::string config_digest(const config::Config& config) {
    return storage::sha256_hex(storage::bytes_of(config::to_yaml(config)));
}

LaunchFacts launch_facts(const plan::Layout& layout, const std::string& started_utc,
                         const config::Config& config) {
    return {started_utc, layout.ranks, layout.groups, layout.degree, config_digest(config)};
}

void write_launch_file(const std::filesystem::path& output, const LaunchFacts& facts) {
    const nlohmann::ordered_json json{
        {"schema", kSchema},      {"started_utc", facts.started_utc},
        {"ranks", facts.ranks},   {"groups", facts.groups},
        {"degree", facts.degree}, {"config_sha256", facts.config_sha256}};
    storage::write_file_durably(output / kName, json.dump(2) + "\n");
}

LaunchFacts read_launch_file(const std::filesystem::path& output) {
    const std::string name = (output / kName).string();
    const std::vector<std::byte> bytes = storage::read_file_bytes(name, kLimitBytes);
    const nlohmann::json json = storage::parse_strict_json(storage::text_of(bytes), name);
    const storage::JsonPlace place(name);
    if (!json.is_object()) place.fail("an object", json);
    if (text_of(json, place, "schema") != kSchema) {
        place.key("schema").fail(fmt::format("\"{}\"", kSchema), json["schema"]);
    }
    return {text_of(json, place, "started_utc"), number_of(json, place, "ranks"),
            number_of(json, place, "groups"), number_of(json, place, "degree"),
            text_of(json, place, "config_sha256")};
}

}  // namespace hpcai::benchmark
