// Whoever uses received bytes next sees them: a kernel of the receiver's GPU, its copy engine, and
// the sender's GPU, which reads them across the link. Nobody synchronises in between.
#include <cstdint>
#include <cstdio>

#include "accidents/cases.hpp"
#include "accidents/driver.hpp"

namespace gpu_test {
namespace {

// Rows of words of 8 bytes, each at twice its length. Word i of message n holds n * 2^32 + i.
constexpr const char *source = R"(
.version 6.0
.target sm_60
.address_size 64
// Both: %word from the thread's number in steps of all threads, %at its address.
.visible .entry fill(.param .u64 base, .param .u64 words, .param .u64 row, .param .u64 message)
{
    .reg .pred %p;
    .reg .u32 %a, %b, %c;
    .reg .u64 %base, %words, %row, %value, %word, %step, %at, %rest;
    ld.param.u64 %base, [base];
    ld.param.u64 %words, [words];
    ld.param.u64 %row, [row];
    ld.param.u64 %value, [message];
    shl.b64 %value, %value, 32;
    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %c, %tid.x;
    mad.lo.u32 %c, %a, %b, %c;
    cvt.u64.u32 %word, %c;
    mov.u32 %a, %nctaid.x;
    mul.lo.u32 %a, %a, %b;
    cvt.u64.u32 %step, %a;
again:
    setp.ge.u64 %p, %word, %words;
    @%p bra done;
    div.u64 %at, %word, %row;
    mul.lo.u64 %rest, %at, %row;
    add.u64 %at, %word, %rest;
    shl.b64 %at, %at, 3;
    add.u64 %at, %at, %base;
    add.u64 %rest, %value, %word;
    st.global.u64 [%at], %rest;
    add.u64 %word, %word, %step;
    bra again;
done:
    ret;
}
.visible .entry count_wrong(.param .u64 base, .param .u64 words, .param .u64 row,
                            .param .u64 message, .param .u64 wrong)
{
    .reg .pred %p;
    .reg .u32 %a, %b, %c;
    .reg .u64 %base, %words, %row, %value, %word, %step, %at, %rest, %seen, %wrong;
    ld.param.u64 %base, [base];
    ld.param.u64 %words, [words];
    ld.param.u64 %row, [row];
    ld.param.u64 %value, [message];
    ld.param.u64 %wrong, [wrong];
    shl.b64 %value, %value, 32;
    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %c, %tid.x;
    mad.lo.u32 %c, %a, %b, %c;
    cvt.u64.u32 %word, %c;
    mov.u32 %a, %nctaid.x;
    mul.lo.u32 %a, %a, %b;
    cvt.u64.u32 %step, %a;
again:
    setp.ge.u64 %p, %word, %words;
    @%p bra done;
    div.u64 %at, %word, %row;
    mul.lo.u64 %rest, %at, %row;
    add.u64 %at, %word, %rest;
    shl.b64 %at, %at, 3;
    add.u64 %at, %at, %base;
    ld.global.u64 %seen, [%at];
    add.u64 %rest, %value, %word;
    setp.eq.u64 %p, %seen, %rest;
    @%p bra right;
    atom.global.add.u64 %rest, [%wrong], 1;
right:
    add.u64 %word, %word, %step;
    bra again;
done:
    ret;
}
)";

struct rows {
    uint64_t words, row;  // of 8 bytes: in all, and in each row
};

class buffer {
  public:
    explicit buffer(memory &where) : where_(where) {
        address_ = static_cast<char *>(where_.allocate(size));
    }
    ~buffer() { where_.release(address_); }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    char *address() const { return address_; }

    static constexpr size_t size = 2 << 20;

  private:
    memory &where_;
    char *address_ = nullptr;
};

class checker {
  public:
    explicit checker(int rank)
        : where_(open_kind("malloc", rank)), sent_(*where_), taken_(*where_) {
        DRIVER_CALL(cuModuleLoadData, &module_, source);
        DRIVER_CALL(cuModuleGetFunction, &fill_, module_, "fill");
        DRIVER_CALL(cuModuleGetFunction, &count_, module_, "count_wrong");
        DRIVER_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
        DRIVER_CALL(cuStreamCreate, &copies_, CU_STREAM_NON_BLOCKING);
        DRIVER_CALL(cuMemAlloc, &wrong_, sizeof(uint64_t));
        DRIVER_CALL(cuMemHostAlloc, reinterpret_cast<void **>(&copied_), buffer::size, 0u);
        const uint64_t none = 0;
        where_->copy(reinterpret_cast<void *>(wrong_), &none, sizeof(none));
    }

