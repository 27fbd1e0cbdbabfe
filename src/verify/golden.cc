#include "verify/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

#include "engine/model_instance.h"
#include "sampling/sampler.h"
#include "tensor/bf16.h"
#include "verify/golden_cases.h"
#include "verify/golden_compare.h"
#include "verify/replay_golden.h"
#include "verify/run_plan.h"
#include "verify/trace_recorder.h"

namespace deepinfer {
namespace {

// Token types of the golden files.
constexpr int kTypeText = -1;
constexpr int kTypeStart = 0;
constexpr int kTypeImage = 1;
constexpr int kTypeNewline = 2;

// A case on one model: rows, golden tensors, and the state as it grows.
class CaseRun {
 public:
  CaseRun(ModelInstance& model, const GoldenCase& golden, const GoldenRun& run,
          const SafetensorsFile& tensors, Numerics numerics)
      : model_(model),
        golden_(golden),
        run_(run),
        tensors_(tensors),
        numerics_(numerics),
        state_(model.NewSequence()),
        logits_(static_cast<size_t>(model.config().vocab_size)) {
    BuildRows();
  }

  // Prefill and greedy decode on the golden tokens.
  Result<std::vector<GoldenLine>> Run() {
    TraceRecorder recorder(FeatureHook());
    RETURN_IF_ERROR(Forward(rows_, &recorder));
    GoldenLine line{.tag = golden_.tag,
                    .check = numerics_ == Numerics::kFp32 ? "fp32" : "release rows"};
    CompareLogits(0, line);
    if (numerics_ == Numerics::kFp32) {
      CompareTraces(Traces(), recorder, kFp32Tolerance, line);
    }
    for (int64_t s = 0; s < run_.steps; ++s) {
      const BatchRow row{.token = run_.greedy[static_cast<size_t>(s)], .pos = state_.len()};
      RETURN_IF_ERROR(Forward({&row, 1}, nullptr));
      CompareLogits(s + 1, line);
    }
    return std::vector<GoldenLine>{std::move(line)};
  }

  // Every layer starts from the golden stream, so that a rounding flip cannot travel.
  Result<GoldenLine> RunLayerByLayer() {
    const InputHook features = FeatureHook();
    TraceRecorder recorder([&](int layer, int64_t rows, float* h, float* pre) {
      if (layer == 0) {
        if (features) features(layer, rows, h, pre);
        return;
      }
      const GoldenTraces traces = Traces();
      const std::string before = fmt::format("layers.{}", layer - 1);
      std::ranges::copy(Floats(*traces.Find(before)), h);
      std::ranges::copy(Floats(*traces.Find(before + ".pre")), pre);
    });
    RETURN_IF_ERROR(Forward(rows_, &recorder));
    GoldenLine line{.tag = golden_.tag, .check = "release layers"};
    const DifferenceCount count = CountDifferences(Traces(), recorder, line);
    line.differing = count.ShareOfValues();
    line.ok = line.ok && count.ShareOfValues() <= kMaxDifferingValues &&
              count.ShareOfSelections() <= kMaxDifferingSelections;
    return line;
  }

  bool HasLayerTraces() const {
    const GoldenTraces traces = Traces();
    return traces.Find("layers.0") != nullptr && traces.Find("layers.0.pre") != nullptr;
  }

 private:
  using InputHook = TraceRecorder::InputHook;

  GoldenTraces Traces() const {
    return {.tensors = tensors_, .tag = golden_.tag, .config = model_.config()};
  }

  void BuildRows() {
    const ImageMarkRows& marks = model_.weights().image_marks;
    const TensorView* features = tensors_.Find(golden_.tag + ".features");
    if (features != nullptr) {
      for (const float value : Floats(*features)) features_.push_back(FloatToBf16(value));
    }
    size_t feature = 0;
    for (size_t i = 0; i < golden_.prompt.size(); ++i) {
      BatchRow row{.token = golden_.prompt[i], .pos = static_cast<int64_t>(i)};
      const int type = golden_.token_types.empty() ? kTypeText : golden_.token_types[i];
      if (type != kTypeText) row.kind = RowKind::kImage;
      if (type == kTypeImage) {
        row.embedding =
            features_.data() + feature++ * static_cast<size_t>(model_.config().hidden_size);
      } else if (type != kTypeText) {
        row.embedding = type == kTypeStart     ? marks.start
                        : type == kTypeNewline ? marks.newline
                                               : marks.end;
      }
      rows_.push_back(row);
    }
  }

  // Image rows enter as bf16; the fp32 goldens keep all bits of the features, so they are put back.
  InputHook FeatureHook() const {
    const TensorView* features = tensors_.Find(golden_.tag + ".features");
    if (features == nullptr) return nullptr;
    return [this, features](int layer, int64_t rows, float* h, float* /*pre*/) {
      if (layer != 0) return;
      const int64_t hidden = model_.config().hidden_size;
      const int64_t streams = model_.config().num_streams;
      const float* feature = Floats(*features).data();
      for (int64_t row = 0; row < rows; ++row) {
        if (golden_.token_types[static_cast<size_t>(row)] != kTypeImage) continue;
        for (int64_t s = 0; s < streams; ++s) {
          std::copy_n(feature, hidden, h + (row * streams + s) * hidden);
        }
        feature += hidden;
      }
    };
  }

