// The interface to GPUs. Two backends implement it (src/ucs/backend): cuda, and sim, a simulated
// GPU for tests and machines without one. platform::instance() chooses one for the process.
//
// No call blocks unless it says so. None changes the caller's current device. All calls are thread
// safe, except that one stream or event is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ucs/base/status.hpp"
#include "ucs/gpu/block_pair.hpp"
#include "ucs/gpu/direction.hpp"
#include "ucs/gpu/kernel_rules.hpp"
#include "ucs/gpu/mover.hpp"
#include "ucs/gpu/pipe.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {

enum class memory_kind : uint8_t {
    host,     // ordinary host memory, or no GPU knows it
    pinned,   // host memory that every GPU reaches at the same address
    device,   // memory of one GPU; the CPU may not touch it
    managed,  // migrates; both may touch it
    unknown   // a GPU knows it, but not of a kind that we can serve
};

inline bool is_on_host(memory_kind kind) noexcept {
    return kind == memory_kind::host || kind == memory_kind::pinned;
}
// What our kernels move, and the CPU does not.
inline bool is_on_gpu(memory_kind kind) noexcept {
    return kind == memory_kind::device || kind == memory_kind::managed;
}

// How other processes of this machine can be given memory of a GPU.
enum class sharing : uint8_t {
    by_handle,      // of CUDA IPC: cudaMalloc
    by_descriptor,  // of a file, or a fabric's handle: cuMemCreate, where its maker asked for that
    none            // pools (cudaMallocAsync), managed memory
};

// Memory that somebody allocated in one piece.
struct allocation_info {
    char *base = nullptr;
    size_t size = 0;  // bytes
    uint64_t id = 0;  // unique among all that this process ever makes; 0: it is not known
    sharing shared = sharing::by_handle;

    // Whether all of [address, address + length) lies in it.
    bool holds(uintptr_t address, uint64_t length) const noexcept {
        const uintptr_t offset = address - reinterpret_cast<uintptr_t>(base);
        return id != 0 && offset <= size && length <= size - offset;
    }
};

struct memory_info {
    memory_kind kind = memory_kind::host;
    int device = -1;                  // ordinal for device and managed memory
    allocation_info allocation = {};  // of device and managed memory
};

// Whether a launch that reaches the one reaches the other as well. Every GPU reaches managed
// memory.
inline bool are_alike(const memory_info &one, const memory_info &other) noexcept {
    return one.kind == other.kind &&
           (one.kind == memory_kind::managed || one.device == other.device);
}

// Words in pinned memory that the thread blocks of a launch write when they end. The CPU sees them
// a microsecond sooner than an event behind the launch. They tell of success only: a launch that
// fails does not write them.
//
// Whoever uses bytes in a GPU's own memory next - a kernel, a copy engine, another GPU, a network
// card - reaches them by way of that GPU's L2 cache. So the words of a move that lands there
// (`into_own_memory`, also of other moves' ends) wait until the bytes are in that cache: a fence of
// the GPU's scope. All others wait for the bus too, 1.5 us more on an H100: a fence of the system's
// scope.
struct end_words {
    static constexpr unsigned most =
        16;                     // a cache line of the CPU, which it fetches again for each
    uint32_t *words = nullptr;  // `most` of them
    uint32_t value = 0;         // what the launch writes once its bytes are visible to the host
    unsigned count = 0;         // how many words the launch writes, which it sets; 0: none

    static constexpr size_t bytes = most * sizeof(uint32_t);
    void use(void *memory) noexcept {
        words = static_cast<uint32_t *>(memory);
        std::memset(words, 0, bytes);
    }
    // Chooses a new value, before each launch; no earlier launch may be under way.
    void renew() noexcept {
        count = 0;
        if (++value == 0) {  // wrapped: a word may hold any old value
            std::memset(words, 0, bytes);
            value = 1;
        }
    }
    bool reached() const noexcept {
        for (unsigned i = 0; i < count; ++i) {
            if (__atomic_load_n(words + i, __ATOMIC_ACQUIRE) != value) {
                return false;
            }
        }
        return count != 0;
    }
    // Polls for some tenths of a millisecond. False: not seen by then; ask an event behind the
    // launch.
    bool await() const noexcept {
        constexpr unsigned most_tries = 8192;
        for (unsigned tries = 0; count != 0 && tries < most_tries; ++tries) {
            if (reached()) {
                return true;
            }
            relax();
        }
        return false;
    }
};

