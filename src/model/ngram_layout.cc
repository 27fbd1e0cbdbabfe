#include "model/ngram_layout.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

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
    if (!used.contains(n) && IsPrime(n)) {
      used.insert(n);
      primes.push_back(n);
    }
  }
  return primes;
}

// [table][order * head]
std::vector<std::vector<int64_t>> DerivePrimes(const ModelConfig& config) {
  std::set<int64_t> used;
  std::vector<std::vector<int64_t>> tables;
  for (size_t i = 0; i < config.ngram_layers.size(); ++i) {
    tables.push_back(TakePrimes(config.ngram_vocab_size, config.ngram_row_count(), used));
  }
  return tables;
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

// A number, or one spelled as a string (readers of JSON that know only doubles lose digits).
std::optional<int64_t> Integer(dom::element element) {
  int64_t value = 0;
  if (element.get(value) == simdjson::SUCCESS) return value;
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(value) : std::nullopt;
}

// Appends the integers of arrays nested as deep as `shape` is long, in reading order.
Status ReadGrid(dom::element element, const std::string& path, std::span<const size_t> shape,
                std::vector<int64_t>& out) {
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS || array.size() != shape[0]) {
    const bool is_array = element.get(array) == simdjson::SUCCESS;
    return CorruptData(fmt::format("{}: found {}, expected a list of {}", path,
                                   is_array ? fmt::format("a list of {}", array.size()) : "no list",
                                   shape[0]));
  }
  size_t index = 0;
  for (const dom::element item : array) {
    const auto item_path = [&] { return fmt::format("{}[{}]", path, index); };
    if (shape.size() > 1) {
      RETURN_IF_ERROR(ReadGrid(item, item_path(), shape.subspan(1), out));
    } else if (const std::optional<int64_t> value = Integer(item)) {
      out.push_back(*value);
    } else {
      return CorruptData(fmt::format("{}: found {}, expected an integer", item_path(),
                                     std::string(simdjson::minify(item))));
    }
    ++index;
  }
  return Status::Ok();
}

Result<std::vector<int64_t>> ReadKey(dom::object object, const std::string& key,
                                     std::vector<size_t> shape) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) {
    return CorruptData(fmt::format("{}: found nothing, expected a list of {}", key, shape[0]));
  }
  std::vector<int64_t> values;
  RETURN_IF_ERROR(ReadGrid(element, key, shape, values));
  return values;
}

// Part `index` of `count` equal parts.
std::vector<int64_t> Part(const std::vector<int64_t>& values, size_t index, size_t count) {
  const size_t size = values.size() / count;
  const auto begin = values.begin() + static_cast<ptrdiff_t>(index * size);
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

// A derivation from these numbers ends: it finds its primes below the sizes of the tables.
Status CheckConfig(const ModelConfig& config) {
  if (config.ngram_layers.empty() || config.ngram_max_order < 2 || config.ngram_num_heads < 1 ||
      config.ngram_num_classes < 1 || config.ngram_vocab_size < 1) {
    return InvalidArgument(fmt::format(
        "n-gram memory: found {} layers, order {}, {} heads, {} classes, first prime {}, expected "
        "at least 1, 2, 1, 1, 1",
        config.ngram_layers.size(), config.ngram_max_order, config.ngram_num_heads,
        config.ngram_num_classes, config.ngram_vocab_size));
  }
  if (config.ngram_table_rows.size() != config.ngram_layers.size()) {
    return InvalidArgument(fmt::format("n-gram memory: found {} table sizes, expected {}",
                                       config.ngram_table_rows.size(), config.ngram_layers.size()));
  }
  for (const int64_t rows : config.ngram_table_rows) {
    if (rows / config.ngram_row_count() < config.ngram_vocab_size) {
      return InvalidArgument(fmt::format(
          "n-gram memory: found a table of {} rows, expected at least {} primes from {} on", rows,
          config.ngram_row_count(), config.ngram_vocab_size));
    }
  }
  return Status::Ok();
}

}  // namespace

std::vector<int64_t> NgramLayout::DerivedTableRows(const ModelConfig& config) {
  std::vector<int64_t> rows;
  for (const std::vector<int64_t>& primes : DerivePrimes(config)) {
    rows.push_back(std::accumulate(primes.begin(), primes.end(), int64_t{0}));
  }
  return rows;
}

Result<NgramLayout> NgramLayout::Derive(const ModelConfig& config, std::vector<int32_t> token_map) {
  RETURN_IF_ERROR(CheckConfig(config));
  NgramLayout layout;
  layout.token_map_ = std::move(token_map);
  const std::vector<std::vector<int64_t>> primes = DerivePrimes(config);
  for (size_t i = 0; i < primes.size(); ++i) {
    layout.tables_.push_back({.multipliers = DeriveMultipliers(config, config.ngram_layers[i]),
                              .primes = primes[i],
                              .offsets = {}});
  }
  RETURN_IF_ERROR(layout.Check(config));
  return layout;
}

