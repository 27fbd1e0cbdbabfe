// A line of a JSONL file -> a request whose parameters can be judged, or an error that can be told.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/generate/jsonl_request.h"
#include "apps/generate/result_json.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  deepinfer::JsonlRequest request;
  const deepinfer::Status status = deepinfer::ParseJsonlRequest(line, request);
  CHECK(nlohmann::json::accept(request.id));
  if (!status.ok()) {
    CHECK(nlohmann::json::accept(deepinfer::ErrorJson(status, request.id, 1)));
    return 0;
  }
  CHECK(request.source.text.has_value() != request.source.messages.has_value());
  request.options.FillFrom({.temperature = 0.5, .max_tokens = 3});
  CHECK(request.options.temperature.has_value());
  (void)request.options.SamplingOver({}).Validate(100);
  (void)deepinfer::ChatOptionsOf(request.options);
  return 0;
}
