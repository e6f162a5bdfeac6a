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
    std::string footer;           // below the help
    std::string version;          // what --version prints
    std::string default_command;  // to which options without a command belong
};

/// The program's commands, and the reader of the arguments that name one of them.
class CommandLine {
public:
    explicit CommandLine(const ProgramText& text);
    ~CommandLine();

    /// The program itself, to which commands are added. Valid as long as this object.
    [[nodiscard]] Command program();

    /// The action of the command that the `arguments`, those after the program's name, ask for.
    /// Nothing where they ask for help or the version, which is then written to `out`. Throws
    /// Error(usage) for arguments that no command takes, naming the nearest legal name, and for
    /// values that an option refuses.
    [[nodiscard]] Action parse(const std::vector<std::string>& arguments, std::ostream& out);

private:
    std::unique_ptr<CLI::App> app_;
    std::string default_command_;
    Action chosen_;
};

}  // namespace hpcai::cli
