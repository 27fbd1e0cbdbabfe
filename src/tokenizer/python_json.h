// JSON values that print as Python's json.dumps(value, ensure_ascii=False) prints them: the prompt
// format is defined by that function, and the model was trained on its spacing, key order and
// spelling of numbers (prompt_format.md section 3).  Private to the tokenizer folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

struct JsonMember;

struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kList, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  // kString: its characters, UTF-8.  kNumber: as Python prints it, so that integers keep all
  // their digits.
  std::string text;
  std::vector<JsonValue> items;
  // In order of first appearance; a repeated key keeps its last value, as in Python.
  std::vector<JsonMember> members;

  bool IsString() const { return kind == Kind::kString; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsObject() const { return kind == Kind::kObject; }
  // Null for a missing key, for a key whose value is null, and for values that are no object.
  const JsonValue* Find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// InvalidArgument with the byte offset for text that is not one JSON value, or one that is nested
// deeper than 512.
Result<JsonValue> ParseJson(std::string_view text);

// json.dumps(value, ensure_ascii=False)
std::string PythonDump(const JsonValue& value);
// The same for a string, quotes included.
std::string PythonDump(std::string_view text);

// repr(value) of a finite float.
std::string PythonFloat(double value);

// What a value is, for a message: "the string 'abc'", "a list of 3", "null", ...
std::string DescribeJson(const JsonValue* value);

}  // namespace deepinfer
