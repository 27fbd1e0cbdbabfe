#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace deepinfer {

void CheckFailed(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, what.c_str());
  std::abort();
}

}  // namespace deepinfer
