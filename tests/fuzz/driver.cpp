// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where the compiler has none: mutates the files of a corpus blindly and
// hands them to the target, whose entry point is the same. Takes libFuzzer's -max_total_time=,
// -runs= (mutated inputs), -timeout=, -max_len=, -seed= and -artifact_prefix=, ignores its other
// options, and, given files or folders, runs those first: a file whose name begins with "refused"
// must be refused, any other must not. Ends with libFuzzer's line "Done N runs in S second(s)".
// Exit codes: 0, 1 for a finding, 70 for an input that took too long.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "outcome.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

// Data for callbacks without arguments: the current input and the place to store it.
const Input* running = nullptr;
std::string artifact_path;

void keep_artifact() {
    const int file = ::open(artifact_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || running == nullptr) return;
    const bool is_kept = ::write(file, running->data(), running->size()) >= 0;
    ::close(file);
    std::fprintf(stderr, "%s %s\n", is_kept ? "Test unit written to" : "cannot write",
                 artifact_path.c_str());
}

/// Only what a signal handler may call.
void say(const char* text) {
    const bool is_said = ::write(STDERR_FILENO, text, std::strlen(text)) >= 0;
    if (!is_said) ::_exit(1);
}

struct File {
    std::string path;
    Input bytes;
};

struct Settings {
    double seconds = std::numeric_limits<double>::infinity();
    long runs = std::numeric_limits<long>::max();
    unsigned timeout_seconds = 0;  // of one input; 0: none
    std::size_t longest = 65536;
    std::uint64_t seed = 1;
    std::vector<File> corpus;
};

Input read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Settings read_arguments(int count, char** arguments) {
    Settings settings;
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        const auto value = argument.substr(std::min(argument.find('=') + 1, argument.size()));
        if (argument.starts_with("-max_total_time=")) settings.seconds = std::stod(value);
        if (argument.starts_with("-runs=")) settings.runs = std::stol(value);
        if (argument.starts_with("-timeout=")) {
            settings.timeout_seconds = static_cast<unsigned>(std::stoul(value));
        }
        if (argument.starts_with("-max_len=")) settings.longest = std::stoul(value);
        if (argument.starts_with("-seed=")) settings.seed = std::stoull(value);
        if (argument.starts_with("-artifact_prefix=")) artifact_path = value + "crash";
        if (argument.starts_with("-")) continue;
        if (fs::is_directory(argument)) {
            for (const auto& entry : fs::directory_iterator(argument)) {
                settings.corpus.push_back({entry.path(), read_file(entry.path())});
            }
        } else {
            settings.corpus.push_back({argument, read_file(argument)});
        }
    }
    if (artifact_path.empty()) artifact_path = "crash";
    return settings;
}

class Mutator {
public:
    Mutator(const Settings& settings) : settings_(settings), random_(settings.seed) {}

    Input next() {
        Input input = any_of_corpus();
        for (std::size_t i = 1 + below(4); i > 0; --i) change(input);
        input.resize(std::min(input.size(), settings_.longest));
        return input;
    }

private:
    Input any_of_corpus() {
        if (settings_.corpus.empty()) return {};
        return settings_.corpus[below(settings_.corpus.size())].bytes;
    }

    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

    void change(Input& input) {
        const std::size_t at = below(input.size());
        const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t length = below(std::min<std::size_t>(input.size() - at, 16) + 1);
        const auto end = place + static_cast<std::ptrdiff_t>(length);
        switch (input.empty() ? 3 : below(7)) {
            case 0:
                input[at] ^= static_cast<std::uint8_t>(1u << below(8));
                break;
            case 1:
                input[at] = static_cast<std::uint8_t>(random_());
                break;
            case 2:
                input.erase(place, end);
                break;
            case 3:
                input.insert(place, static_cast<std::uint8_t>(random_()));
                break;
            case 4:
                input.resize(at);
                break;
            case 5:
                std::fill(place, end, below(2) == 0 ? std::uint8_t{0} : std::uint8_t{255});
                break;
            default: {
                const Input other = any_of_corpus();
                const std::size_t from = below(other.size());
                const std::size_t taken = below(std::min<std::size_t>(other.size() - from, 64) + 1);
                const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
                input.insert(place, begin, begin + static_cast<std::ptrdiff_t>(taken));
            }
        }
    }

    const Settings& settings_;
    std::mt19937_64 random_;
};

void run(const Input& input, unsigned timeout_seconds) {
    running = &input;
    hpcai::fuzz::readings() = {};
    ::alarm(timeout_seconds);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ::alarm(0);
}

/// Returns whether all readers of the target reject the input if its name begins with `refused`,
/// and accept it otherwise.
bool is_as_named(const std::string& path) {
    const hpcai::fuzz::Readings& readings = hpcai::fuzz::readings();
    const bool refused = readings.made > 0 && readings.refused == readings.made;
    if (refused == fs::path(path).filename().string().starts_with("refused")) return true;
    std::fprintf(stderr, "ERROR: corpus: %s is %s%s\n", path.c_str(),
                 refused ? "refused: " : "not refused", refused ? readings.refusal.c_str() : "");
    return false;
}

void set_handlers() {
    __sanitizer_set_death_callback(keep_artifact);
    // Failed expectations and uncaught exceptions; the sanitizer handles other signals.
    std::signal(SIGABRT, [](int) {
        keep_artifact();
        ::_exit(1);
    });
    std::signal(SIGALRM, [](int) {
        say("ERROR: timeout of one input\n");
        keep_artifact();
        ::_exit(70);
    });
}

}  // namespace

int main(int count, char** arguments) {
    const Settings settings = read_arguments(count, arguments);
    set_handlers();
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    bool is_sound = true;
    for (const File& file : settings.corpus) {
        run(file.bytes, settings.timeout_seconds);
        is_sound = is_as_named(file.path) && is_sound;
    }
    if (!is_sound) return 1;
    Mutator mutator(settings);
    long mutated = 0;
    for (; mutated < settings.runs && elapsed() < settings.seconds; ++mutated) {
        run(mutator.next(), settings.timeout_seconds);
    }
    std::fprintf(stderr, "Done %ld runs in %.0f second(s)\n", std::ssize(settings.corpus) + mutated,
                 elapsed());
}
