// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <hpcai/data/device_pictures.hpp>
#include <hpcai/data/sources.hpp>

#include "prefetcher.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {
/// The memory of one row of a batch.
struct BatchRow {
    SampleView sample;
    std::int32_t& label;
    std::int32_t& key;
    device::PictureView& view;
    bool is_on_host = false;  // true: the device has refused the row
};

/// The memory of the prefetched batches, and the prefetcher that fills it.
class BatchPipeline {
public:
    using FillRow = std::function<void(std::int64_t batch, std::int64_t row, const BatchRow& out)>;

    /// Each batch has `rows` rows. `pictures` (may be null) completes batches.
    BatchPipeline(const SampleSet& samples, int rows, const SourceSettings& settings, FillRow fill,
                  DevicePictures* pictures = nullptr);

    void cancel() { prefetcher_.cancel(); }
    void begin(std::int64_t batches, std::int64_t first = 0) {
        prefetcher_.begin(batches, rows_, first);
    }
    std::int64_t batches() const { return prefetcher_.batches(); }
    double wait_seconds() const { return prefetcher_.wait_seconds(); }
    /// Returns the next batch, whose `samples` still includes padding rows.
    Batch& next() { return slots_[prefetcher_.next()].batch; }

private:
    struct alignas(64) CacheLine {
        std::byte bytes[64];
    };
    struct Slot {
        std::vector<CacheLine> pixels;
        std::vector<std::int32_t> labels;
        std::vector<std::int32_t> keys;
        std::vector<float> boxes;
        std::vector<device::PictureView> views;
        Batch batch;

        BatchRow row(std::int64_t index, const SampleFormat& format);
    };

    void complete(Slot& slot, std::int64_t batch, int threads);
    static std::vector<Slot> make_slots(const SampleFormat& format, int rows, int count);

    const SampleFormat format_;
    int rows_;
    FillRow fill_;
    DevicePictures* pictures_;
    std::vector<Slot> slots_;
    Prefetcher prefetcher_;  // last, as its threads use the slots
};

namespace {

constexpr std::size_t kMaxReplacements = 1000;  // samples tried for a row before an error

[[noreturn]] void reject_sample(const std::string& path, const std::string& reason) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: {} (data.on_bad_sample is fail, not skip or count)", path, reason));
}

}  // namespace

void write_boxes(std::span<const Box> boxes, std::span<float> rows) {
    ensure(boxes.size() * kBoxValues <= rows.size(), "{} boxes exceed {} rows", boxes.size(),
           rows.size() / kBoxValues);
    float* row = rows.data();
    for (const Box& box : boxes) {
        for (const float number :
             {box.x1, box.y1, box.x2, box.y2, static_cast<float>(box.category)}) {
            *row++ = number;
        }
    }
    std::fill(row, rows.data() + rows.size(), 0.0f);
}

BatchPipeline::BatchPipeline(const SampleSet& samples, int rows, const SourceSettings& settings,
                             FillRow fill, DevicePictures* pictures)
    : format_(samples.format()),
      rows_(rows),
      fill_(std::move(fill)),
      pictures_(pictures),
      slots_(make_slots(format_, rows, settings.prefetch_batches + 1)),
      prefetcher_(
          settings.prefetch_batches + 1, settings.decode_threads,
          [this](int slot, std::int64_t batch, std::int64_t row) {
              fill_(batch, row, slots_[slot].row(row, format_));
          },
          [this, threads = settings.decode_threads](int slot, std::int64_t batch) {
              if (pictures_ != nullptr) complete(slots_[slot], batch, threads);
          }) {}

void BatchPipeline::complete(Slot& slot, std::int64_t batch, int threads) {
    const std::vector<std::int64_t> refused = pictures_->complete(slot.views);
    parallel_for(std::ssize(refused), threads, [&](std::int64_t i) {
        BatchRow out = slot.row(refused[i], format_);
        out.is_on_host = true;
        fill_(batch, refused[i], out);
    });
}

BatchRow BatchPipeline::Slot::row(std::int64_t index, const SampleFormat& format) {
    const std::size_t values = format.box_values();
    return {{batch.images.raw().subspan(index * format.pixel_bytes(), format.pixel_bytes()),
             std::span(boxes).subspan(index * values, values)},
            labels[index],
            keys[index],
            views[index]};
}

