// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/comm/gradient_buckets.hpp>

namespace hpcai::comm {
namespace {

void check_ranges(std::span<const Range> ranges, std::size_t elements) {
    std::size_t last_end = 0;
    for (const Range& range : ranges) {
        ensure(range.begin >= last_end && range.end >= range.begin && range.end <= elements,
               "gradient range [{}, {}) begins before {} or ends after {}", range.begin, range.end,
               last_end, elements);
        last_end = range.end;
    }
}

}  // namespace

GradientBuckets::GradientBuckets(GradientReducer& reducer, std::span<float> gradients,
                                 std::vector<Range> parameter_ranges, const BucketOptions& options,
                                 std::function<void(const Range& elements)> before_all_reduce)
    : reducer_(reducer),
      gradients_(gradients),
      overlap_(options.overlap),
      before_all_reduce_(std::move(before_all_reduce)),
      bucket_of_parameter_(parameter_ranges.size()),
      parameter_ready_(parameter_ranges.size()) {
    check_ranges(parameter_ranges, gradients.size());
    for (std::size_t index = parameter_ranges.size(); index-- > 0;) {
        const Range& range = parameter_ranges[index];
        const bool fits =
            !buckets_.empty() &&
            (buckets_.back().elements.end - range.begin) * sizeof(float) <= options.bucket_bytes;
        if (!fits) buckets_.push_back({{range.begin, range.end}, 0, 0});
        Bucket& bucket = buckets_.back();
        bucket.elements.begin = range.begin;
        bucket.waiting_for = ++bucket.parameters;
        bucket_of_parameter_[index] = buckets_.size() - 1;
    }
    all_reduces_.reserve(buckets_.size());
    if (reducer.size() == 1) return;
    for (const Bucket& bucket : buckets_) reducer.prepare(values_of(bucket));
}

GradientBuckets::~GradientBuckets() {
    if (std::uncaught_exceptions() > exceptions_) reducer_.abort();
}

void GradientBuckets::ready(std::size_t parameter_index) {
    ensure(parameter_index < parameter_ready_.size(), "there is no gradient {} among {} gradients",
           parameter_index, parameter_ready_.size());
    ensure(!parameter_ready_[parameter_index], "gradient {} is ready twice in a step",
           parameter_index);
    parameter_ready_[parameter_index] = true;
    --buckets_[bucket_of_parameter_[parameter_index]].waiting_for;
    if (overlap_ && reducer_.size() > 1) start_ready_buckets();
}

void GradientBuckets::progress() {
    if (all_reduces_.empty()) return;
    const Stopwatch watch;
    for (std::size_t bucket = 0; bucket < all_reduces_.size(); ++bucket) {
        if (all_reduces_[bucket].request->test()) mark_complete(bucket);
    }
    accounting_.interleaved_seconds += watch.seconds();
    if (incomplete_ == 0) end_overlap();
}

void GradientBuckets::mark_complete(std::size_t bucket) {
    AllReduce& all_reduce = all_reduces_[bucket];
    if (all_reduce.is_complete) return;
    all_reduce.is_complete = true;
    --incomplete_;
    if (listener_) listener_(bucket, true);
}

void GradientBuckets::end_overlap() {
    if (!since_overlap_) return;
    accounting_.overlapped_seconds +=
        since_overlap_->seconds() - (accounting_.interleaved_seconds - interleaved_before_);
    since_overlap_.reset();
}

void GradientBuckets::finish() {
    for (std::size_t index = 0; index < parameter_ready_.size(); ++index) {
        ensure(parameter_ready_[index], "the step ends before gradient {} is ready", index);
    }
    if (reducer_.size() == 1 || !overlap_) {
        for (const Bucket& bucket : buckets_) call_before_all_reduce(bucket);
    }
    if (reducer_.size() > 1) {
        end_overlap();
        const Stopwatch watch;
        for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
            if (!overlap_) start_all_reduce(bucket);
            all_reduces_[bucket].request->wait();
            mark_complete(bucket);
            if (!overlap_) all_reduces_[bucket].request.reset();
        }
        accounting_.exposed_seconds += watch.seconds();
    }
    all_reduces_.clear();
    for (Bucket& bucket : buckets_) bucket.waiting_for = bucket.parameters;
    parameter_ready_.assign(parameter_ready_.size(), false);
    count_step();
}

void GradientBuckets::count_replayed_step() {
    count_step();
    ++replays_since_read_times_;
}

void GradientBuckets::read_times() {
    const std::int64_t steps = std::exchange(replays_since_read_times_, 0);
    const std::optional<AllReduceSeconds> last = reducer_.recorded_seconds();
    if (steps == 0 || !last) return;
    accounting_.timed_steps += steps;
    AllReduceSeconds& total = accounting_.timed ? *accounting_.timed : accounting_.timed.emplace();
    total.exposed += static_cast<double>(steps) * last->exposed;
    total.in_flight += static_cast<double>(steps) * last->in_flight;
}

void GradientBuckets::count_step() {
    ++accounting_.steps;
    if (reducer_.size() == 1) return;
    for (const Bucket& bucket : buckets_) {
        accounting_.bytes_reduced += static_cast<std::int64_t>(values_of(bucket).size_bytes());
    }
}

std::span<float> GradientBuckets::values_of(const Bucket& bucket) const {
    return gradients_.subspan(bucket.elements.begin, bucket.elements.count());
}

void GradientBuckets::start_all_reduce(std::size_t bucket) {
    if (listener_) listener_(bucket, false);
    all_reduces_.push_back({reducer_.start_all_reduce(values_of(buckets_[bucket])), false});
    ++incomplete_;
}

std::vector<Range> GradientBuckets::ranges() const {
    std::vector<Range> ranges;
    for (const Bucket& bucket : buckets_) ranges.push_back(bucket.elements);
    return ranges;
}

void GradientBuckets::start_ready_buckets() {
    for (std::size_t next = all_reduces_.size();
         next < buckets_.size() && buckets_[next].waiting_for == 0; ++next) {
        call_before_all_reduce(buckets_[next]);
        const Stopwatch watch;
        start_all_reduce(next);
        accounting_.interleaved_seconds += watch.seconds();
        if (since_overlap_) continue;
        since_overlap_.emplace();
        interleaved_before_ = accounting_.interleaved_seconds;
    }
}

}  // namespace hpcai::comm
