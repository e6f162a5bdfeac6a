// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>

#include <hpcai/slurm/batch_script.hpp>

namespace hpcai::slurm {
namespace {

constexpr std::int64_t kMaxSeconds = std::int64_t{3650} * 86400;

/// The numbers between ':' in `text`; nothing unless they are one to three of up to 9 digits.
std::optional<std::array<std::int64_t, 3>> numbers_of(std::string_view text, std::size_t& count) {
    std::array<std::int64_t, 3> numbers{};
    for (count = 0; count < numbers.size();) {
        const std::string_view digits = text.substr(0, text.find(':'));
        const bool is_number = !digits.empty() && digits.size() <= 9 &&
                               digits.find_first_not_of("0123456789") == std::string_view::npos;
        if (!is_number) return std::nullopt;
        std::from_chars(digits.data(), digits.data() + digits.size(), numbers[count++]);
        if (digits.size() == text.size()) return numbers;
        text.remove_prefix(digits.size() + 1);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> time_limit_seconds(std::string_view text) {
    std::int64_t days = 0;
    const std::size_t dash = text.find('-');
    const bool has_days = dash != std::string_view::npos;
    std::size_t count = 0;
    if (has_days) {
        const auto number = numbers_of(text.substr(0, dash), count);
        if (!number || count != 1) return std::nullopt;
        days = number->front();
        text.remove_prefix(dash + 1);
    }
    const auto numbers = numbers_of(text, count);
    if (!numbers) return std::nullopt;
    // Behind days the first is hours, as of three; else minutes.
    const bool from_hours = has_days || count == 3;
    const auto& [first, second, third] = *numbers;
    const std::int64_t seconds =
        from_hours ? first * 3600 + second * 60 + third : first * 60 + second;
    if (days > kMaxSeconds / 86400 || seconds > kMaxSeconds) return std::nullopt;
    const std::int64_t all = days * 86400 + seconds;
    return all <= kMaxSeconds ? std::optional(all) : std::nullopt;
}

}  // namespace hpcai::slurm