std::vector<BatchPipeline::Slot> BatchPipeline::make_slots(const SampleFormat& format, int rows,
                                                           int count) {
    std::vector<Slot> slots(count);
    for (Slot& slot : slots) {
        slot.pixels.resize(ceil_div(rows * format.pixel_bytes(), sizeof(CacheLine)));
        slot.labels.resize(rows);
        slot.keys.resize(rows);
        slot.boxes.resize(rows * format.box_values());
        slot.batch.images = {
            slot.pixels.data(), {rows, format.height, format.width, format.channels}, format.dtype};
        slot.batch.labels = {slot.labels.data(), {rows}, tensor::DType::s32};
        slot.batch.boxes = {slot.boxes.data(),
                            {rows, format.max_boxes, std::int64_t{kBoxValues}},
                            tensor::DType::f32};
        if (format.max_boxes > 0) {
            slot.batch.keys = {slot.keys.data(), {rows}, tensor::DType::s32};
        }
        slot.views.resize(rows);
        slot.batch.views = slot.views;
        slot.batch.samples = rows;
    }
    return slots;
}

struct TrainingSource::Epoch {
    std::uint32_t number = 0;
    std::vector<std::uint32_t> order;
    std::vector<std::uint16_t> repetitions;  // by entry of `order`: earlier ones of its sample
};

TrainingSource::TrainingSource(std::shared_ptr<const SampleSet> samples,
                               const SourceSettings& settings, std::uint64_t seed,
                               std::uint32_t model, DevicePictures* pictures)
    : samples_(std::move(samples)),
      settings_(settings),
      seed_(seed),
      model_(model),
      pictures_(pictures),
      epoch_(std::make_unique<Epoch>()) {
    ensure(settings.shares >= 1 && settings.batch_size >= 1 &&
               settings.batch_size % settings.shares == 0,
           "batch of {} over {} ranks", settings.batch_size, settings.shares);
    pipeline_ = std::make_unique<BatchPipeline>(
        *samples_, settings.batch_size / settings.shares, settings,
        [this](std::int64_t batch, std::int64_t row, const BatchRow& out) {
            fill(batch, row, out);
        },
        pictures);
}

TrainingSource::~TrainingSource() = default;

void TrainingSource::begin_epoch(std::uint32_t epoch, std::vector<std::uint32_t> order,
                                 std::int64_t first_batch) {
    // Epoch and repetition share a 32-bit field of the random stream's counter.
    ensure(epoch < (1U << 16), "epoch {} is above 65535", epoch);
    std::vector<std::uint16_t> occurrences(samples_->samples()), repetitions;
    repetitions.reserve(order.size());
    for (const std::uint32_t sample : order) {
        ensure(sample < occurrences.size(), "sample {} of {} in an epoch's order", sample,
               samples_->samples());
        repetitions.push_back(occurrences[sample]++);
    }
    pipeline_->cancel();
    *epoch_ = {epoch, std::move(order), std::move(repetitions)};
    pipeline_->begin(std::ssize(epoch_->order) / settings_.batch_size, first_batch);
}

std::string TrainingSource::try_position(std::size_t position, const BatchRow& out) const {
    const std::uint32_t sample = epoch_->order[position];
    const std::uint32_t pass = epoch_->number << 16 | epoch_->repetitions[position];
    out.label = samples_->label(sample);
    if (!out.sample.boxes.empty()) {
        CounterStream random(seed_, RandomPurpose::regions, model_, sample, pass);
        out.key = static_cast<std::int32_t>(random.next_u32());
    }
    const CounterStream random(seed_, RandomPurpose::augmentation, model_, sample, pass);
    out.view = {};
    if (pictures_ == nullptr || out.is_on_host) {
        return samples_->training_sample(sample, random, out.sample);
    }
    return pictures_->prepare(*samples_, sample, random, out.sample, out.view);
}

void TrainingSource::fill(std::int64_t batch, std::int64_t row, const BatchRow& out) {
    if (settings_.before_row) settings_.before_row(epoch_->number, batch);
    const std::size_t entries = epoch_->order.size();
    const std::int64_t rows = settings_.batch_size / settings_.shares;
    const auto first =
        static_cast<std::size_t>(batch * settings_.batch_size + settings_.share * rows + row);
    for (std::size_t tried = 0; tried < std::min(entries, kMaxReplacements); ++tried) {
        const std::size_t position = (first + tried) % entries;
        const std::string reason = try_position(position, out);
        if (reason.empty()) return;
        const std::uint32_t sample = epoch_->order[position];
        const std::string path = samples_->location(sample);
        if (settings_.on_bad_sample == config::BadSamplePolicy::fail) reject_sample(path, reason);
        bad_samples_.record(sample, path, reason);
        if (settings_.on_bad_sample == config::BadSamplePolicy::count) return;
    }
    throw Error(ExitCode::data,
                fmt::format("{}: this sample and its replacements are bad (data.on_bad_sample "
                            "is skip)",
                            samples_->location(epoch_->order[first])));
}

