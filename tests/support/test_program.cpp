// SPDX-License-Identifier: Apache-2.0
#include "test_program.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hpcai::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaximumCommands = 20;

fs::path this_program() {
    return fs::read_symlink("/proc/self/exe");
}

class CommandPrinter final : public testing::EmptyTestEventListener {
public:
    explicit CommandPrinter(std::string launcher) : launcher_(std::move(launcher)) {}

    void OnTestProgramEnd(const testing::UnitTest& tests) override {
        if (tests.Passed()) return;
        std::cout << "\nTo run each failed test alone:\n";
        std::size_t printed = 0;
        for (int suite = 0; suite < tests.total_test_suite_count(); ++suite) {
            const testing::TestSuite& group = *tests.GetTestSuite(suite);
            if (group.ad_hoc_test_result().Failed()) print(group.name(), "*");  // its set-up failed
            for (int index = 0; index < group.total_test_count(); ++index) {
                const testing::TestInfo& test = *group.GetTestInfo(index);
                if (!test.result()->Failed() || ++printed > kMaximumCommands) continue;
                print(test.test_suite_name(), test.name());
            }
        }
        if (printed > kMaximumCommands) {
            std::cout << "  and " << printed - kMaximumCommands << " more\n";
        }
        std::cout << std::flush;
    }

private:
    void print(const char* suite, const char* test) const {
        std::cout << "  " << launcher_ << this_program().string() << " --gtest_filter='" << suite
                  << '.' << test << "'\n";
    }

    std::string launcher_;
};

}  // namespace

void complete_environment(char** argv) {
    std::ifstream file(this_program().parent_path() / "test_environment");
    bool is_changed = false;
    for (std::string line; std::getline(file, line);) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos) continue;
        const std::string name = line.substr(0, equals);
        const std::string value = line.substr(equals + 1);
        const char* now = std::getenv(name.c_str());
        // HPCAI500_ variables may be those of another build; others are the user's choice.
        const bool is_of_build = name.starts_with("HPCAI500_") && name != "HPCAI500_MPIRUN";
        if (now != nullptr && (!is_of_build || now == value)) continue;
        is_changed |= setenv(name.c_str(), value.c_str(), 1) == 0;
    }
    if (!is_changed) return;
    execv(this_program().c_str(), argv);
    std::cerr << argv[0] << ": cannot be started again\n";
    std::exit(EXIT_FAILURE);
}

int run_all_tests() {
    const int code = RUN_ALL_TESTS();
    const std::string filter = testing::GTEST_FLAG(filter);
    if (filter == "*" || testing::UnitTest::GetInstance()->test_to_run_count() > 0) return code;
    std::cout << "FAILED: no test matches the filter '" << filter
              << "'; --gtest_list_tests lists all\n";
    return EXIT_FAILURE;
}

void print_commands_of_failures(const std::string& launcher) {
    testing::UnitTest::GetInstance()->listeners().Append(new CommandPrinter(launcher));
}

}  // namespace hpcai::tests