// One launch: packed bytes [packed_offset, packed_offset + length) of `layout`.
struct transfer {
    direction dir = direction::pack;
    layout_view layout;      // its tables must be in memory that the device reaches
    char *base = nullptr;    // displacement 0 of the laid-out bytes (the source, for copy)
    char *packed = nullptr;  // pack, unpack: where packed byte `packed_offset` lies;
                             // copy: displacement 0 of the destination
    uint64_t packed_offset = 0;
    uint64_t length = 0;        // bytes; 0 does nothing
    unsigned max_sms = 0;       // streaming multiprocessors to use at most; 0: as many as pay
    end_words *ends = nullptr;  // null: only events tell of the end
    // All bytes land in memory of the kind `device` of the GPU that moves them.
    bool into_own_memory = false;
};

// Marks a point in a stream, the one where it was last recorded.
class event {
  public:
    virtual ~event() = default;
    // UCS_OK: all work before that point is done and visible to the host, or the event was never
    // recorded. UCS_INPROGRESS: not yet. Else the error with which that work failed: every event
    // recorded on the stream later reports it too, and later work of the stream may not have run.
    virtual ucs_status_t query() noexcept = 0;
    // Blocks until query() is not UCS_INPROGRESS.
    virtual ucs_status_t synchronize() noexcept = 0;
};

// Runs work in the order in which it is enqueued. Different streams run side by side; none is
// ordered with the application's streams.
class stream {
  public:
    virtual ~stream() = default;  // blocks until its work is done
    // Enqueues `work`, which is copied. Its memory and its layout's tables must stay until it is
    // done.
    virtual ucs_status_t launch(const transfer &work) noexcept = 0;
    // Enqueues sides of pipes by one launch, in which they run side by side. Of the `number` sides
    // it serves the first *launched_p, at least one where the status is UCS_OK; a side that uses
    // the copy engines is launched alone. `sides` are copied. Their reports show progress; the next
    // event of the stream shows an error. UCS_ERR_INVALID_PARAM: a side's numbers are out of range.
    // UCS_ERR_UNSUPPORTED: no kernel serves the layouts of the first side.
    virtual ucs_status_t launch(const pipe_work *sides, size_t number,
                                size_t *launched_p) noexcept = 0;
    // Enqueues `list`; its pairs must stay until it is done. UCS_ERR_INVALID_PARAM: a count without
    // pairs.
    virtual ucs_status_t launch(const pair_list &list) noexcept = 0;
    // Enqueues a copy between memory of any kinds. Pageable host memory may be copied before the
    // call returns; pinned and device memory is not.
    virtual ucs_status_t copy(void *destination, const void *source, size_t length) noexcept = 0;
    // The same between memory of the kind `device`, this GPU's and a peer's that it has mapped. The
    // CPU is done sooner: it need not ask what lies there.
    virtual ucs_status_t copy_gpu_memory(char *destination, const char *source,
                                         size_t length) noexcept {
        return copy(destination, source, length);
    }
    virtual ucs_status_t record(event &mark) noexcept = 0;
    // Later work of this stream waits for `mark`.
    virtual ucs_status_t wait(event &mark) noexcept = 0;
};

// A stream of the application's, borrowed for one call. Destroying this object waits for nothing.
class borrowed_stream : public stream {
  public:
    // The same for each borrowing of one stream, and never another stream's in this process; 0
    // while it is captured.
    virtual uint64_t id() const noexcept = 0;
    // What is enqueued becomes part of a graph, and may run any number of times, or never. Then
    // events may not be recorded.
    virtual bool is_capturing() const noexcept = 0;
    // While it is capturing: the graph, and what is made of it, keep `what`, which is released on
    // any thread, where no GPU may be called.
    virtual ucs_status_t keep(std::shared_ptr<void> what) noexcept = 0;
};

