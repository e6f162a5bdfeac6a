// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <ostream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <hpcai/base/progress.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/deadline_guard.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/comm/launch.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/launch/doctor_findings.hpp>
#include <hpcai/launch/environment.hpp>
#include <hpcai/launch/prepare_run.hpp>
#include <hpcai/launch/run_under_mpi.hpp>
#include <hpcai/results/result_directory.hpp>
#include <hpcai/speed/doctor.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>

#include "whole_step.hpp"

namespace hpcai::speed {
namespace {

/// Returns the SHA-256 of the parameters after 20 training steps on the configured device: a
/// ResNet-50, 4 random images of 32 x 32 pixels, fp32, run.deterministic. All ranks with the same
/// kind of device must get the same digest. Not collective.
std::string golden_digest(const config::Config& config, const device::Cores& cores,
                          const context::PlaceOnNode& place) {
    constexpr int kSteps = 20;
    constexpr int kSamples = 4;
    config::Config small =
        config::parse("", "golden",
                      {"workload.classes=10", "workload.image_size=32", "run.deterministic=true",
                       "training.precision=fp32", "training.batch_size=4"});
    small.device = config.device;
    const auto device = context::open_device(small, cores, place).device;
    const auto self = comm::make_self_communicator();
    const auto reducer = comm::make_mpi_reducer(*self);
    WholeStep step(
        {small, *device,
         context::choose_precision(small.training.precision, context::formats_of(*device)),
         *reducer, kSamples});
    // A call of run() makes one step or, with a CUDA graph, 20.
    while (std::ssize(step.log().steps()) < kSteps) step.run();
    const std::vector<float> parameters = step.store().read(step.store().parameters());
    return storage::sha256_hex(std::as_bytes(std::span(parameters)));
}

/// Returns `wanted` or its nearest existing parent.
fs::path existing_folder(const fs::path& wanted) {
    std::error_code error;
    fs::path folder = fs::absolute(wanted, error);
    while (folder.has_relative_path() && !fs::is_directory(folder, error)) {
        folder = folder.parent_path();
    }
    return folder;
}

/// Runs the checks in order, each with a time limit. All ranks make the same calls.
class DoctorSession {
public:
    DoctorSession(const DoctorRequest& request, comm::MpiWorld& world)
        : request_(request), world_(world) {}

    std::vector<launch::Finding> findings() {
        stage("hosts", [&] { find_hosts(); });
        stage("configuration", [&] { read_configuration(); });
        std::vector<launch::Finding> findings;
        stage("layout and devices", [&] { findings = check_layout_and_devices(); });
        // Opening weather files may compare all their bytes with a manifest.
        const bool opens_files = config_.data.kind == config::DataKind::climate_hdf5;
        const double data_seconds = (opens_files ? 10 : 1) * kStageSeconds;
        stage(
            "data", [&] { findings.push_back(check_data()); }, data_seconds);
        stage("program", [&] {
            gather(&launch::RankHealth::program_sha256, launch::binary_digest());
            gather(&launch::RankHealth::mpi, comm::MpiWorld::library_version());
        });
        stage("cores", [&] { gather_cores(); });
        stage("output", [&] { check_output(); });
        if (request_.golden) {
            stage("golden steps", [&] {
                gather(&launch::RankHealth::golden_sha256, golden_digest(config_, cores_, place_));
            });
        }
        const auto rank_findings =
            launch::diagnose_launch(ranks_, {run_command(), comm::started_by_srun(std::getenv)});
        findings.insert(findings.end(), rank_findings.begin(), rank_findings.end());
        return findings;
    }

private:
    static constexpr double kStageSeconds = 120;
    static constexpr double kSilentSeconds = 2;  // after which rank 0 prints the running stage
    static constexpr int kStages = 7;            // without the golden steps

