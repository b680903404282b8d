#include "hooks/open_mpi/scratch_convertor.hpp"

#include <gtest/gtest.h>

#include "hooks/fakes.hpp"
#include "hooks/open_mpi/layout_bytes.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {
namespace {

using test::bytes_of;
using test::datatype;

TEST(scratch_convertor, what_a_convertor_allocated_is_released_before_its_next_use) {
    test::calls() = fake_calls_t();
    for (size_t blocks : {2000, 3, 4000, 3000, 8000}) {  // more than other tests have
        std::vector<fake_block_t> many(blocks);
        for (size_t i = 0; i < blocks; ++i) {
            many[i] = {static_cast<ptrdiff_t>(8 * i), 4};
        }
        datatype type("deep", many, static_cast<ptrdiff_t>(8 * blocks));
        layout_ref what = open_mpi::find_loaded()->element(type.get());
        ASSERT_NE(what, nullptr);
        EXPECT_EQ(bytes_of(*what), type.bytes(1));
    }
    EXPECT_EQ(test::calls().lost_stacks, 0);
}

}  // namespace
}  // namespace cuda_nc::hooks
