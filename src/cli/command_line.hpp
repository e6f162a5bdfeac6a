// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "command.hpp"

namespace hpcai::cli {

struct ProgramText {
    std::string name;
    std::string summary;
    std::string footer;           // at the end of the help
    std::string version;          // printed by --version
    std::string default_command;  // receives options without a command
};

/// The program's commands and the parser of the command line.
class CommandLine {
public:
    explicit CommandLine(const ProgramText& text);
    ~CommandLine();

    /// The program itself, to which commands are added. Valid while this object exists.
    [[nodiscard]] Command program();

    /// Returns the action of the command in `arguments`, which follow the program's name. Empty if
    /// they request help or the version, which is then written to `out`. Throws Error(usage) for
    /// unknown arguments, with the nearest legal name, and for illegal values.
    [[nodiscard]] Action parse(const std::vector<std::string>& arguments, std::ostream& out);

    /// Returns what may replace the last of `words`, which follow the program's name: commands,
    /// options, choices, machines, or keys and their choices. Empty where a file is expected.
    [[nodiscard]] std::vector<std::string> completions(const std::vector<std::string>& words) const;

private:
    std::unique_ptr<CLI::App> app_;
    std::string default_command_;
    Action chosen_;
};

}  // namespace hpcai::cli
