// CHECK: a bug in this program, never a reaction to outside input.  Prints the condition, the place
// and, for CHECK_EQ and friends, both values, then aborts; stays on in release builds.
// DCHECK: the same for inner loops, debug builds only.
#pragma once

#include <fmt/format.h>

#include <string>

namespace deepinfer {

[[noreturn]] void CheckFailed(const char* file, int line, const std::string& what);

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) ::deepinfer::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_OP_(a, op, b)                                                       \
  do {                                                                            \
    const auto check_a_ = (a);                                                    \
    const auto check_b_ = (b);                                                    \
    if (!(check_a_ op check_b_))                                                  \
      ::deepinfer::CheckFailed(                                                   \
          __FILE__, __LINE__,                                                     \
          ::fmt::format("{} " #op " {} ({} vs {})", #a, #b, check_a_, check_b_)); \
  } while (false)
#define CHECK_EQ(a, b) CHECK_OP_(a, ==, b)
#define CHECK_NE(a, b) CHECK_OP_(a, !=, b)
#define CHECK_LE(a, b) CHECK_OP_(a, <=, b)
#define CHECK_LT(a, b) CHECK_OP_(a, <, b)
#define CHECK_GE(a, b) CHECK_OP_(a, >=, b)
#define CHECK_GT(a, b) CHECK_OP_(a, >, b)

#ifdef NDEBUG
#define DCHECK(condition) \
  do {                    \
  } while (false)
#else
#define DCHECK(condition) CHECK(condition)
#endif

}  // namespace deepinfer
