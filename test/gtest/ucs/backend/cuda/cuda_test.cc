// What only the CUDA backend promises. Runs where there is a driver and a GPU.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "ucs/gpu/child_process.hpp"
#include "ucs/backend/cuda/driver.hpp"
#include "ucs/gpu/gpu_fixture.hpp"
#include "ucs/gpu/mover_pulse.hpp"

namespace cuda_nc::gpu::test {
namespace {

std::vector<std::string> cuda_alone() {
    std::vector<std::string> names = platform_names();
    names.erase(names.begin());
    return names;
}

class gpu_cuda : public gpu_test {
  protected:
    void SetUp() override {
        gpu_test::SetUp();
        std::string why;
        calls_ = cuda::driver::load(&why);
    }

    template <typename F>
    static F driver_function(const char *name) {
        static void *library = dlopen("libcuda.so.1", RTLD_LAZY);
        return reinterpret_cast<F>(dlsym(library, name));
    }

    CUcontext current() const {
        CUcontext context = nullptr;
        EXPECT_EQ(calls_->context_current(&context), CUDA_SUCCESS);
        return context;
    }
    const cuda::driver *calls_ = nullptr;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(gpu_cuda);
INSTANTIATE_TEST_SUITE_P(all, gpu_cuda, testing::ValuesIn(cuda_alone()), name_of_platform());

TEST_P(gpu_cuda, threads_are_left_without_a_context) {
    std::thread([this] {
        std::unique_ptr<memory> one = allocate(4096), pinned = allocate_pinned(4096);
        EXPECT_EQ(platform_->query(one->address()).kind, memory_kind::device);
        ASSERT_EQ(stream_->copy(one->address(), pinned->address(), 4096), UCS_OK);
        EXPECT_EQ(finish(*stream_), UCS_OK);
        one.reset();
        EXPECT_EQ(current(), nullptr);
    }).join();
}

TEST_P(gpu_cuda, a_thread_in_a_context_of_its_own_is_in_no_primary_one) {
    std::thread([this] {
        EXPECT_EQ(platform_->current_primary_device(), -1) << "no context";
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
        EXPECT_EQ(platform_->current_primary_device(), 0);
        const auto create =
            driver_function<CUresult (*)(CUcontext *, unsigned, CUdevice)>("cuCtxCreate_v2");
        const auto destroy = driver_function<CUresult (*)(CUcontext)>("cuCtxDestroy_v2");
        CUcontext own = nullptr;
        ASSERT_EQ(create(&own, 0, 0), CUDA_SUCCESS);
        EXPECT_EQ(platform_->current_device(), 0);
        EXPECT_EQ(platform_->current_primary_device(), -1);
        EXPECT_EQ(destroy(own), CUDA_SUCCESS);
        EXPECT_EQ(platform_->current_primary_device(), 0) << "as before";
    }).join();
}

// A kernel of the application may wait for the message in which memory is released.
TEST_P(gpu_cuda, releasing_private_memory_waits_for_no_work) {
    struct gate {
        std::atomic<bool> open{false}, waited_in_vain{false};
    } gate;
    const auto wait = [](void *argument) {
        auto &one = *static_cast<struct gate *>(argument);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (!one.open && !one.waited_in_vain) {
            one.waited_in_vain = std::chrono::steady_clock::now() > limit;
        }
    };
    for (size_t size : {size_t{1}, size_t{70000}, size_t{8} << 20}) {
        std::unique_ptr<memory> made;
        ASSERT_EQ(device_->allocate_private(size, &made), UCS_OK);
        EXPECT_EQ(platform_->query(made->address() + size - 1).kind, memory_kind::device);
        const std::vector<char> bytes = random_bytes(size, random_);
        put(made->address(), bytes);
        EXPECT_EQ(get(made->address(), size), bytes);
        cudaStream_t busy;
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        ASSERT_EQ(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking), cudaSuccess);
        ASSERT_EQ(cudaLaunchHostFunc(busy, wait, &gate), cudaSuccess);
        made.reset();
        ASSERT_EQ(device_->allocate_private(size, &made), UCS_OK);
        made.reset();
        EXPECT_EQ(cudaStreamQuery(busy), cudaErrorNotReady);
        gate.open = true;
        EXPECT_EQ(cudaStreamSynchronize(busy), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(busy), cudaSuccess);
        EXPECT_FALSE(gate.waited_in_vain);
        gate.open = false;
    }
}

TEST_P(gpu_cuda, the_current_device_stays) {
    int last = platform_->num_devices() - 1, now = -1;
    ASSERT_EQ(cudaSetDevice(last), cudaSuccess);
    CUcontext before = current();
    for (int i = 0; i <= last; ++i) {
        std::unique_ptr<memory> one;
        std::unique_ptr<stream> stream;
        ASSERT_EQ(platform_->get_device(i)->allocate(4096, &one), UCS_OK);
        ASSERT_EQ(platform_->get_device(i)->create_stream(&stream), UCS_OK);
        EXPECT_EQ(platform_->query(one->address()).device, i);
        EXPECT_EQ(platform_->device_of(one->address() + 100), i);
        one.reset();
        stream.reset();
        EXPECT_EQ(current(), before);
        EXPECT_EQ(cudaGetDevice(&now), cudaSuccess);
        EXPECT_EQ(now, last);
    }
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

// In a child: looks at memory and at the GPUs, and has neither initialised the driver nor made a
// context on any of them.
TEST(gpu_cuda_child, DISABLED_host_job) {
    std::string why;
    const cuda::driver *calls = cuda::driver::load(&why);
    platform &chosen = platform::instance();
    ASSERT_STREQ(chosen.name(), "cuda");
    std::vector<char> heap(1000);
    auto begin = std::chrono::steady_clock::now();
    constexpr int times = 1000000;
    for (int i = 0; i < times; ++i) {
        ASSERT_EQ(chosen.query(heap.data() + i % 1000).kind, memory_kind::host);
    }
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    double uninitialised = took.count() / times;
    CUcontext context;
    EXPECT_EQ(calls->context_current(&context), CUDA_ERROR_NOT_INITIALIZED);
    ASSERT_GT(chosen.num_devices(), 0);
    begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
        ASSERT_EQ(chosen.query(heap.data() + i % 1000).kind, memory_kind::host);
    }
    took = std::chrono::steady_clock::now() - begin;
    double initialised = took.count() / times;
    for (int i = 0; i < chosen.num_devices(); ++i) {
        CUdevice device;
        unsigned flags = 0;
        int active = 1;
        ASSERT_EQ(calls->device_get(&device, i), CUDA_SUCCESS);
        ASSERT_EQ(calls->primary_state(device, &flags, &active), CUDA_SUCCESS);
        EXPECT_EQ(active, 0) << "a context on GPU " << i;
    }
    EXPECT_EQ(calls->context_current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr);
    double costs[2] = {uninitialised, initialised};
    ASSERT_TRUE(send_to_parent(costs, sizeof(costs)));
}

TEST_P(gpu_cuda, a_host_job_gets_no_context) {
    child_process child("gpu_cuda_child.DISABLED_host_job", {"UCX_CUDA_NC_GPU=auto"});
    double costs[2] = {-1, -1};
    EXPECT_TRUE(child.receive(costs, sizeof(costs)));
    EXPECT_EQ(child.wait(), 0) << child.output();
    RecordProperty("query_uninitialised_ns", std::to_string(costs[0]));
    RecordProperty("query_without_context_ns", std::to_string(costs[1]));
    std::printf("query of host memory: %.1f ns, driver initialised %.1f ns\n", costs[0], costs[1]);
}

// In a child: says whether the first GPU has a mover.
TEST(gpu_cuda_child, DISABLED_mover) {
    device *first = platform::instance().get_device(0);
    ASSERT_NE(first, nullptr);
    const bool has_one = first->get_mover() != nullptr;
    ASSERT_TRUE(send_to_parent(&has_one, sizeof(has_one)));
}

TEST_P(gpu_cuda, a_watched_process_has_no_mover) {
    auto has_mover = [](const std::string &setting) {
        child_process child("gpu_cuda_child.DISABLED_mover", {"UCX_CUDA_NC_GPU=cuda", setting});
        bool has_one = true;
        EXPECT_TRUE(child.receive(&has_one, sizeof(has_one))) << child.output();
        EXPECT_EQ(child.wait(), 0) << child.output();
        return has_one;
    };
    if (!has_mover("UCX_CUDA_NC_MAX_SMS=16")) {
        GTEST_SKIP() << "there is none here: somebody watches, or another process has one";
    }
    EXPECT_TRUE(has_mover("CUDA_LAUNCH_BLOCKING=0"));
    EXPECT_FALSE(has_mover("CUDA_LAUNCH_BLOCKING=1"));
    EXPECT_FALSE(has_mover("UCX_CUDA_NC_MAX_SMS=15"));
    EXPECT_FALSE(has_mover("UCX_CUDA_NC_MOVER=n"));
    EXPECT_FALSE(has_mover("NV_SANITIZER_INJECTION_PORT_BASE=49152"));
    EXPECT_FALSE(has_mover("CUDBG_USE_LEGACY_DEBUGGER=0"));
}

// In a child: the application resets a GPU that serves. What was made before goes without a crash.
TEST(gpu_cuda_child, DISABLED_reset) {
    std::string why;
    const cuda::driver *calls = cuda::driver::load(&why);
    platform &chosen = platform::instance();
    device *first = chosen.get_device(0);
    ASSERT_NE(first, nullptr);
    void *before = nullptr, *after = nullptr;
    ASSERT_EQ(cudaMalloc(&before, 4096), cudaSuccess);
    EXPECT_EQ(chosen.query(before).kind, memory_kind::device);
    EXPECT_EQ(chosen.query(before).kind, memory_kind::device);
    std::unique_ptr<memory> pinned, own;
    std::unique_ptr<stream> stream;
    std::unique_ptr<event> event;
    ASSERT_EQ(first->allocate_pinned(4096, &pinned), UCS_OK);
    ASSERT_EQ(first->allocate(4096, &own), UCS_OK);
    ASSERT_EQ(first->create_stream(&stream), UCS_OK);
    ASSERT_EQ(first->create_event(&event), UCS_OK);
    mover *by = first->get_mover();
    beat_pulses(beat::progress);
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    beat_pulses(beat::progress);  // of a kernel that has gone with its context
    if (by != nullptr) {
        const layout_view word = contiguous_view(8);
        move_order order;
        order.target = &word;
        order.target_base = own->address();
        order.source_base = own->address() + 8;
        order.length = 8;
        mover::ticket its = 0;
        EXPECT_EQ(by->give(&order, 1, &its).number, 0u);
        by->expect();
        by->leave();
    }
    ASSERT_EQ(cudaMalloc(&after, 4096), cudaSuccess);
    if (calls->context_id != nullptr) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(chosen.query(after).kind, memory_kind::unknown);
        EXPECT_EQ(chosen.query(after).kind, memory_kind::unknown);
        const std::string log = testing::internal::GetCapturedStderr();
        const size_t at = log.find("cudaDeviceReset");
        EXPECT_NE(at, std::string::npos) << log;
        EXPECT_EQ(log.find("cudaDeviceReset", at + 1), std::string::npos) << log;
        EXPECT_NE(stream->record(*event), UCS_OK);
        std::unique_ptr<gpu::stream> next;
        EXPECT_NE(first->create_stream(&next), UCS_OK);
    }
}

TEST_P(gpu_cuda, a_reset_gpu_is_left_to_others) {
    child_process child("gpu_cuda_child.DISABLED_reset", {"UCX_CUDA_NC_GPU=cuda"});
    EXPECT_EQ(child.wait(), 0) << child.output();
}

TEST_P(gpu_cuda, cost_of_queries) {
    std::unique_ptr<memory> one = allocate(1000), pinned = allocate_pinned(1000);
    std::vector<char> heap(1000);
    struct {
        const char *what;
        char *address;
    } const all[] = {
        {"host", heap.data()}, {"device", one->address()}, {"pinned", pinned->address()}};
    for (const auto &which : all) {
        constexpr int times = 200000;
        auto begin = std::chrono::steady_clock::now();
        int sum = 0;
        for (int i = 0; i < times; ++i) {
            sum += platform_->query(which.address + i % 1000).device;
        }
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        std::printf("query of %s memory, a context exists: %.1f ns\n", which.what,
                    took.count() / times);
        EXPECT_EQ(sum, which.address == one->address() ? 0 : -times);
    }
}

TEST_P(gpu_cuda, every_kind_of_allocation_is_recognised) {
    void *managed = nullptr, *pooled = nullptr;
    ASSERT_EQ(cudaMallocManaged(&managed, 1 << 16, cudaMemAttachGlobal), cudaSuccess);
    ASSERT_EQ(cudaMallocAsync(&pooled, 1 << 16, nullptr), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    auto *registered = static_cast<char *>(std::aligned_alloc(4096, 1 << 16));
    ASSERT_EQ(cudaHostRegister(registered, 1 << 16, cudaHostRegisterDefault), cudaSuccess);
    std::thread([&] {  // which never called CUDA
        EXPECT_EQ(platform_->query(managed).kind, memory_kind::managed);
        EXPECT_EQ(platform_->query(managed).device, 0);
        EXPECT_EQ(platform_->query(pooled).kind, memory_kind::device);
        EXPECT_EQ(platform_->query(pooled).device, 0);
        EXPECT_EQ(platform_->query(registered + 100).kind, memory_kind::pinned);
    })
        .join();
    // All of them can be served.
    for (char *address : {static_cast<char *>(managed), static_cast<char *>(pooled), registered}) {
        std::unique_ptr<memory> packed = allocate(1 << 15), source = allocate_pinned(1 << 16);
        std::vector<char> bytes = random_bytes(1 << 16, random_);
        std::memcpy(source->address(), bytes.data(), bytes.size());
        ASSERT_EQ(stream_->copy(address, source->address(), bytes.size()), UCS_OK);
        layout_view view = strided(2048, 16, 32);
        ASSERT_EQ(stream_->launch(all_of(direction::pack, view, address, packed->address())),
                  UCS_OK);
        std::vector<char> result = get(packed->address(), 1 << 15);
        for (size_t i = 0; i < result.size(); ++i) {
            ASSERT_EQ(result[i], bytes[i / 16 * 32 + i % 16]) << i;
        }
    }
    EXPECT_EQ(cudaHostUnregister(registered), cudaSuccess);
    EXPECT_EQ(platform_->query(registered).kind, memory_kind::host);
    EXPECT_EQ(platform_->device_of(registered), -1);
    std::free(registered);
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
    EXPECT_EQ(cudaFree(pooled), cudaSuccess);
}

// A pool may be exported as a whole, which its memory's attributes say as of pieces.
TEST_P(gpu_cuda, pools_and_managed_memory_are_not_shared) {
    cudaMemPoolProps how = {};
    how.allocType = cudaMemAllocationTypePinned;
    how.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    how.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool = nullptr;
    void *shared = nullptr, *usual = nullptr, *managed = nullptr;
    ASSERT_EQ(cudaMemPoolCreate(&pool, &how), cudaSuccess);
    ASSERT_EQ(cudaMallocFromPoolAsync(&shared, 1 << 20, pool, nullptr), cudaSuccess);
    ASSERT_EQ(cudaMallocAsync(&usual, 1 << 20, nullptr), cudaSuccess);
    ASSERT_EQ(cudaMallocManaged(&managed, 1 << 20, cudaMemAttachGlobal), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    for (const void *one : {shared, usual, managed}) {
        const memory_info found = platform_->query(one);
        EXPECT_EQ(found.kind, one == managed ? memory_kind::managed : memory_kind::device);
        EXPECT_EQ(found.allocation.shared, sharing::none);
        if (one != managed) {
            EXPECT_TRUE(found.allocation.holds(reinterpret_cast<uintptr_t>(one), 1 << 20));
        }
    }
    EXPECT_EQ(platform_->query(allocate(1 << 20)->address()).allocation.shared, sharing::by_handle);
    EXPECT_EQ(cudaFree(shared), cudaSuccess);
    EXPECT_EQ(cudaFree(usual), cudaSuccess);
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
    EXPECT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
}

TEST_P(gpu_cuda, managed_memory_is_of_the_gpu_that_it_was_allocated_with) {
    if (platform_->num_devices() < 2) {
        GTEST_SKIP() << "needs two GPUs";
    }
    char *managed = nullptr;
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void **>(&managed), 1 << 22, cudaMemAttachGlobal),
              cudaSuccess);
    for (const char *toucher : {"nobody", "the CPU", "GPU 1", "GPU 0"}) {
        if (std::string(toucher) == "the CPU") {
            std::memset(managed, 1, 1 << 22);
        } else if (std::string(toucher) != "nobody") {
            ASSERT_EQ(cudaSetDevice(std::string(toucher) == "GPU 0" ? 0 : 1), cudaSuccess);
            ASSERT_EQ(cudaMemset(managed, 2, 1 << 22), cudaSuccess);
            ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        }
        for (size_t at : {size_t(0), size_t(1 << 21), size_t((1 << 22) - 1)}) {
            const memory_info found = platform_->query(managed + at);
            EXPECT_EQ(found.kind, memory_kind::managed) << toucher;
            EXPECT_EQ(found.device, 1) << toucher;
        }
    }
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_P(gpu_cuda, memory_mapped_by_hand_is_recognised) {
    auto granularity_of =
        driver_function<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
    auto create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
    auto reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
    auto map = driver_function<decltype(&cuMemMap)>("cuMemMap");
    auto set_access = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
    ASSERT_TRUE(granularity_of && create && reserve && map && set_access);
    CUmemAllocationProp how = {};
    how.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    how.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    how.location.id = 0;
    size_t granularity = 0;
    ASSERT_EQ(granularity_of(&granularity, &how, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address = 0;
    CUmemAccessDesc access = {how.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASSERT_EQ(create(&handle, granularity, &how, 0), CUDA_SUCCESS);
    ASSERT_EQ(reserve(&address, granularity, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(map(address, granularity, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(set_access(address, granularity, &access, 1), CUDA_SUCCESS);
    std::thread([&] {
        memory_info info = platform_->query(reinterpret_cast<void *>(address + 100));
        EXPECT_EQ(info.kind, memory_kind::device);
        EXPECT_EQ(info.device, 0);
    }).join();
    // Left mapped: the process ends soon.
}

TEST_P(gpu_cuda, memory_of_a_context_that_kernels_do_not_use_is_unknown) {
    auto destroy = driver_function<CUresult (*)(CUcontext)>("cuCtxDestroy_v2");
    auto allocate = driver_function<CUresult (*)(CUdeviceptr *, size_t)>("cuMemAlloc_v2");
    auto create = driver_function<CUresult (*)(CUcontext *, unsigned, CUdevice)>("cuCtxCreate_v2");
    ASSERT_TRUE(destroy && allocate && create);
    CUcontext other = nullptr, popped = nullptr;
    CUdeviceptr address = 0;
    CUdevice device;
    ASSERT_EQ(calls_->device_get(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(create(&other, 0, device), CUDA_SUCCESS);
    ASSERT_EQ(allocate(&address, 4096), CUDA_SUCCESS);
    ASSERT_EQ(calls_->context_pop(&popped), CUDA_SUCCESS);
    std::thread([&] {
        EXPECT_EQ(platform_->query(reinterpret_cast<void *>(address)).kind, memory_kind::unknown);
    }).join();
    ASSERT_EQ(destroy(other), CUDA_SUCCESS);
}

TEST_P(gpu_cuda, captures_of_the_application_are_not_disturbed) {
    cudaStream_t capturing;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamCreate(&capturing), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeGlobal), cudaSuccess);
    {
        std::unique_ptr<memory> one = allocate(4096), pinned = allocate_pinned(4096);
        EXPECT_EQ(stream_->copy(one->address(), pinned->address(), 4096), UCS_OK);
        EXPECT_EQ(finish(*stream_), UCS_OK);
        EXPECT_EQ(platform_->query(one->address()).kind, memory_kind::device);
    }
    EXPECT_EQ(cudaStreamEndCapture(capturing, &graph), cudaSuccess);
    if (graph != nullptr) {
        cudaGraphDestroy(graph);
    }
    cudaStreamDestroy(capturing);
}

}  // namespace
}  // namespace cuda_nc::gpu::test
