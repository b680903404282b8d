// Tables of one layout in the memory of GPUs, for kernels on the application's streams.
//
// They must outlive the kernels that read them, though no call may wait for those. So each launch
// leaves an event on its stream, one for each stream; when the layout ends, its tables are kept
// until all these events have been reached, which later calls look at (give_back_unused()). What a
// graph has captured has no end that an event could tell: the graph itself keeps the tables, as a
// user object.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::capi {

// A launch that is about to read tables, from before it until it is enqueued.
class table_use {
  public:
    // After the launch was enqueued on `on`, or was not.
    void launched(gpu::stream &on) noexcept;

  private:
    friend class layout_tables;
    worklist::work_list_ref list_;
    std::shared_ptr<gpu::event> mark_;  // null: a graph keeps the tables
};

// Thread safe.
class layout_tables {
  public:
    ~layout_tables();

    // Uploads the tables of `what` and waits for that, where it has not happened yet.
    // UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED (too many blocks), UCS_ERR_IO_ERROR. Throws
    // std::bad_alloc.
    ucs_status_t prepare(gpu::device &where, const layout_ref &what);

    // The layout with tables on that GPU; null: they are not prepared.
    const layout_view *view_on(const gpu::device &where) noexcept;

    // Before a launch on `on`. After an error nothing may be launched. Throws std::bad_alloc.
    ucs_status_t begin_use(gpu::device &where, gpu::borrowed_stream &on, table_use *use_p);

  private:
    struct stream_mark {
        uint64_t stream;
        std::shared_ptr<gpu::event> reached;
    };
    struct on_device {
        gpu::device *where;
        worklist::work_list_ref list;
        std::vector<stream_mark> marks;
    };
    friend struct retired_tables;

    on_device *find(const gpu::device &where) noexcept;

    std::mutex mutex_;
    std::vector<on_device> all_;
};

// Frees the tables of layouts that have ended and that no stream reads any more.
void give_back_unused() noexcept;
// How many tables wait for that.
size_t count_unreturned() noexcept;

}  // namespace cuda_nc::capi
