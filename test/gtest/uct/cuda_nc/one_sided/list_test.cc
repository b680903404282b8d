#include "uct/cuda_nc/one_sided/list.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>

namespace cuda_nc::uct {
namespace {

// An event of a stream: what the driver would say, and how often it was asked.
class counted_event : public gpu::event {
  public:
    explicit counted_event(int *asked) noexcept : asked_(asked) {}
    ucs_status_t query() noexcept override {
        ++*asked_;
        return status;
    }
    ucs_status_t synchronize() noexcept override { return status; }

    ucs_status_t status = UCS_INPROGRESS;

  private:
    int *asked_;
};

// A list that was launched at `launched`, `words` end words of which tell of its end.
class list_under_way : public testing::Test {
  protected:
    using clock = tick_clock;

    void launch(unsigned words, clock::time_point when) {
        auto event = std::make_unique<counted_event>(&asked_);
        event_ = event.get();
        list_.done = std::move(event);
        list_.ends.use(words_.data());
        list_.ends.renew();
        list_.ends.count = words;
        list_.is_launched = true;
        list_.began = list_.asked = when;
    }
    void kernel_ends() { words_.fill(list_.ends.value); }

    int asked_ = 0;
    counted_event *event_ = nullptr;
    std::array<uint32_t, gpu::end_words::most> words_ = {};
    list_mover::list list_;
};

TEST_F(list_under_way, a_kernel_s_own_word_ends_it_without_the_driver) {
    launch(4, clock::now() + std::chrono::hours(1));
    EXPECT_EQ(list_.query(), UCS_INPROGRESS);
    kernel_ends();
    EXPECT_EQ(list_.query(), UCS_OK);
    EXPECT_EQ(list_.query(), UCS_OK);
    EXPECT_EQ(asked_, 0);
}

TEST_F(list_under_way, the_driver_is_asked_seldom) {
    launch(4, clock::now() - std::chrono::hours(1));
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(list_.query(), UCS_INPROGRESS);
    }
    EXPECT_EQ(asked_, 1) << "the next time is in half an hour";
}

TEST_F(list_under_way, a_kernel_that_fails_is_noticed) {
    launch(4, clock::now());
    event_->status = UCS_ERR_IO_ERROR;
    const auto limit = clock::now() + std::chrono::seconds(20);
    while (list_.query() == UCS_INPROGRESS && clock::now() < limit) {
        std::this_thread::yield();
    }
    EXPECT_EQ(list_.query(), UCS_ERR_IO_ERROR);
    EXPECT_EQ(asked_, 1);
}

TEST_F(list_under_way, without_a_word_of_its_own_the_driver_is_asked_from_the_beginning) {
    launch(0, clock::now());
    EXPECT_EQ(list_.query(), UCS_INPROGRESS);
    EXPECT_EQ(asked_, 1);
    event_->status = UCS_OK;
    const auto limit = clock::now() + std::chrono::seconds(20);
    while (list_.query() == UCS_INPROGRESS && clock::now() < limit) {
        std::this_thread::yield();
    }
    EXPECT_EQ(list_.query(), UCS_OK);
}

TEST_F(list_under_way, who_waits_for_it_asks_whenever_that_is) {
    launch(4, clock::now());
    event_->status = UCS_OK;
    list_.await();
    EXPECT_EQ(list_.query(), UCS_OK);
}

}  // namespace
}  // namespace cuda_nc::uct
