// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hpcai/base/process.hpp>

namespace hpcai {
namespace {

TEST(HostMemory, IsTheSmallestLimitOfTheGroupsOfTheProcess) {
    std::string name = (std::filesystem::temp_directory_path() / "hpcai500-XXXXXX").string();
    const std::filesystem::path root = mkdtemp(name.data());
    const auto put = [&](const std::string& file, const std::string& text) {
        std::filesystem::create_directories((root / file).parent_path());
        std::ofstream(root / file) << text << '\n';
    };
    const std::int64_t host = host_memory_bytes(root);
    EXPECT_GT(host, 1 << 20);
    put("proc/self/cgroup", "4:memory:/job/step\n3:cpu:/\n0::/user/job");
    put("sys/fs/cgroup/user/job/memory.max", "max");
    EXPECT_EQ(host_memory_bytes(root), host);
    put("sys/fs/cgroup/user/memory.max", "200000");
    EXPECT_EQ(host_memory_bytes(root), 200'000);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "100000");
    EXPECT_EQ(host_memory_bytes(root), 100'000);
    std::filesystem::remove_all(root);
}

TEST(Processes, ThisProcessIsRunning) {
    const ProcessId mine = this_process();
    EXPECT_EQ(mine.pid, getpid());
    EXPECT_EQ(state_of(mine), ProcessState::running);
}

TEST(Processes, OfAnotherPidNamespaceHaveAnUnknownState) {
    ProcessId other = this_process();
    ++other.pid_namespace;
    EXPECT_EQ(state_of(other), ProcessState::unknown);
}

TEST(Processes, WithAReusedPidAreDistinguishedByTheirStartTime) {
    ProcessId other = this_process();
    --other.start_ticks;
    EXPECT_EQ(state_of(other), ProcessState::ended);
}

TEST(Processes, ThatWereKilledHaveEndedBeforeAndAfterTheirParentAwaitsThem) {
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
        const ProcessId mine = this_process();
        [[maybe_unused]] const auto written = write(pipe_ends[1], &mine, sizeof(mine));
        pause();
        _exit(0);
    }
    ProcessId id;
    ASSERT_EQ(read(pipe_ends[0], &id, sizeof(id)), static_cast<ssize_t>(sizeof(id)));
    EXPECT_EQ(state_of(id), ProcessState::running);
    kill(child, SIGSTOP);
    siginfo_t stop{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &stop, WSTOPPED | WNOWAIT), 0);
    EXPECT_EQ(state_of(id), ProcessState::stopped);
    kill(child, SIGKILL);
    siginfo_t end{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(state_of(id), ProcessState::ended) << "a zombie";
    waitpid(child, nullptr, 0);
    EXPECT_EQ(state_of(id), ProcessState::ended);
    for (const int end_of_pipe : pipe_ends) close(end_of_pipe);
}

TEST(ProcessMemory, PeakIncludesFreedMemory) {
    constexpr std::size_t kBytes = std::size_t{192} << 20;
    const auto before = peak_resident_bytes();
    ASSERT_TRUE(before);
    EXPECT_GT(*before, 1 << 20) << "bytes, not kibibytes";
    std::vector<char>(kBytes, 1);  // written, so that it is resident
    const auto after = peak_resident_bytes();
    ASSERT_TRUE(after);
    EXPECT_GT(*after, static_cast<double>(kBytes));
    EXPECT_GE(*after, *before);
}

}  // namespace
}  // namespace hpcai
