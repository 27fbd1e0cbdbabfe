// Compares every id with the tokenizers library that the files were made for.  It comes from npm
// and is installed into the build folder; without npm the test fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

using nlohmann::json;

const Path kSource = DEEPINFER_SOURCE_DIR;

// Where the library is installed: beside the build's programs.
Path InstallDir() { return Path(DEEPINFER_BINARY).parent_path().parent_path() / "tokenizer_npm"; }

int Run(const std::string& command) { return std::system(command.c_str()); }

void Install() {
  const Path from = kSource / "tests" / "tokenizer_npm";
  std::filesystem::create_directories(InstallDir());
  for (const char* name : {"package.json", "package-lock.json", "encode.js"}) {
    std::filesystem::copy_file(from / name, InstallDir() / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  // Written last, so that an interrupted installation is repeated.
  const Path done = InstallDir() / "installed";
  if (std::filesystem::exists(done)) return;
  ASSERT_EQ(Run(fmt::format("cd '{}' && npm ci --no-audit --no-fund", InstallDir().string())), 0)
      << "npm ci must succeed in " << InstallDir();
  std::ofstream(done) << "\n";
}

// Makes texts that mix scripts, so that all borders between kinds of characters occur.
class TextMaker {
 public:
  explicit TextMaker(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string Make() {
    std::string text;
    const size_t pieces = 1 + random_() % 40;
    for (size_t i = 0; i < pieces; ++i) text += Piece();
    return text;
  }

 private:
  struct Block {
    char32_t first;
    char32_t last;
  };

  std::string Piece() {
    switch (random_() % 12) {
      case 0:
      case 1:
        return Words();
      case 2:
        return Code();
      case 3:
        return From(kScripts[random_() % std::size(kScripts)], 12);
      case 4:
        return From(kScripts[random_() % std::size(kScripts)], 2);
      case 5:
        return WhiteSpace();
      case 6:
        return From({'0', '9'}, 9) + From(kDigits[random_() % std::size(kDigits)], 5);
      case 7:
        return From(kSymbols[random_() % std::size(kSymbols)], 6);
      case 8:
        return Marked();
      case 9:
        return From({0x00, 0x1F}, 3) + From({0x7F, 0xA0}, 2);
      case 10:
        return AddedToken();
      default:
        return From({0x20, 0x2FFF}, 4) + From({0xF900, 0x1FAFF}, 1);
    }
  }

  std::string Words() {
    static constexpr const char* kWords[] = {"the",
                                             " quick",
                                             " brown",
                                             "Fox",
                                             "don't",
                                             "THEY'RE",
                                             " naïve",
                                             "Straße",
                                             "l'été",
                                             "e-mail",
                                             " a",
                                             "I'm",
                                             "xAI",
                                             "HTTP",
                                             "world",
                                             " internationalization",
                                             "WE'LL",
                                             "o'",
                                             "'s",
                                             " 'tis",
                                             "-ing",
                                             "co-op",
                                             "antidisestablishmentarianism"};
    std::string text;
    for (size_t i = 0; i < 1 + random_() % 8; ++i) text += kWords[random_() % std::size(kWords)];
    return text;
  }

  std::string Code() {
    static constexpr const char* kLines[] = {
        "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * 1e-05f;\n}\n",
        "def f(x, *, y=None):\n    return {'k': [x ** 2, y or \"z\"]}\n",
        "<div class=\"a-b\">&nbsp;</div>\r\n\r\n",
        "SELECT * FROM t WHERE a<>b AND c LIKE '%x_%';--",
        "#include <vector>\n\n\n  template<typename T>\r  using V=std::vector<T>;",
        "https://a.example/b?c=d&e=%20f#g_h",
        "\\frac{a}{b}^2_{i+1} $\\alpha$",
        "{\"a\":-1.5e+10,\"b\":[true,false,null]}",
        "!!!???...,,,;;;***___---###@@@",
        "$x->y->{z}[0] =~ s/\\s+//g;"};
    return kLines[random_() % std::size(kLines)];
  }

  std::string WhiteSpace() {
    static constexpr char32_t kSpaces[] = {' ',    ' ',    ' ',    ' ',    '\t',   '\n',   '\n',
                                           '\r',   0x0B,   0x0C,   0x85,   0xA0,   0x1680, 0x180E,
                                           0x2000, 0x2003, 0x200A, 0x200B, 0x200D, 0x2028, 0x2029,
                                           0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF};
    // Few kinds in one run, so that long runs occur.
    const size_t kinds = random_() % 3 == 0 ? std::size(kSpaces) : 1;
    const size_t first = random_() % std::size(kSpaces);
    const size_t length = random_() % 10 == 0 ? random_() % 300 : random_() % 6;
    std::string text;
    for (size_t i = 0; i < length; ++i) {
      AppendCodePoint(kSpaces[(first + random_() % kinds) % std::size(kSpaces)], text);
    }
    return text;
  }

  std::string Marked() {
    std::string text;
    for (size_t i = 0; i < 1 + random_() % 5; ++i) {
      text += From({'a', 'z'}, 2);
      text += From(kMarks[random_() % std::size(kMarks)], 3);
    }
    return text;
  }

  // Whole, cut short, or one glued to another.
  std::string AddedToken() {
    for (;;) {
      const auto id =
          static_cast<int32_t>(random_() % static_cast<uint32_t>(tokenizer_.vocab_size()));
      const bool special = random_() % 2 == 0;
      const int32_t token = special ? tokenizer_.special().system + id % 30 : id;
      if (!tokenizer_.IsAdded(token)) continue;
      const std::string spelling(tokenizer_.SpellingOf(token));
      if (random_() % 4 != 0) return spelling;
      std::string cut = spelling.substr(0, random_() % spelling.size());
      while (FirstInvalidUtf8(cut)) cut.pop_back();
      return cut + (random_() % 2 == 0 ? spelling : "");
    }
  }

  // Up to `most` characters of a block, assigned or not; surrogates are left out.
  std::string From(Block block, size_t most) {
    std::string text;
    const size_t count = random_() % (most + 1);
    for (size_t i = 0; i < count; ++i) {
      const char32_t c = block.first + random_() % (block.last - block.first + 1);
      if (c < 0xD800 || c > 0xDFFF) AppendCodePoint(c, text);
    }
    return text;
  }

  static constexpr Block kScripts[] = {
      {0x4E00, 0x9FFF}, {0x4E00, 0x9FA5},   {0x3040, 0x30FF},   {0xAC00, 0xD7A3}, {0x0400, 0x04FF},
      {0x0370, 0x03FF}, {0x0590, 0x05F4},   {0x0600, 0x06FF},   {0x0900, 0x097F}, {0x0E01, 0x0E5B},
      {0x1000, 0x109F}, {0x10A0, 0x10FF},   {0x1E00, 0x1EFF},   {0x00C0, 0x024F}, {0xFF00, 0xFFEF},
      {0x3400, 0x4DBF}, {0x20000, 0x2A6DD}, {0x1D400, 0x1D7FF}, {0x3100, 0x31FF}, {0x0530, 0x058F}};
  static constexpr Block kDigits[] = {{0x0660, 0x0669}, {0xFF10, 0xFF19}, {0x2150, 0x218B},
                                      {0x00B0, 0x00BE}, {0x2460, 0x24FF}, {0x3220, 0x32FF}};
  static constexpr Block kSymbols[] = {{'!', '/'},         {'!', '~'},         {0x2010, 0x205E},
                                       {0x20A0, 0x20BF},   {0x2190, 0x22FF},   {0x2500, 0x27BF},
                                       {0x3000, 0x303F},   {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF},
                                       {0x1F1E6, 0x1F1FF}, {0x00A1, 0x00BF},   {0xFE30, 0xFE6F}};
  static constexpr Block kMarks[] = {{0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD},
                                     {0x064B, 0x065F}, {0x093A, 0x094F},   {0x20D0, 0x20F0},
                                     {0xFE00, 0xFE0F}, {0x1F3FB, 0x1F3FF}, {0x200C, 0x200D}};

  const Tokenizer& tokenizer_;
  std::mt19937 random_{20260802};
};

std::vector<std::string> MakeTexts(const Tokenizer& tokenizer, size_t bytes) {
  TextMaker maker(tokenizer);
  std::vector<std::string> texts = {std::string(50'000, ' '), std::string(20'000, 'a'),
                                    std::string(5'000, '\n') + "x"};
  for (size_t total = 0; total < bytes; total += texts.back().size()) texts.push_back(maker.Make());
  return texts;
}

void CompareWithLibrary(const std::string& file, size_t bytes) {
  const Path path = kSource / file;
  const Result<Tokenizer> tokenizer = Tokenizer::Load(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::vector<std::string> texts = MakeTexts(*tokenizer, bytes);
  const std::string name = path.parent_path().filename().string();
  const Path in = InstallDir() / (name + "_texts.json");
  const Path out = InstallDir() / (name + "_results.json");
  std::ofstream(in) << json(texts).dump();
  ASSERT_EQ(Run(fmt::format("cd '{}' && node encode.js '{}' '{}' '{}'", InstallDir().string(),
                            path.string(), in.string(), out.string())),
            0);
  const json results = json::parse(std::ifstream(out));
  ASSERT_EQ(results.size(), texts.size());
  size_t tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto expected = results[i]["ids"].get<std::vector<int32_t>>();
    const Result<std::vector<int32_t>> ids = tokenizer->Encode(texts[i]);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    ASSERT_EQ(*ids, expected) << "text " << i << ": " << json(texts[i]).dump();
    ASSERT_EQ(tokenizer->Decode(*ids), results[i]["text"].get<std::string>());
    ASSERT_EQ(tokenizer->Decode(*ids), texts[i]);
    tokens += expected.size();
  }
  EXPECT_GT(tokens, bytes / 8);
}

// One test, because two at a time would install over each other.
TEST(TokenizerNpmTest, EncodesAndDecodesMixedTextLikeTheLibrary) {
  ASSERT_NO_FATAL_FAILURE(Install());
  CompareWithLibrary("tests/data/tokenizer.json", 600'000);
  CompareWithLibrary("models/nano/tokenizer.json", 200'000);
}

}  // namespace
}  // namespace deepinfer
