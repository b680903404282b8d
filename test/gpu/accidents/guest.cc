#include "accidents/bystander.hpp"
#include "accidents/cases.hpp"

namespace gpu_test {

int run_guest(const case_options &options) {
    auto where = open_kind(options.kind, options.rank);
    strided small(*where, 16 << 10), large(*where, options.bytes);
    bystander other(options.rank, options.kind != "sim", true);
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        wrong += exchange(number % 4 == 3 ? large : small, options, number);
    }
    return wrong + other.end();
}

}  // namespace gpu_test
