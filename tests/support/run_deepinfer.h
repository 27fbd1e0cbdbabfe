// Runs the built program as a user does, and looks at what came out.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "io/file.h"
#include "tests/support/scratch_dir.h"

namespace deepinfer {

struct Outcome {
  int exit_code = -1;  // minus the signal that ended it
  std::string out;
  std::string err;
};

inline std::string Quoted(const Path& path) { return fmt::format("'{}'", path.string()); }

inline void WriteText(const Path& path, std::string_view text) {
  Result<FileWriter> file = FileWriter::Create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write(text).ok());
  ASSERT_TRUE(file->Commit().ok());
}

// Runs `prefix deepinfer arguments` in a shell, with `input` on its standard input.
inline Outcome Deepinfer(const std::string& arguments, const std::string& prefix = "",
                         const std::string& input = "") {
  const ScratchDir scratch;
  const Path in = scratch / "stdin";
  const Path out = scratch / "stdout";
  const Path err = scratch / "stderr";
  WriteText(in, input);
  const bool redirected = arguments.find('>') != std::string::npos;
  const std::string command =
      fmt::format("{} '{}' {} {} 2>{} <{}", prefix, DEEPINFER_BINARY, arguments,
                  redirected ? "" : fmt::format(">{}", Quoted(out)), Quoted(err), Quoted(in));
  const int status = std::system(command.c_str());
  Outcome run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  if (!redirected) run.out = *ReadFile(out);
  run.err = *ReadFile(err);
  return run;
}

// One line that ends with a line feed.
inline bool IsOneSentence(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

}  // namespace deepinfer
