#include "ucs/backend/cuda/stream.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "ucs/backend/backends.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/gpu/box.hpp"
#include "ucs/backend/cuda/errors.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

// Runs `call` with the context of `owner` current. Events too need it: without a current context
// the runtime would make one, on the first GPU.
template <typename F>
ucs_status_t run(const primary_context &owner, const char *name, F &&call) noexcept {
    if (forked() || owner.gone()) {
        return UCS_ERR_IO_ERROR;
    }
    current_scope scope(owner.calls(), owner.get());
    return scope ? to_status(call(), name) : scope.status();
}

// For destructors: silent where CUDA is gone.
template <typename F>
void end(primary_context &owner, const char *name, F &&call) noexcept {
    if (forked() || !owner.alive()) {
        return;
    }
    current_scope scope(owner.calls(), owner.get());
    if (scope) {
        cudaError_t result = call();
        if (!torn_down(result)) {
            to_status(result, name);
        }
    } else if (!torn_down(scope.result())) {
        scope.status();  // logs
    }
}

class cuda_event final : public event {
  public:
    cuda_event(primary_context &owner, cudaEvent_t handle) noexcept
        : owner_(owner), handle_(handle) {}
    ~cuda_event() override {
        end(owner_, "cudaEventDestroy", [this] { return cudaEventDestroy(handle_); });
    }

    ucs_status_t query() noexcept override {
        return run(owner_, "a GPU's work", [this] { return cudaEventQuery(handle_); });
    }
    ucs_status_t synchronize() noexcept override {
        return run(owner_, "a GPU's work", [this] { return cudaEventSynchronize(handle_); });
    }

    cudaEvent_t handle() const noexcept { return handle_; }

  private:
    primary_context &owner_;
    cudaEvent_t handle_;
};

// One of the application's.
struct borrowing {
    unsigned long long id = 0;
    CUgraph graph = nullptr;  // null: it is not being captured
};

class cuda_stream final : public borrowed_stream {
  public:
    cuda_stream(primary_context &owner, const device &where, const exec::kernel_limits &limits,
                cudaStream_t handle, const borrowing *how = nullptr) noexcept
        : owner_(owner),
          where_(where),
          limits_(limits),
          handle_(handle),
          owns_(how == nullptr),
          borrowed_(how != nullptr ? *how : borrowing()) {}
    ~cuda_stream() override {
        if (!owns_) {
            return;
        }
        end(owner_, "cudaStreamSynchronize", [this] { return cudaStreamSynchronize(handle_); });
        end(owner_, "cudaStreamDestroy", [this] { return cudaStreamDestroy(handle_); });
    }

    ucs_status_t launch(const transfer &work) noexcept override {
        if (work.length == 0) {
            return UCS_OK;
        }
        limits_.rules = where_.rules();
        return run(owner_, "a kernel's launch",
                   [&] { return exec::launch_transfer(owner_.kernels(), work, limits_, handle_); });
    }
    ucs_status_t launch(const pipe_work *sides, size_t number,
                        size_t *launched_p) noexcept override {
        if (!std::all_of(sides, sides + number, [](const pipe_work &one) { return valid(one); })) {
            return UCS_ERR_INVALID_PARAM;
        }
        if (number != 0 && sides[0].copies) {
            *launched_p = 1;
            return copy_rows(sides[0]);
        }
        number = static_cast<size_t>(
            std::find_if(sides, sides + number, [](const pipe_work &one) { return one.copies; }) -
            sides);
        cudaError_t result = cudaErrorNotSupported;
        ucs_status_t status = run(owner_, "a pipe's launch", [&] {
            result =
                exec::launch_pipes(owner_.kernels(), sides, number, limits_, handle_, launched_p);
            return result == cudaErrorNotSupported ? cudaSuccess : result;
        });
        return status == UCS_OK && result == cudaErrorNotSupported ? UCS_ERR_UNSUPPORTED : status;
    }
    ucs_status_t launch(const pair_list &list) noexcept override {
        if (list.count == 0) {
            return UCS_OK;
        }
        if (list.pairs == nullptr && list.made == nullptr) {
            return UCS_ERR_INVALID_PARAM;
        }
        return run(owner_, "a list's launch",
                   [&] { return exec::launch_pairs(owner_.kernels(), list, limits_, handle_); });
    }
    ucs_status_t copy(void *destination, const void *source, size_t length) noexcept override {
        if (length == 0) {
            return UCS_OK;
        }
        return run(owner_, "cudaMemcpyAsync", [&] {
            return cudaMemcpyAsync(destination, source, length, cudaMemcpyDefault, handle_);
        });
    }
    ucs_status_t copy_gpu_memory(char *destination, const char *source,
                                 size_t length) noexcept override {
        if (length == 0) {
            return UCS_OK;
        }
        return run(owner_, "cuMemcpyDtoDAsync", [&] {
            return owner_.calls().copy_gpu_memory(reinterpret_cast<CUdeviceptr>(destination),
                                                  reinterpret_cast<CUdeviceptr>(source), length,
                                                  handle_);
        });
    }
    ucs_status_t record(event &mark) noexcept override {
        return run(owner_, "cudaEventRecord",
                   [&] { return cudaEventRecord(handle_of(mark), handle_); });
    }
    ucs_status_t wait(event &mark) noexcept override {
        return run(owner_, "cudaStreamWaitEvent",
                   [&] { return cudaStreamWaitEvent(handle_, handle_of(mark), 0); });
    }

