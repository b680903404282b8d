// libFuzzer's entry: bytes choose layouts, whose moves in host memory are compared with plain loops
// (layout_maker.hpp). Built by hand with clang: see contrib/check_lib.sh, build_fuzzer().
#include <cstdio>
#include <cstdlib>

#include "capi/layout_maker.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const std::string fault = cuda_nc::capi::test::run_case(bytes, size);
    if (!fault.empty()) {
        std::fprintf(stderr, "%s\n", fault.c_str());
        std::abort();
    }
    return 0;
}
