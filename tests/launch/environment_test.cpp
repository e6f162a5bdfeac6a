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
class FindLauncher : public testing::Test {
protected:
    void add(const std::string& process, const std::string& parent,
             const std::vector<std::string>& arguments) const {
        fs::create_directory(folder_ / process);
        std::string text;
        for (const std::string& argument : arguments) text += argument + '\0';
        std::ofstream(folder_ / process / "cmdline", std::ios::binary) << text;
        std::ofstream(folder_ / process / "status") << "Name:\tPPid: 4\nPid:\t1\nPPid:\t" << parent;
    }
    std::string launcher_of(const std::vector<std::string>& command) const {
        add("self", "8", {"hpcai500", "run"});
        add("8", "1", command);
        return find_launcher(folder_.path());
    }

    storage::TemporaryFolder folder_;
};

TEST_F(FindLauncher, ReturnsTheOptionsOfMpirun) {
    EXPECT_EQ(launcher_of({"/opt/bin/mpirun", "--bind-to", "none", "-np", "2", "hpcai500", "run"}),
              "/opt/bin/mpirun --bind-to none -np 2");
    EXPECT_EQ(launcher_of({"mpirun", "--host", "a b", "numactl", "-l", "hpcai500", "run"}),
              "mpirun --host 'a b' numactl -l");
    EXPECT_EQ(launcher_of({"mpirun", "-x", "PATH", "--map-by", "slot:PE=2", "hpcai500", "run"}),
              "mpirun -x PATH --map-by slot:PE=2");
}

TEST_F(FindLauncher, LooksAboveTheProxyOfMpich) {
    add("self", "8", {"hpcai500", "run"});
    add("8", "7", {"hydra_pmi_proxy", "--rmk", "user"});
    add("7", "1", {"mpiexec", "-n", "4", "hpcai500", "run"});
    EXPECT_EQ(find_launcher(folder_.path()), "mpiexec -n 4");
}

TEST_F(FindLauncher, ReturnsNothingIfTheCommandCannotStartAnother) {
    EXPECT_EQ(launcher_of({"timeout", "60", "hpcai500", "run"}), "");
    EXPECT_EQ(launcher_of({"mpirun", "-np", "2", "run.sh"}), "");
    EXPECT_EQ(launcher_of({"mpirun", "-np", "1", "other", ":", "-np", "1", "hpcai500", "run"}), "");
    EXPECT_EQ(launcher_of({"mpirun", "-x", "TOKEN=secret", "hpcai500", "run"}), "");
    EXPECT_EQ(launcher_of({"mpirun", "env", "TOKEN=secret", "hpcai500", "run"}), "");
    EXPECT_EQ(launcher_of({"mpiexec", "-genv", "TOKEN", "secret", "hpcai500", "run"}), "");
}

}  // namespace
}  // namespace hpcai::launch
