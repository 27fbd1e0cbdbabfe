// Which form of a packed row an order asks for; the forms are the instruction set's own.
#pragma once

#include "kernels/kernels.h"

namespace deepinfer::vector {

// Forms are called with (params, row [k] fp32, out [stride] bf16, stride).  Always inlined: the
// forms of two instruction sets have the same type.
template <typename Form>
[[gnu::always_inline]] inline void PackRows(const PackParams& p, int64_t begin, int64_t end,
                                            Form natural, Form fp8, Form fp4) {
  const int64_t stride = PackedStride(p.order, p.k);
  const Form form = p.order == ColumnOrder::kFp8   ? fp8
                    : p.order == ColumnOrder::kFp4 ? fp4
                                                   : natural;
  for (int64_t i = begin; i < end; ++i) {
    form(p, p.x + i * p.x_stride, p.out + i * stride, stride);
  }
}

}  // namespace deepinfer::vector
