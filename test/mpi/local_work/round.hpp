// One random call on every rank: its form, its types, its buffers.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "operations/harness.hpp"
#include "operations/typed_buffer.hpp"
#include "support/random.hpp"

namespace mpi_test {

#ifdef OPEN_MPI
constexpr bool is_open_mpi = true;
#else
constexpr bool is_open_mpi = false;
#endif

// An array of counts or places, as wide as the MPI function wants it.
class numbers {
  public:
    void add(int64_t value) {
        narrow_.push_back(static_cast<int>(value));
        wide_.push_back(value);
        far_.push_back(value);
    }
    int operator[](int i) const { return narrow_[static_cast<size_t>(i)]; }
    operator const int *() const { return narrow_.data(); }
    operator const MPI_Count *() const { return wide_.data(); }
    operator const MPI_Aint *() const { return far_.data(); }

  private:
    std::vector<int> narrow_;
    std::vector<MPI_Count> wide_;
    std::vector<MPI_Aint> far_;
};

// Where packed bytes begin; the MPI function moves that of its own width.
class position {
  public:
    explicit position(int at) : start_(at), narrow_(at), wide_(at), far_(at) {}
    operator int *() { return &narrow_; }
    operator MPI_Count *() { return &wide_; }
    operator MPI_Aint *() { return &far_; }
    int64_t now() const {
        return narrow_ != start_ ? narrow_ : wide_ != start_ ? int64_t{wide_} : int64_t{far_};
    }

  private:
    int start_, narrow_;
    MPI_Count wide_;
    MPI_Aint far_;
};

// For as long as it lives errors without a communicator of their own, and of requests, are
// returned.
class errors_return {
  public:
    errors_return();
    ~errors_return();
    errors_return(const errors_return &) = delete;

  private:
    static std::mutex mutex_;
    const std::lock_guard<std::mutex> alone_{mutex_};
    const MPI_Comm all_[2] = {MPI_COMM_SELF, MPI_COMM_WORLD};
    MPI_Errhandler before_[2];
};

class round {
  public:
    // The same on every rank, but for what mine() returns.
    // `bytes`: most of an element.
    round(harness &tests, uint64_t seed, int number, int64_t bytes);

    harness &t;
    random_stream all, mine;
    MPI_Comm comm = MPI_COMM_WORLD, self = MPI_COMM_SELF;
    bool beside_others = false;  // other threads make calls too
    bool only_host = false;      // all buffers from now on lie in host memory
    std::string text;            // what is called

    int rank() const { return t.rank(); }
    int ranks() const { return t.ranks(); }
    bool one_in(uint64_t n) { return all.one_in(n); }
    // No negative extents from now on, under Open MPI: it takes several such elements for shorter
    // than they are, and then makes its own buffers too small, or leaves a message out.
    void avoid_negative_extents() { avoids_negative_extents_ = is_open_mpi; }

    // Without overlap and padding, so that it can be received.
    const made_type &type() const { return type_; }
    // As many bytes as an element of type(), in other places.
    const made_type &other() const { return other_; }
    // One of the two, of this rank's choice. MPICH itself stumbles over some types with negative
    // extents inside, so its host memory gets no random ones. Open MPI's does, by the product.
    const made_type &either() {
        const bool may_be_random = (is_open_mpi || t.device().is_device()) &&
                                   !(avoids_negative_extents_ && type_.map().extent() < 0);
        return may_be_random && mine.one_in(2) ? type_ : other_;
    }
    // Memory for such elements: that under test, mostly.
    memory &place(const made_type &of) {
        const bool in_host = (&of != &type_ && mine.one_in(4)) || only_host;
        return in_host ? static_cast<memory &>(t.host()) : t.device();
    }
    std::unique_ptr<typed_buffer> buffer(const made_type &of, int count, uint64_t key) {
        return std::make_unique<typed_buffer>(place(of), of, count, key);
    }
    void expect(bool right, const char *what);

    // Blocking or not, with small or large counts.
    bool waits() const { return form_ % 2 == 0; }
    bool large() const { return MPI_VERSION >= 4 && form_ >= 2; }
    // Waits for it in one of MPI's ways.
    void finish(MPI_Request *request, MPI_Status *status = MPI_STATUS_IGNORE);

  private:
    int form_;
    bool avoids_negative_extents_ = false;
    made_type type_, other_;
};

// Open MPI 4 lacks these two: those that wait stand in for them.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#define MPI_Isendrecv(a, b, c, d, e, f, g, h, i, j, comm, request) \
    (*(request) = MPI_REQUEST_NULL,                                \
     MPI_Sendrecv(a, b, c, d, e, f, g, h, i, j, comm, MPI_STATUS_IGNORE))
#define MPI_Isendrecv_replace(a, b, c, d, e, f, g, comm, request) \
    (*(request) = MPI_REQUEST_NULL,                               \
     MPI_Sendrecv_replace(a, b, c, d, e, f, g, comm, MPI_STATUS_IGNORE))
#endif

// CALL_NOW(r, Pack, arguments...): with small counts or large ones.
#if MPI_VERSION >= 4
#define CALL_NOW(r, name, ...) ((r).large() ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#else
#define CALL_NOW(r, name, ...) MPI_##name(__VA_ARGS__)
#endif

// CALL(r, Gather, Igather, arguments...): blocking or not, too.
#define CALL(r, name, nonblocking, ...)                          \
    do {                                                         \
        MPI_Request its_request = MPI_REQUEST_NULL;              \
        (r).text = #name;                                        \
        if ((r).waits()) {                                       \
            CALL_NOW(r, name, __VA_ARGS__);                      \
        } else {                                                 \
            CALL_NOW(r, nonblocking, __VA_ARGS__, &its_request); \
            (r).finish(&its_request);                            \
        }                                                        \
    } while (false)

void random_collective(round &r);
// Long ones in the memory under test alone: where all contiguous messages between GPUs are ours,
// they are broadcast from GPU to GPU.
void random_broadcast(round &r);
void random_reduction(round &r);
void random_message(round &r);
void random_pack(round &r);
// Of the messages, those that replace what they send.
void random_replace(round &r);

}  // namespace mpi_test
