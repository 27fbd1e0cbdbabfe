// How token ids become rows of the n-gram tables (model.md section 9): classes, multipliers and
// primes.  All of it follows from the configuration and the classes of the tokenizer
// (tokenizer/token_classes.h); an engram.json beside a checkpoint replaces the derivation.
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
  // Class of a position inside an image span or before the sequence.  From the first such position
  // of a look-back on, all older positions count as padding too.
  static constexpr int32_t kDeadClass = -1;

  // token_map: class of every token id.  Primes and multipliers are derived; InvalidArgument or
  // CorruptData when the result does not fit the tables of the configuration.
  static Result<NgramLayout> Derive(const ModelConfig& config, std::vector<int32_t> token_map);
  // Rows of every table that Derive would accept; ngram_table_rows is not read.
  static std::vector<int64_t> DerivedTableRows(const ModelConfig& config);
  // The text of an engram.json: {"token_map": [vocab_size], "primes": [layer][order][head],
  // "multipliers": [layer][max order], "offsets": [layer][order * head], optional}; integers may be
  // spelled as strings, other keys are ignored.  Errors name the key, what was found and expected.
  static Result<NgramLayout> Parse(const ModelConfig& config, std::string_view json);

  // Precondition: 0 <= token < vocab_size.
  int32_t ClassOf(int32_t token) const { return token_map_[static_cast<size_t>(token)]; }
  std::span<const int32_t> token_map() const { return token_map_; }

  // Table rows of a position.  classes: [max order], its own class and those before it, newest
  // first, kDeadClass where there is none.  rows: [(max order - 1) * heads], order 2 first.
  // Allocates nothing.
  void Rows(int table, std::span<const int32_t> classes, std::span<int64_t> rows) const;

  int num_tables() const { return static_cast<int>(tables_.size()); }
  // [(max order - 1) * heads] and [max order].
  const std::vector<int64_t>& primes(int table) const { return TableAt(table).primes; }
  const std::vector<int64_t>& offsets(int table) const { return TableAt(table).offsets; }
  const std::vector<int64_t>& multipliers(int table) const { return TableAt(table).multipliers; }

 private:
  struct Table {
    std::vector<int64_t> multipliers;  // [max order]
    std::vector<int64_t> primes;       // [(max order - 1) * heads]
    std::vector<int64_t> offsets;      // first row of each (order, head): sums of the primes before
  };

  const Table& TableAt(int table) const { return tables_[static_cast<size_t>(table)]; }
  Status Check(const ModelConfig& config);
  Status CheckTable(const ModelConfig& config, size_t index) const;

  std::vector<int32_t> token_map_;  // [vocab_size]
  std::vector<Table> tables_;       // one per n-gram layer
  int32_t pad_class_ = 0;
  int num_heads_ = 0;
};

}  // namespace deepinfer
