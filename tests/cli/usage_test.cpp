// SPDX-License-Identifier: Apache-2.0
#include <regex>
#include <sstream>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Program, ReturnsItsOwnCodeWhenTheReaderOfItsOutputHasEnded) {
    const TemporaryFolder folder;
    const std::string command = "{ sleep 0.3; '" + environment("HPCAI500_BINARY") +
                                "' config explain; echo $? >code; } | true";
    EXPECT_EQ(execute_in(folder.path(), {"bash", "-c", command}).exit_code, 0);
    EXPECT_EQ(text_of(folder / "code"), "0\n");
}

TEST(Program, EndsAtOnceWithCode130AfterCtrlC) {
    const TemporaryFolder folder;
    std::ofstream(folder / "config.yaml") << "bagging: {M: 1, P_degree: 1}\n";
    const std::string command =
        "timeout --preserve-status --kill-after 9 --signal INT 0.2 "
        "env --default-signal=INT '" +
        environment("HPCAI500_BINARY") + "' status . --watch";
    EXPECT_EQ(execute_in(folder.path(), {"bash", "-c", command}).exit_code, 130);
}

/// Returns the lines of a help page below "Examples:".
Words examples_of(const std::string& help) {
    const auto start = help.find("Examples:\n");
    if (start == std::string::npos) return {};
    std::istringstream lines(
        std::regex_replace(help.substr(start + 10), std::regex(R"( \\\n +)"), " "));
    Words examples;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) examples.push_back(line);
    }
    return examples;
}

Words matches(const std::string& text, const char* pattern) {
    const std::regex expression(pattern);
    return {std::sregex_token_iterator(text.begin(), text.end(), expression), {}};
}

std::string name_of(const Words& command) {
    std::string name = "hpcai500";
    for (const std::string& word : command) name += " " + word;
    return name;
}

class HelpPage : public ::testing::TestWithParam<Words> {};