    void stage(const char* name, const std::function<void()>& work,
               double seconds = kStageSeconds) {
        ++stages_;
        std::optional<LateLine> late_line;
        if (world_.rank() == 0) {
            const std::string line = fmt::format("doctor {}/{}: {}, at most {} s\n", stages_,
                                                 kStages + int{request_.golden}, name, seconds);
            late_line.emplace(std::cerr, line, kSilentSeconds);
        }
        const comm::DeadlineGuard guard(seconds, ExitCode::launch,
                                        fmt::format("doctor: {}: rank {}", name, world_.rank()));
        work();
    }

    comm::Communicator& everyone() { return start_up_->everyone(); }

    void gather(std::string launch::RankHealth::*member, const std::string& text) {
        const auto texts = comm::all_gather_strings(everyone(), text);
        for (std::size_t rank = 0; rank < texts.size(); ++rank) ranks_[rank].*member = texts[rank];
    }

    template <typename Number>
    void gather(Number launch::RankHealth::*member, double number) {
        const auto numbers = comm::all_gather(everyone(), number);
        for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
            ranks_[rank].*member = static_cast<Number>(numbers[rank]);
        }
    }

    void find_hosts() {
        start_up_.emplace(world_.start_up());
        ranks_.resize(static_cast<std::size_t>(world_.size()));
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            ranks_[rank].host = start_up_->host(rank);
            ranks_[rank].node = start_up_->node_of_world_rank()[rank];
        }
    }

    void read_configuration() {
        config_ = launch::agree_on_config(request_.config, everyone());
        std::string digest;  // empty if this rank cannot read the files; a run needs only rank 0's
        try {
            const std::string text = config::to_yaml(config::load(request_.config));
            digest = storage::sha256_hex(storage::bytes_of(text));
        } catch (const Error&) {
        }
        gather(&launch::RankHealth::config_sha256, digest);
    }

    /// Checks the layout and the devices as a run does. Returns the same findings on all ranks.
    std::vector<launch::Finding> check_layout_and_devices() {
        const std::vector<int>& nodes = start_up_->node_of_world_rank();
        std::vector<launch::Finding> findings;
        findings.push_back({"launch", counted(world_.size(), "rank") + " on " +
                                          counted(std::ranges::max(nodes) + 1, "node")});
        findings.push_back(run_check("layout", [&] {
            const plan::Layout layout = plan::make_layout(
                config_.bagging, config_.training, config_.parallel, static_cast<int>(nodes.size()),
                plan::ranks_of_fullest_node(nodes));
            return fmt::format("M={} x P_degree={}", layout.groups, layout.degree);
        }));
        findings.push_back(launch::diagnose_rules(config_));
        place_ = launch::place_on_node(nodes, cores_, everyone());
        findings.push_back(run_check("devices", [&] { return check_rank_devices(); }));
        return findings;
    }

    std::string check_rank_devices() {
        std::string device;
        std::string uuid;
        comm::collective_try(everyone(), [&] {
            const context::OpenDevice opened = context::open_device(config_, cores_, place_);
            context::choose_precision(config_.training.precision,
                                      context::formats_of(*opened.device));
            device = opened.device->description();
            uuid = opened.device->uuid();
        });
        gather(&launch::RankHealth::device, device);
        gather(&launch::RankHealth::device_uuid, uuid);
        std::vector<context::RankFacts> facts;
        for (const launch::RankHealth& rank : ranks_)
            facts.push_back({0, rank.device, rank.device_uuid, {}});
        context::check_devices(facts, config_.run.level);
        const std::string sharing = context::describe_gpu_sharing(facts);
        return ranks_.front().device + (sharing.empty() ? "" : "; " + sharing);
    }

    /// Makes a finding from the text or the error of `work`, which must be equal on all ranks.
    launch::Finding run_check(const char* check, const std::function<std::string()>& work) const {
        try {
            return {check, work(), "", false, ExitCode::ok};
        } catch (const Error& error) {
            return {check, config::locate(request_.config, error.what()), "", true, error.code()};
        }
    }

