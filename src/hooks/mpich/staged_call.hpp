// An MPI call that gets host memory in place of its buffers in GPU memory, until it has ended.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "hooks/mpich/typed_memory.hpp"

namespace cuda_nc::hooks::local {

// What a replaced function returns where the call is to go to MPICH unchanged. No MPI error.
constexpr int pass_on = -1;

// MPI's function, where a replacement has no use for it.
struct not_called {
    template <typename function>
    not_called(function *) noexcept {}
};

// An array of counts or places, as wide as the caller has them.
class numbers {
  public:
    numbers(const int *array) noexcept : array_(array), is_narrow_(true) {}
    numbers(const count_t *array) noexcept : array_(array), is_narrow_(false) {}
    numbers(const intptr_t *array) noexcept : array_(array), is_narrow_(false) {}
    count_t operator[](int i) const noexcept {
        return is_narrow_ ? static_cast<const int *>(array_)[i]
                          : static_cast<const count_t *>(array_)[i];
    }

  private:
    static_assert(sizeof(intptr_t) == sizeof(count_t));
    const void *array_;
    bool is_narrow_;
};

enum class use { send, receive, update };  // update: what MPI does not write stays as it was

// Elements that a collective sends or receives as one block: what MPI is given for them.
struct uniform_side {
    const void *buffer;
    count_t count;
    handle type;
    bool on_gpu() const noexcept { return local::on_gpu(buffer, type, count); }
};

// As many blocks as there are ranks, each with a count and a place of its own.
struct varying_side {
    const void *buffer;
    numbers counts, places;
    handle type;
    const int
        *types;  // of each block, and places are bytes; null: all of `type`, places are extents
    int blocks;

    // As MPI's largest functions take them.
    struct arrays {
        std::vector<count_t> counts;
        std::vector<intptr_t> places;
        std::vector<int> types;
    };

    handle type_of(int block) const noexcept { return types != nullptr ? types[block] : type; }
    int64_t place_of(int block) const noexcept {
        return places[block] * (types != nullptr ? 1 : extent_of(type));
    }
    uniform_side at(int block) const noexcept { return {buffer, counts[block], type_of(block)}; }
    bool on_gpu() const noexcept;
};

// Reports an error to the communicator's handler, and returns what the call returns.
int report(const failure &what) noexcept;

class staged_call;
using staged_call_ptr = std::unique_ptr<staged_call>;

class staged_call {
  public:
    // Null `request`: a blocking call. Else what MPI is given to store the request.
    staged_call(handle comm, void *request) noexcept
        : comm_(comm), request_(static_cast<int *>(request)) {}
    ~staged_call();
    staged_call(const staged_call &) = delete;

    // Replaces a side, of `blocks` times its elements, by as many elements without gaps: MPICH cuts
    // some messages between elements, at the same places on all ranks. They lie on the GPU that has
    // the side's, if `on_gpu` and they are long; else in host memory.
    void stage(uniform_side *side, int blocks, use how, bool on_gpu = false);
    // The same of a side with blocks of different sizes. The arrays live as long as the call.
    varying_side::arrays &stage(varying_side *side, use how);
    varying_side::arrays &copy(const varying_side &side);
    // Replaces a side by packed bytes, for a message. `on_gpu`: as above; then it is a message of
    // ours, whatever UCX does with GPU memory.
    void stage_packed(uniform_side *side, use how, bool on_gpu = false);
    // Replaces *buffer_p by host memory in which the elements lie alike, for operations on them.
    void stage_alike(const void **buffer_p, count_t count, handle type, use how);
    // The first error is what the call ends with, though the others of a collective go on with it.
    void note(int error) noexcept { error_ = error_ != 0 ? error_ : error; }
    // The last staged side receives a message: as many bytes as its status says are there.
    void receives_message() noexcept { stages_.back().by_status = true; }

    // Calls `function` with `arguments`, and a request behind them where this call has one. A
    // blocking call is complete then; of another the user's request takes care.
    template <typename... parameters, typename... given>
    static int run(staged_call_ptr call, int (*function)(parameters...), given... arguments) {
        if constexpr (sizeof...(parameters) == sizeof...(given)) {
            const int error = call->enter(function, arguments...);
            call->free_types();
            return error != 0          ? error
                   : call->error_ != 0 ? report({call->comm_, call->error_})
                                       : call->finish();
        } else {
            const int error = function(arguments..., &call->inner_);
            call->free_types();
            return error != 0 ? error : start(std::move(call));
        }
    }
    // Calls MPI's function with what was staged. Where a thread ends inside, the bytes stay MPI's.
    template <typename... parameters, typename... given>
    int enter(int (*function)(parameters...), given... arguments) {
        is_inside_ = true;
        const int error = function(arguments...);
        is_inside_ = false;
        return error;
    }
    // Of a nonblocking call that is made of two messages: where MPI stores its requests. start()
    // then hands the call over to the user's request, as run() does.
    int *receive_request() noexcept { return &inner_; }
    int *send_request() noexcept { return &second_; }
    static int start(staged_call_ptr call);
    // Ends the receive, as the send behind it could not be started.
    void give_up_receive();
    // For a blocking message, which MPI is to fill: its status is needed to unpack it.
    status_words &status() noexcept { return status_; }

    // Unpacks. Returns an MPI error.
    int finish();

    // In front of MPI's functions of these names; they return pass_on where MPI is to do it.
    // MPICH 4.1 does not ask in MPI_Request_get_status whether a request of ours has ended.
    static int get_status(handle request, int *flag, void *status);
    static int free_request(void *request);
    // Finishes those calls whose requests the user has freed and that have ended since: MPICH does
    // not ask for them.
    static void test_freed();

  private:
    struct staged {
        typed_memory memory;
        dt::packed_memory bytes;
        bool receives, alike, by_status = false;
    };

    const dt::packed_place &add(typed_memory memory, use how, bool on_gpu = false);
    // Types that live until free_types(): one as large as `type` and without gaps; one of `size`
    // bytes without gaps that MPICH does not take for contiguous, so that UCX is given a datatype.
    handle dense(handle type);
    handle gapless_for_us(uint64_t size);
    handle commit(int made);
    void free_types() noexcept;

    static int query(void *state, void *status) noexcept;
    static int release(void *state) noexcept;
    static int cancel(void *state, int complete);
    static int poll(void *state, void *status);
    static int wait(int number, void **states, double, void *status);
    bool has_ended(int *request, void *status);
    void await(int *request, void *status);
    void complete();
    void keep_freed() noexcept;
    static void watch_finalize() noexcept;

    handle comm_;
    int *request_;
    int inner_ = null_request, second_ = null_request;  // MPICH's
    int outer_ = null_request;                          // the user's
    int error_ = 0;
    std::atomic<bool> done_{false};
    std::atomic_flag is_polled_ = ATOMIC_FLAG_INIT;
    bool is_inside_ = false;  // a function of MPI
    bool is_lost_ = false;    // MPI does not say whether a message has ended
    bool is_freed_ = false;   // the user's request
    staged_call *next_freed_ = nullptr;
    status_words status_;
    std::vector<staged> stages_;
    std::vector<std::unique_ptr<varying_side::arrays>> arrays_;
    std::vector<int> types_;
};

inline void *writable(const void *buffer) noexcept {
    return const_cast<void *>(buffer);
}

}  // namespace cuda_nc::hooks::local
