// Puts and gets of one interface: gathered into lists, and each list moved by one kernel of the GPU
// that holds the local memory, or, from host memory to host memory, by one call of the operating
// system's kernel. Used with UCX's worker locked.
//
//   add() ... complete_with()      into the open list of that GPU, which begins at once where
//                                  nothing is under way there, or few are posted at a time
//   progress() that sees no more   the mover is given the list, or it is launched on the GPU's
//   coming, flush(), enough bytes  stream; the next one opens
//   progress()                     it has been moved: completions, flushes, waiting requests
//
// Lists of one GPU that are launched run one after the other, in the order of their adding; orders,
// blocks that are copied while others are under way, and lists of different GPUs, side by side, but
// for fence(). A block that is alone in its list, and is no order, goes by a copy engine. Lists of
// host memory end where they begin: at a progress that sees no more come, or when enough is
// gathered.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "ucs/base/tick_clock.hpp"
#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"
#include "uct/cuda_nc/layout_order.hpp"
#include "uct/cuda_nc/one_sided/key.hpp"
#include "uct/cuda_nc/turns.hpp"
#include "uct/cuda_nc/ucx/abi_memory.hpp"

namespace cuda_nc::uct {

class list_mover {
  public:
    // Pairs of a list, and the bytes from which on it is launched without waiting for progress.
    static constexpr size_t list_pairs = 16384;
    static constexpr uint64_t list_bytes = 32 << 20;
    static constexpr uint64_t host_list_bytes = 256 << 10;
    // From this length on a block that is alone goes by a copy engine.
    static constexpr uint64_t copied_length = 1 << 20;
    // And from this one on with others, each in a list of its own: as quick as one kernel for all,
    // and the GPU's multiprocessors are left to the application.
    static constexpr uint64_t always_copied_length = 4 << 20;
    // Lists of one GPU under way; then add() says UCS_ERR_NO_RESOURCE.
    static constexpr size_t most_lists = 256;
    // Lists of one GPU that its mover is given, or blocks that are copied, one by one; more of them
    // are gathered first.
    static constexpr size_t most_begun_singly = 4;

    // `worker` is UCT's; `turns`, which may be null, is closed with the mover.
    list_mover(const ucx_api &ucx, void *worker, worker_turns *turns) noexcept;
    ~list_mover();  // waits for the GPUs; completes nothing
    list_mover(const list_mover &) = delete;
    list_mover &operator=(const list_mover &) = delete;

    enum class direction : uint8_t { put, get };
    // Lanes: the ordinal of the GPU that holds the local memory; memory that launches do not
    // reach, which goes by copies; or, below, host memory that goes to or comes from one process.
    static constexpr int unreached = -1;
    static int host_lane(const host_process &with, direction dir) noexcept {
        return unreached - 1 - 2 * with.number() - (dir == direction::put ? 0 : 1);
    }
    // `length` bytes between `local` and the owner's `remote`. Errors, after which nothing was
    // added: UCS_ERR_INVALID_PARAM (outside of the key's memory), UCS_ERR_UNREACHABLE,
    // UCS_ERR_NO_MEMORY, UCS_ERR_NO_RESOURCE.
    ucs_status_t add(int lane, direction dir, char *local, remote_key &key, uint64_t remote,
                     uint64_t length) noexcept;
    // All of `order`, by a launch of its own; the key's memory holds its remote bytes. Waits for
    // the GPU where there is no room. `completion`, which may be null, is called once when it has
    // ended. Errors, after which nothing was added: UCS_ERR_UNREACHABLE, UCS_ERR_NO_MEMORY,
    // UCS_ERR_NO_RESOURCE (a fence waits).
    ucs_status_t add(int lane, layout_order &order, remote_key &key,
                     abi::uct_completion *completion) noexcept;
    // Waits for the GPU until add() would not say UCS_ERR_NO_RESOURCE.
    void make_room(int lane) noexcept;

    // The call that has added ends. `completion`, which may be null, is called once when all that
    // was added so far to the lane has ended: with an error if any list failed that the call has
    // added to.
    void complete_with(int lane, abi::uct_completion *completion) noexcept;
    // All that was added so far, and by requests that wait for room, is to end before anything that
    // is added later begins. While such requests wait add() says UCS_ERR_NO_RESOURCE.
    void fence() noexcept;
    // Launches what is gathered. UCS_OK: nothing is under way. UCS_INPROGRESS: `completion`, which
    // may be null, is called when all that was added so far has ended. Either tells of a failure
    // since the flush before that no completion has told of.
    ucs_status_t flush(abi::uct_completion *completion) noexcept;
    unsigned progress() noexcept;   // how much has happened
    bool is_idle() const noexcept;  // nothing is under way
    // Nor does a flush or a request wait.
    bool is_quiet() const noexcept;

