// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <sstream>

#include <hpcai/base/units.hpp>
#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {
namespace {

std::string bytes_text(double bytes) {
    return format_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 1.8e19)));
}

std::int64_t whole(double count) {
    return static_cast<std::int64_t>(std::clamp(count, 0.0, 9e18));
}

std::string count_text(double count) {
    return format_count(whole(count));
}

std::string counted(double count, std::string_view noun) {
    return hpcai::counted(whole(count), noun);
}

template <typename Format>
std::string text_of(const Quantity& quantity, Format format) {
    return quantity.value ? format(*quantity.value) : "unknown: " + quantity.reason;
}

std::string flops_text(double flops) {
    return format_si(flops, "FLOPs");
}

/// Sections of lines "  name      value".
class Page {
public:
    void title(const std::string& text) { text_ += (text_.empty() ? "" : "\n") + text + "\n"; }
    void line(const std::string& name, const std::string& value) {
        text_ += fmt::format("  {:<16}{}", name, value);
        text_.erase(text_.find_last_not_of(' ') + 1);
        text_ += '\n';
    }
    void line(const std::string& text) { text_ += "  " + text + "\n"; }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

/// Which ranks of a group hold which slice of the model, where they are few enough to be read.
void print_slices(Page& page, const plan::Layout& layout) {
    constexpr int kMaxRanks = 16;
    if (layout.slices() == 1 || layout.degree > kMaxRanks) return;
    for (int stage = 0; stage < layout.stages; ++stage) {
        for (int replica = 0; replica < layout.data_degree(); ++replica) {
            const int first = layout.group_rank_of(stage, replica);
            const std::string parts = layout.parts == 1
                                          ? fmt::format("{}", first)
                                          : fmt::format("{} to {}, parts 0 to {}", first,
                                                        first + layout.parts - 1, layout.parts - 1);
            page.line(stage + replica == 0 ? "group_rank" : "",
                      fmt::format("stage {}, replica {}: {}", stage, replica, parts));
        }
    }
}

void print_layout(Page& page, const Estimate& estimate) {
    const plan::LayoutSummary& summary = estimate.layout;
    const plan::Layout& layout = summary.layout;
    page.title("layout");
    page.line("eq. 5", fmt::format("{} = M {} x P_degree {}", counted(layout.ranks, "rank"),
                                   layout.groups, layout.degree));
    std::istringstream lines(estimate.group_map);
    std::string name = "map";
    for (std::string text; std::getline(lines, text); name.clear()) page.line(name, text);
    page.line("within a node",
              fmt::format("{} of {}; the widest spans {}", summary.groups_on_one_node,
                          counted(layout.groups, "group"),
                          counted(summary.nodes_of_widest_group, "node")));
    print_slices(page, layout);
}

void print_data(Page& page, const Estimate& estimate) {
    const DataEstimate& data = estimate.data;
    page.title("data of one model");
    page.line("data set", text_of(data.samples, [&](double samples) {
                  return fmt::format("{} ({})", counted(samples, "sample"), data.source);
              }));
    if (!data.samples.value) return;
    page.line(
        "an epoch",
        fmt::format("{}, {} of {} ({} a rank)", counted(*data.samples_per_epoch.value, "sample"),
                    counted(*data.steps_per_epoch.value, "step"), estimate.batch_size,
                    estimate.batch_size / estimate.layout.layout.data_degree()));
    page.line("the run", fmt::format("{}, {}", counted(estimate.epochs, "epoch"),
                                     counted(*data.steps_per_run.value, "step")));
}

void print_work(Page& page, const Estimate& estimate) {
    const WorkEstimate& work = estimate.work;
    const int groups = estimate.layout.layout.groups;
    const auto both = [&](double flops) {
        return fmt::format("{:<16}ensemble {}", flops_text(flops), flops_text(groups * flops));
    };
    page.title(fmt::format("work of one model, by {}", work.convention));
    for (const LedgerRecord& ledger : work.ledgers) {
        page.line(ledger.convention == work.convention ? "a sample" : "",
                  fmt::format("{:<16}forward {}, by {}",
                              flops_text(static_cast<double>(ledger.training_per_sample)),
                              flops_text(static_cast<double>(ledger.forward_per_sample)),
                              ledger.convention));
    }
    page.line("a step (APC)", both(work.step));
    page.line("an epoch", text_of(work.epoch, both));
    page.line("the run", text_of(work.run, both));
}

void print_pipeline(Page& page, const Estimate& estimate) {
    const PipelineEstimate& pipeline = estimate.pipeline;
    const plan::Layout& layout = estimate.layout.layout;
    if (layout.slices() == 1 && layout.micro_batches == 1) return;
    const std::string samples =
        fmt::format("{} of {}", counted(layout.micro_batches, "micro-batch"),
                    counted(pipeline.samples, "sample"));
    if (layout.slices() == 1) {
        page.title(samples + ", one after the other");
        return;
    }
    page.title(layout.stages == 1
                   ? fmt::format("parts of one model, {}", samples)
                   : fmt::format("stages of one model, {}, {}", samples, pipeline.schedule));
    for (std::size_t index = 0; index < pipeline.stages.size(); ++index) {
        const StageEstimate& stage = pipeline.stages[index];
        page.line(
            fmt::format("stage {}", index),
            fmt::format("{} from {}, {} a sample, {} parameters, holds {}, sends {}",
                        counted(stage.nodes, "node"), stage.first_node, flops_text(stage.flops),
                        count_text(static_cast<double>(stage.parameters)), stage.in_flight,
                        bytes_text(stage.boundary_bytes)));
    }
    page.line("largest stage",
              fmt::format("{:.3f} of the work, of {}{}", pipeline.largest_share,
                          counted(layout.stages, "stage"),
                          layout.parts == 1 ? "" : " x " + counted(layout.parts, "part")));
    if (layout.parts > 1) {
        page.line("parts", fmt::format("{} of each layer, {} a step, by the rank that sends most",
                                       layout.parts, bytes_text(pipeline.part_bytes)));
    }
    if (layout.stages == 1) return;
    page.line("bubble",
              fmt::format("{:.3f} of a step, where stages take as long", pipeline.bubble_fraction));
    page.line("messages", fmt::format("{} a step, by the rank that sends most",
                                      bytes_text(pipeline.message_bytes)));
}

void print_memory(Page& page, const Estimate& estimate) {
    const MemoryEstimate& memory = estimate.memory;
    const int ranks = estimate.layout.ranks_of_fullest_node;
    const auto line = [&](const char* name, double bytes, const std::string& meaning) {
        page.line(name, fmt::format("{:<12}{}", bytes_text(bytes), meaning));
    };
    const bool is_int8 = memory.precision == "int8";
    const std::string values = is_int8 ? "fp32" : memory.precision;
    page.title("memory of one rank, without library scratch");
    line("parameters", memory.parameters, "fp32");
    line("gradients", memory.gradients, "fp32");
    line("optimizer state", memory.optimizer_state, "fp32");
    line("statistics", memory.statistics, "fp32, running means and variances");
    line("working copies", memory.working_copies,
         memory.precision + (is_int8 ? " or fp32" : "") +
             ", filters and weights for forward and for backward");
    line("activations", memory.activations,
         values + ", what the backward pass reads; gradients under way come on top");
    line("input", memory.input, "prefetched batches, cache of decoded pictures");
    if (memory.exchange > 0) {
        line("exchange", memory.exchange, "messages on their way; with int8 also residuals");
    }
    if (memory.program > 0) line("program", memory.program, "code, libraries, MPI");
    line("evaluation", memory.evaluation,
         values + ", the network that predicts, " +
             (memory.evaluates_between ? "beside what trains" : "after training"));
    line("total", memory.total(),
         memory.evaluates_between ? "training and evaluation"
                                  : "the larger of training and evaluation");
    line("fullest node", ranks * memory.total(), counted(ranks, "rank"));
}

void print_staging(Page& page, const Estimate& estimate) {
    const StagingEstimate& staging = estimate.staging;
    if (staging.scope == "none") return;
    page.title("staging to the node that needs most, training samples");
    page.line("samples", text_of(staging.fullest_node_samples, count_text));
    page.line("bytes", text_of(staging.fullest_node_bytes, bytes_text));
}

/// Of sums; what stages and parts send one another stands with these.
void print_traffic(Page& page, const Estimate& estimate) {
    const TrafficEstimate& traffic = estimate.traffic;
    page.title(traffic.statistics_ranks > 1
                   ? "traffic of one rank in sums of gradients and BatchNorm statistics"
                   : "traffic of one rank in sums of gradients");
    if (estimate.layout.layout.data_degree() == 1) {
        page.line("sums", "none, as parallel.data_degree is 1");
        return;
    }
    page.line("payload", fmt::format("{} a step, fp32", bytes_text(traffic.gradient_bytes)));
    if (traffic.statistics_ranks > 1) {
        page.line("statistics",
                  fmt::format("{} a step, fp64, over {}", bytes_text(traffic.statistics_bytes),
                              counted(traffic.statistics_ranks, "rank")));
    }
    page.line("sent a step",
              fmt::format("{:<12}{} in {}, by the rank that sends most",
                          bytes_text(traffic.per_step), traffic.algorithm, traffic.format));
    page.line("between nodes", text_of(traffic.between_nodes, [](double bytes) {
                  return fmt::format("{:<12}of that, by the rank that sends most there",
                                     bytes_text(bytes));
              }));
    page.line("out of a node", text_of(traffic.out_of_node, [](double bytes) {
                  return fmt::format("{:<12}a step, by its ranks of one group together",
                                     bytes_text(bytes));
              }));
    page.line("sent in the run", text_of(traffic.per_run, bytes_text));
}

void print_costs(Page& page, const Estimate& estimate) {
    const TimeEstimate& time = estimate.time;
    page.title(time.source.empty() ? "time" : "time, " + time.source);
    if (time.communication_seconds.value) {
        page.line("computation", text_of(time.compute_seconds, format_seconds));
        page.line("communication", fmt::format("{} of a step, {} of that exposed",
                                               format_seconds(*time.communication_seconds.value),
                                               text_of(time.exposed_seconds, format_seconds)));
    }
    page.line("a step", text_of(estimate.time.step_seconds, format_seconds));
    page.line("an epoch", text_of(estimate.time.epoch_seconds, format_seconds));
    page.line("the run", text_of(estimate.time.run_seconds, format_seconds));
    page.title("energy of all ranks");
    page.line("the run", text_of(estimate.joules, [](double joules) {
                  return fmt::format("{} ({:.3g} kWh)", format_si(joules, "J"), joules / 3.6e6);
              }));
}

}  // namespace

std::string to_text(const Estimate& estimate) {
    Page page;
    page.title(fmt::format("plan of {}: an estimate, nothing was run", estimate.model));
    print_layout(page, estimate);
    print_data(page, estimate);
    print_work(page, estimate);
    print_pipeline(page, estimate);
    print_memory(page, estimate);
    print_staging(page, estimate);
    print_traffic(page, estimate);
    print_costs(page, estimate);
    if (!estimate.assumptions.empty()) page.title("assumed");
    for (const std::string& assumption : estimate.assumptions) page.line(assumption);
    return page.take();
}

}  // namespace hpcai::prediction
