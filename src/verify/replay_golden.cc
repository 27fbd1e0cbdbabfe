#include "verify/replay_golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "engine/generator.h"
#include "model/prefix_hit.h"
#include "sampling/sampler.h"
#include "tensor/row_codec.h"
#include "verify/golden_compare.h"
#include "verify/run_plan.h"

namespace deepinfer {
namespace {

std::span<const int64_t> Tokens(const TensorView& tensor) {
  return {reinterpret_cast<const int64_t*>(tensor.bytes.data()),
          tensor.bytes.size() / sizeof(int64_t)};
}

// A tensor of the state by its name in the files: rows [first, first + count) of dim floats.
struct StateRows {
  RowFormat format;
  int64_t dim;
  std::function<const std::byte*(int64_t row)> row;
};

// "window.3" -> ("window", 3)
std::pair<std::string_view, int> SplitName(std::string_view name) {
  const size_t dot = name.rfind('.');
  int number = 0;
  std::from_chars(name.data() + dot + 1, name.data() + name.size(), number);
  return {name.substr(0, dot), number};
}

StateRows RowsNamed(const SequenceState& state, std::string_view name) {
  const KvLayout& layout = state.layout();
  const auto [kind, layer] = SplitName(name);
  if (kind == "window") {
    return {.format = layout.window_format(),
            .dim = layout.shape().head_dim,
            .row = [&state, &layout, ring = layer](int64_t pos) {
              return state.Ring(ring) + pos % layout.ring_rows() * layout.window_row_bytes();
            }};
  }
  const int section = layout.SectionOf(layer);
  if (kind == "kv") {
    return {.format = layout.rows_format(),
            .dim = layout.shape().head_dim,
            .row = [view = state.KvRows(section)](int64_t entry) { return view.Row(entry); }};
  }
  return {.format = layout.keys_format(),
          .dim = layout.shape().index_head_dim,
          .row = [view = state.IndexKeys(section)](int64_t entry) { return view.Row(entry); }};
}

// The cases of one prompt in one arithmetic.
class PromptCases {
 public:
  PromptCases(ModelInstance& model, const ReplayFolder& folder, Numerics numerics,
              const std::string& prompt)
      : model_(model),
        folder_(folder),
        fp32_(numerics == Numerics::kFp32),
        line_{.tag = prompt, .check = fp32_ ? "fp32 replay" : "release replay"} {}

  Status Check(const ReplayCase& c) {
    const TokenStream stream = StreamOf(c);
    CheckHit(c);
    ASSIGN_OR_RETURN(std::vector<StreamBits> bits, RunStreams(model_, {stream}, PlanOf(c)));
    CheckEqualities(c, bits);
    RETURN_IF_ERROR(CheckState(c, bits.front()));
    CheckLogits(c, bits.front());
    if (c.stored_by == c.tag) stored_[c.tag] = std::move(bits);
    ++line_.cases;
    return Status::Ok();
  }

  GoldenLine Finish() && {
    line_.differing = count_.ShareOfValues();
    return std::move(line_);
  }

 private:
  const TensorView* Find(const ReplayCase& c, const std::string& name) const {
    return folder_.tensors.Find(c.stored_by + "." + name);
  }

  void Differs(const ReplayCase& c, const std::string& what) {
    deepinfer::Differs(line_, fmt::format("{}: {}", c.tag, what));
  }

  // The prompt, then the golden tokens whatever this program would choose.
  TokenStream StreamOf(const ReplayCase& c) const {
    const std::vector<int32_t>& ids = folder_.prompts.at(c.prompt_name);
    TokenStream stream{.rows = TextRows(ids), .prompt_len = static_cast<int64_t>(ids.size())};
    const TensorView* tokens = Find(c, "tokens");
    for (int64_t s = 0; tokens != nullptr && s < c.steps; ++s) {
      stream.rows.push_back({.token = static_cast<int32_t>(Tokens(*tokens)[static_cast<size_t>(s)]),
                             .pos = stream.prompt_len + s});
    }
    return stream;
  }

  static RunPlan PlanOf(const ReplayCase& c) {
    return {
        .name = c.tag, .prefill = c.prefill, .chunk = c.chunk, .hit = c.hit, .windows = c.windows};
  }

  void CheckHit(const ReplayCase& c) {
    if (c.hit == 0) return;
    const auto prompt_len = static_cast<int64_t>(folder_.prompts.at(c.prompt_name).size());
    const bool snapshot = c.windows == ReplayRecord::Kind::kSnapshot;
    const UsableHit usable =
        FindUsableHit({.matched = c.matched,
                       .prompt_len = prompt_len,
                       .kept_rows = KeptRows(model_.config(), c.prefill, prompt_len),
                       .block = folder_.block,
                       .window = model_.config().window_size},
                      [&](int64_t position) { return snapshot && position == c.hit; });
    if (usable.len != c.hit) {
      Differs(c, fmt::format("hit rule: found {}, expected {}", usable.len, c.hit));
    }
  }

  void CheckEqualities(const ReplayCase& c, const std::vector<StreamBits>& bits) {
    if (c.stored_by == c.tag) return;
    const auto equal = stored_.find(c.stored_by);
    if (equal == stored_.end()) {
      return Differs(c, fmt::format("found no earlier case {}, expected one", c.stored_by));
    }
    if (const auto difference = FirstDifference(model_, bits, equal->second)) {
      Differs(c, fmt::format("not equal to {}: {}", c.stored_by, *difference));
    }
  }