    buffer &sent() { return sent_; }
    buffer &taken() { return taken_; }

    void fill(const rows &what, uint64_t message) {
        auto at = reinterpret_cast<uint64_t>(sent_.address());
        uint64_t words = what.words, row = what.row;
        void *arguments[] = {&at, &words, &row, &message};
        launch(fill_, arguments);
        DRIVER_CALL(cuStreamSynchronize, stream_);
    }
    // Enqueues, and waits for nothing.
    void look(const buffer &at_, const rows &what, uint64_t message) {
        auto at = reinterpret_cast<uint64_t>(at_.address());
        uint64_t words = what.words, row = what.row, wrong = wrong_;
        void *arguments[] = {&at, &words, &row, &message, &wrong};
        launch(count_, arguments);
    }
    void copy(const buffer &from, const rows &what) {
        DRIVER_CALL(cuMemcpyDtoHAsync, copied_, reinterpret_cast<CUdeviceptr>(from.address()),
                    what.words * 2 * sizeof(uint64_t), copies_);
    }
    // Words that were wrong, in all looks, and in the copy of message `message`.
    uint64_t finish(const rows &what, uint64_t message, bool copied) {
        DRIVER_CALL(cuStreamSynchronize, stream_);
        DRIVER_CALL(cuStreamSynchronize, copies_);
        uint64_t wrong = 0;
        where_->copy(&wrong, reinterpret_cast<void *>(wrong_), sizeof(wrong));
        for (uint64_t word = 0; copied && word < what.words; ++word) {
            wrong += copied_[word + word / what.row * what.row] != (message << 32) + word;
        }
        return wrong;
    }

  private:
    void launch(CUfunction what, void **arguments) {
        DRIVER_CALL(cuLaunchKernel, what, 32, 1, 1, 256, 1, 1, 0, stream_, arguments, nullptr);
    }

    std::unique_ptr<memory> where_;
    buffer sent_, taken_;
    CUmodule module_ = nullptr;
    CUfunction fill_ = nullptr, count_ = nullptr;
    CUstream stream_ = nullptr, copies_ = nullptr;
    CUdeviceptr wrong_ = 0;
    uint64_t *copied_ = nullptr;
};

}  // namespace

// Rank 0 sends to rank 1, which sends the same bytes back.
int run_landing(const case_options &options) {
    const rows all[] = {{1, 1},       {64, 1},       {512, 8},   {2048, 1},    {8192, 1},
                        {8192, 8},    {8192, 512},   {32768, 8}, {32768, 512}, {65536, 1},
                        {131072, 64}, {131072, 512}, {1000, 5},  {12000, 3},   {130000, 13}};
    checker own(options.rank);
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        const rows &what = all[number % (sizeof(all) / sizeof(all[0]))];
        const auto message = static_cast<uint64_t>(number + 1);
        MPI_Datatype type;
        MPI_Type_vector(static_cast<int>(what.words / what.row), static_cast<int>(what.row),
                        static_cast<int>(2 * what.row), MPI_UINT64_T, &type);
        MPI_Type_commit(&type);
        const rows whole = {what.words / what.row * what.row, what.row};
        if (options.rank == 0) {
            own.fill(whole, message);
            MPI_Send(own.sent().address(), 1, type, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(own.taken().address(), 1, type, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            own.look(own.taken(), whole, message);
        } else {
            MPI_Recv(own.taken().address(), 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (number % 2 == 0) {  // the first to use them is a kernel, or a copy
                own.look(own.taken(), whole, message);
            } else {
                own.copy(own.taken(), whole);
            }
            MPI_Send(own.taken().address(), 1, type, 0, 2, MPI_COMM_WORLD);
        }
        MPI_Type_free(&type);
        const uint64_t found = own.finish(whole, message, options.rank == 1 && number % 2 != 0);
        if (found != 0) {
            std::printf("WRONG %llu words, message %d of %llu words in rows of %llu\n",
                        static_cast<unsigned long long>(found), number,
                        static_cast<unsigned long long>(whole.words),
                        static_cast<unsigned long long>(whole.row));
            return ++wrong;
        }
    }
    return wrong;
}

}  // namespace gpu_test
