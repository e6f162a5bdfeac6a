// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {
namespace {

std::string bytes_text(double bytes) {
    return format_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 1.8e19)));
}

std::int64_t to_integer(double count) {
    return static_cast<std::int64_t>(std::clamp(count, 0.0, 9e18));
}

std::string count_text(double count) {
    return format_count(to_integer(count));
}

std::string counted(double count, std::string_view noun) {
    return hpcai::counted(to_integer(count), noun);
}

template <typename Format>
std::string text_of(const Quantity& quantity, Format format) {
    return quantity.value ? format(*quantity.value) : "unknown: " + quantity.reason;
}

std::string flops_text(double flops) {
    return format_si(flops, "FLOPs");
}

int count_partitions(const PlanParallelRecord& parallel) {
    return parallel.pipeline_degree * parallel.model_degree;
}

class Page {
public:
    void title(const std::string& text) {
        text_ += (text_.empty() ? "" : "\n") + wrap(text, 2) + "\n";
    }
    void line(const std::string& name, const std::string& value) {
        text_ += wrap(fmt::format("  {:<16}{}", name, value), 30) + "\n";
    }
    template <typename... Arguments>
    void print(const std::string& name, fmt::format_string<Arguments...> format,
               Arguments&&... arguments) {
        line(name, fmt::format(format, std::forward<Arguments>(arguments)...));
    }
    void line(const std::string& text) { text_ += wrap("  " + text, 4) + "\n"; }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

void print_shards(Page& page, const PlanRecord& plan) {
    constexpr int kMaxRanks = 16;
    const PlanParallelRecord& parallel = plan.parallel;
    if (count_partitions(parallel) == 1 || plan.layout.degree > kMaxRanks) return;
    int first = 0;
    for (int stage = 0; stage < parallel.pipeline_degree; ++stage) {
        for (int replica = 0; replica < parallel.data_degree; ++replica) {
            const int last = parallel.model_degree - 1;
            const std::string ranks =
                last == 0 ? fmt::format("{}", first)
                          : fmt::format("{} to {}, shards 0 to {}", first, first + last, last);
            first += parallel.model_degree;
            page.print(stage + replica == 0 ? "group_rank" : "", "stage {}, replica {}: {}", stage,
                       replica, ranks);
        }
    }
}

void print_layout(Page& page, const PlanRecord& plan) {
    const PlanLayoutRecord& layout = plan.layout;
    page.title("layout");
    page.print("eq. 5", "{} = M {} x P_degree {}", counted(layout.ranks, "rank"), layout.groups,
               layout.degree);
    for (const std::string& line : layout.map)
        page.line(&line == &layout.map.front() ? "map" : "", line);
    page.print("within a node", "{} of {}; the widest spans {}", layout.groups_on_one_node,
               counted(layout.groups, "group"), counted(layout.nodes_of_widest_group, "node"));
    print_shards(page, plan);
}

void print_data(Page& page, const PlanRecord& plan) {
    const PlanDataRecord& data = plan.data;
    page.title("data of one model");
    page.line("data set", text_of(data.samples, [&](double samples) {
                  return fmt::format("{} ({})", counted(samples, "sample"), data.source);
              }));
    if (!data.samples.value) return;
    page.print("epoch", "{}, {} of {} ({} per rank)",
               counted(*data.samples_per_epoch.value, "sample"),
               counted(*data.steps_per_epoch.value, "step"), plan.batch_size,
               plan.batch_size / plan.parallel.data_degree);
    page.print("run", "{}, {}", counted(plan.epochs, "epoch"),
               counted(*data.steps_per_run.value, "step"));
}

void print_work(Page& page, const PlanRecord& plan) {
    const PlanWorkRecord& work = plan.work;
    const int groups = plan.layout.groups;
    const auto both = [&](double flops) {
        return fmt::format("{:<16}ensemble {}", flops_text(flops), flops_text(groups * flops));
    };
    page.title(fmt::format("work of one model, by {}", work.convention));
    for (const LedgerRecord& ledger : work.ledgers) {
        page.print(ledger.convention == work.convention ? "sample" : "", "{:<16}forward {}, by {}",
                   flops_text(static_cast<double>(ledger.training_per_sample)),
                   flops_text(static_cast<double>(ledger.forward_per_sample)), ledger.convention);
    }
    page.line("step (APC)", both(work.model_flops.step));
    page.line("epoch", text_of(work.model_flops.epoch, both));
    page.line("run", text_of(work.model_flops.run, both));
}

void print_pipeline(Page& page, const PlanRecord& plan) {
    const PlanParallelRecord& parallel = plan.parallel;
    if (count_partitions(parallel) == 1 && parallel.micro_batches == 1) return;
    const std::string samples =
        fmt::format("{} of {}", counted(parallel.micro_batches, "micro-batch"),
                    counted(parallel.micro_batch_samples, "sample"));
    if (count_partitions(parallel) == 1) {
        page.title(samples + ", one after the other");
        return;
    }
    page.title(parallel.pipeline_degree == 1
                   ? fmt::format("shards of one model, {}", samples)
                   : fmt::format("stages of one model, {}, {}", samples, parallel.schedule));
    for (std::size_t index = 0; index < parallel.stages.size(); ++index) {
        const PlanStageRecord& stage = parallel.stages[index];
        page.print(fmt::format("stage {}", index),
                   "{} from {}, {} per sample, {} parameters, {} in flight, each sends {}",
                   counted(stage.nodes, "operation"), stage.first_node,
                   flops_text(stage.flops_per_sample),
                   count_text(static_cast<double>(stage.parameters)),
                   counted(stage.in_flight, "micro-batch"), bytes_text(stage.boundary_bytes));
    }
    page.print("largest stage", "{:.3f} of the work; {}{}", parallel.largest_stage_share.value,
               counted(parallel.pipeline_degree, "stage"),
               parallel.model_degree == 1 ? "" : " x " + counted(parallel.model_degree, "shard"));
    if (parallel.model_degree > 1) {
        page.print("shards", "{} of each layer, {} per step, by the rank that sends the most",
                   parallel.model_degree, bytes_text(parallel.shard_bytes_per_step));
    }
    if (parallel.pipeline_degree == 1) return;
    page.print("bubble", "{:.3f} of a step, for stages of equal duration",
               parallel.bubble_fraction.value);
    page.print("messages", "{} per step, by the rank that sends the most",
               bytes_text(parallel.message_bytes_per_step));
}

void print_memory(Page& page, const PlanRecord& plan) {
    const PlanMemoryRecord& memory = plan.memory_per_rank;
    const int ranks = plan.layout.ranks_of_fullest_node;
    const auto line = [&](const char* name, double bytes, const std::string& meaning) {
        page.print(name, "{:<12}{}", bytes_text(bytes), meaning);
    };
    const bool is_int8 = memory.precision == "int8";
    const std::string values = is_int8 ? "fp32" : memory.precision;
    page.title("memory of one rank, without library scratch");
    line("parameters", memory.parameter_bytes, "fp32");
    line("gradients", memory.gradient_bytes, "fp32");
    line("optimizer state", memory.optimizer_bytes, "fp32");
    line("statistics", memory.statistics_bytes, "fp32, running means and variances");
    line("working copies", memory.working_copy_bytes,
         memory.precision + (is_int8 ? " or fp32" : "") +
             ", filters and weights for forward and for backward");
    line("activations", memory.activation_bytes,
         values + ", kept for the backward pass; without gradients in flight");
    line("input", memory.input_bytes, "prefetched batches, cache of decoded images");
    if (memory.exchange_bytes > 0)
        line("exchange", memory.exchange_bytes, "messages, shards, all-reduces, int8 residuals");
    if (memory.program_bytes > 0) line("program", memory.program_bytes, "code, libraries, MPI");
    line("evaluation", memory.evaluation_bytes,
         values + ", the network for evaluation, " +
             (memory.evaluates_between ? "in addition to training" : "after training"));
    line("total", memory.total_bytes,
         memory.evaluates_between ? "training and evaluation"
                                  : "the larger of training and evaluation");
    line("fullest node", memory.fullest_node_bytes, counted(ranks, "rank"));
}

void print_staging(Page& page, const PlanRecord& plan) {
    const PlanStagingRecord& staging = plan.staging;
    if (staging.scope == "none") return;
    page.title("staging of training samples to the node that needs the most");
    page.line("samples", text_of(staging.fullest_node_samples, count_text));
    page.line("bytes", text_of(staging.fullest_node_bytes, bytes_text));
}

/// Prints the traffic of all-reduces. print_pipeline() prints the traffic of stages and shards.
void print_traffic(Page& page, const PlanRecord& plan) {
    const PlanTrafficRecord& traffic = plan.traffic_per_rank;
    page.title(traffic.statistics_ranks > 1
                   ? "traffic of one rank in all-reduces of gradients and BatchNorm statistics"
                   : "traffic of one rank in all-reduces of gradients");
    if (plan.parallel.data_degree == 1) {
        page.line("all-reduces", "none, as parallel.data_degree is 1");
        return;
    }
    page.print("payload", "{} per step, fp32", bytes_text(traffic.gradient_bytes));
    if (traffic.statistics_ranks > 1) {
        page.print("statistics", "{} per step, fp64, over {}",
                   bytes_text(traffic.statistics_bytes_per_step),
                   counted(traffic.statistics_ranks, "rank"));
    }
    page.print("sent per step", "{:<12}{} in {}, by the rank that sends the most",
               bytes_text(traffic.sent_bytes_per_step), traffic.algorithm, traffic.precision);
    page.print("between nodes", "{:<12}per step, by the rank that sends the most to other nodes",
               bytes_text(traffic.between_nodes_bytes_per_step));
    page.print("out of a node", "{:<12}per step, by all ranks of a group on one node",
               bytes_text(traffic.out_of_node_bytes_per_step));
    page.line("sent per run", text_of(traffic.sent_bytes_per_run, bytes_text));
}

void print_costs(Page& page, const PlanRecord& plan) {
    const PlanTimeRecord& time = plan.time;
    page.title(time.source.empty() ? "time" : "time, " + time.source);
    if (time.communication_seconds.value) {
        page.line("computation", text_of(time.compute_seconds, format_seconds));
        const double alone = *time.communication_seconds.value;
        const bool slows_more = time.exposed_seconds.value.value_or(0) > alone;
        page.print("communication", "{} {} {}{}", format_seconds(alone),
                   slows_more ? "alone; it lengthens a step by" : "of a step,",
                   text_of(time.exposed_seconds, format_seconds),
                   slows_more ? "" : " of that exposed");
    }
    page.line("step", text_of(plan.time.step_seconds, format_seconds));
    page.line("epoch", text_of(plan.time.epoch_seconds, format_seconds));
    page.line("run", text_of(plan.time.run_seconds, format_seconds));
    if (plan.search) {
        page.line("trials per hour", text_of(plan.search->trials_per_hour, [](double trials) {
                      return fmt::format("{:.3g} of all groups", trials);
                  }));
        page.line("trial", text_of(plan.search->trial_seconds, [&](double seconds) {
                      return fmt::format("{}, {}", format_seconds(seconds),
                                         counted(plan.search->epochs, "epoch"));
                  }));
    }
    if (time.step_seconds.value) {
        const double steps_per_second = plan.layout.groups / *time.step_seconds.value;
        page.print("all models", "{}, {:.4g} samples/s",
                   format_si(plan.work.model_flops.step * steps_per_second, "FLOPS"),
                   plan.batch_size * steps_per_second);
    }
    page.title("energy of all ranks");
    page.line("run", text_of(plan.energy.joules, [](double joules) {
                  return fmt::format("{} ({:.3g} kWh)", format_si(joules, "J"), joules / 3.6e6);
              }));
}

}  // namespace

std::string to_text(const PlanRecord& plan) {
    Page page;
    page.title(fmt::format("plan of {}: an estimate, nothing was run", plan.model));
    print_costs(page, plan);
    print_layout(page, plan);
    print_data(page, plan);
    print_work(page, plan);
    print_pipeline(page, plan);
    print_memory(page, plan);
    print_staging(page, plan);
    print_traffic(page, plan);
    if (!plan.assumptions.empty()) page.title("assumed");
    for (const std::string& assumption : plan.assumptions) page.line(assumption);
    return page.take();
}

}  // namespace hpcai::prediction
