// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include <hpcai/base/median.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/data/device_pictures.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/speed/roofline.hpp>

#include "whole_step.hpp"

namespace hpcai::speed {
namespace {

constexpr double kMaxRows = 18;  // of the table, with 256 cores and a GPU; rows take equal time

class InputBench {
public:
    InputBench(const config::Config& config, double seconds)
        : config_(config), seconds_(seconds / kMaxRows) {}

    std::string table() {
        const bool has_decoder = device_->make_jpeg_batch() != nullptr;
        measure_step();
        const auto read = [&](int, std::int64_t number) {
            return samples_->contents(sample_of(number)).empty() ? 0 : 1;
        };
        for (std::int64_t i = 0; i < samples_->samples(); ++i) read(0, i);  // fills the page cache
        measure("files, read", cores_, 1, read);
        for (int threads = 1; threads < cores_; threads *= 2) decode_on_host(threads);
        decode_on_host(cores_);
        make_batches("cpu", nullptr);
        if (!has_decoder) return text_;
        for (const int batch : {64, 256, 400}) {
            for (const int threads : {1, 2}) decode_on_device(batch, threads);
        }
        data::DecodedPictures pictures(*device_, batch_size_);
        make_batches("gpu", &pictures);
        return text_;
    }

private:
    void add(std::string_view source, int threads, int batch, double rate) {
        text_ += fmt::format("{:<24} {:>7} {:>6} {:>10.0f} {:>9.2f}\n", source, threads, batch,
                             rate, rate / step_rate_);
    }

    /// Adds a row with the images per second of `threads` threads, and returns this rate. A thread
    /// calls `work` with its index and a running number; `work` returns how many images it made.
    template <typename Work>
    double measure(std::string_view source, int threads, int batch, const Work& work) {
        for (int thread = 0; thread < threads; ++thread) work(thread, thread);  // warms up
        std::atomic<std::int64_t> next{0}, images{0};
        const Stopwatch watch;
        std::vector<std::jthread> workers;
        for (int thread = 0; thread < threads; ++thread) {
            workers.emplace_back([&, thread] {
                while (watch.seconds() < seconds_) images += work(thread, next++);
            });
        }
        workers.clear();  // waits
        const double rate = static_cast<double>(images) / watch.seconds();
        add(source, threads, batch, rate);
        return rate;
    }

    void measure_step() {
        const auto self = comm::make_self_communicator();
        const auto reducer = comm::make_mpi_reducer(*self);
        const auto precision =
            context::choose_precision(config_.training.precision, context::formats_of(*device_));
        WholeStep step({config_, *device_, precision, *reducer, batch_size_});
        for (int warmup = 0; warmup < 2; ++warmup) step.run();
        step_rate_ = batch_size_ / median({step.run(), step.run(), step.run()});
        text_ = fmt::format("{}\n{:<24} {:>7} {:>6} {:>10} {:>9}\n", device_->description(),
                            "source", "threads", "batch", "images/s", "/ step");
        add("training step", 1, batch_size_, step_rate_);
    }

    std::uint32_t sample_of(std::int64_t number) const {
        return static_cast<std::uint32_t>(number % samples_->samples());
    }

    void decode_on_host(int threads) {
        std::vector<std::vector<std::byte>> rows(
            threads, std::vector<std::byte>(samples_->format().pixel_bytes()));
        measure("crops, decoded by CPU", threads, 1, [&](int thread, std::int64_t number) {
            const CounterStream random(1, RandomPurpose::augmentation, 0, sample_of(number));
            samples_->training_sample(sample_of(number), random, {rows[thread], {}});
            return 1;
        });
    }

    /// Each thread has its own images of the folder and decodes all of them in each batch.
    void decode_on_device(int batch, int threads) {
        std::vector<std::unique_ptr<device::JpegBatch>> decoders;
        std::vector<std::vector<device::JpegFile>> files(threads);
        for (std::int64_t i = 0; i < std::int64_t{threads} * batch; ++i) {
            std::vector<std::byte> file = samples_->contents(sample_of(i));
            const auto size = data::baseline_jpeg_size(file);
            if (size) files[i / batch].push_back({std::move(file), size->width, size->height});
        }
        for (int i = 0; i < threads; ++i) decoders.push_back(device_->make_jpeg_batch());
        measure("images, decoded by GPU", threads, batch, [&](int thread, std::int64_t) {
            decoders[thread]->decode(files[thread]);
            return std::ranges::count_if(files[thread],
                                         [](const auto& file) { return file.offset_bytes >= 0; });
        });
    }

    /// Makes batches in the device's memory as a run does, without training.
    void make_batches(const std::string& decoder, data::DevicePictures* pictures) {
        data::TrainingSource source(samples_,
                                    {.batch_size = batch_size_,
                                     .prefetch_batches = config_.data.prefetch_batches,
                                     .decode_threads = cores_},
                                    1, 0, pictures);
        std::vector<std::uint32_t> order;
        constexpr std::int64_t kSamples = 1'000'000;  // more than a row's time suffices for
        while (std::ssize(order) < kSamples) order.push_back(sample_of(std::ssize(order)));
        source.begin_epoch(0, order);
        for (int i = 0; i < config_.data.prefetch_batches; ++i) source.next();
        const auto images = device_->allocate(batch_size_ * samples_->format().pixel_bytes());
        auto* const pixels = static_cast<std::uint8_t*>(images->data());
        const auto next = [&](int, std::int64_t) {
            const data::Batch& batch = source.next();
            pictures != nullptr ? pictures->enqueue(batch, pixels)
                                : device_->enqueue_upload(pixels, batch.images.raw());
            device_->synchronize();
            return batch_size_;
        };
        const double rate = measure("batches, decoder " + decoder, 1, batch_size_, next);
        text_ += fmt::format("With data.decoder {}, a step {}.\n", decoder,
                             rate < step_rate_ ? "waits for its batch" : "does not wait");
    }

    const config::Config& config_;
    const double seconds_;  // of a row
    const int batch_size_ = config_.training.batch_size;
    const device::Cores all_cores_ = device::count_cores();
    const int cores_ = device::threads_for_rank(config_.data.decode_threads, all_cores_, 1);
    std::unique_ptr<device::Device> device_ = context::open_device(config_, all_cores_, {}).device;
    std::shared_ptr<const data::SampleSet> samples_ = data::make_folder_samples(
        data::load_samples(config_.data.path), config_.data, config_.workload.image_size);
    double step_rate_ = 0;
    std::string text_;
};

}  // namespace

std::string measure_input(const config::Config& config, double seconds) {
    return InputBench(config, seconds).table();
}

}  // namespace hpcai::speed
