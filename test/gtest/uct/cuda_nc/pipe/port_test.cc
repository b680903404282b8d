// Ports of pipes.
#include "uct/cuda_nc/pipe/port.hpp"

#include <gtest/gtest.h>

#include "uct/cuda_nc/copy_bytes.hpp"

namespace cuda_nc::uct {
namespace {

// A hostile peer chooses the last numbers for each message.
TEST(pipe_port_test, one_whose_numbers_are_used_up_begins_again) {
    if (!has_ports(0)) {
        GTEST_SKIP() << "no GPU here, or one without pipes";
    }
    for (int i = 0; i < 1000; ++i) {
        pipe_port *const port = acquire_port(0);
        ASSERT_NE(port, nullptr) << i;
        EXPECT_LT(port->sequence, last_sequence);
        uint64_t word = 0;
        copy(&word, port->words, sizeof(word));
        EXPECT_LT(word, last_sequence) << "a later message would believe it";
        word = last_sequence;
        copy(port->words, &word, sizeof(word));
        port->sequence = last_sequence;
        release_port(port);
    }
}

}  // namespace
}  // namespace cuda_nc::uct
