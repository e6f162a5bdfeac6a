// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {

namespace {

class CompletedRequest final : public Request {
public:
    bool test() override { return true; }
    void wait() override {}
};

class SelfCommunicator final : public Communicator {
public:
    int rank() const override { return 0; }
    int size() const override { return 1; }

    void all_reduce_sum(std::span<float>) override {}
    void all_reduce_sum(std::span<double>) override {}
    void all_reduce_sum(std::span<std::int64_t>) override {}
    void all_reduce_max(std::span<double>) override {}

    void reduce_sum(std::span<float>, int root) override { check_rank(root); }
    void broadcast(std::span<std::byte>, int root) override { check_rank(root); }

    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        ensure(mine.size() == all.size(), "all_gather: {} bytes of one rank into {} bytes",
               mine.size(), all.size());
        std::ranges::copy(mine, all.begin());
    }

    void send(std::span<const std::byte>, int destination, int) override {
        ensure(false, "send to rank {} of a communicator of one", destination);
    }
    void receive(std::span<std::byte>, int source, int) override {
        ensure(false, "receive from rank {} of a communicator of one", source);
    }

    std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                            std::span<const Incoming> receives, int) override {
        ensure(sends.empty() && receives.empty(), "messages in a communicator of one");
        return std::make_unique<CompletedRequest>();
    }
    void wait_until(const std::function<bool()>& is_done) override {
        while (!is_done()) {
        }
    }

    void barrier() override {}

    std::unique_ptr<Communicator> split(int, int) override { return make_self_communicator(); }

private:
    static void check_rank(int root) {
        ensure(root == 0, "root {} of a communicator of one", root);
    }
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
    return std::make_unique<SelfCommunicator>();
}

}  // namespace hpcai::comm
