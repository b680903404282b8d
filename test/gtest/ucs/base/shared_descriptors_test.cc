#include "ucs/base/shared_descriptors.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace cuda_nc::test {
namespace {

using file_list = std::vector<file_descriptor>;

// Memory files, each of another length.
file_list make_files(size_t count) {
    file_list made;
    for (size_t i = 0; i < count; ++i) {
        made.emplace_back(memfd_create("test", MFD_CLOEXEC));
        EXPECT_EQ(ftruncate(made.back().number(), static_cast<off_t>(1000 + i)), 0);
    }
    return made;
}

// What `make_files` has made, in this order.
bool are_those(const file_descriptor *taken, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        struct stat about;
        if (fstat(taken[i].number(), &about) != 0 ||
            about.st_size != static_cast<off_t>(1000 + i)) {
            return false;
        }
    }
    return true;
}

size_t count_descriptors() {
    size_t number = 0;
    DIR *const all = opendir("/proc/self/fd");
    while (readdir(all) != nullptr) {
        ++number;
    }
    closedir(all);
    return number;
}

struct offer {
    explicit offer(size_t count, const char *text = "about") {
        const file_list made = make_files(count);
        about.assign(text, text + std::strlen(text));
        status =
            offer_descriptors(about.data(), about.size(), made.data(), count, &ticket, &keeper);
    }

    ucs_status_t take(std::chrono::milliseconds longest = std::chrono::seconds(1)) const {
        std::vector<char> got(about.size());
        file_descriptor taken[most_shared_descriptors];
        size_t count = 0;
        const ucs_status_t how = take_descriptors(ticket, got.data(), got.size(), taken,
                                                  most_shared_descriptors, &count, longest);
        if (how == UCS_OK) {
            EXPECT_EQ(got, about);
            EXPECT_TRUE(count != 0 && are_those(taken, count));
            number_taken = count;
        } else {
            for (const file_descriptor &one : taken) {
                EXPECT_FALSE(one);
            }
        }
        return how;
    }

    std::vector<char> about;
    descriptor_ticket ticket = {};
    std::shared_ptr<void> keeper;
    ucs_status_t status;
    mutable size_t number_taken = 0;
};

// With as many descriptors as the most that is offered needs, beside what other tests have offered.
class shared_descriptors : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
        const rlimit wanted = {4096, before_.rlim_max};
        if (before_.rlim_max < wanted.rlim_cur) {
            GTEST_SKIP() << "needs 4,096 file descriptors";
        }
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &wanted), 0);
    }
    void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_ = {};
};

socklen_t address_of(const descriptor_ticket &ticket, sockaddr_un *name_p) {
    *name_p = {};
    name_p->sun_family = AF_UNIX;
    const int length = std::snprintf(name_p->sun_path + 1, sizeof(name_p->sun_path) - 1,
                                     "ucx_cuda_nc.%016" PRIx64, ticket.service);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<size_t>(length));
}

// What a child tells its parent.
template <typename value>
class told {
  public:
    told() { EXPECT_EQ(pipe(ends_), 0); }
    ~told() {
        close(ends_[0]);
        close(ends_[1]);
    }
    bool say(const value &what) const {
        return write(ends_[1], &what, sizeof(what)) == static_cast<ssize_t>(sizeof(what));
    }
    // By the parent, who then says nothing: ends where the child has ended.
    value hear() {
        close(std::exchange(ends_[1], -1));
        value what = {};
        EXPECT_EQ(read(ends_[0], &what, sizeof(what)), static_cast<ssize_t>(sizeof(what)));
        return what;
    }

  private:
    int ends_[2];
};

// A child that does what `body` does and ends with its result.
pid_t start_child(const std::function<int()> &body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);  // where it hangs the test fails
        _exit(body());
    }
    EXPECT_GT(child, 0);
    return child;
}

void expect_to_end_well(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// In a process of its own, which ends well where `body` has no failure.
void in_a_child(const std::function<void()> &body) {
    expect_to_end_well(start_child([&] {
        body();
        return ::testing::Test::HasFailure() ? 1 : 0;
    }));
}

// Connected to the service, without its leave.
file_descriptor connect_to(const descriptor_ticket &ticket, int flags = 0) {
    file_descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
    sockaddr_un name;
    const socklen_t length = address_of(ticket, &name);
    if (connect(made.number(), reinterpret_cast<const sockaddr *>(&name), length) != 0) {
        return file_descriptor();
    }
    return made;
}

// `file` goes along where it is one.
bool send_to(int connection, const void *bytes, size_t size, int file) {
    iovec part = {const_cast<void *>(bytes), size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr *const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(head), &file, sizeof(int));
    }
    return sendmsg(connection, &message, MSG_NOSIGNAL) >= 0;
}

