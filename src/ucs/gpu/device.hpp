// The only door to a GPU. Two backends stand behind it: cuda/ (real) and sim/ (a simulated GPU for
// tests and machines without one), chosen once per process by platform::instance().
//
// No call blocks unless it says so. None changes the caller's current device. All are thread safe
// on different streams and events; one stream or event is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ucs/base/status.hpp"
#include "ucs/gpu/kernel_rules.hpp"
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

struct memory_info {
    memory_kind kind = memory_kind::host;
    int device = -1;  // ordinal for device and managed memory
};

enum class direction : uint8_t {
    pack,    // laid-out bytes -> packed bytes
    unpack,  // packed bytes -> laid-out bytes
    copy     // laid-out bytes -> bytes laid out alike at another address
};

// Words in pinned memory by which a launch tells of its own end. That is seen a microsecond sooner
// than the end of an event behind it; of a failure they do not tell.
struct end_words {
    static constexpr unsigned most = 16;  // a line of the CPU's cache: it is fetched again for each
    uint32_t *words = nullptr;            // `most` of them
    uint32_t value = 0;  // what each becomes when all is done and visible to the host
    unsigned count = 0;  // set by the launch: of how many of them; 0: of none

    static constexpr size_t bytes = most * sizeof(uint32_t);
    void use(void *memory) noexcept {
        words = static_cast<uint32_t *>(memory);
        std::memset(words, 0, bytes);
    }
    // Before a launch; no earlier one may be under way.
    void renew() noexcept {
        count = 0;
        if (++value == 0) {  // some may be as old as that
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
    // Looks for some tenths of a millisecond. False: a mark behind the launch knows.
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
    end_words *ends = nullptr;  // null: only events tell
};

// Marks a point in a stream, the one where it was last recorded.
class event {
  public:
    virtual ~event() = default;
    // UCS_OK when everything before the mark is done and visible to the host, or the mark was never
    // recorded; UCS_INPROGRESS; or the error with which that work failed. After such an error every
    // later mark of the stream reports it too, and later work of the stream may not have run.
    virtual ucs_status_t query() noexcept = 0;
    // Blocks until query() is not UCS_INPROGRESS.
    virtual ucs_status_t synchronize() noexcept = 0;
};

// Work in order. Different streams run side by side; none is ordered with the application's.
class stream {
  public:
    virtual ~stream() = default;  // waits for its work
    // Enqueues; `transfer` is copied. Memory must stay until the work is done.
    virtual ucs_status_t launch(const transfer &work) noexcept = 0;
    // Enqueues sides of pipes by one launch, in which they run side by side: as many of the first
    // of `number` as one launch serves, *launched_p, at least one where the status is UCS_OK.
    // `sides` are copied. One that goes by the copy engines is launched by itself. Progress is seen
    // in their reports; an error in the stream's next mark. UCS_ERR_INVALID_PARAM: the numbers of
    // one make no sense; UCS_ERR_UNSUPPORTED: the first has a layout that no pipe takes.
    virtual ucs_status_t launch(const pipe_work *sides, size_t number,
                                size_t *launched_p) noexcept = 0;
    // Enqueues a copy between memory of any kinds. Pageable host memory may be copied before the
    // call returns; pinned and device memory is not.
    virtual ucs_status_t copy(void *destination, const void *source, size_t length) noexcept = 0;
    virtual ucs_status_t record(event &mark) noexcept = 0;
    // Later work of this stream waits for `mark`.
    virtual ucs_status_t wait(event &mark) noexcept = 0;
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

// Memory that somebody allocated in one piece.
struct allocation_info {
    char *base = nullptr;
    size_t size = 0;  // bytes
    uint64_t id = 0;  // of no other allocation that this process ever makes; not 0
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

    // How kernels are chosen, by launches on streams old and new, from here on; `rules` must stay
    // for as long. The usual ones where nobody says.
    void set_rules(const exec::kernel_rules *rules) noexcept {
        rules_.store(rules, std::memory_order_release);
    }
    const exec::kernel_rules *rules() const noexcept {
        return rules_.load(std::memory_order_acquire);
    }

    // Failures: UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR (the device is lost), UCS_ERR_UNSUPPORTED.
    virtual ucs_status_t allocate(size_t size, std::unique_ptr<memory> *memory_p) noexcept = 0;
    virtual ucs_status_t allocate_pinned(size_t size,
                                         std::unique_ptr<memory> *memory_p) noexcept = 0;
    // Makes [address, address + size) of the process's memory, whole pages, pinned for as long as
    // the result lives; the pages stay the caller's. UCS_ERR_UNSUPPORTED: not memory of that kind.
    virtual ucs_status_t pin(void *address, size_t size,
                             std::unique_ptr<memory> *memory_p) noexcept = 0;
    virtual ucs_status_t create_stream(std::unique_ptr<stream> *stream_p) noexcept = 0;
    virtual ucs_status_t create_event(std::unique_ptr<event> *event_p) noexcept = 0;
    // Before the first pipe: loads what pipes launch, which may synchronise the device; again it
    // costs nothing.
    virtual ucs_status_t prepare_pipes() noexcept = 0;

    // Whether launches of pipes take such as go by the copy engines (pipe_work::copies).
    virtual bool copies_rows() const noexcept = 0;

    // What holds `address`, in this device's memory, whoever allocated it. UCS_ERR_UNSUPPORTED:
    // that cannot be said.
    virtual ucs_status_t find_allocation(const void *address, allocation_info *info_p) noexcept = 0;

    // Between processes. The peer sees the whole allocation, and *offset_p says where in it the
    // address lies. UCS_ERR_UNSUPPORTED: memory of a kind that is not shared so.
    virtual ucs_status_t ipc_export(const void *address, ipc_handle *handle_p,
                                    size_t *offset_p) noexcept = 0;
    virtual ucs_status_t ipc_open(const ipc_handle &handle,
                                  std::unique_ptr<memory> *memory_p) noexcept = 0;
    // Whether memory of GPU `ordinal` that ipc_open() gave can be reached; true for the own
    // ordinal. Other memory of another GPU of this process is not reached by launches, only by
    // copies.
    virtual bool can_access_peer(int ordinal) const noexcept = 0;

  private:
    std::atomic<const exec::kernel_rules *> rules_{&exec::usual_rules};
};

// The chosen backend, or none: num_devices() is 0, and no memory is a GPU's that we would serve.
class platform {
  public:
    virtual ~platform() = default;

    // Made at first use by UCX_CUDA_NC_GPU (auto, cuda, sim, none); never fails, lives for ever.
    // In a child forked after that it answers as if there were no GPU; what the child inherited may
    // be destroyed, which releases nothing, and fails in any other use.
    static platform &instance() noexcept;

    virtual const char *name() const noexcept = 0;  // "cuda", "sim", "none"
    virtual std::string why() const = 0;            // one sentence on how it was chosen
    // May initialise the driver, which can take a second; makes no context.
    virtual int num_devices() const noexcept = 0;
    virtual device *get_device(int ordinal) noexcept = 0;  // null where there is none
    // False where every address is, and will be, host memory. True where there are GPUs, those that
    // we do not use included: query() tells their memory (`unknown`) from the CPU's. As
    // num_devices(), may initialise the driver.
    virtual bool sees_gpu_memory() const noexcept = 0;

    // From here on, for ever: where other code of this process (UCX) cannot open a peer's
    // allocation because memory that ipc_open() gave lies in its place, of an allocation that has
    // ended there, `release` is called, by any thread, and that code's call is made again. False:
    // this cannot be had, and memory that the peer's application frees must not be kept open.
    virtual bool watch_ipc_conflicts(void (*release)() noexcept) noexcept = 0;

    // What lies at `address`. Cheap (tens of ns) while no GPU memory has been used in the process.
    // The first address on a GPU found makes that GPU ready, which takes its time.
    virtual memory_info query(const void *address) noexcept = 0;
};

}  // namespace cuda_nc::gpu