    uint64_t id() const noexcept override { return borrowed_.id; }
    bool is_capturing() const noexcept override { return borrowed_.graph != nullptr; }
    ucs_status_t keep(std::shared_ptr<void> what) noexcept override {
        auto *kept = new (std::nothrow) std::shared_ptr<void>(std::move(what));
        if (kept == nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
        const driver &calls = owner_.calls();
        auto release = [](void *object) { delete static_cast<std::shared_ptr<void> *>(object); };
        CUuserObject object = nullptr;
        CUresult result =
            calls.user_object_create(&object, kept, release, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
        if (result != CUDA_SUCCESS) {
            delete kept;
            return to_status(result, "cuUserObjectCreate");
        }
        // From here on it is the graph's; after a failure nobody releases it.
        result = calls.graph_retain(borrowed_.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
        return to_status(result, "cuGraphRetainUserObject");
    }

  private:
    ucs_status_t copy_rows(const pipe_work &work) noexcept {
        box rows;
        const layout_view &from = work.source != nullptr ? *work.source : *work.layout;
        if (!find_box(from, *work.layout, work.length, &rows)) {
            return UCS_ERR_UNSUPPORTED;
        }
        const char *source = work.source_base + rows.source.displacement;
        char *target = work.base + rows.target.displacement;
        ucs_status_t status = run(owner_, "a copy of rows", [&] {
            return rows.slices == 1
                       ? cudaMemcpy2DAsync(target, rows.target.pitch, source, rows.source.pitch,
                                           rows.width, rows.rows, cudaMemcpyDefault, handle_)
                       : copy_slices(rows, source, target);
        });
        // The write of 32 bits covers the report's 16-bit value and padding.
        CUresult told = CUDA_SUCCESS;
        if (status == UCS_OK) {
            status = run(owner_, "a copy's end", [&] {
                told = owner_.calls().write_value(
                    handle_, reinterpret_cast<CUdeviceptr>(&work.report->groups[0]),
                    pipe_left(work.launch_number, true), CU_STREAM_WRITE_VALUE_DEFAULT);
                return cudaSuccess;
            });
        }
        if (status == UCS_OK) {
            status = to_status(told, "cuStreamWriteValue32");
        }
        if (status != UCS_OK) {  // nothing of it may still be running when this returns
            run(owner_, "cudaStreamSynchronize", [&] { return cudaStreamSynchronize(handle_); });
        }
        return status;
    }
    cudaError_t copy_slices(const box &rows, const char *source, char *target) noexcept {
        auto of = [&rows](const void *at, const box::side &side) {
            return cudaPitchedPtr{const_cast<void *>(at), side.pitch, rows.width,
                                  side.rows_of_slice};
        };
        cudaMemcpy3DParms all = {};
        all.srcPtr = of(source, rows.source);
        all.dstPtr = of(target, rows.target);
        all.extent = {rows.width, rows.rows, rows.slices};
        all.kind = cudaMemcpyDefault;
        return cudaMemcpy3DAsync(&all, handle_);
    }
    static cudaEvent_t handle_of(event &mark) noexcept {
        return static_cast<cuda_event &>(mark).handle();
    }

    primary_context &owner_;
    const device &where_;
    exec::kernel_limits limits_;
    cudaStream_t handle_;
    const bool owns_;
    const borrowing borrowed_;
};

}  // namespace

ucs_status_t make_stream(primary_context &owner, const device &where,
                         const exec::kernel_limits &limits,
                         std::unique_ptr<stream> *stream_p) noexcept {
    const trace_span span("create a stream");
    int least = 0, greatest = 0;
    ucs_status_t status = to_status(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                    "cudaDeviceGetStreamPriorityRange");
    cudaStream_t handle = nullptr;
    if (status == UCS_OK) {
        status = to_status(cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking, greatest),
                           "cudaStreamCreateWithPriority");
    }
    if (status != UCS_OK) {
        return status;
    }
    stream_p->reset(new (std::nothrow) cuda_stream(owner, where, limits, handle));
    if (*stream_p == nullptr) {
        cudaStreamDestroy(handle);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

ucs_status_t borrow_stream(primary_context &owner, const device &where,
                           const exec::kernel_limits &limits, cudaStream_t handle,
                           std::unique_ptr<borrowed_stream> *stream_p) noexcept {
    const driver &calls = owner.calls();
    if (!calls.borrows_streams()) {
        return UCS_ERR_UNSUPPORTED;
    }
    borrowing how;
    CUcontext its_context = nullptr;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    // The legacy default stream fails here while another stream of its context is captured.
    if (calls.capture_info(handle, &capture, nullptr, &graph, nullptr, nullptr) != CUDA_SUCCESS ||
        capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED ||
        calls.stream_context(handle, &its_context) != CUDA_SUCCESS || its_context != owner.get()) {
        return UCS_ERR_INVALID_PARAM;
    }
    how.graph = capture == CU_STREAM_CAPTURE_STATUS_ACTIVE ? graph : nullptr;
    // Asking for a number would end the capture.
    if (how.graph == nullptr && calls.stream_id(handle, &how.id) != CUDA_SUCCESS) {
        return UCS_ERR_INVALID_PARAM;
    }
    stream_p->reset(new (std::nothrow) cuda_stream(owner, where, limits, handle, &how));
    return *stream_p != nullptr ? UCS_OK : UCS_ERR_NO_MEMORY;
}

ucs_status_t make_event(primary_context &owner, std::unique_ptr<event> *event_p) noexcept {
    cudaEvent_t handle = nullptr;
    ucs_status_t status = to_status(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming),
                                    "cudaEventCreateWithFlags");
    if (status != UCS_OK) {
        return status;
    }
    event_p->reset(new (std::nothrow) cuda_event(owner, handle));
    if (*event_p == nullptr) {
        cudaEventDestroy(handle);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

}  // namespace cuda_nc::gpu::cuda
