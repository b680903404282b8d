// A tool of our own listens to NVTX: the header calls a function of a static tool where the program
// has one. Tools attach once in a process, so that each test runs in one that begins anew.
#include "ucs/base/nvtx.hpp"

#include <gtest/gtest.h>

// The header declares this only where it defines it, too.
extern "C" {
extern int (*InitializeInjectionNvtx2_fnptr)(const void *(*get_table)(uint32_t));
}
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ucs/base/trace.hpp"

namespace {

constexpr const char *attach_variable = "CUDA_NC_TEST_ATTACHES";

struct told {
    std::string domain;
    std::vector<std::string> names;
    std::vector<uint64_t> payloads;
    std::vector<nvtxRangeId_t> ended;
    nvtxRangeId_t started = 0;
} told;

void note(const nvtxEventAttributes_t *event) {
    told.names.push_back(event->message.ascii);
    told.payloads.push_back(event->payload.ullValue);
}

nvtxDomainHandle_t NVTX_API create_domain(const char *name) {
    told.domain = name;
    return reinterpret_cast<nvtxDomainHandle_t>(&told);
}
nvtxRangeId_t NVTX_API start_range(nvtxDomainHandle_t, const nvtxEventAttributes_t *event) {
    note(event);
    return ++told.started;
}
void NVTX_API end_range(nvtxDomainHandle_t, nvtxRangeId_t range) {
    told.ended.push_back(range);
}
void NVTX_API mark(nvtxDomainHandle_t, const nvtxEventAttributes_t *event) {
    note(event);
}

template <typename F>
void set(NvtxFunctionTable table, int id, F *function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

[[maybe_unused]] int attach(NvtxGetExportTableFunc_t get_table) {
    if (std::getenv(attach_variable) == nullptr) {
        return 0;
    }
    auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(get_table(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) {
        return 0;
    }
    set(table, NVTX_CBID_CORE2_DomainCreateA, create_domain);
    set(table, NVTX_CBID_CORE2_DomainRangeStartEx, start_range);
    set(table, NVTX_CBID_CORE2_DomainRangeEnd, end_range);
    set(table, NVTX_CBID_CORE2_DomainMarkEx, mark);
    return 1;
}

}  // namespace

#if defined(NVTX_LOAD_SEQUENCE_VERSION) && NVTX_LOAD_SEQUENCE_VERSION >= 2
extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = attach;
}
#endif  // else the header (CUDA 12.4) defines it

namespace cuda_nc {
namespace {

class nvtx : public testing::Test {
  protected:
    void SetUp() override {
#if !defined(NVTX_LOAD_SEQUENCE_VERSION) || NVTX_LOAD_SEQUENCE_VERSION < 2
        GTEST_SKIP() << "this NVTX does not call a static tool";
#endif
        testing::FLAGS_gtest_death_test_style = "threadsafe";
        setenv(attach_variable, "y", 1);
    }
    void TearDown() override {
        unsetenv(attach_variable);
        testing::FLAGS_gtest_death_test_style = "fast";
    }
};

// Ends a process: with 0 where all of it holds.
[[noreturn]] void exit_if(bool holds) {
    std::exit(holds ? 0 : 1);
}

TEST_F(nvtx, is_not_attached_without_a_tool) {
    unsetenv(attach_variable);
    EXPECT_EXIT(exit_if(!nvtx_attached() && !tracing()), testing::ExitedWithCode(0), "");
}

TEST_F(nvtx, shows_messages_as_ranges_and_marks_of_one_domain) {
    EXPECT_EXIT(
        {
            trace_begin("send", 7, 4096);
            trace_begin("pack kernel", 7, 1024);
            trace_mark("launched", 7);
            std::thread([] { trace_end("send", 7); }).join();
            trace_end("pack kernel", 7);
            exit_if(told.domain == "ucx-cuda-nc" &&
                    told.names == std::vector<std::string>{"send", "pack kernel", "launched"} &&
                    told.payloads == std::vector<uint64_t>{4096, 1024, 0} &&
                    told.ended == std::vector<nvtxRangeId_t>{1, 2});
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(nvtx, ends_each_of_two_ranges_that_share_message_and_name) {
    EXPECT_EXIT(
        {
            trace_begin("send", 7);
            trace_begin("send", 7);
            trace_end("send", 7);
            trace_end("send", 7);
            trace_end("send", 7);
            exit_if(told.started == 2 && told.ended.size() == 2 && told.ended[0] != told.ended[1]);
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(nvtx, keeps_a_bounded_number_of_open_ranges) {
    EXPECT_EXIT(
        {
            for (uint64_t id = 1; id <= 65536 + 5; ++id) {
                trace_begin("send", id);
            }
            for (uint64_t id = 1; id <= 65536 + 5; ++id) {
                trace_end("send", id);
            }
            exit_if(told.started == 65536 && told.ended.size() == 65536);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cuda_nc
