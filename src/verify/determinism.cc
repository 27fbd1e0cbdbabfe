#include "verify/determinism.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/random.h"
#include "kernels/kernels.h"
#include "kernels/select.h"
#include "model/prefix_hit.h"

namespace deepinfer {
namespace {

using Kind = ReplayRecord::Kind;

constexpr int64_t kDecodeTokens = 4;
// Tokens that follow a prompt: those that are decoded, and those that a roll-back forgets.
constexpr int64_t kRoom = kDecodeTokens + kMaxRollback;
// Lengths of the prompts beside the first one in a batch: none is a multiple of another's chunk.
constexpr int64_t kCompanions[] = {1, 2, 5, 11, 17, 23, 41, 61};

// Builds the axes of one model and one prompt.
class Matrix {
 public:
  Matrix(const ModelConfig& config, const DeterminismOptions& options)
      : config_(config),
        options_(options),
        keep_(config.window_size + PrefillOptions().keep - kReleaseWindow),
        stream_(RandomStream(options.tokens, kDecodeTokens, config.vocab_size, options.seed)) {}

  std::vector<Axis> Axes() const {
    std::vector<Axis> axes = {Chunks(),        Batches(),      Threads(),        InstructionSets(),
                              Interruptions(), ExactPrefill(), CompactPrefill(), ShortPrompts()};
    axes.push_back(Hits("hits, exact", {.mode = PrefillMode::kExact}));
    axes.push_back(Hits("hits, compact", Compact()));
    axes.push_back(Hits("hits, mask", Mask()));
    axes.push_back(BoundedReplay());
    axes.push_back(Preempted("preempted, full", PrefillOptions::Full()));
    axes.push_back(Preempted("preempted, exact", {.mode = PrefillMode::kExact}));
    axes.push_back(Preempted("preempted, compact", Compact()));
    axes.push_back(Preempted("preempted, mask", Mask()));
    return axes;
  }

 private:
  static constexpr int64_t kReleaseWindow = 128;

  PrefillOptions Compact() const { return {.mode = PrefillMode::kCompact, .keep = keep_}; }
  PrefillOptions Mask() const { return {.mode = PrefillMode::kMask, .keep = keep_}; }
  int64_t tokens() const { return options_.tokens; }

  // The chunk sizes that cut this prompt, the whole prompt left out.
  std::vector<int64_t> ChunkSizes() const {
    std::vector<int64_t> sizes;
    for (const int64_t size : {1, 7, 64, 512}) {
      if (size < tokens() && !(options_.quick && size != 7)) sizes.push_back(size);
    }
    return sizes;
  }

  // The plan with every chunk size.
  std::vector<RunPlan> InChunks(const RunPlan& plan) const {
    std::vector<RunPlan> plans;
    for (const int64_t size : ChunkSizes()) {
      plans.push_back(plan);
      plans.back().name = fmt::format("{} in chunks of {}", plan.name, size);
      plans.back().chunk = size;
    }
    return plans;
  }

  // Plan and chunked plans.
  std::vector<RunPlan> WholeAndInChunks(const RunPlan& plan) const {
    std::vector<RunPlan> plans = InChunks(plan);
    plans.insert(plans.begin(), plan);
    return plans;
  }

  Axis Chunks() const {
    const RunPlan whole{.name = "full"};
    return {.name = "chunks",
            .scope = fmt::format("{} tokens whole and in chunks of {}", tokens(),
                                 fmt::join(ChunkSizes(), ", ")),
            .streams = {stream_},
            .reference = whole,
            .variants = InChunks(whole)};
  }