std::int64_t TrainingSource::batches() const {
    return pipeline_->batches();
}

const Batch& TrainingSource::next() {
    Batch& batch = pipeline_->next();
    batch.pictures = pictures_;
    return batch;
}

double TrainingSource::wait_seconds() const {
    return pipeline_->wait_seconds();
}

EvaluationShare evaluation_share(std::int64_t samples, int rank, int degree) {
    const std::int64_t block = ceil_div(samples, degree);
    const std::int64_t first = std::min(samples, rank * block);
    return {first, std::min(samples, first + block) - first};
}

EvaluationSource::EvaluationSource(std::shared_ptr<const SampleSet> samples,
                                   const SourceSettings& settings)
    : samples_(std::move(samples)), settings_(settings) {
    ensure(settings.shares >= 1 && settings.batch_size >= 1, "batch of {} on one of {} ranks",
           settings.batch_size, settings.shares);
    const std::int64_t all = samples_->samples();
    full_share_ = ceil_div(all, settings.shares);
    share_ = evaluation_share(all, settings.share, settings.shares);
    pipeline_ =
        std::make_unique<BatchPipeline>(*samples_, settings.batch_size, settings,
                                        [this](std::int64_t batch, std::int64_t row,
                                               const BatchRow& out) { fill(batch, row, out); });
}

EvaluationSource::~EvaluationSource() = default;

void EvaluationSource::begin() {
    pipeline_->cancel();
    delivered_batches_ = 0;
    pipeline_->begin(batches());
}

void EvaluationSource::fill(std::int64_t batch, std::int64_t row, const BatchRow& out) {
    const std::int64_t offset = batch * settings_.batch_size + row;
    if (offset >= share_.count) {
        std::ranges::fill(out.sample.pixels, std::byte{0});
        write_boxes({}, out.sample.boxes);
        out.label = -1;
        return;
    }
    const auto sample = static_cast<std::uint32_t>(share_.first + offset);
    const std::string reason = samples_->evaluation_sample(sample, out.sample);
    out.label = samples_->label(sample);
    if (reason.empty()) return;
    const std::string path = samples_->location(sample);
    if (settings_.on_bad_sample == config::BadSamplePolicy::fail) reject_sample(path, reason);
    bad_samples_.record(sample, path, reason);
    if (settings_.on_bad_sample != config::BadSamplePolicy::skip) return;
    write_boxes({}, out.sample.boxes);
    out.label = -1;
}

std::int64_t EvaluationSource::batches() const {
    return ceil_div(full_share_, settings_.batch_size);
}

const Batch& EvaluationSource::next() {
    Batch& batch = pipeline_->next();
    const std::int64_t left = share_.count - delivered_batches_++ * settings_.batch_size;
    batch.samples = std::clamp<std::int64_t>(left, 0, settings_.batch_size);
    return batch;
}

double EvaluationSource::wait_seconds() const {
    return pipeline_->wait_seconds();
}

void BadSamples::record(std::uint32_t sample, const std::string& name, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    seen_.insert(sample);
    first_.emplace(sample, BadSample{name, reason});
    if (first_.size() > kMaxNamedBadSamples) first_.erase(std::prev(first_.end()));
}

std::vector<std::uint32_t> BadSamples::numbers() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint32_t> numbers(seen_.begin(), seen_.end());
    std::ranges::sort(numbers);
    return numbers;
}

void BadSamples::restore(std::span<const std::uint32_t> samples) {
    const std::lock_guard lock(mutex_);
    seen_.insert(samples.begin(), samples.end());
}

BadSampleReport BadSamples::report() const {
    const std::lock_guard lock(mutex_);
    BadSampleReport report;
    report.count = static_cast<std::int64_t>(seen_.size());
    for (const auto& [sample, bad] : first_) report.first.push_back(bad);
    return report;
}

}  // namespace hpcai::data
