// Log lines on stderr (stdout belongs to results).  Safe from any thread; spdlog stays behind
// log.cc.
#pragma once

#include <string_view>

namespace deepinfer {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view message);

inline void LogDebug(std::string_view message) { Log(LogLevel::kDebug, message); }
inline void LogInfo(std::string_view message) { Log(LogLevel::kInfo, message); }
inline void LogWarning(std::string_view message) { Log(LogLevel::kWarning, message); }
inline void LogError(std::string_view message) { Log(LogLevel::kError, message); }

}  // namespace deepinfer