// Owns memory; releases it at destruction. Work that uses it must be done by then.
class memory {
  public:
    virtual ~memory() = default;
    char *address() const noexcept { return address_; }  // same on host and device for pinned
    size_t size() const noexcept { return size_; }

  protected:
    char *address_ = nullptr;
    size_t size_ = 0;
};

constexpr size_t ipc_handle_size = 64;
struct ipc_handle {
    unsigned char bytes[ipc_handle_size];
};

struct device_properties {
    std::string name;
    int ordinal = 0;
    unsigned num_sms = 0;
    size_t memory_size = 0;  // bytes
    size_t l2_size = 0;      // bytes
    unsigned compute_major = 0, compute_minor = 0;
    std::string bus_id;  // "0000:1b:00.0"
};

class device {
  public:
    virtual ~device() = default;
    virtual const device_properties &properties() const noexcept = 0;

    // The rules by which all later launches on this device choose their kernels; usual_rules until
    // then. `rules` stays the caller's and must outlive those launches.
    void set_rules(const kernel_rules *rules) noexcept {
        rules_.store(rules, std::memory_order_release);
    }
    const kernel_rules *rules() const noexcept { return rules_.load(std::memory_order_acquire); }

    // How many objects were asked for so far.
    virtual uint64_t requests() const noexcept { return 0; }
    // How many the calling thread has asked for, on all devices of this kind.
    virtual uint64_t requests_of_this_thread() const noexcept { return 0; }
    // Whether the program has reset the GPU since: then no object works any more. Makes no context.
    virtual bool was_reset() noexcept { return false; }
    // After that, once all objects are destroyed: what is made from now on works.
    virtual void begin_again() noexcept {}

    // Failures: UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR (the device is lost), UCS_ERR_UNSUPPORTED.
    virtual ucs_status_t allocate(size_t size, std::unique_ptr<memory> *memory_p) noexcept = 0;
    // For this process alone: no other one can open it. Work that uses it must be done when it is
    // released. Releasing waits for no work of this device; that of other memory may wait for all
    // of it, the application's too.
    virtual ucs_status_t allocate_private(size_t size, std::unique_ptr<memory> *memory_p) noexcept {
        return allocate(size, memory_p);
    }
    virtual ucs_status_t allocate_pinned(size_t size,
                                         std::unique_ptr<memory> *memory_p) noexcept = 0;
    // Pins [address, address + size), whole pages of this process's host memory, until the result
    // is destroyed; the pages stay the caller's. UCS_ERR_UNSUPPORTED: memory that cannot be pinned,
    // or is pinned already.
    virtual ucs_status_t pin(void *address, size_t size,
                             std::unique_ptr<memory> *memory_p) noexcept = 0;
    virtual ucs_status_t create_stream(std::unique_ptr<stream> *stream_p) noexcept = 0;
    virtual ucs_status_t create_event(std::unique_ptr<event> *event_p) noexcept = 0;
    // `foreign`: a cudaStream_t, null for the legacy default stream; of the simulated GPU a
    // user_stream, null for the one that each GPU has. Work is enqueued there, in its order.
    // UCS_ERR_INVALID_PARAM: it is another GPU's, or takes no work now. UCS_ERR_UNSUPPORTED: the
    // driver is too old.
    virtual ucs_status_t borrow_stream(void *foreign,
                                       std::unique_ptr<borrowed_stream> *stream_p) noexcept = 0;
    // Whether pipe_work::copies may be set: pulls by the copy engines.
    virtual bool copies_rows() const noexcept = 0;
    // The kernel that stays on this device and takes orders; null: there is none, now or ever.
    virtual mover *get_mover() noexcept { return nullptr; }

