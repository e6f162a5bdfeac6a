// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/launch/environment.hpp>
#include <hpcai/storage/file.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::launch {
namespace {

namespace fs = std::filesystem;

TEST(PreloadedLibraries, AreThoseOfTheEnvironmentAndOfTheSystem) {
    const char* variable = std::getenv("LD_PRELOAD");
    const std::string before = variable == nullptr ? "" : variable;
    setenv("LD_PRELOAD", "libfaketime.so.1", 1);
    EXPECT_TRUE(preloaded_libraries().starts_with("libfaketime.so.1"));
    unsetenv("LD_PRELOAD");
    EXPECT_EQ(preloaded_libraries().find("libfaketime"), std::string::npos);
    if (!before.empty()) setenv("LD_PRELOAD", before.c_str(), 1);
}

TEST(PreloadedLibraries, AreNotThoseInComments) {
    const storage::TemporaryFolder folder;
    storage::write_file_durably(folder / "preload", "# a.so\nb.so  c.so # d.so\n\n");
    EXPECT_TRUE(preloaded_libraries(folder / "preload").ends_with("b.so c.so"));
    storage::write_file_durably(folder / "preload", "# a.so\n");
    EXPECT_EQ(preloaded_libraries(folder / "preload").find("a.so"), std::string::npos);
}

/// A folder like /proc, in which the launcher usually has process number 8.
class LauncherOptions : public testing::Test {
protected:
    void add(const std::string& process, const std::string& parent,
             const std::vector<std::string>& arguments) const {
        fs::create_directory(folder_ / process);
        std::string text;
        for (const std::string& argument : arguments) text += argument + '\0';
        std::ofstream(folder_ / process / "cmdline", std::ios::binary) << text;
        std::ofstream(folder_ / process / "status") << "Name:\tPPid: 4\nPid:\t1\nPPid:\t" << parent;
    }
    std::string options_of(const std::vector<std::string>& command) const {
        add("self", "8", {"hpcai500", "run"});
        add("8", "1", command);
        return launcher_options(folder_.path());
    }

    storage::TemporaryFolder folder_;
};

TEST_F(LauncherOptions, AreThoseThatPlaceRanks) {
    EXPECT_EQ(options_of({"/opt/bin/mpirun", "--bind-to", "none", "-np", "2", "hpcai500", "run"}),
              "--bind-to none");
    EXPECT_EQ(options_of({"mpirun", "-map-by", "slot:PE=2", "--oversubscribe", "--rank-by", "core",
                          "--allow-run-as-root", "run.sh"}),
              "-map-by slot:PE=2 --oversubscribe --rank-by core --allow-run-as-root");
    EXPECT_EQ(options_of({"mpirun", "--hostfile", "hosts", "numactl", "-l", "hpcai500"}), "");
    EXPECT_EQ(options_of({"timeout", "--bind-to", "none", "hpcai500", "run"}), "");
}

TEST_F(LauncherOptions, AreFoundAboveTheProxyOfMpich) {
    add("self", "8", {"hpcai500", "run"});
    add("8", "7", {"hydra_pmi_proxy", "--rmk", "user"});
    add("7", "1", {"mpiexec.hydra", "-bind-to", "core", "-n", "4", "hpcai500", "run"});
    EXPECT_EQ(launcher_options(folder_.path()), "-bind-to core");
}

TEST_F(LauncherOptions, HaveNoSecrets) {
    for (const std::vector<std::string>& secret : {
             std::vector<std::string>{"-x", "TOKEN=secret"},
             {"-genv", "TOKEN", "secret"},
             {"--env=TOKEN=secret"},
             {"-eTOKEN=secret"},
             {"--mca", "mca_base_env_list", "TOKEN=secret"},
             {"--bind-to=secret"},
             {"--map-by", "/home/secret"},
             {"env", "TOKEN=secret"},
             {"bash", "-c", "TOKEN=secret --bind-to secret hpcai500"},
         }) {
        std::vector<std::string> command{"mpirun", "--bind-to", "none"};
        command.insert(command.end(), secret.begin(), secret.end());
        EXPECT_EQ(options_of(command), "--bind-to none") << secret.front();
    }
}

}  // namespace
}  // namespace hpcai::launch
