// The frame of the command line: options of every command, help, errors and exit statuses.
#pragma once

namespace deepinfer {

// Runs the command that the arguments name and returns the exit status: 0 success, 2 wrong usage,
// 130 stopped by Ctrl-C, 1 any other failure.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace deepinfer
