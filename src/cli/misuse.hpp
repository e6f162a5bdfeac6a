// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <hpcai/base/error.hpp>

namespace hpcai::cli {

/// What options without a command belong to.
inline constexpr const char* kDefaultCommand = "run";

/// True for an option of the default command, with or without "=value", that is none of the
/// program itself.
bool is_option_of_default_command(const CLI::App& program, const std::string& argument);

/// The command furthest to the right among those given.
const CLI::App& deepest_command(const CLI::App& program);

/// Throws Error(usage) for the first argument that no command took, naming the nearest option or
/// command, and for a command that lacks its subcommand; returns when there is nothing of that.
void require_known_arguments(const CLI::App& program);

/// What else the command-line library found wrong, as an error of ours.
Error misuse(const CLI::App& program, const CLI::ParseError& error);

}  // namespace hpcai::cli
