// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <gtest/gtest.h>

#include <hpcai/launch/environment.hpp>
#include <hpcai/storage/file.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::launch {
namespace {

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

}  // namespace
}  // namespace hpcai::launch