    launch::Finding check_data() {
        return run_check("data", [&] {
            comm::collective_try(everyone(), [&] {
                if (world_.rank() == 0) data::require_data_paths(config_);
            });
            if (config_.data.kind == config::DataKind::climate_hdf5) {
                const data::SampleSets sets = data::load_climate(config_, everyone());
                const data::SampleFormat& format = sets.training->format();
                return fmt::format(
                    "{} training and {} test samples of {} x {} pixels; their "
                    "fields were not read",
                    sets.training->samples(), sets.validation->samples(), format.height,
                    format.width);
            }
            return config_.data.path.empty()
                       ? std::string("samples are generated; there is no path to check")
                       : fmt::format("the paths that data.kind {} reads exist; no data was read",
                                     config::value_text(config_, "data.kind"));
        });
    }

    void gather_cores() {
        const device::NumaNodes numa = device::count_numa_nodes();
        gather(&launch::RankHealth::cores, cores_.machine);
        gather(&launch::RankHealth::allowed_cores, cores_.allowed);
        gather(&launch::RankHealth::ranks_sharing_cores, place_.ranks_sharing_cores);
        gather(&launch::RankHealth::numa_nodes, numa.machine);
        gather(&launch::RankHealth::allowed_numa_nodes, numa.allowed);
    }

    /// Returns on rank 0 why a run could not use this result directory, else an empty text.
    std::string directory_error(const std::string& directory) const {
        if (world_.rank() != 0 || directory.empty()) return "";
        try {
            results::require_new_or_empty(directory);
            return "";
        } catch (const Error& error) {
            return error.what();
        }
    }

    void check_output() {
        const std::string wanted = request_.output.empty() ? config_.run.output : request_.output;
        gather(&launch::RankHealth::output_rejection, directory_error(wanted));
        const fs::path folder = existing_folder(wanted.empty() ? "results" : wanted);
        pid_t pid_of_rank_0 = ::getpid();
        everyone().broadcast(std::as_writable_bytes(std::span(&pid_of_rank_0, 1)), 0);
        const auto probe_file = [&](int rank) {
            return folder / fmt::format(".hpcai500-doctor-{}-{}", pid_of_rank_0, rank);
        };
        std::string write_error;
        try {
            storage::write_file_durably(probe_file(world_.rank()), "");
        } catch (const Error& error) {
            write_error = error.what();
        }
        gather(&launch::RankHealth::output_error, write_error);  // collective; then all files exist
        std::error_code error;
        gather(&launch::RankHealth::sees_output, fs::exists(probe_file(0), error) ? 1 : 0);
        const fs::space_info space = fs::space(folder, error);
        gather(&launch::RankHealth::free_bytes, error ? 0 : static_cast<double>(space.available));
        fs::remove(probe_file(world_.rank()), error);
    }

    std::string run_command() const {
        std::string command = "hpcai500 run";
        for (const std::string& file : request_.config.files) {
            command += " --config " + shell_quote(file);
        }
        for (const std::string& setting : request_.config.overrides)
            command += " --set " + shell_quote(setting);
        return command;
    }

    const DoctorRequest& request_;
    comm::MpiWorld& world_;
    std::optional<comm::StartUp> start_up_;
    config::Config config_;
    const device::Cores cores_ = device::count_cores();
    context::PlaceOnNode place_;
    std::vector<launch::RankHealth> ranks_;
    int stages_ = 0;
};

}  // namespace

ExitCode run_doctor(const DoctorRequest& request, std::ostream& out) {
    constexpr double kMpiStartSeconds = 120;
    std::optional<comm::DeadlineGuard> start;
    start.emplace(kMpiStartSeconds, ExitCode::launch, "doctor: the start of MPI on all ranks");
    return launch::run_under_mpi(request.command_line, [&](comm::MpiWorld& world) {
        start.reset();
        const std::vector<launch::Finding> findings = DoctorSession(request, world).findings();
        if (world.rank() == 0) out << launch::findings_text(findings) << std::flush;
        const auto failed = std::ranges::find_if(
            findings, [](const launch::Finding& finding) { return finding.code != ExitCode::ok; });
        return failed == findings.end() ? ExitCode::ok : failed->code;
    });
}

}  // namespace hpcai::speed