  // Rotations of the order and of the reversed order.
  Axis Batches() const {
    Axis axis{.name = "batches",
              .scope = "",
              .streams = {RandomStream(std::min<int64_t>(tokens(), 100), kDecodeTokens,
                                       config_.vocab_size, options_.seed)},
              .reference = {.name = "alone"},
              .variants = {}};
    for (const int64_t length : kCompanions) {
      axis.streams.push_back(RandomStream(length, kDecodeTokens, config_.vocab_size,
                                          options_.seed + static_cast<uint64_t>(length)));
    }
    std::vector<int> order(axis.streams.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t rotations = options_.quick ? 2 : order.size();
    for (const bool reversed : {false, true}) {
      for (size_t r = 0; r < rotations; ++r) {
        axis.variants.push_back({.name = fmt::format("batch {}", fmt::join(order, " ")),
                                 .chunk = r % 2 == 0 ? 0 : 16,
                                 .order = order});
        std::rotate(order.begin(), order.begin() + 1, order.end());
      }
      if (!reversed) std::ranges::reverse(order);
    }
    axis.scope = fmt::format("{} sequences alone and together in {} orders (rotations, reversed)",
                             axis.streams.size(), axis.variants.size());
    return axis;
  }

  // Whole and in small chunks: other operands for the same products.  The scalar kernels are the
  // slow part of a quick matrix.
  Axis OnContexts(const std::string& name, const std::string& contexts_named,
                  const std::vector<RunPlan>& contexts) const {
    const int64_t length = options_.quick ? std::min<int64_t>(tokens(), 40) : tokens();
    Axis axis{.name = name,
              .scope = fmt::format("{} tokens on {}", length, contexts_named),
              .streams = {RandomStream(length, kDecodeTokens, config_.vocab_size, options_.seed)},
              .reference = {.name = "full"},
              .variants = {}};
    for (const RunPlan& plan : contexts) {
      axis.variants.push_back(plan);
      if (options_.quick) continue;
      axis.variants.push_back(plan);
      axis.variants.back().name += " in chunks of 7";
      axis.variants.back().chunk = 7;
    }
    return axis;
  }

  Axis Threads() const {
    std::vector<RunPlan> plans;
    for (const int threads : {1, 2, 3}) {
      plans.push_back({.name = fmt::format("{} threads", threads), .threads = threads});
    }
    return OnContexts("threads", "1, 2, 3 threads", plans);
  }

  Axis InstructionSets() const {
    std::vector<RunPlan> plans;
    std::vector<std::string> names;
    for (const KernelTable* kernels : SupportedKernels()) {
      names.emplace_back(kernels->name);
      plans.push_back({.name = names.back(), .kernels = kernels});
    }
    return OnContexts("instruction sets", fmt::format("{}", fmt::join(names, ", ")), plans);
  }

  Axis Interruptions() const {
    Axis axis{.name = "interruptions",
              .scope = fmt::format("restore, fork, roll back at random points of {} tokens",
                                   tokens() + kDecodeTokens),
              .streams = {stream_},
              .reference = {.name = "full"},
              .variants = {}};
    const int runs = options_.quick ? 2 : 6;
    for (int run = 0; run < runs; ++run) {
      RunPlan plan{.name = "", .chunk = run % 2 == 0 ? 0 : 5, .interruptions = RandomPoints(run)};
      for (const Interruption& point : plan.interruptions) plan.name += NameOf(point);
      axis.variants.push_back(std::move(plan));
    }
    return axis;
  }

  static std::string NameOf(const Interruption& point) {
    switch (point.kind) {
      case Interruption::Kind::kRestore:
        return fmt::format("restore at {}; ", point.pos);
      case Interruption::Kind::kFork:
        return fmt::format("fork at {}; ", point.pos);
      case Interruption::Kind::kRollback:
        return fmt::format("roll back {} at {}; ", point.others, point.pos);
      case Interruption::Kind::kSetAside:
        return fmt::format("set aside at {}; ", point.pos);
      case Interruption::Kind::kRecompute:
        return fmt::format("recompute at {}; ", point.pos);
    }
    return "";
  }

  std::vector<Interruption> RandomPoints(int run) const {
    std::vector<Interruption> points;
    for (uint32_t i = 0; i < 5; ++i) {
      const PhiloxBlock random = Philox(options_.seed, {i, static_cast<uint32_t>(run), 1, 0});
      points.push_back({.kind = static_cast<Interruption::Kind>(random[0] % 3),
                        .pos = 1 + random[1] % (tokens() + kDecodeTokens - 1),
                        .others = 1 + random[2] % kMaxRollback});
    }
    std::ranges::sort(points, {}, &Interruption::pos);
    return points;
  }

  // In the middle of the prompt and of the answer, twice in a row at its end, whole and from
  // tokens.
  Axis Preempted(const std::string& name, const PrefillOptions& prefill) const {
    Axis axis{.name = name,
              .scope = fmt::format("set aside and computed again at points of {} tokens",
                                   tokens() + kDecodeTokens),
              .streams = {stream_},
              .reference = {.name = "undisturbed", .prefill = prefill},
              .variants = {}};
    using enum Interruption::Kind;
    for (const auto& [first, second] :
         {std::pair(kSetAside, kRecompute), std::pair(kRecompute, kSetAside)}) {
      RunPlan plan{.name = std::string(PrefillModeName(prefill.mode)) + ", ",
                   .prefill = prefill,
                   .interruptions = {{.kind = first, .pos = 1 + tokens() / 2},
                                     {.kind = first, .pos = tokens()},
                                     {.kind = second, .pos = tokens()},
                                     {.kind = second, .pos = tokens() + 2},
                                     {.kind = first, .pos = tokens() + kDecodeTokens - 1}}};
      for (const Interruption& point : plan.interruptions) plan.name += NameOf(point);
      axis.variants.push_back(std::move(plan));
    }
    return axis;
  }

  Axis ExactPrefill() const {
    return {
        .name = "exact = full",
        .scope = fmt::format("{} tokens", tokens()),
        .streams = {stream_},
        .reference = {.name = "full"},
        .variants = WholeAndInChunks({.name = "exact", .prefill = {.mode = PrefillMode::kExact}})};
  }

  Axis CompactPrefill() const {
    std::vector<RunPlan> variants = InChunks({.name = "compact", .prefill = Compact()});
    for (const RunPlan& plan : WholeAndInChunks({.name = "mask", .prefill = Mask()})) {
      variants.push_back(plan);
    }
    return {.name = "mask = compact",
            .scope = fmt::format("{} tokens, {} kept", tokens(), keep_),
            .streams = {stream_},
            .reference = {.name = "compact", .prefill = Compact()},
            .variants = std::move(variants)};
  }

  // A prompt that compact keeps whole is computed in full, token by token too.
  Axis ShortPrompts() const {
    const int64_t length = std::min(tokens(), keep_);
    return {.name = "short compact = full",
            .scope = fmt::format("{} tokens, {} kept", length, keep_),
            .streams = {RandomStream(length, kDecodeTokens, config_.vocab_size, options_.seed)},
            .reference = {.name = "full"},
            .variants = WholeAndInChunks({.name = "compact", .prefill = Compact()})};
  }

  // Random block-aligned hits of a prefill mode and the longest one, ascending.
  std::vector<int64_t> HitsOf(const PrefillOptions& prefill) const {
    const int64_t block = std::min<int64_t>(kBlockTokens, config_.window_size);
    const int64_t longest = (tokens() - KeptRows(config_, prefill, tokens())) / block;
    std::vector<int64_t> hits;
    if (longest > 0) hits.push_back(longest * block);
    for (uint32_t i = 0; longest > 1 && i < (options_.quick ? 0 : 2); ++i) {
      const PhiloxBlock random = Philox(options_.seed, {i, 0, 2, 0});
      hits.push_back((1 + random[0] % (longest - 1)) * block);
    }
    std::ranges::sort(hits);
    hits.erase(std::unique(hits.begin(), hits.end()), hits.end());
    return hits;
  }

  Axis HitAxis(const std::string& name, const RunPlan& reference,
               const std::vector<int64_t>& hits) const {
    return {.name = name,
            .scope = hits.empty()
                         ? fmt::format("not run: {} tokens are too few for a hit", tokens())
                         : fmt::format("{} tokens, hits {}", tokens(), fmt::join(hits, ", ")),
            .streams = {stream_},
            .reference = reference,
            .variants = {}};
  }

  // A hit whose windows come back from a snapshot or by an exact replay equals a cold run.
  Axis Hits(const std::string& name, const PrefillOptions& prefill) const {
    const std::vector<int64_t> hits = HitsOf(prefill);
    Axis axis = HitAxis(name, {.name = "cold", .prefill = prefill}, hits);
    for (const int64_t hit : hits) {
      for (const Kind windows : {Kind::kSnapshot, Kind::kExact}) {
        for (const int64_t chunk : {0, 7}) {
          axis.variants.push_back(HitPlan(prefill, hit, windows, chunk));
        }
      }
    }
    return axis;
  }

  // Approximate by design, and still the same in any chunks and with every row computed.
  Axis BoundedReplay() const {
    std::vector<int64_t> hits = HitsOf(Compact());
    const int64_t hit = hits.empty() ? 0 : hits.back();
    if (!hits.empty()) hits = {hit};
    Axis axis = HitAxis("bounded replay", HitPlan(Compact(), hit, Kind::kBounded, 0), hits);
    if (hits.empty()) return axis;
    axis.variants = InChunks(axis.reference);
    for (const RunPlan& plan : WholeAndInChunks(HitPlan(Mask(), hit, Kind::kBounded, 0))) {
      axis.variants.push_back(plan);
    }
    return axis;
  }

  static RunPlan HitPlan(const PrefillOptions& prefill, int64_t hit, Kind windows, int64_t chunk) {
    const std::string_view how = windows == Kind::kSnapshot ? "snapshot"
                                 : windows == Kind::kExact  ? "exact replay"
                                                            : "bounded replay";
    const std::string cut = chunk > 0 ? fmt::format(" in chunks of {}", chunk) : "";
    return {
        .name = fmt::format("{}, hit of {}, {}{}", PrefillModeName(prefill.mode), hit, how, cut),
        .prefill = prefill,
        .chunk = chunk,
        .hit = hit,
        .windows = windows};
  }

  const ModelConfig& config_;
  DeterminismOptions options_;
  int64_t keep_;  // window + two verify widths
  TokenStream stream_;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string ReportText(const AxisReport& report) {
  const std::string_view verdict = report.comparisons == 0 ? "-"
                                   : report.difference     ? "DIFFERS"
                                                           : "equal";
  std::string text = fmt::format("{:<21} {:>4} {:<8} {:>6.1f} s  {}\n", report.name,
                                 report.comparisons, verdict, report.seconds, report.scope);
  if (report.difference) text += fmt::format("  {}\n", *report.difference);
  return text;
}

int64_t DefaultTokens(const ModelInstance& model) {
  constexpr int64_t kLargeBytes = int64_t{1} << 30;
  if (model.weight_bytes() > kLargeBytes) return 24;
  // One block more than an exact prefill computes, and a rest.
  const int64_t wanted = ExactRows(model.config(), 0) + model.config().window_size + 20;
  return std::min(wanted, model.max_model_len() - kRoom);
}

Result<std::vector<Axis>> DeterminismAxes(const ModelInstance& model,
                                          const DeterminismOptions& options) {
  DeterminismOptions filled = options;
  if (filled.tokens == 0) filled.tokens = DefaultTokens(model);
  const int64_t most = model.max_model_len() - kRoom;
  if (most < kCompanions[std::size(kCompanions) - 1]) {
    return InvalidArgument(fmt::format("--max-model-len: found {}, expected at least {}",
                                       model.max_model_len(),
                                       kRoom + kCompanions[std::size(kCompanions) - 1]));
  }
  if (filled.tokens < 1 || filled.tokens > most) {
    return InvalidArgument(
        fmt::format("--tokens: found {}, expected 1 to {}", filled.tokens, most));
  }
  return Matrix(model.config(), filled).Axes();
}

Result<AxisReport> RunAxis(ModelInstance& model, const Axis& axis, const PlanRunner& run) {
  const auto start = std::chrono::steady_clock::now();
  AxisReport report{.name = axis.name, .scope = axis.scope};
  if (axis.variants.empty()) return report;
  ASSIGN_OR_RETURN(const std::vector<StreamBits> expected,
                   run(model, axis.streams, axis.reference));
  for (const RunPlan& plan : axis.variants) {
    ASSIGN_OR_RETURN(const std::vector<StreamBits> found, run(model, axis.streams, plan));
    report.comparisons += static_cast<int64_t>(found.size());
    const std::optional<std::string> difference = FirstDifference(model, found, expected);
    if (!difference) continue;
    report.difference =
        fmt::format("{} against {}: {}", plan.name, axis.reference.name, *difference);
    break;
  }
  report.seconds = SecondsSince(start);
  return report;
}

Result<std::vector<AxisReport>> VerifyDeterminism(
    ModelInstance& model, const DeterminismOptions& options,
    const std::function<Status(const AxisReport&)>& on_report) {
  ASSIGN_OR_RETURN(const std::vector<Axis> axes, DeterminismAxes(model, options));
  std::vector<AxisReport> reports;
  for (const Axis& axis : axes) {
    ASSIGN_OR_RETURN(AxisReport report, RunAxis(model, axis));
    if (on_report) RETURN_IF_ERROR(on_report(report));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace deepinfer