// Once the service has hung up on this request, it has on all before.
size_t open_descriptors(const offer &of_service) {
    {
        const file_descriptor connection = connect_to(of_service.ticket);
        const uint64_t number[2] = {};
        char got[8];
        EXPECT_TRUE(send_to(connection.number(), number, sizeof(number), -1));
        EXPECT_GT(recv(connection.number(), got, sizeof(got), 0), 0);
        EXPECT_EQ(recv(connection.number(), got, sizeof(got), 0), 0);
    }
    return count_descriptors();
}

constexpr uid_t not_mapped = 65534, somebody = 54321;

// Whether this process may become somebody else: in a container of a user's it may not.
bool may_become_another() {
    const pid_t child = fork();
    if (child == 0) {
        _exit(setuid(somebody) == 0 && setuid(not_mapped) != 0 ? 0 : 1);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(shared_descriptors, are_taken_by_another_process_any_number_of_times) {
    const offer one(3), most(most_shared_descriptors, "of the most");
    ASSERT_EQ(one.status, UCS_OK);
    ASSERT_EQ(most.status, UCS_OK);
    EXPECT_TRUE(is_own(one.ticket));
    in_a_child([&] {
        EXPECT_FALSE(is_own(one.ticket));
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(one.take(), UCS_OK);
            EXPECT_EQ(one.number_taken, 3u);
            EXPECT_EQ(most.take(), UCS_OK);
            EXPECT_EQ(most.number_taken, most_shared_descriptors);
        }
    });
}

TEST_F(shared_descriptors, offers_end_with_their_keepers) {
    offer first(2), second(1);
    const size_t before = open_descriptors(second);
    EXPECT_EQ(first.take(), UCS_OK);
    EXPECT_EQ(open_descriptors(second), before);
    first.keeper.reset();
    EXPECT_EQ(open_descriptors(second), before - 2);
    EXPECT_EQ(first.take(), UCS_ERR_NO_ELEM);
    EXPECT_EQ(second.take(), UCS_OK);
}

TEST_F(shared_descriptors, a_wrong_ticket_gets_nothing) {
    offer one(1);
    for (unsigned word = 0; word < 2; ++word) {
        offer wrong = one;
        wrong.ticket.number[word] ^= 1;
        EXPECT_EQ(wrong.take(), UCS_ERR_NO_ELEM);
    }
    offer nobody = one;
    nobody.ticket.service ^= 1;
    EXPECT_EQ(nobody.take(), UCS_ERR_NO_ELEM);
    offer longer = one;
    longer.about.push_back('x');
    EXPECT_EQ(longer.take(), UCS_ERR_NO_ELEM);
}

TEST_F(shared_descriptors, no_more_are_taken_than_there_is_room_for) {
    const offer three(3);
    const size_t before = open_descriptors(three);
    std::vector<char> about(three.about.size());
    file_descriptor two[2];
    size_t count = 0;
    EXPECT_EQ(take_descriptors(three.ticket, about.data(), about.size(), two, 2, &count),
              UCS_ERR_NO_ELEM);
    EXPECT_EQ(open_descriptors(three), before);
}

TEST_F(shared_descriptors, wrong_numbers_are_refused) {
    const file_list one = make_files(1);
    const std::vector<char> about(most_shared_bytes + 1);
    descriptor_ticket ticket;
    std::shared_ptr<void> keeper;
    EXPECT_EQ(offer_descriptors(about.data(), about.size(), one.data(), 1, &ticket, &keeper),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(offer_descriptors(about.data(), 1, one.data(), 0, &ticket, &keeper),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(offer_descriptors(about.data(), 1, one.data(), most_shared_descriptors + 1, &ticket,
                                &keeper),
              UCS_ERR_INVALID_PARAM);
    const file_descriptor none;
    EXPECT_EQ(offer_descriptors(about.data(), 1, &none, 1, &ticket, &keeper), UCS_ERR_IO_ERROR);
    EXPECT_EQ(keeper, nullptr);
}

TEST_F(shared_descriptors, a_quarter_of_the_limit_may_wait) {
    in_a_child([] {
        const rlimit files = {400, 400};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
        offer first(60), second(60);
        EXPECT_EQ(first.status, UCS_OK);
        EXPECT_EQ(second.status, UCS_ERR_NO_RESOURCE);
        EXPECT_EQ(offer(101).status, UCS_ERR_EXCEEDS_LIMIT);
        first.keeper.reset();
        EXPECT_EQ(offer(60).status, UCS_OK);
    });
}

TEST_F(shared_descriptors, who_has_no_descriptors_left_gets_none) {
    const offer many(100);
    ASSERT_EQ(many.status, UCS_OK);
    in_a_child([&] {
        const size_t before = count_descriptors();
        const rlimit files = {60, 60};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
        EXPECT_EQ(many.take(), UCS_ERR_NO_RESOURCE);
        EXPECT_EQ(count_descriptors(), before);
    });
    EXPECT_EQ(many.take(), UCS_OK);
}

TEST_F(shared_descriptors, senseless_requests_harm_nobody) {
    const offer one(2);
    ASSERT_EQ(one.status, UCS_OK);
    const size_t before = open_descriptors(one);
    {
        std::mt19937_64 random(1);
        const file_list sent = make_files(1);
        std::vector<file_descriptor> silent;
        for (int i = 0; i < 300; ++i) {
            std::vector<char> bytes(i % 3 == 0 ? 16 : random() % 6000);
            for (char &byte : bytes) {
                byte = static_cast<char>(random());
            }
            if (i % 5 == 0) {
                bytes.resize(16);
                std::memcpy(bytes.data(), one.ticket.number, 16);  // and nobody reads the answer
            }
            file_descriptor connection = connect_to(one.ticket);
            ASSERT_TRUE(connection) << i;
            if (i % 7 == 0) {
                silent.push_back(std::move(connection));  // asks nothing
            } else {
                EXPECT_TRUE(send_to(connection.number(), bytes.data(), bytes.size(),
                                    i % 4 == 0 ? sent[0].number() : -1));
            }
        }
        EXPECT_EQ(one.take(), UCS_OK);
        // Who asks nothing is hung up on.
        char none;
        for (const file_descriptor &connection : silent) {
            EXPECT_EQ(recv(connection.number(), &none, 1, 0), 0);
        }
    }
    EXPECT_EQ(open_descriptors(one), before);
}

TEST_F(shared_descriptors, another_user_gets_none) {
    if (!may_become_another()) {
        GTEST_SKIP() << "this process cannot become another user";
    }
    const offer one(1);
    for (uid_t user : {somebody, not_mapped}) {
        in_a_child([&] {
            ASSERT_EQ(setuid(user), 0);
            EXPECT_EQ(one.take(), UCS_ERR_NO_ELEM);
            // Without asking who the owner is.
            const file_descriptor connection = connect_to(one.ticket);
            ASSERT_TRUE(connection);
            send_to(connection.number(), one.ticket.number, sizeof(one.ticket.number), -1);
            char got[8];
            EXPECT_LE(recv(connection.number(), got, sizeof(got), 0), 0);
        });
    }
    EXPECT_EQ(one.take(), UCS_OK);
}

// As all are that a user namespace does not map.
TEST_F(shared_descriptors, nobody_is_not_a_user) {
    if (!may_become_another()) {
        GTEST_SKIP() << "this process cannot become another user";
    }
    in_a_child([] {
        ASSERT_EQ(setuid(not_mapped), 0);
        const offer one(1);
        EXPECT_EQ(one.take(), UCS_ERR_NO_ELEM);
    });
}

// Its answer would be another user's descriptors.
TEST_F(shared_descriptors, another_user_is_not_asked) {
    if (!may_become_another()) {
        GTEST_SKIP() << "this process cannot become another user";
    }
    const descriptor_ticket ticket = {0x7e57000000000000 + static_cast<uint64_t>(getpid()), {1, 2}};
    told<bool> listens;
    const pid_t owner = start_child([&] {
        const int ours = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        sockaddr_un name;
        const socklen_t length = address_of(ticket, &name);
        if (!listens.say(setuid(somebody) == 0 &&
                         bind(ours, reinterpret_cast<const sockaddr *>(&name), length) == 0 &&
                         listen(ours, 4) == 0)) {
            return 1;
        }
        const int connection = accept(ours, nullptr, nullptr);
        char asked[16];
        return recv(connection, asked, sizeof(asked), 0) <= 0 ? 0 : 1;
    });
    EXPECT_TRUE(listens.hear());
    char about[4];
    file_descriptor one;
    size_t count = 0;
    EXPECT_EQ(take_descriptors(ticket, about, sizeof(about), &one, 1, &count), UCS_ERR_NO_ELEM);
    EXPECT_FALSE(one);
    expect_to_end_well(owner);
}

// Another process that makes an offer and waits until it is killed.
pid_t start_owner(descriptor_ticket *ticket_p) {
    told<descriptor_ticket> ticket;
    const pid_t owner = start_child([&] {
        const offer one(1);
        while (ticket.say(one.ticket)) {
            pause();
        }
        return 1;
    });
    *ticket_p = ticket.hear();
    return owner;
}

// An owner in another process, which then stops or ends: nobody waits for ever.
TEST_F(shared_descriptors, waits_are_bounded) {
    offer first(1), second(1);
    for (offer *there : {&first, &second}) {
        const pid_t owner = start_owner(&there->ticket);
        EXPECT_EQ(there->take(), UCS_OK);
        int status = 0;
        kill(owner, SIGSTOP);
        EXPECT_EQ(waitpid(owner, &status, WUNTRACED), owner);
        // Signals come more often than the wait is long, as with a profiler.
        std::signal(SIGALRM, [](int) {});
        const itimerval often = {{0, 5000}, {0, 5000}}, never = {};
        setitimer(ITIMER_REAL, &often, nullptr);
        std::vector<file_descriptor> waiting;
        while (there == &second) {  // as many as have room
            waiting.push_back(connect_to(there->ticket, SOCK_NONBLOCK));
            if (!waiting.back()) {
                break;
            }
        }
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(there->take(), UCS_ERR_TIMED_OUT);
        const auto once = std::chrono::steady_clock::now() - begin;
        for (int i = 0; i < 1000; ++i) {  // it is known by now
            EXPECT_EQ(there->take(), UCS_ERR_TIMED_OUT);
        }
        EXPECT_GE(once, std::chrono::milliseconds(900));
        setitimer(ITIMER_REAL, &never, nullptr);
        std::signal(SIGALRM, SIG_DFL);
        kill(owner, SIGKILL);
        EXPECT_EQ(waitpid(owner, &status, 0), owner);
    }
}

// An owner that does not run for longer than others have to ask, as on a machine with too much
// work.
TEST_F(shared_descriptors, a_late_owner_answers_those_who_wait) {
    offer there(1);
    const pid_t owner = start_owner(&there.ticket);
    // One is accepted before, as the answer to the next shows, and asks meanwhile.
    const file_descriptor early = connect_to(there.ticket);
    EXPECT_EQ(there.take(), UCS_OK);
    int status = 0;
    kill(owner, SIGSTOP);
    EXPECT_EQ(waitpid(owner, &status, WUNTRACED), owner);
    EXPECT_TRUE(send_to(early.number(), there.ticket.number, sizeof(there.ticket.number), -1));
    std::thread wakes([owner] {
        usleep(1300000);
        kill(owner, SIGCONT);
    });
    EXPECT_EQ(there.take(std::chrono::seconds(30)), UCS_OK);
    char got[64];
    EXPECT_GT(recv(early.number(), got, sizeof(got), 0), 0);
    wakes.join();
    kill(owner, SIGKILL);
    EXPECT_EQ(waitpid(owner, &status, 0), owner);
}

TEST_F(shared_descriptors, who_has_ended_gives_nothing) {
    offer there(1);
    told<descriptor_ticket> ticket;
    in_a_child([&] { EXPECT_TRUE(ticket.say(offer(1).ticket)); });
    there.ticket = ticket.hear();
    EXPECT_EQ(there.take(), UCS_ERR_NO_ELEM);
}

TEST_F(shared_descriptors, a_child_offers_its_own) {
    const offer of_parent(1);
    in_a_child([&] {
        const offer of_child(2);
        ASSERT_EQ(of_child.status, UCS_OK);
        EXPECT_NE(of_child.ticket.service, of_parent.ticket.service);
        EXPECT_EQ(of_child.take(), UCS_OK);
        EXPECT_EQ(of_parent.take(), UCS_OK);  // the parent answers
    });
}

// Programs that become daemons close all that is open, and open their own.
TEST_F(shared_descriptors, a_number_that_the_program_uses_again_is_left_alone) {
    in_a_child([] {
        const offer one(1);
        ASSERT_EQ(one.take(), UCS_OK);
        int ours[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ours), 0);
        for (int number = 3; number < 1000; ++number) {
            if (number != ours[0] && number != ours[1]) {
                dup2(ours[0], number);
            }
        }
        EXPECT_NE(one.take(), UCS_OK);  // the thread wakes, and finds its socket gone
        EXPECT_EQ(write(ours[1], "mine", 4), 4);
        pollfd readable = {ours[0], POLLIN, 0};
        usleep(50000);
        EXPECT_EQ(poll(&readable, 1, 1000), 1);
        char got[8] = {};
        EXPECT_EQ(read(ours[0], got, sizeof(got)), 4);
        EXPECT_STREQ(got, "mine");
        EXPECT_EQ(recv(ours[1], got, sizeof(got), MSG_DONTWAIT), -1);  // nobody wrote there
        EXPECT_EQ(offer(1).take(), UCS_OK);                            // by another thread
    });
}

TEST_F(shared_descriptors, many_threads_offer_and_take) {
    std::vector<std::thread> threads;
    std::atomic<unsigned> taken{0};
    const offer any(1);
    const size_t before = open_descriptors(any);
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&taken, t] {
            for (unsigned i = 0; i < 50; ++i) {
                const offer one(1 + (t + i) % 5);
                taken += one.status == UCS_OK && one.take() == UCS_OK;
            }
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
    EXPECT_EQ(taken, 200u);
    EXPECT_EQ(open_descriptors(any), before);
}

}  // namespace
}  // namespace cuda_nc::test
