#include "ucp/dt/free_list.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cuda_nc::dt {
namespace {

struct counted {
    counted() { ++live; }
    ~counted() { --live; }
    counted *next_free = nullptr;
    static std::atomic<int> live;
};
std::atomic<int> counted::live{0};

using list = free_list<counted>;

void give_many(unsigned number) {
    std::vector<counted *> taken;
    for (unsigned i = 0; i < number; ++i) {
        taken.push_back(list::acquire());
    }
    for (counted *one : taken) {
        list::release(one);
    }
}

TEST(free_list, what_a_thread_holds_is_there_for_others_when_it_ends) {
    give_many(200);
    const int made = counted::live;
    std::vector<counted *> taken;
    for (int i = 0; i < 5; ++i) {
        std::thread([&taken] {
            taken.push_back(list::acquire());
        }).join();  // a thread that only takes
    }
    EXPECT_EQ(counted::live, made);
    for (counted *one : taken) {
        list::release(one);
    }
    list::release_unused();
    EXPECT_EQ(counted::live, 0);
}

}  // namespace
}  // namespace cuda_nc::dt
