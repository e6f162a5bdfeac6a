// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "result_edits.hpp"

/// Readings of the nodes' meters and interfaces in runs, and `hpcai500 energy`.
namespace hpcai::end_to_end {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kRecord = "groups/1/record.json";

// A small model with a penalty coefficient of 1 for any quality.
const char* const kCountedWeather = R"(run: {name: counters, seed: 3, roofline: off}
workload:
  {kind: extreme_weather, model: faster_rcnn_r50_fpn, classes: 4, image_size: 64, image_width: 96,
   channels: 16, backbone_width: 8, target_quality: 0.35, penalty_exponent: 0, epochs: 1}
detector:
  {pyramid_channels: 16, head_features: 32, anchor_samples: 32,
   anchor_sizes: [16, 24, 40, 64, 96], region_samples: 16, training_proposals: 50,
   inference_proposals: 50}
bagging: {M: 2, P_degree: 1, sampler: none, aggregation: wbf, out_of_bag: false}
data: {kind: climate_synthetic, synthetic_samples: 8, synthetic_validation_samples: 2}
training: {batch_size: 2, learning_rate: 0.01, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1, autotune: false}
)";

const nlohmann::json* counter_of(const nlohmann::json& group, const std::string& name) {
    for (const nlohmann::json& one : group["counters"]) {
        if (one["name"] == name) return &one;
    }
    return nullptr;
}

/// Returns the seconds between UTC times with milliseconds.
double seconds_between(const std::string& begin, const std::string& end) {
    const auto of_day = [](const std::string& text) {
        return 3600 * std::stod(text.substr(11, 2)) + 60 * std::stod(text.substr(14, 2)) +
               std::stod(text.substr(17, 6));
    };
    const double seconds = of_day(end) - of_day(begin);
    return seconds < 0 ? seconds + 86400 : seconds;
}

class CountersOfARun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        write(*folder_ / "tiny.yaml", kCountedWeather);
        const Outcome outcome = run_ranks(folder_->path(), 2, {});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    static void TearDownTestSuite() { delete folder_; }

    static fs::path result() { return *folder_ / "result"; }
    static nlohmann::json record() { return json_of(result() / "result.json"); }
    static nlohmann::json group(int number) {
        return json_of(result() / ("groups/" + std::to_string(number)) / "record.json");
    }
    static Outcome energy(const std::string& readings, std::vector<std::string> options = {}) {
        write(*folder_ / "pdu.csv", readings);
        options.insert(options.begin(), {"energy", "result", "--readings", "pdu.csv"});
        return cli::run_in(folder_->path(), options);
    }

    static storage::TemporaryFolder* folder_;
};

storage::TemporaryFolder* CountersOfARun::folder_ = nullptr;

TEST_F(CountersOfARun, AreThoseOfTheInterfacesThatThisMachineHas) {
    const nlohmann::json interfaces = record()["communication"]["interfaces"];
    double sent = 0;
    bool are_known = !interfaces.empty();
    for (const nlohmann::json& one : interfaces) {
        EXPECT_TRUE(one["name"].get<std::string>().starts_with("net") ||
                    one["name"].get<std::string>().starts_with("ib:"));
        EXPECT_NE(one["name"], "net:lo");
        are_known = are_known && one["sent_bytes"].is_number();
        if (are_known) sent += one["sent_bytes"].get<double>();
    }
    const nlohmann::json counted = record()["communication"]["counted_sent_bytes"];
    EXPECT_EQ(counted, are_known ? nlohmann::json(sent) : nlohmann::json());
}

