// How token ids become rows of the n-gram tables (model.md section 9): classes, multipliers,
// primes. All of it follows from the configuration and the tokenizer; an engram.json beside a
// checkpoint replaces the derivation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/config.h"

namespace deepinfer {

// Immutable; thread-safe.
class NgramLayout {
 public:
  // Class of a position inside an image span, or before the sequence: it blocks the look-back.
  static constexpr int32_t kDeadClass = -1;

  // token_map: class of every token id (section 9.1).  Primes and multipliers are derived.
  static Result<NgramLayout> Derive(const ModelConfig& config, std::vector<int32_t> token_map);
  // {token_map, primes [layer][order][head], multipliers [layer][order + 1]}
  static Result<NgramLayout> Parse(const ModelConfig& config, std::string_view json);

  int32_t ClassOf(int32_t token) const { return token_map_[static_cast<size_t>(token)]; }

  // Table rows of a position.  classes: its own class and those before it, newest first, as many as
  // the largest order.  rows: [(orders) * heads], order 2 first.
  void Rows(int table, std::span<const int32_t> classes, std::span<int64_t> rows) const;

  const std::vector<int64_t>& primes(int table) const {
    return tables_[static_cast<size_t>(table)].primes;
  }
  const std::vector<int64_t>& multipliers(int table) const {
    return tables_[static_cast<size_t>(table)].multipliers;
  }

 private:
  struct Table {
    std::vector<int64_t> multipliers;  // [max order]
    std::vector<int64_t> primes;       // [orders * heads]
    std::vector<int64_t> offsets;      // first row of each (order, head): sums of the primes before
  };
  Status Check(const ModelConfig& config);

  std::vector<int32_t> token_map_;  // [vocab_size]
  std::vector<Table> tables_;       // one per n-gram layer
  int32_t pad_class_ = 0;
  int num_heads_ = 0;
};

}  // namespace deepinfer
