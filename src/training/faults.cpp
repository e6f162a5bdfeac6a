// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <csignal>
#include <iostream>
#include <new>
#include <ranges>
#include <regex>
#include <thread>

#include <fmt/ranges.h>
#include <unistd.h>

#include <hpcai/base/text.hpp>
#include <hpcai/training/faults.hpp>

namespace hpcai::training {
namespace {

enum class Effect { ends_or_hangs_rank, corrupts_gradient, flips_bit, slows_rank, fails_loader };

struct Kind {
    std::string_view name;
    Effect effect;
    void (*inject)() = nullptr;  // for ends_or_hangs_rank
    float gradient = 0;          // for corrupts_gradient
};

constexpr std::chrono::hours kLongTime{24 * 365};  // longer than any job
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Effect kEnds = Effect::ends_or_hangs_rank;
constexpr std::array kKinds{
    Kind{"kill", kEnds, [] { kill(getpid(), SIGKILL); }},
    Kind{"segv", kEnds, [] { kill(getpid(), SIGSEGV); }},
    Kind{"exit", kEnds, [] { _exit(0); }},
    Kind{"abort", kEnds, [] { std::abort(); }},
    Kind{"stop", kEnds, [] { kill(getpid(), SIGSTOP); }},
    Kind{"hang", kEnds, [] { std::this_thread::sleep_for(kLongTime); }},
    Kind{"throw", kEnds, [] { throw std::bad_alloc(); }},
    Kind{"loader", Effect::fails_loader},
    Kind{"nan", Effect::corrupts_gradient, nullptr, kNaN},
    Kind{"overflow", Effect::corrupts_gradient, nullptr, kInfinity},
    Kind{"flip", Effect::flips_bit},
    Kind{"slow", Effect::slows_rank},
};

const Kind* find_kind(std::string_view name) {
    const auto found = std::ranges::find(kKinds, name, &Kind::name);
    return found == kKinds.end() ? nullptr : &*found;
}

const Kind& kind_of(const Fault& fault) {
    const Kind* const kind = find_kind(fault.kind);
    ensure(kind != nullptr, "fault of unknown kind '{}'", fault.kind);
    return *kind;
}

Fault read_fault(const std::string& text) {
    std::smatch match;
    std::regex_match(text, match, std::regex("(\\w+)@(\\d+):(\\d+):(\\d+)"));
    const auto group = parse_number<int>(match[2].str()), rank = parse_number<int>(match[3].str());
    const auto step = parse_number<std::int64_t>(match[4].str());
    require(
        find_kind(match[1].str()) != nullptr && group && rank && step, ExitCode::usage,
        "{}: expected kind@group:rank:step, several separated by commas, where kind is one of {} "
        "and the others are integers from 0, such as kill@1:0:5, got '{}'",
        kFaultsVariable, fmt::join(std::views::transform(kKinds, &Kind::name), ", "), text);
    return {match[1], *group, *rank, *step};
}

std::string text_of(const Fault& fault) {
    return fmt::format("{}@{}:{}:{}", fault.kind, fault.group, fault.rank, fault.step);
}

class Injector final : public FaultInjector {
public:
    explicit Injector(const FaultSetup& setup)
        : device_(setup.device), store_(setup.store), log_(setup.log) {
        for (const Fault& fault : setup.faults) {
            if (fault.group != setup.group) continue;
            corrupts_in_group_ |= kind_of(fault).effect == Effect::corrupts_gradient;
            const bool is_mine = fault.rank == setup.group_rank;
            if (is_mine && kind_of(fault).effect != Effect::fails_loader) pending_.push_back(fault);
        }
    }

    void begin_step(std::int64_t step) override {
        const double last_step_seconds = since_step_.seconds() - delay_seconds_;
        delay_seconds_ = 0;
        since_step_.restart();
        if (is_slow_) delay(last_step_seconds);
        std::vector<Fault> due;
        std::erase_if(pending_, [&](const Fault& fault) {
            if (step < fault.step) return false;
            due.push_back(fault);
            return true;
        });
        for (const Fault& fault : due) inject(fault, step);
    }