TEST_F(CountersOfARun, ReportWhenTheCorePhaseBeganAndEnded) {
    double longest = 0;
    for (int number = 0; number < 2; ++number) {
        const nlohmann::json one = group(number);
        const nlohmann::json* steps = counter_of(one, "training:steps");
        ASSERT_NE(steps, nullptr);
        const nlohmann::json& readings = (*steps)["readings"];
        ASSERT_EQ(readings.size(), 2U);
        EXPECT_EQ(readings[1]["value"], one["record"]["iterations"]);
        longest = std::max(longest, one["record"]["training_seconds"].get<double>());
        for (const char* name : {"clock:monotonic", "clock:boottime"}) {
            const nlohmann::json* clock = counter_of(one, name);
            ASSERT_NE(clock, nullptr) << name;
            const nlohmann::json& seconds = (*clock)["readings"];
            EXPECT_GE(seconds[1]["value"].get<double>() - seconds[0]["value"].get<double>(),
                      one["record"]["training_seconds"].get<double>() - 0.1);
        }
    }
    const nlohmann::json energy = record()["energy"];
    const double seconds = seconds_between(energy["core_begin_utc"], energy["core_end_utc"]);
    EXPECT_GE(seconds, longest - 0.002);
    EXPECT_LT(seconds, longest + 60) << "otherwise it has no length";
}

TEST_F(CountersOfARun, NeverMakeAnAbsentMeterAZero) {
    const nlohmann::json energy = record()["energy"];
    for (const nlohmann::json& meter : energy["meters"]) {
        EXPECT_TRUE(meter["joules"].is_number() || meter["joules_reason"] != "") << meter;
    }
    if (energy["source"] == "") {
        EXPECT_TRUE(energy["joules"].is_null());
        EXPECT_NE(energy["joules_reason"], "");
        EXPECT_TRUE(record()["scores"]["vflops_per_watt"].is_null());
    } else {
        EXPECT_GT(energy["joules"].get<double>(), 0);
    }
}

TEST_F(CountersOfARun, AreVerified) {
    expect_verified(result());
    const std::vector<Edit> edits{
        {"end of the core phase", "result.json", "energy.core_end_utc is",
         [](const ResultCopy& copy) {
             copy.set("result.json", "/energy/core_end_utc", "2038-01-19T03:14:08.000Z");
         }},
        {"source of an energy", "result.json", "energy.source is",
         [](const ResultCopy& copy) { copy.set("result.json", "/energy/source", "RAPL"); }},
        {"made-up energy", "result.json", "energy.average_watts",
         [](const ResultCopy& copy) {
             copy.change_json("result.json", "/energy", [](OrderedJson energy) {
                 energy["average_watts"] = 1;
                 energy.erase("average_watts_reason");
                 return energy;
             });
         }},
        {"made-up bytes", "result.json", "communication.counted_sent_bytes",
         [](const ResultCopy& copy) {
             copy.change_json("result.json", "/communication", [](OrderedJson communication) {
                 communication["counted_sent_bytes"] = 1234567;
                 communication.erase("counted_sent_bytes_reason");
                 return communication;
             });
         }},
        {"time of the first step", kRecord, "counters",
         [](const ResultCopy& copy) {
             copy.change_json(kRecord, "/counters/0/readings/0/utc_seconds",
                              [](const OrderedJson& value) { return value.get<double>() - 100; });
         }},
        {"steps of a group", kRecord, "counters",
         [](const ResultCopy& copy) { copy.set(kRecord, "/counters/0/readings/1/value", 1000.0); }},
        {"removed counters", kRecord, "counters has no readings of",
         [](const ResultCopy& copy) { copy.set(kRecord, "/counters", OrderedJson::array()); }},
        {"reading of a meter that was not there", kRecord, "energy.meters",
         [](const ResultCopy& copy) {
             const OrderedJson reading{{"utc_seconds", 1e9}, {"value", 0.5}};
             const OrderedJson later{{"utc_seconds", 1e9 + 1.5}, {"value", 100.5}};
             copy.change_json(kRecord, "/counters", [&](OrderedJson counters) {
                 counters.push_back({{"host", "x"},
                                     {"name", "rapl:package-9"},
                                     {"unit", "J"},
                                     {"failure", ""},
                                     {"readings", OrderedJson::array({reading, later})}});
                 return counters;
             });
         },
         "result.json"},
    };
    for (const Edit& edit : edits) expect_told(result(), edit);
}

