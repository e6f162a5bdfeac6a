// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/temporary_folder.hpp"

namespace hpcai::cli {

using storage::TemporaryFolder;

inline std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set; see ctest");
    return value;
}

inline std::string source(const std::string& path) {
    return environment("HPCAI500_SOURCE_DIR") + "/" + path;
}

/// The outcome of one execution of the program.
struct Outcome {
    int exit_code = -1;  // 128 + n after signal n
    std::string out;
    std::string error;
};

/// Returns whether a launcher, or a job around it, sets the variable.
inline bool is_of_launcher(std::string_view variable) {
    constexpr std::array<std::string_view, 4> kBegins{"SLURM_", "PMI_", "PMIX_RANK",
                                                      "OMPI_COMM_WORLD_"};
    return std::ranges::any_of(kBegins,
                               [&](std::string_view begin) { return variable.starts_with(begin); });
}

/// Returns the names of the launchers' variables in this process.
inline std::vector<std::string> variables_of_launchers() {
    std::vector<std::string> names;
    for (char** one = environ; *one != nullptr; ++one) {
        const std::string_view variable(*one);
        if (is_of_launcher(variable)) names.emplace_back(variable.substr(0, variable.find('=')));
    }
    return names;
}

/// Runs `words`, a program and its arguments, in `folder`, as a shell would. Removes variables that
/// a launcher around the test may have set. `variables` are "NAME=value".
inline Outcome execute_in(const std::filesystem::path& folder, std::vector<std::string> words,
                          const std::vector<std::string>& variables = {}) {
    const TemporaryFolder streams;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        for (const std::string& name : variables_of_launchers()) unsetenv(name.c_str());
        for (const std::string& variable : variables) {
            const auto equals = variable.find('=');
            setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
        constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
        const bool ready = dup2(open("/dev/null", O_RDONLY), 0) >= 0 &&
                           dup2(open((streams / "out").c_str(), kWrite, 0600), 1) >= 0 &&
                           dup2(open((streams / "error").c_str(), kWrite, 0600), 2) >= 0 &&
                           chdir(folder.c_str()) == 0;
        if (ready) execvp(argv.front(), argv.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) throw std::runtime_error("fork, waitpid");
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            text_of(streams / "out"), text_of(streams / "error")};
}

/// Runs the program under test like execute_in().
inline Outcome run_in(const std::filesystem::path& folder, std::vector<std::string> arguments,
                      const std::vector<std::string>& variables = {}) {
    arguments.insert(arguments.begin(), environment("HPCAI500_BINARY"));
    return execute_in(folder, std::move(arguments), variables);
}

inline Outcome run(std::vector<std::string> arguments,
                   const std::vector<std::string>& variables = {}) {
    return run_in(std::filesystem::temp_directory_path(), std::move(arguments), variables);
}

/// Expects the exit code, one line of error that begins with the program's name and contains
/// `part`, and no result.
inline void expect_refused(const Outcome& outcome, int exit_code, const std::string& part) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.error;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.error.starts_with("hpcai500: ")) << outcome.error;
    EXPECT_EQ(outcome.error.find('\n'), outcome.error.size() - 1) << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
}

}  // namespace hpcai::cli