    std::function<void(const comm::Range&)> before_all_reduce() override {
        if (!corrupts_in_group_) return {};
        return [this](const comm::Range& elements) { corrupt(elements); };
    }

private:
    void inject(const Fault& fault, std::int64_t step) {
        const Kind& kind = kind_of(fault);
        std::cerr << "hpcai500: injected in step " << step << ": " << text_of(fault) << std::endl;
        switch (kind.effect) {
            case Effect::ends_or_hangs_rank:
                return kind.inject();
            case Effect::corrupts_gradient:
                corrupt_value_ = kind.gradient;
                return;
            case Effect::flips_bit:
                return flip_bit();
            case Effect::slows_rank:
                is_slow_ = true;
                return;
            case Effect::fails_loader:
                return;
        }
    }

    /// Delays the rank as if its forward pass took `seconds` longer.
    void delay(double seconds) {
        const Stopwatch watch;
        enter(log_, Phase::forward);
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        delay_seconds_ = watch.seconds();
    }

    /// Flips the highest mantissa bit of the first parameter.
    void flip_bit() {
        const std::span<float> first = store_.parameters().first(1);
        std::vector<float> value = store_.read(first);
        value[0] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value[0]) ^ (1U << 22));
        store_.write(value, first);
    }

    /// Replaces the first gradient of a bucket, except of a bucket with only the failure status.
    void corrupt(const comm::Range& elements) {
        if (!corrupt_value_ || elements.begin >= store_.gradients().size()) return;
        const float value = *std::exchange(corrupt_value_, std::nullopt);
        device_.enqueue_upload(store_.gradients().data() + elements.begin,
                               std::as_bytes(std::span(&value, 1)));
    }

    device::Device& device_;
    graph::ParameterStore& store_;
    StepLog* log_;
    std::vector<Fault> pending_;  // faults of this rank that were not injected yet
    bool corrupts_in_group_ = false;
    std::optional<float> corrupt_value_;  // to write to a gradient of this step
    bool is_slow_ = false;
    Stopwatch since_step_;
    double delay_seconds_ = 0;  // how long delay() took in this step
};

}  // namespace

bool faults_are_built_in() {
    return true;
}

std::vector<Fault> read_faults(std::string_view text) {
    std::vector<Fault> faults;
    if (text.empty()) return faults;
    for (std::size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
        end = std::min(text.find(',', begin), text.size());
        faults.push_back(read_fault(std::string(text.substr(begin, end - begin))));
    }
    return faults;
}

void check_faults(const std::vector<Fault>& faults, int groups, int degree) {
    for (const Fault& fault : faults) {
        require(fault.group < groups && fault.rank < degree, ExitCode::usage,
                "{}: expected a group from 0 to {} and a rank in it from 0 to {}, got '{}'",
                kFaultsVariable, groups - 1, degree - 1, text_of(fault));
    }
}

std::string describe_faults(const std::vector<Fault>& faults) {
    std::string text;
    for (const Fault& fault : faults) text += (text.empty() ? "" : ", ") + text_of(fault);
    return text.empty() ? "none" : text;
}

std::unique_ptr<FaultInjector> make_fault_injector(const FaultSetup& setup) {
    const bool any = std::ranges::any_of(
        setup.faults, [&](const Fault& fault) { return fault.group == setup.group; });
    if (!any) return nullptr;
    return std::make_unique<Injector>(setup);
}

std::function<void(std::uint32_t, std::int64_t)> make_loader_fault(const std::vector<Fault>& faults,
                                                                   int group, int group_rank,
                                                                   std::int64_t steps_per_epoch) {
    std::optional<Fault> mine;
    for (const Fault& fault : faults) {
        if (fault.group != group || fault.rank != group_rank) continue;
        if (kind_of(fault).effect != Effect::fails_loader) continue;
        if (!mine || fault.step < mine->step) mine = fault;
    }
    if (!mine) return {};
    return [fault = *mine, steps_per_epoch](std::uint32_t epoch, std::int64_t batch) {
        if (static_cast<std::int64_t>(epoch) * steps_per_epoch + batch < fault.step) return;
        throw std::runtime_error("injected into a loader thread: " + text_of(fault));
    };
}

}  // namespace hpcai::training
