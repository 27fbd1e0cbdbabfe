#include "model/ngram_layout.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <set>

#include "base/check.h"
#include "model/pcg64.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

// Seed of a layer's multipliers.
constexpr uint64_t kSeedPerLayer = 10007;

bool IsPrime(int64_t n) {
  if (n < 2) return false;
  for (int64_t k = 2; k * k <= n; ++k) {
    if (n % k == 0) return false;
  }
  return true;
}

// The next primes >= start that no table used yet.
std::vector<int64_t> TakePrimes(int64_t start, int count, std::set<int64_t>& used) {
  std::vector<int64_t> primes;
  for (int64_t n = start; static_cast<int>(primes.size()) < count; ++n) {
    if (IsPrime(n) && used.insert(n).second) primes.push_back(n);
  }
  return primes;
}

std::vector<int64_t> DeriveMultipliers(const ModelConfig& config, int layer) {
  // Small enough that the product with a class stays below 2^63.
  const int64_t bound =
      std::max<int64_t>(1, std::numeric_limits<int64_t>::max() / config.ngram_num_classes / 2);
  Pcg64 generator(kSeedPerLayer * static_cast<uint64_t>(layer));
  std::vector<int64_t> multipliers;
  for (int i = 0; i < config.ngram_max_order; ++i) {
    multipliers.push_back(static_cast<int64_t>(generator.Below(static_cast<uint64_t>(bound))) * 2 +
                          1);
  }
  return multipliers;
}

std::vector<int64_t> PrefixSums(const std::vector<int64_t>& values) {
  std::vector<int64_t> sums(values.size());
  std::exclusive_scan(values.begin(), values.end(), sums.begin(), int64_t{0});
  return sums;
}

Status Bad(std::string message) { return CorruptData("engram.json: " + std::move(message)); }

// Appends the integers of nested arrays in reading order; numbers may be spelled as strings.
bool Flatten(dom::element element, std::vector<int64_t>& out) {
  dom::array array;
  if (element.get(array) == simdjson::SUCCESS) {
    for (const dom::element item : array) {
      if (!Flatten(item, out)) return false;
    }
    return true;
  }
  int64_t value = 0;
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  } else if (element.get(value) != simdjson::SUCCESS) {
    return false;
  }
  out.push_back(value);
  return true;
}

Result<std::vector<int64_t>> Integers(dom::object object, const char* key, size_t expected) {
  dom::element element;
  std::vector<int64_t> values;
  if (object.at_key(key).get(element) != simdjson::SUCCESS || !Flatten(element, values)) {
    return Bad(fmt::format("found no integers under '{}', expected {}", key, expected));
  }
  if (values.size() != expected) {
    return Bad(
        fmt::format("found {} integers under '{}', expected {}", values.size(), key, expected));
  }
  return values;
}

}  // namespace

Result<NgramLayout> NgramLayout::Derive(const ModelConfig& config, std::vector<int32_t> token_map) {
  NgramLayout layout;
  layout.token_map_ = std::move(token_map);
  std::set<int64_t> used;
  for (const int layer : config.ngram_layers) {
    Table table;
    table.multipliers = DeriveMultipliers(config, layer);
    for (int order = 2; order <= config.ngram_max_order; ++order) {
      const std::vector<int64_t> primes =
          TakePrimes(config.ngram_vocab_size, config.ngram_num_heads, used);
      table.primes.insert(table.primes.end(), primes.begin(), primes.end());
    }
    layout.tables_.push_back(std::move(table));
  }
  RETURN_IF_ERROR(layout.Check(config));
  return layout;
}

Result<NgramLayout> NgramLayout::Parse(const ModelConfig& config, std::string_view json) {
  dom::parser parser;
  dom::object root;
  if (parser.parse(simdjson::padded_string(json)).get(root) != simdjson::SUCCESS) {
    return Bad("found no JSON object, expected one");
  }
  const size_t layers = config.ngram_layers.size();
  const auto per_layer = static_cast<size_t>(config.ngram_row_count());
  const auto order = static_cast<size_t>(config.ngram_max_order);
  ASSIGN_OR_RETURN(const std::vector<int64_t> map,
                   Integers(root, "token_map", static_cast<size_t>(config.vocab_size)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> primes, Integers(root, "primes", layers * per_layer));
  ASSIGN_OR_RETURN(const std::vector<int64_t> multipliers,
                   Integers(root, "multipliers", layers * order));
  NgramLayout layout;
  layout.token_map_.assign(map.begin(), map.end());
  for (size_t i = 0; i < layers; ++i) {
    const auto first_prime = primes.begin() + static_cast<ptrdiff_t>(i * per_layer);
    const auto first_multiplier = multipliers.begin() + static_cast<ptrdiff_t>(i * order);
    layout.tables_.push_back(
        {.multipliers = {first_multiplier, first_multiplier + static_cast<ptrdiff_t>(order)},
         .primes = {first_prime, first_prime + static_cast<ptrdiff_t>(per_layer)},
         .offsets = {}});
  }
  RETURN_IF_ERROR(layout.Check(config));
  return layout;
}

// What Rows() relies on; also fills in what follows from the rest.
Status NgramLayout::Check(const ModelConfig& config) {
  if (token_map_.size() != static_cast<size_t>(config.vocab_size)) {
    return Bad(fmt::format("found classes for {} tokens, expected {}", token_map_.size(),
                           config.vocab_size));
  }
  const auto [low, high] = std::minmax_element(token_map_.begin(), token_map_.end());
  if (*low < 0 || *high + 1 != config.ngram_num_classes) {
    return Bad(fmt::format("found classes {} to {}, expected 0 to {}", *low, *high,
                           config.ngram_num_classes - 1));
  }
  const int64_t most = std::numeric_limits<int64_t>::max() / config.ngram_num_classes;
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = tables_[i];
    for (const int64_t multiplier : table.multipliers) {
      if (multiplier < 1 || multiplier > most) {
        return Bad(fmt::format("found multiplier {}, expected 1 to {}", multiplier, most));
      }
    }
    if (*std::min_element(table.primes.begin(), table.primes.end()) < 2) {
      return Bad("found a prime below 2, expected primes");
    }
    table.offsets = PrefixSums(table.primes);
    const int64_t rows = table.offsets.back() + table.primes.back();
    if (rows != config.ngram_table_rows[i]) {
      return Bad(fmt::format("found primes that sum to {} at layer {}, expected {} table rows",
                             rows, config.ngram_layers[i], config.ngram_table_rows[i]));
    }
  }
  pad_class_ = ClassOf(config.ngram_pad_token);
  num_heads_ = config.ngram_num_heads;
  return Status::Ok();
}

void NgramLayout::Rows(int table, std::span<const int32_t> classes, std::span<int64_t> rows) const {
  const Table& t = tables_[static_cast<size_t>(table)];
  DCHECK(classes.size() == t.multipliers.size());
  DCHECK(rows.size() == t.primes.size());
  bool blocked = false;
  int64_t mixed = 0;
  size_t out = 0;
  for (size_t back = 0; back < classes.size(); ++back) {
    blocked = blocked || classes[back] == kDeadClass;
    const int64_t id = blocked ? pad_class_ : classes[back];
    mixed ^= id * t.multipliers[back];
    if (back == 0) continue;
    for (int head = 0; head < num_heads_; ++head, ++out) {
      rows[out] = mixed % t.primes[out] + t.offsets[out];
    }
  }
}

}  // namespace deepinfer