Result<NgramLayout> NgramLayout::Parse(const ModelConfig& config, std::string_view json) {
  RETURN_IF_ERROR(CheckConfig(config));
  const simdjson::padded_string padded(json);
  dom::parser parser;
  dom::element document;
  dom::object root;
  if (const simdjson::error_code error = parser.parse(padded).get(document)) {
    return CorruptData(fmt::format("found '{}', expected JSON", simdjson::error_message(error)));
  }
  if (document.get(root) != simdjson::SUCCESS) {
    return CorruptData("found no JSON object, expected one");
  }
  const size_t layers = config.ngram_layers.size();
  const auto orders = static_cast<size_t>(config.ngram_max_order - 1);
  const auto heads = static_cast<size_t>(config.ngram_num_heads);
  ASSIGN_OR_RETURN(const std::vector<int64_t> map,
                   ReadKey(root, "token_map", {static_cast<size_t>(config.vocab_size)}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> primes,
                   ReadKey(root, "primes", {layers, orders, heads}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> multipliers,
                   ReadKey(root, "multipliers", {layers, orders + 1}));
  NgramLayout layout;
  layout.token_map_.reserve(map.size());
  for (size_t token = 0; token < map.size(); ++token) {
    if (map[token] < 0 || map[token] >= config.ngram_num_classes) {
      return CorruptData(fmt::format("token_map[{}]: found class {}, expected 0 to {}", token,
                                     map[token], config.ngram_num_classes - 1));
    }
    layout.token_map_.push_back(static_cast<int32_t>(map[token]));
  }
  for (size_t i = 0; i < layers; ++i) {
    layout.tables_.push_back({.multipliers = Part(multipliers, i, layers),
                              .primes = Part(primes, i, layers),
                              .offsets = {}});
  }
  RETURN_IF_ERROR(layout.Check(config));
  dom::element given;
  if (root.at_key("offsets").get(given) != simdjson::SUCCESS) return layout;
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                   ReadKey(root, "offsets", {layers, orders * heads}));
  for (size_t i = 0; i < layers; ++i) {
    if (Part(offsets, i, layers) != layout.tables_[i].offsets) {
      return CorruptData(
          fmt::format("offsets[{}]: found other values than the sums of the primes, expected "
                      "those",
                      i));
    }
  }
  return layout;
}

// What Rows() relies on; also fills in what follows from the rest.
Status NgramLayout::Check(const ModelConfig& config) {
  if (token_map_.size() != static_cast<size_t>(config.vocab_size)) {
    return CorruptData(fmt::format("token_map: found classes for {} tokens, expected {}",
                                   token_map_.size(), config.vocab_size));
  }
  if (config.ngram_pad_token < 0 || config.ngram_pad_token >= config.vocab_size) {
    return InvalidArgument(fmt::format("n-gram memory: found padding token {}, expected 0 to {}",
                                       config.ngram_pad_token, config.vocab_size - 1));
  }
  const auto [low, high] = std::minmax_element(token_map_.begin(), token_map_.end());
  if (*low < 0 || *high != config.ngram_num_classes - 1) {
    return CorruptData(fmt::format("token_map: found classes {} to {}, expected 0 to {}", *low,
                                   *high, config.ngram_num_classes - 1));
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    RETURN_IF_ERROR(CheckTable(config, i));
    tables_[i].offsets = PrefixSums(tables_[i].primes);
  }
  pad_class_ = ClassOf(config.ngram_pad_token);
  num_heads_ = config.ngram_num_heads;
  return Status::Ok();
}

Status NgramLayout::CheckTable(const ModelConfig& config, size_t index) const {
  const Table& table = tables_[index];
  // A product with any class stays below 2^63.
  const int64_t largest = std::numeric_limits<int64_t>::max() / config.ngram_num_classes;
  for (const int64_t multiplier : table.multipliers) {
    if (multiplier < 1 || multiplier > largest) {
      return CorruptData(
          fmt::format("multipliers[{}]: found {}, expected 1 to {}", index, multiplier, largest));
    }
  }
  const int64_t table_rows = config.ngram_table_rows[index];
  int64_t rows = 0;
  for (const int64_t prime : table.primes) {
    if (prime < 2 || prime > table_rows - rows) {
      return CorruptData(
          fmt::format("primes[{}]: found {} after rows {}, expected at least 2, and "
                      "{} rows in all",
                      index, prime, rows, table_rows));
    }
    rows += prime;
  }
  if (rows != table_rows) {
    return CorruptData(
        fmt::format("primes[{}]: found a sum of {}, expected the {} rows of the table of layer {}",
                    index, rows, table_rows, config.ngram_layers[index]));
  }
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
