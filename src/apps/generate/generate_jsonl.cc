#include "apps/generate/generate_jsonl.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "apps/generate/figures.h"
#include "apps/open_engine.h"

namespace deepinfer {
namespace {

Status Stopped(const JsonlSummary& summary, const std::string& where) {
  return Cancelled(
      fmt::format("stopped by Ctrl-C: {} has the first {} results, the last {} of them cut short "
                  "(finish_reason \"cancelled\"); the lines after them have none",
                  where, summary.lines, summary.cancelled));
}

// Gives the file its name, if it has one, and says how the run went.
Status Close(std::optional<FileWriter>& file, const std::string& in, const std::string& out,
             const JsonlSummary& summary) {
  const std::string partial = out + ".partial";
  if (file) RETURN_IF_ERROR(summary.complete ? file->Commit() : file->CommitAs(partial));
  if (!summary.complete) return Stopped(summary, file ? partial : "stdout");
  if (summary.cancelled > 0) {
    return Cancelled(
        fmt::format("stopped by Ctrl-C: every line has its result, the last {} of {} cut short "
                    "(finish_reason \"cancelled\")",
                    summary.cancelled, summary.lines));
  }
  if (summary.failed == 0) return Status::Ok();
  return CorruptData(
      fmt::format("{}: found {} of {} lines that failed, expected none; the results "
                  "say why",
                  in, summary.failed, summary.lines));
}

}  // namespace

Status GenerateJsonl(const CommandContext& context, const JsonlFiles& files,
                     const JsonlOptions& options) {
  ASSIGN_OR_RETURN(LineSource source, LineSource::Open(files.in));
  const bool to_file = !files.out.empty() && files.out != "-";
  std::optional<FileWriter> file;
  if (to_file) {
    ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(files.out));
    file.emplace(std::move(writer));
  }
  ASSIGN_OR_RETURN(Engine engine, OpenEngine(context.global, options.prefill, options.engine));
  const LineSink sink = [&](std::string_view line) {
    return file ? file->Write(line) : context.out.WriteNow(line);
  };
  ASSIGN_OR_RETURN(const JsonlSummary summary, RunJsonl(engine, source, options, sink));
  fmt::print(stderr, "{}\n{}", FiguresOf(summary, options.prefill.Options()),
             OpTable(engine.Statistics()));
  return Close(file, source.name(), files.out, summary);
}

}  // namespace deepinfer