  Status Forward(std::span<const BatchRow> rows, LayerObserver* observer) {
    const SequenceSlice slice{.state = &state_, .num_rows = static_cast<int64_t>(rows.size())};
    const auto last = static_cast<int32_t>(rows.size()) - 1;
    const auto width = model_.config().draft_target_layers.size() *
                       static_cast<size_t>(model_.config().hidden_size);
    main_hidden_.resize(rows.size() * width);
    return model_.transformer().Forward(
        model_.context(), {.rows = rows, .slices = {&slice, 1}, .logit_rows = {&last, 1}},
        {.logits = logits_.data(), .main_hidden = width > 0 ? main_hidden_.data() : nullptr},
        observer);
  }

  void CompareLogits(int64_t row, GoldenLine& line) {
    const bool fp32 = numerics_ == Numerics::kFp32;
    if (!fp32 && row >= run_.agree_rows) return;
    const TensorView* all = tensors_.Find(golden_.tag + ".logits");
    if (all == nullptr) return;
    const std::span<const float> golden =
        Floats(*all).subspan(static_cast<size_t>(row) * logits_.size(), logits_.size());
    double worst = 0;
    for (size_t i = 0; i < logits_.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(logits_[i]) - golden[i]));
    }
    line.max_error = std::max(line.max_error, worst);
    if (!(worst <= (fp32 ? kFp32Tolerance : kAgreeTolerance))) {
      Differs(line, fmt::format("logits row {}: off by {:.3g}", row, worst));
    }
    const int32_t expected = run_.greedy[static_cast<size_t>(row)];
    if (fp32 && ArgMax(logits_) != expected) {
      Differs(line, fmt::format("greedy token {}: found {}, expected {}", row, ArgMax(logits_),
                                expected));
    }
  }

  ModelInstance& model_;
  const GoldenCase& golden_;
  const GoldenRun& run_;
  const SafetensorsFile& tensors_;
  Numerics numerics_;
  SequenceState state_;
  std::vector<float> logits_;
  std::vector<float> main_hidden_;
  std::vector<uint16_t> features_;
  std::vector<BatchRow> rows_;
};

// Loads a model for (numerics, quirk) when a case first needs it.
class ModelShelf {
 public:
  ModelShelf(const GoldenOptions& options, const GoldenFolder& folder)
      : options_(options), folder_(folder) {}

  Result<ModelInstance*> Get(Numerics numerics, bool released_index_keys) {
    std::unique_ptr<ModelInstance>& slot =
        models_[static_cast<size_t>(numerics)][released_index_keys ? 1 : 0];
    if (slot == nullptr) {
      ASSIGN_OR_RETURN(slot, ModelInstance::Load({.dir = folder_.dir,
                                                  .weights_dir = options_.weights_dir.empty()
                                                                     ? folder_.weights_dir
                                                                     : options_.weights_dir,
                                                  .numerics = numerics,
                                                  .isa = options_.isa,
                                                  .max_sequences = kRunSequences,
                                                  .released_index_keys = released_index_keys}));
    }
    return slot.get();
  }

 private:
  const GoldenOptions& options_;
  const GoldenFolder& folder_;
  std::unique_ptr<ModelInstance> models_[2][2];
};

}  // namespace

Result<std::vector<GoldenLine>> VerifyGolden(
    const GoldenOptions& options, const std::function<void(const GoldenLine&)>& on_line) {
  ASSIGN_OR_RETURN(const GoldenFolder folder, GoldenFolder::Open(options.dir));
  ModelShelf shelf(options, folder);
  std::vector<GoldenLine> lines;
  const auto add = [&](GoldenLine line) {
    if (on_line) on_line(line);
    lines.push_back(std::move(line));
  };
  for (const GoldenCase& golden : folder.cases) {
    for (const Numerics numerics : {Numerics::kFp32, Numerics::kRelease}) {
      const bool fp32 = numerics == Numerics::kFp32;
      const auto& run = fp32 ? golden.fp32 : golden.release;
      const auto& tensors = fp32 ? folder.fp32 : folder.release;
      if (!run || !tensors) continue;
      ASSIGN_OR_RETURN(ModelInstance * model, shelf.Get(numerics, golden.released_index_keys));
      if (fp32 || run->agree_rows > 0) {
        ASSIGN_OR_RETURN(const std::vector<GoldenLine> found,
                         CaseRun(*model, golden, *run, *tensors, numerics).Run());
        for (const GoldenLine& line : found) add(line);
      }
      CaseRun layers(*model, golden, *run, *tensors, numerics);
      if (fp32 || !layers.HasLayerTraces()) continue;
      ASSIGN_OR_RETURN(GoldenLine line, layers.RunLayerByLayer());
      add(std::move(line));
    }
  }
  if (!ReplayFolder::IsIn(options.dir)) return lines;
  ASSIGN_OR_RETURN(const ReplayFolder replay, ReplayFolder::Open(options.dir));
  for (const Numerics numerics : {Numerics::kFp32, Numerics::kRelease}) {
    ASSIGN_OR_RETURN(ModelInstance * model, shelf.Get(numerics, false));
    ASSIGN_OR_RETURN(const std::vector<GoldenLine> found, VerifyReplay(*model, replay, numerics));
    for (const GoldenLine& line : found) add(line);
  }
  return lines;
}

}  // namespace deepinfer