  Status CheckState(const ReplayCase& c, const StreamBits& bits) {
    ASSIGN_OR_RETURN(const SequenceState state, model_.RestoreSequence(bits.after_prompt));
    if (state.floors.encoder != c.floors.encoder || state.floors.decoder != c.floors.decoder) {
      Differs(c, fmt::format("floors: found {} and {}, expected {} and {}", state.floors.encoder,
                             state.floors.decoder, c.floors.encoder, c.floors.decoder));
    }
    for (const auto& [name, stored] : c.state) {
      if (name.starts_with("draft.")) continue;
      const TensorView* golden =
          folder_.tensors.Find(fmt::format("{}.state.{}", stored.stored_by, name));
      if (golden == nullptr) {
        return CorruptData(
            fmt::format("golden_replay.safetensors: found no {}.state.{}", stored.stored_by, name));
      }
      CompareRows(c, name, RowsNamed(state, name), stored.first_row, *golden);
    }
    return Status::Ok();
  }

  void CompareRows(const ReplayCase& c, const std::string& name, const StateRows& rows,
                   int64_t first_row, const TensorView& golden) {
    const std::span<const float> expected = Floats(golden);
    double scale = 0;
    for (const float value : expected) scale = std::max(scale, std::abs(double{value}));
    const int64_t differing_before = count_.differing_values;
    std::vector<float> values(static_cast<size_t>(rows.dim));
    for (int64_t i = 0; i < golden.shape[0]; ++i) {
      DecodeRow(rows.format, rows.row(first_row + i), values);
      for (int64_t col = 0; col < rows.dim; ++col) {
        const float want = expected[static_cast<size_t>(i * rows.dim + col)];
        const float have = values[static_cast<size_t>(col)];
        count_.differing_values += want != have ? 1 : 0;
        const double error = std::abs(double{have} - want) / scale;
        if (fp32_ && !(error <= kFp32Tolerance)) {
          return Differs(c, fmt::format("{} row {} column {}: found {}, expected {}", name,
                                        first_row + i, col, have, want));
        }
      }
    }
    const auto size = static_cast<int64_t>(expected.size());
    const int64_t differing = count_.differing_values - differing_before;
    count_.values += size;
    if (!fp32_ &&
        static_cast<double>(differing) > kMaxDifferingValues * static_cast<double>(size)) {
      Differs(c, fmt::format("{}: {} of {} values differ", name, differing, size));
    }
  }

  void CheckLogits(const ReplayCase& c, const StreamBits& bits) {
    const TensorView* golden = Find(c, "logits");
    if (golden == nullptr) return Differs(c, "found no golden logits");
    const auto vocab = static_cast<size_t>(model_.config().vocab_size);
    const auto rows = static_cast<size_t>(c.steps) + 1;
    const std::span<const float> mine = std::span(bits.logits).last(rows * vocab);
    for (size_t row = 0; row < rows; ++row) {
      CompareLogitRow(c, static_cast<int64_t>(row), mine.subspan(row * vocab, vocab),
                      Floats(*golden).subspan(row * vocab, vocab));
    }
  }

  void CompareLogitRow(const ReplayCase& c, int64_t row, std::span<const float> mine,
                       std::span<const float> golden) {
    double worst = 0;
    for (size_t i = 0; i < golden.size(); ++i) {
      worst = std::max(worst, std::abs(double{mine[i]} - golden[i]));
    }
    const double tolerance = fp32_ ? kFp32Tolerance : kAgreeTolerance;
    line_.max_error = std::max(line_.max_error, worst);
    if (!(worst <= tolerance)) {
      Differs(c, fmt::format("logits row {}: off by {:.3g}", row, worst));
    }
    const int32_t best = ArgMax(golden);
    if (ArgMax(mine) != best && Gap(golden, best) > 2 * tolerance) {
      Differs(c, fmt::format("greedy token {}: found {}, expected {}", row, ArgMax(mine), best));
    }
  }

  // Between the best logit and the next one.
  static double Gap(std::span<const float> logits, int32_t best) {
    double gap = HUGE_VAL;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i == static_cast<size_t>(best)) continue;
      gap = std::min(gap, double{logits[static_cast<size_t>(best)]} - logits[i]);
    }
    return gap;
  }

  ModelInstance& model_;
  const ReplayFolder& folder_;
  bool fp32_;
  GoldenLine line_;
  std::map<std::string, std::vector<StreamBits>> stored_;  // by tag, for equalities
  DifferenceCount count_;                                  // of state values
};

}  // namespace

Result<std::vector<GoldenLine>> VerifyReplay(ModelInstance& model, const ReplayFolder& folder,
                                             Numerics numerics) {
  std::vector<GoldenLine> lines;
  for (const auto& [prompt, ids] : folder.prompts) {
    PromptCases cases(model, folder, numerics, prompt);
    for (const ReplayCase& c : folder.cases) {
      if (c.numerics == numerics && c.prompt_name == prompt) RETURN_IF_ERROR(cases.Check(c));
    }
    lines.push_back(std::move(cases).Finish());
  }
  return lines;
}

}  // namespace deepinfer
