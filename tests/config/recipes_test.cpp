// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/config/reader.hpp>

namespace hpcai::config {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& name) {
    return read_file((fs::path(std::getenv("HPCAI500_SOURCE_DIR")) / name).string());
}

Config configured(const std::string& name, const std::vector<std::string>& settings = {}) {
    return parse(text_of("configs/" + name), name, settings);
}

/// The recipe of a batch size: its configuration, or the settings in its row of the documented
/// table.
Config lars_recipe(int batch_size) {
    const std::string file = "imagenet_lars_" + std::to_string(batch_size) + ".yaml";
    if (fs::exists(fs::path(std::getenv("HPCAI500_SOURCE_DIR")) / "configs" / file)) {
        return configured(file);
    }
    const std::string table = text_of("docs/CUSTOMIZATION.md");
    const std::size_t row = table.find("\n| " + std::to_string(batch_size) + " | `--set ");
    EXPECT_NE(row, std::string::npos) << batch_size;
    std::istringstream words(table.substr(row, table.find('`', table.find('`', row) + 1) - row));
    std::vector<std::string> settings;
    for (std::string word; words >> word;) {
        if (word.find('=') != std::string::npos) settings.push_back(word);
    }
    return configured("imagenet_lars_4096.yaml", settings);
}

/// The settings that a submission to MLPerf's closed division may choose for ResNet-50 with LARS.
struct LarsRecipe {
    int batch_size;
    double learning_rate;
    double warmup_epochs;
    double momentum;
    double weight_decay;
    int epochs;
};

/// The number of epochs is that of runs, or follows from the steps of decay. These are the steps of
/// the whole run if they are known or if runs converge at its end, else the steps after the
/// warm-up.
TEST(Recipes, OfMlperfsLarsAreThoseOfItsTable) {
    const std::vector<LarsRecipe> recipes{
        {1536, 7.2, 2, 0.9, 2e-4, 37},          {1632, 7.4, 2, 0.9, 5e-5, 37},
        {3200, 11, 2, 0.9, 5e-5, 37},           {3264, 10.5, 2, 0.9, 5e-5, 37},
        {4096, 10, 5, 0.9, 2e-4, 42},           {8192, 17, 5, 0.9, 2e-4, 44},
        {13056, 12.8, 9, 0.9, 2.5e-5, 48},      {32768, 21.2, 16, 0.94, 2.5e-5, 58},
        {40448, 19.4, 24, 0.95, 1e-4, 70},      {49152, 19.405, 24, 0.951807, 1e-4, 71},
        {65536, 24.699, 31, 0.951807, 1e-4, 89}};
    for (const LarsRecipe& recipe : recipes) {
        const Config config = lars_recipe(recipe.batch_size);
        const TrainingConfig& training = config.training;
        EXPECT_EQ(training.optimizer, Optimizer::lars);
        EXPECT_EQ(training.batch_size, recipe.batch_size);
        EXPECT_EQ(training.learning_rate, recipe.learning_rate);
        EXPECT_EQ(training.learning_rate_batch, recipe.batch_size) << "scaled";
        EXPECT_EQ(training.warmup_epochs, recipe.warmup_epochs);
        EXPECT_EQ(training.momentum, recipe.momentum);
        EXPECT_EQ(training.weight_decay, recipe.weight_decay);
        EXPECT_EQ(config.workload.epochs, recipe.epochs);
        EXPECT_EQ(training.trust_coefficient, 0.001);
        EXPECT_EQ(training.epsilon, 0);
        const bool is_nvidias = recipe.batch_size == 3200 || recipe.batch_size == 40448;
        EXPECT_EQ(training.momentum_correction, is_nvidias);
        EXPECT_EQ(training.schedule, Schedule::polynomial);
        EXPECT_EQ(training.schedule_power, 2);
        EXPECT_EQ(training.final_learning_rate, 1e-4);
        EXPECT_EQ(training.label_smoothing, 0.1);
        EXPECT_FALSE(training.weight_decay_on_norm_and_bias);
    }
}

TEST(Recipes, ForAFirstTrialSayHowToTrainOneEpoch) {
    for (const std::string name : {"quickstart", "extreme_weather_quickstart",
                                   "climate_segmentation_quickstart", "ucmerced", "bccd"}) {
        const std::string file = name + ".yaml";
        EXPECT_NE(text_of("configs/" + file).find("; 1 needs training.warmup_epochs: 0\n"),
                  std::string::npos)
            << file;
        EXPECT_NO_THROW(configured(file, {"workload.epochs=1", "training.warmup_epochs=0"}));
    }
}

TEST(Recipes, AreAllAccepted) {
    const fs::path folder = fs::path(std::getenv("HPCAI500_SOURCE_DIR")) / "configs";
    int count = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
        if (file.is_directory()) continue;
        const std::string name = file.path().filename().string();
        EXPECT_NO_THROW(configured(name)) << name;
        ++count;
    }
    EXPECT_GT(count, 11);
}

}  // namespace
}  // namespace hpcai::config
