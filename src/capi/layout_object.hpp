// What a cuda_nc_layout_t stands for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "capi/layout_tables.hpp"
#include "cuda_nc/cuda_nc.h"
#include "ucs/exec/host/disjoint.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::capi {

class layout_object {
  public:
    layout_object(layout_ref what, int64_t extent);  // throws std::bad_alloc

    const layout_ref &what() const noexcept { return what_; }
    const layout_view &view() const noexcept { return what_->view(); }
    int64_t extent() const noexcept { return extent_; }
    // Its packed bytes, at displacement 0 of their buffer.
    const layout &packed() const noexcept { return *packed_; }
    uint64_t packed_size() const noexcept { return what_->packed_size(); }

    // Whether some byte is covered twice. The first call may take long; throws std::bad_alloc.
    exec::overlap find_overlap();
    // Whether it is known that none is.
    bool is_writable() { return find_overlap() == exec::overlap::none; }

    // Tables on GPUs, where the layout has some.
    bool has_tables() const noexcept { return view().num_blocks > 1; }
    layout_tables &tables() noexcept { return tables_; }

  private:
    static constexpr uint8_t not_asked = 255;

    const layout_ref what_;
    const int64_t extent_;
    const layout_ref packed_;
    std::atomic<uint8_t> overlap_{not_asked};
    layout_tables tables_;
};

using object_ref = std::shared_ptr<layout_object>;

// Whether bytes may be written to its places. UCS_ERR_INVALID_PARAM, with a text that names `name`:
// one place may be that of several bytes. Throws std::bad_alloc.
ucs_status_t check_target(const char *name, layout_object &what);

// A handle names an object by a number that is never used twice: nothing is read through it, so
// that one that was destroyed, or that is none, is found out.
cuda_nc_layout_t add_handle(object_ref object);  // throws std::bad_alloc
// Null: `handle` names none.
object_ref find_object(cuda_nc_layout_t handle) noexcept;
// The same; from here on it names none.
object_ref remove_handle(cuda_nc_layout_t handle) noexcept;

}  // namespace cuda_nc::capi