    // For other processes: a handle of the allocation that holds `address`, and in *offset_p the
    // bytes from its start to `address`. UCS_ERR_UNSUPPORTED: memory of a kind that has no such
    // handles. ipc_open() maps the whole allocation of another process until the result is
    // destroyed.
    virtual ucs_status_t ipc_export(const void *address, ipc_handle *handle_p,
                                    size_t *offset_p) noexcept = 0;
    // The same for memory of sharing::by_descriptor: whole pieces, [base, base + size). Others can
    // open the handle as long as *keeper_p lives, and so long the memory stays allocated.
    virtual ucs_status_t ipc_share(char * /*base*/, size_t /*size*/, ipc_handle *,
                                   std::shared_ptr<void> * /*keeper_p*/) noexcept {
        return UCS_ERR_UNSUPPORTED;
    }
    virtual ucs_status_t ipc_open(const ipc_handle &handle,
                                  std::unique_ptr<memory> *memory_p) noexcept = 0;
    // Whether ipc_open() of this handle needs no room that older mappings of the same owner's
    // memory at that address take.
    virtual bool ipc_coexists(const ipc_handle &) const noexcept { return false; }
    // Whether launches on this device reach memory of GPU `ordinal` that ipc_open() mapped; true
    // for its own ordinal. Memory that this process itself allocated on another GPU is reached by
    // copies only.
    virtual bool can_access_peer(int ordinal) const noexcept = 0;

  private:
    std::atomic<const kernel_rules *> rules_{&usual_rules};
};

// The backend that was chosen. Where there is none, num_devices() is 0 and no address is GPU memory
// that we serve.
class platform {
  public:
    virtual ~platform() = default;

    // Made at first use as UCX_CUDA_NC_GPU says (auto, cuda, sim, none); never fails, never
    // destroyed. In a child forked after that it behaves as if there were no GPU; objects that the
    // child inherited may be destroyed, which releases nothing, and fail in any other use.
    static platform &instance() noexcept;

    virtual const char *name() const noexcept = 0;  // "cuda", "sim", "none"
    virtual std::string why() const = 0;            // one sentence on how it was chosen
    // May initialise the driver, which can take a second; makes no context.
    virtual int num_devices() const noexcept = 0;
    virtual device *get_device(int ordinal) noexcept = 0;  // null where there is none
    // False: every address is host memory, now and later. True: there are GPUs, used by us or not;
    // query() calls the memory of those that we do not use `unknown`. May initialise the driver, as
    // num_devices() may.
    virtual bool sees_gpu_memory() const noexcept = 0;

    // Resolves conflicts over IPC memory with other code of this process (UCX), from now on: that
    // code cannot open a peer's new allocation while a mapping that ipc_open() made of an older,
    // freed one lies at its address. `release` is then called, on any thread, to close such
    // mappings, and the other code's call is repeated. False: not possible here; then memory that a
    // peer's application may free must not be kept mapped.
    virtual bool watch_ipc_conflicts(void (*release)() noexcept) noexcept = 0;

    // What kind of memory lies at `address`. Takes tens of ns while the process has used no GPU
    // memory, and about 130 then. The first address found on a GPU makes that GPU's context and
    // loads the kernels, which is slow.
    virtual memory_info query(const void *address) noexcept = 0;
    // What query() says of the allocation's id, in half the time. 0 too where nothing is known.
    virtual uint64_t allocation_id(const void *address) noexcept {
        return query(address).allocation.id;
    }
    // The GPU on which the memory at `address` lies, as in memory_info; -1: on none. Makes no
    // context, so it may be asked about what a peer has on a GPU that this process does not use.
    virtual int device_of(const void *address) noexcept = 0;
    // The GPU that the calling thread has made its own; -1: none.
    virtual int current_device() noexcept { return -1; }
    // The same, where it works in that GPU's primary context, as programs of the CUDA runtime do,
    // and is not in one of our own calls. Makes no context.
    virtual int current_primary_device() noexcept { return -1; }
};

}  // namespace cuda_nc::gpu