    // As a transport's operation pending_add; `request` begins with a function, as in UCX.
    ucs_status_t add_pending(const void *ep, void *request) noexcept;
    using purge_callback = void (*)(void *request, void *argument);
    void purge_pending(const void *ep, purge_callback callback, void *argument) noexcept;

    // Of processes that have ended, whose memory nobody moves any more.
    void forget_the_gone() noexcept;

    struct list;  // what one launch moves

  private:
    using clock = tick_clock;
    struct lane;
    struct flush_entry {
        uint64_t last;           // the number of the list that ends it, ...
        uint64_t after_pending;  // ... which is not known while this request waits; 0: it is
        abi::uct_completion *completion;
    };
    struct pending_entry {
        const void *ep;
        void *request;
        uint64_t number;             // from 1 on
        bool fence_follows = false;  // what was added behind it waits for it
    };

    // What has ended together, and is still to be called.
    struct owed_completions {
        std::vector<abi::uct_completion *> completions;
        ucs_status_t status;
        std::shared_ptr<const layout_order> order;  // kept until the calls have returned
    };

    void note_post() noexcept {
        if (turns_ != nullptr && !progresses_) {
            turns_->note_post();
        }
    }
    lane *lane_of(int number, const remote_key &key) noexcept {
        return recent_ != nullptr && recent_number_ == number ? recent_ : find_lane(number, key);
    }
    lane *find_lane(int number, const remote_key &key) noexcept;
    static peer_memory reach(const lane &on, const remote_key &key) noexcept;
    ucs_status_t open_list(lane &on, bool of_pairs) noexcept;
    static void use_copying_stream(lane &on, list &its) noexcept;
    static void put_back(lane &on, std::unique_ptr<list> unused);
    void put_back_open(lane &on) noexcept;
    ucs_status_t append_parts(lane &on, const gpu::block_pair &block) noexcept;
    ucs_status_t append(lane &on, const gpu::block_pair &block) noexcept;
    ucs_status_t cut_alone(lane &on) noexcept;
    static bool add_pair(lane &on, direction dir, char *local, const remote_key &key,
                         const remote_key::note &note, uint64_t remote, uint64_t length) noexcept;
    ucs_status_t add_block(lane &on, direction dir, char *local, remote_key &key,
                           remote_key::note &note, uint64_t remote, uint64_t length) noexcept;
    void close_list(lane &on) noexcept;
    void close_all() noexcept;
    void launch_closed(lane &on) noexcept;
    bool may_begin(const gpu::stream *behind, uint64_t after) const noexcept;
    void begin_at_once(lane &on) noexcept;
    void begin(lane &on, list &closed, bool by_order) noexcept;
    void end_lists(lane &on) noexcept;
    // So that no completion is lost for want of memory. Throws std::bad_alloc.
    void reserve_owed() {
        if (owed_.capacity() - owed_.size() < 2) {
            owed_.reserve(2 * owed_.size() + 8);
        }
    }
    void renew_streams(lane &on) noexcept;
    void note_failure(ucs_status_t status, bool is_told) noexcept;
    bool end_list(lane &on) noexcept;  // false: no memory, and it has not ended
    void await_lists(const lane &on, size_t most) noexcept;
    void await_all() noexcept;
    bool is_left_to_poster() noexcept;
    unsigned call_owed() noexcept;
    unsigned end_flushes() noexcept;
    unsigned release_pending() noexcept;
    void fence_lists() noexcept;
    // Whether what is added now has to stay behind a fence that waits for requests.
    bool is_fenced() const noexcept { return num_fences_ != 0 && !releases_; }
    static bool is_complete(lane &on) noexcept;
    uint64_t oldest() const noexcept;

    progress_hook progress_;
    worker_turns *const turns_;
    std::map<int, lane> lanes_;
    lane *recent_ = nullptr;
    int recent_number_ = 0;
    std::vector<owed_completions> owed_;
    struct {
        clock::time_point since;   // zero: it is not
        clock::time_point posted;  // when `posts` changed
        uint64_t posts = 0;
    } left_;  // what is owed, to the thread that posts
    std::deque<flush_entry> flushes_;
    std::deque<pending_entry> pending_;
    size_t num_fences_ = 0;          // that follow requests
    bool releases_ = false;          // the request that was the first one
    uint64_t last_pending_ = 0;      // number
    uint64_t last_number_ = 0;       // of a list
    ucs_status_t failure_ = UCS_OK;  // the first one that nothing has told of
    bool calls_ = false;             // completions, not all of which have been called
    unsigned calls_made_ = 0;        // of progress()
    bool progresses_ = false;        // what is added meanwhile is added by whoever progresses
    uint64_t fence_ = 0;             // lists with higher numbers wait for those up to this one
};

}  // namespace cuda_nc::uct