TEST_F(CountersOfARun, MayBeTurnedOffButForTheCorePhase) {
    const Outcome outcome = run_ranks(folder_->path(), 2, {"run.meters=none"}, "unmetered");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const nlohmann::json record = json_of(*folder_ / "unmetered/result.json");
    EXPECT_EQ(record["energy"]["joules_reason"], "run.meters is none");
    EXPECT_EQ(record["communication"]["counted_sent_bytes_reason"], "run.meters is none");
    EXPECT_TRUE(record["communication"]["interfaces"].empty());
    EXPECT_TRUE(record["energy"]["meters"].empty());
    EXPECT_NE(record["energy"]["core_begin_utc"], "");
    expect_verified(*folder_ / "unmetered");
}

TEST_F(CountersOfARun, AreExtendedByThoseOfAnExternalMeter) {
    const Outcome outcome =
        energy("time,watts\n0,500\n253402300000,500\n", {"--longest-gap", "86400"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.out;
    EXPECT_NE(outcome.error.find("pdu.csv:3:"), std::string::npos) << outcome.error;

    const nlohmann::json phase = record()["energy"];
    const std::string begin = phase["core_begin_utc"];
    const double seconds = seconds_between(begin, phase["core_end_utc"]);
    const nlohmann::json* steps = nullptr;
    const nlohmann::json first = group(0);
    steps = counter_of(first, "training:steps");
    ASSERT_NE(steps, nullptr);
    const double now = (*steps)["readings"][0]["utc_seconds"];
    std::string text = "time,watts\n";
    for (int second = -100; second < 200; second += 2) {
        text += fmt::format("{:.3f},500\n", now + second);
    }
    const Outcome metered = energy(text, {"--json"});
    ASSERT_EQ(metered.exit_code, 0) << metered.error;
    const nlohmann::json json = nlohmann::json::parse(metered.out);
    EXPECT_EQ(json["schema"], "hpcai500-energy/1");
    EXPECT_NEAR(json["average_watts"], 500, 1e-6);
    EXPECT_NEAR(json["joules"], 500 * seconds, 1e-3 * seconds + 1e-3);
    const double vflops = record()["scores"]["vflops"];
    EXPECT_NEAR(json["vflops_per_watt"], vflops / 500, 1e-6 * vflops);
    EXPECT_EQ(json["manifest"],
              cli::execute_in(result(), {"sha256sum", "manifest.sha256"}).out.substr(0, 64));

    const Outcome printed = energy(text);
    EXPECT_EQ(printed.exit_code, 0);
    EXPECT_NE(printed.out.find("mean power      : 500 W"), std::string::npos) << printed.out;
    EXPECT_NE(printed.out.find("level           : depends on the meter"), std::string::npos);
    expect_verified(result());  // the result is unchanged
}

TEST_F(CountersOfARun, AreAddedToSealedResultsOnly) {
    const ResultCopy copy(result());
    copy.increase("result.json", "/scores/vflops");
    write(*folder_ / "pdu.csv", "time,watts\n0,1\n1,1\n");
    const Outcome outcome =
        cli::run_in(folder_->path(), {"energy", copy.path().string(), "--readings", "pdu.csv"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.out;
    EXPECT_NE(outcome.error.find("result.json"), std::string::npos) << outcome.error;
}

/// Returns a run on the stand-in GPU with an emulated NVML that reports 250 W; empty if the
/// stand-in was not built because the CUDA headers are missing.
std::optional<Launch> on_stand_in(const fs::path& folder, const std::string& output) {
    const char* stand_in = std::getenv("HPCAI500_STAND_IN");
    if (stand_in == nullptr || *stand_in == '\0') return std::nullopt;
    Launch launch{folder, 2, {"device.kind=cuda", "data.synthetic_samples=2"}};
    launch.output = output;
    launch.program = std::string(stand_in) + "/hpcai500";
    launch.options = {"env", "LD_LIBRARY_PATH=" + std::string(stand_in)};
    return launch;
}

TEST_F(CountersOfARun, DoNotKeepAGroupFromItsEndWhereADriverHangs) {
    std::optional<Launch> launch = on_stand_in(folder_->path(), "hung");
    if (!launch) GTEST_SKIP() << "built without CUDA's headers";
    launch->options.emplace_back("HPCAI500_STAND_IN_HANGS=1");
    launch->changes.emplace_back("run.time_limit_seconds=0.001");
    const Outcome outcome = run(*launch);
    EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
    for (const char* group : {"0", "1"}) {
        const fs::path record = *folder_ / "hung/groups" / group / "record.json";
        const nlohmann::json health = json_of(record)["record"]["device_health"][0];
        EXPECT_TRUE(health["slowed_share"].is_null());
        EXPECT_EQ(health["slowed_share_reason"], "NVML has not answered for 5 s");
    }
}

TEST_F(CountersOfARun, HaveTheHealthOfGpusWhichMakesARunInvalid) {
    std::optional<Launch> launch = on_stand_in(folder_->path(), "ill");
    if (!launch) GTEST_SKIP() << "built without CUDA's headers";
    launch->options.emplace_back("HPCAI500_STAND_IN_XID=79");
    const Outcome outcome = run(*launch);
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    EXPECT_NE(outcome.out.find("\nreason: rule 10: rank 0 on "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("\nGPU with errors     : rank 1 on "), std::string::npos);
    const fs::path result = *folder_ / "ill";
    for (int number = 0; number < 2; ++number) {
        const nlohmann::json health = json_of(
            result /
            "result.json")["work"]["groups"][static_cast<std::size_t>(number)]["device_health"];
        ASSERT_EQ(health.size(), 1U);
        EXPECT_EQ(health[0]["world_rank"], number);
        EXPECT_EQ(health[0]["xids"], nlohmann::json({79}));
        EXPECT_EQ(health[0]["uncorrected_ecc_errors"], 0.0);
        EXPECT_EQ(health[0]["slowed_share"], 0.0);
    }
    expect_verified(result);
    const std::vector<Edit> edits{
        {"another rank's GPU", kRecord, "record.device_health has rank 0",
         [](const ResultCopy& copy) {
             copy.set(kRecord, "/record/device_health/0/world_rank", 0);
         }},
        {"half an error", kRecord, "record.device_health has an impossible share",
         [](const ResultCopy& copy) {
             copy.set(kRecord, "/record/device_health/0/uncorrected_ecc_errors", 0.5);
         }},
        {"slowed by nothing", kRecord, "record.device_health has an impossible share",
         [](const ResultCopy& copy) {
             copy.set(kRecord, "/record/device_health/0/slowed_share", 0.5);
         }},
        {"a GPU of another host", kRecord, "record.device_health[",
         [](const ResultCopy& copy) {
             copy.set(kRecord, "/record/device_health/0/host", "elsewhere");
         }},
        {"an error hidden in the group's record", kRecord, "work.groups",
         [](const ResultCopy& copy) {
             copy.set(kRecord, "/record/device_health/0/xids", OrderedJson::array());
         },
         "result.json"},
    };
    for (const Edit& edit : edits) expect_told(result, edit);
}

TEST_F(CountersOfARun, HaveTheEnergyOfGpus) {
    const std::optional<Launch> launch = on_stand_in(folder_->path(), "gpu");
    if (!launch) GTEST_SKIP() << "built without CUDA's headers";
    const Outcome outcome = run(*launch);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const nlohmann::json record = json_of(*folder_ / "gpu/result.json");
    const nlohmann::json energy = record["energy"];
    EXPECT_EQ(energy["source"].get<std::string>().substr(0, 4), "NVML");
    double joules = 0;
    int gpus = 0;
    for (const nlohmann::json& meter : energy["meters"]) {
        if (!meter["name"].get<std::string>().starts_with("nvml:GPU-")) continue;
        joules += meter["joules"].get<double>();
        ++gpus;
    }
    EXPECT_EQ(gpus, 1) << energy.dump(1);  // one GPU, which both groups use and read
    const double seconds = seconds_between(energy["core_begin_utc"], energy["core_end_utc"]);
    EXPECT_GE(joules, 250 * (seconds - 0.002));
    EXPECT_LT(joules, 250 * (seconds + 60));
    EXPECT_GT(record["scores"]["vflops_per_watt"].get<double>(), 0);
    EXPECT_NE(outcome.out.find("\nenergy              : "), std::string::npos) << outcome.out;
    expect_verified(*folder_ / "gpu");
}

}  // namespace
}  // namespace hpcai::end_to_end