TEST_P(HelpPage, HasTwoExamplesThatAreReal) {
    Words arguments = GetParam();
    arguments.push_back("--help");
    const Outcome page = run(arguments);
    EXPECT_EQ(page.exit_code, 0);
    EXPECT_EQ(page.error, "");
    EXPECT_NE(page.out.find("Usage: " + name_of(GetParam())), std::string::npos) << page.out;

    for (const std::string& line : matches(page.out, "[^\n]{81,}")) ADD_FAILURE() << line;

    const Words examples = examples_of(page.out);
    EXPECT_GE(examples.size(), 2U) << page.out;
    const bool has_subcommands = page.out.find("\nSubcommands:") != std::string::npos;
    const std::string options = page.out.substr(0, page.out.find("Examples:"));
    for (const std::string& example : examples) {
        const std::size_t begin = example.find(name_of(GetParam()));  // after the launcher
        ASSERT_NE(begin, std::string::npos) << example;
        for (const std::string& file : matches(example, "configs/[a-z_]+\\.yaml")) {
            EXPECT_TRUE(std::filesystem::exists(source(file))) << example;
        }
        if (has_subcommands) continue;
        for (const std::string& option : matches(example.substr(begin), "--[a-z-]+")) {
            EXPECT_NE(options.find(option + " "), std::string::npos) << option << " in " << example;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, HelpPage,
    ::testing::Values(
        Words{}, Words{"run"}, Words{"plan"}, Words{"flops"}, Words{"bench"}, Words{"roofline"},
        Words{"validate"}, Words{"export"}, Words{"table"}, Words{"rank"}, Words{"verify"},
        Words{"resume"}, Words{"score"}, Words{"compare"}, Words{"report"}, Words{"completion"},
        Words{"evaluate"}, Words{"energy"}, Words{"status"}, Words{"sbatch"}, Words{"doctor"},
        Words{"init"}, Words{"data"}, Words{"data", "generate"}, Words{"data", "check"},
        Words{"data", "stats"}, Words{"data", "index"}, Words{"data", "pack"},
        Words{"data", "transcode"}, Words{"data", "show"}, Words{"data", "generate", "photographs"},
        Words{"data", "generate", "climate"}, Words{"config"}, Words{"config", "print"},
        Words{"config", "explain"}, Words{"config", "schema"}));

TEST(HelpOfTheProgram, NamesEveryCommand) {
    const std::string help = run({"--help"}).out;
    for (const char* command :
         {"run", "plan", "flops", "bench", "roofline", "validate", "export", "table", "evaluate",
          "status", "sbatch", "doctor", "init", "data", "config"}) {
        EXPECT_TRUE(std::regex_search(help, std::regex(std::string("\n  ") + command + " +[A-Z]")))
            << command << " in\n"
            << help;
    }
}

TEST(Version, IsTheProjects) {
    const std::string lists = text_of(source("CMakeLists.txt"));
    std::smatch found;
    ASSERT_TRUE(std::regex_search(lists, found, std::regex(R"(VERSION (\d+\.\d+\.\d+))")));
    const std::string version = run({"--version"}).out;
    EXPECT_TRUE(version.starts_with("hpcai500 " + found[1].str() + "\n")) << version;
    for (const char* fact : {"\ngit_commit   ([0-9a-f]{40}|unknown)", "\ncompiler     .*[0-9]\\.",
                             "\nonednn       [0-9]+\\.[0-9]", "\nmpi          [A-Z]"}) {
        EXPECT_TRUE(std::regex_search(version, std::regex(fact))) << fact << version;
    }
    std::istringstream lines(version);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_EQ(run({"-V"}).out, version);
    EXPECT_EQ(run({"version"}).out, version);
}

TEST(Help, HasDotsOnlyAfterOptionsThatTakeSeveralValuesAtOnce) {
    const std::string page = run({"run", "--help"}).out;
    EXPECT_EQ(page.find("..."), std::string::npos) << page;
    EXPECT_NE(page.find("\n  --config FILE REQUIRED      YAML configuration; repeatable: later"),
              std::string::npos)
        << page;
    EXPECT_NE(run({"evaluate", "--help"}).out.find("--detections FILE ..."), std::string::npos);
    EXPECT_NE(run({"rank", "--help"}).out.find("DIR TEXT ... REQUIRED"), std::string::npos);
}

TEST(Help, IsAlsoAWord) {
    EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
    EXPECT_EQ(run({"help", "data", "check"}).out, run({"data", "check", "--help"}).out);
}

struct Misuse {
    Words arguments;
    std::string message;
    friend std::ostream& operator<<(std::ostream& out, const Misuse& misuse) {
        return out << name_of(misuse.arguments);
    }
};

class Misused : public ::testing::TestWithParam<Misuse> {};

TEST_P(Misused, IsRejectedWithTheNearestLegalName) {
    expect_refused(run(GetParam().arguments), 2, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Names, Misused,
    ::testing::Values(
        Misuse{{}, "expected a command: one of run, resume, score, plan,"},
        Misuse{{"rnu"}, "unknown command 'rnu'; did you mean 'run'?"},
        Misuse{{"frobnicate"},
               "unknown command 'frobnicate'; expected one of run, resume, score, plan,"},
        Misuse{{"--verison"}, "unknown option '--verison'; did you mean '--version'?"},
        Misuse{{"--cofig", "f"}, "unknown option '--cofig'; did you mean '--config'?"},
        Misuse{{"run", "--confg=f.yaml"},
               "run: unknown option '--confg'; did you mean '--config'?"},
        Misuse{{"plan", "--config", "f", "--rank-per-node", "8"},
               "plan: unknown option '--rank-per-node'; did you mean '--ranks-per-node'?"},
        Misuse{{"flops", "--jsn"}, "flops: unknown option '--jsn'; did you mean '--json'?"},
        Misuse{{"data"},
               "data: expected a command: one of generate, check, stats, index, pack, transcode, "
               "show"},
        Misuse{{"data", "chekc", "x"}, "data: unknown command 'chekc'; did you mean 'check'?"},
        Misuse{{"config", "prnt"}, "config: unknown command 'prnt'; did you mean 'print'?"},
        Misuse{{"config", "explain", "training.batchsize"}, "did you mean 'batch_size'?"},
        Misuse{{"config", "print", "plan"}, "config print: unknown argument 'plan'; see"},
        Misuse{{"run", "my set.yaml"},
               "unknown argument 'my set.yaml'; did you mean `--config 'my set.yaml'`?"},
        Misuse{{"init", "mine"}, "init: unknown argument 'mine'; did you mean `--data mine`?"},
        Misuse{{"run", "--config", "f", "epochs=3"},
               "unknown argument 'epochs=3'; did you mean `--set workload.epochs=3`?"},
        Misuse{{"run", "--config", "f", "--set", "training.batch_size", "16"},
               "unknown argument '16'; did you mean `--set training.batch_size=16`?"},
        Misuse{{"run", "--config", "f.yaml", "g.yaml"}, "did you mean `--config g.yaml`?"},
        Misuse{{"plan", "--config", "f", "run.seed=2"}, "did you mean `--set run.seed=2`?"},
        Misuse{{"plan", "--config", "f", "--seed"}, "did you mean `--set run.seed=...`?"},
        Misuse{{"run", "--config", "f", "--epochs", "3"},
               "unknown option '--epochs'; did you mean `--set workload.epochs=3`?"},
        Misuse{{"--batch-size=64"},
               "unknown option '--batch-size'; did you mean `--set training.batch_size=64`?"},
        Misuse{{"config", "print", "--set", "epochs=3"},
               "expected section.key=value, got 'epochs=3'; did you mean 'workload.epochs=...'?"},
        Misuse{{"export", "dir", "\x1b[31m"}, "unknown argument '\\x1b[31m'"}));

INSTANTIATE_TEST_SUITE_P(
    Values, Misused,
    ::testing::Values(
        Misuse{{"run"}, "run: --config is required; see `hpcai500 run --help`"},
        Misuse{{"--set", "run.seed=1"}, "run: --config is required"},
        Misuse{{"--config=no/such.yaml"},
               "'no/such.yaml': cannot be read: No such file or directory"},
        Misuse{{"plan", "--config=", "--ranks", "2"},
               "plan: --config: expected a non-empty string"},
        Misuse{{"plan", "--config", "f", "--ranks", "2", "--ranks", "3"}, "plan: --ranks: "},
        Misuse{{"plan", "--config", "f", "--ranks", "0"},
               "plan: --ranks: expected an integer from 1 to 10000000, got '0'"},
        Misuse{{"plan", "--config", "f", "--ranks", "0x10"}, "got '0x10'"},
        Misuse{{"plan", "--config", "f", "--ranks", "1e3"}, "got '1e3'"},
        Misuse{{"plan", "--config", "f", "--ranks", "99999999999999999999"}, "plan: --ranks: "},
        Misuse{{"plan", "--config", "f", "--ranks", "2", "--flops-per-rank", "nan"},
               "plan: --flops-per-rank: expected a number above 0, got 'nan'"},
        Misuse{{"plan", "--config", "f", "--sweep", "1..8"},
               "plan: --sweep: expected ranks=A..B, got '1..8'"},
        Misuse{{"plan", "--config", "f", "--sweep", "ranks=1.."}, "got 'ranks=1..'"},
        Misuse{{"plan", "--config", "f", "--sweep", "ranks=1..2..3"}, "got 'ranks=1..2..3'"},
        Misuse{{"evaluate", "--labels", "f", "--predictions", "a", ""},
               "evaluate: --predictions: expected a non-empty string"},
        Misuse{{"bench", "--config", "f", "--steps", "-1"}, "bench: --steps: "},
        Misuse{{"export", "dir", "--group", "0"}, "export: --output is required"},
        Misuse{{"export", "dir", "--output", "w.pt"},
               "export: --output: expected a file *.safetensors, got 'w.pt'"},
        Misuse{{"config", "print", "--set"}, "config print: --set: "},
        Misuse{{"config", "explain", "run.seed", "--markdown"}, "excludes"},
        Misuse{{"data", "generate", "pictures", "--output", "x"},
               "data generate: unknown command 'pictures'; expected one of mini, "
               "photographs, climate"}));

TEST(Misuse, IsPrintedOnceForAllRanks) {
    expect_refused(run({"rnu"}, {"OMPI_COMM_WORLD_RANK=0"}), 2, "'rnu'");
    const Outcome another_rank = run({"rnu"}, {"OMPI_COMM_WORLD_RANK=3"});
    EXPECT_EQ(another_rank.exit_code, 2);
    EXPECT_EQ(another_rank.error, "");
}

}  // namespace
}  // namespace hpcai::cli
