// Two interfaces exchange messages, and both are told nonsense meanwhile. What strangers say
// changes nothing. What the very peer says may spoil its own messages: nothing is written outside
// of them, and all that was lent is back in the end.
//
//   CUDA_NC_FUZZ_SECONDS  how long each test goes on; 1 where it is not set
//   CUDA_NC_FUZZ_SEED     the seed of its first case; each further case has the next one
//   CUDA_NC_FUZZ_CASES    how many cases, in place of the time
//   CUDA_NC_FUZZ_LOG      a file to which each made-up message is written before it is said
//
// A failure, and a crash, name the seed of their case. Everything that a case does comes from its
// seed; how the simulated GPU's threads and the test's take turns does not.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "ucs/gpu/child_process.hpp"
#include "uct/cuda_nc/memory/lent.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/protocol/fuzz_buffers.hpp"
#include "uct/cuda_nc/protocol/fuzz_messages.hpp"
#include "uct/cuda_nc/protocol/network_fixture.hpp"

namespace cuda_nc::uct {
namespace {

uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *value = std::getenv(name);
    return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

struct exchange {
    explicit exchange(const rows &of) : from(of), to(of) {}
    fuzz_sender from;
    fuzz_receiver to;
    std::vector<char> bytes;
};

// What the product logs. A sanitizer's report goes to the descriptor itself, and is not lost.
class kept_log {
  public:
    kept_log() { stderr = open_memstream(&text_, &length_); }
    ~kept_log() {
        std::fclose(std::exchange(stderr, before_));
        std::free(text_);
    }
    kept_log(const kept_log &) = delete;
    kept_log &operator=(const kept_log &) = delete;
    std::string text() {
        std::fflush(stderr);
        return std::string(text_, length_);
    }

  private:
    FILE *const before_ = stderr;
    char *text_ = nullptr;
    size_t length_ = 0;
};

// One case: two interfaces, some messages between them, and nonsense.
class fuzz_case : public network_test {
  public:
    fuzz_case(uint64_t seed, const lent &of_child, FILE *log)
        : seed_(seed), fuzzer_(seed), child_(of_child), log_(log) {}
    void TestBody() override {}

    void run(bool hostile) {
        SetUp();
        hostile_ = hostile;
        regions_ = regions_lent();
        ports_ = ports_lent();
        kept_ = quarantined();
        net_->random.seed(seed_);
        net_->records = true;
        far_ = fuzzer_.one_in(3);
        net_->connects =
            fuzzer_.one_in(2) ? abi::cap_flag::connect_to_ep : abi::cap_flag::connect_to_iface;
        net_->full = fuzzer_.one_in(3) ? 20 : 0;
        connect_both();
        for (uint64_t i = 1 + fuzzer_.below(4); i != 0; --i) {
            begin(fuzzer_.below(2) == 0);
            talk(fuzzer_.below(12));
        }
        talk(10 + fuzzer_.below(60));
        if (hostile) {
            talk(200);
        } else {
            EXPECT_TRUE(progress_until([this] { return are_complete(); })) << account();
        }
        end();
    }

  private:
    void connect_both() {
        open(left_);
        open(right_);
        network_host *hosts[] = {&left_, &right_};
        for (network_host *host : hosts) {
            net_->api.uct_iface_set_am_handler(host->iface, rndv_data_id, fuzz_receiver::handle,
                                               nullptr, 0);
        }
        connect_opened(far_);
        buffer_finder = fuzz_buffer::find;
    }
    void begin(bool to_the_right) {
        const uint64_t number = 1 + fuzzer_.below(60), length = 16 << fuzzer_.below(9);
        const rows of = {number, length, length + 16 * fuzzer_.below(8), fuzzer_.one_in(2)};
        messages_.push_back(std::make_unique<exchange>(of));
        exchange &one = *messages_.back();
        one.bytes = random_bytes(of.bytes());
        one.from.fill(one.bytes);
        network_host &from = to_the_right ? left_ : right_, &to = to_the_right ? right_ : left_;
        const uint64_t words[] = {1, reinterpret_cast<uint64_t>(one.from.request), 0, of.bytes()};
        const uint64_t own[] = {reinterpret_cast<uint64_t>(one.to.request), 0, 0, 0};
        EXPECT_EQ(send(from, rts_id, 0, words, sizeof(words)), UCS_OK);
        talk(fuzzer_.below(8));
        EXPECT_EQ(send(to, rtr_id, words[1], own, sizeof(own)), UCS_OK);
        talk(fuzzer_.below(8));
        one.from.send(from.ep, one.to);
    }
    // UCP too sends them again where there is no room for what must go in front of them.
    ucs_status_t send(network_host &by, uint8_t id, uint64_t header, const void *payload,
                      unsigned length) {
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        for (int i = 0; i < 200 && status == UCS_ERR_NO_RESOURCE; ++i) {
            status = by.ep->iface->ops.ep_am_short(by.ep, id, header, payload, length);
            if (status == UCS_ERR_NO_RESOURCE) {
                net_->step();
            }
        }
        return status;
    }
    // So many rounds of progress with nonsense between them.
    void talk(uint64_t rounds) {
        for (; rounds != 0; --rounds) {
            if (fuzzer_.one_in(3)) {
                say(fuzzer_.one_in(2) ? left_ : right_);
            }
            net_->step();
            if (hostile_ && fuzzer_.one_in(60) && !messages_.empty()) {
                exchange &one = *messages_[fuzzer_.below(messages_.size())];
                fuzzer_.one_in(2) ? one.from.end() : one.to.end();
            }
        }
    }
    fuzz_knowledge knowledge(const network_host &victim) const {
        fuzz_knowledge known = {};
        known.hostile = hostile_;
        const uint64_t left = left_.inside().address.identity;
        const uint64_t right = right_.inside().address.identity;
        known.author = &victim == &left_ ? right : left;
        known.identities = {left, right};
        known.requests = {reinterpret_cast<uint64_t>(nobody_)};
        for (const auto &one : messages_) {
            known.requests.push_back(reinterpret_cast<uint64_t>(one->to.request));
            known.requests.push_back(reinterpret_cast<uint64_t>(one->from.request));
        }
        known.processes = {child_.process, {0x7ffffff0, child_.process.pid_space, 1}, {}};
        known.handles = {child_.handle, child_.source.memory, {}};
        for (const control &one : net_->controls) {
            known.numbers.push_back(one.to);
            known.numbers.push_back(one.from);
            known.lengths.push_back(one.length);
            if (one.kind == control_kind::accept_slots || one.kind == control_kind::accept_pipe) {
                known.processes.push_back(one.process);
                known.handles.push_back(one.handle);
            }
        }
        known.lengths.push_back(1 << 20);
        known.source = child_.source;
        return known;
    }
    void say(network_host &victim) {
        const stub::recorded made = fuzzer_.next(knowledge(victim), net_->messages);
        write_log(victim, made);
        // Of exactly its length, so that the address sanitizer sees what is read beyond.
        std::unique_ptr<char[]> bytes(new char[made.bytes.size()]);
        std::copy(made.bytes.begin(), made.bytes.end(), bytes.get());
        direct_messages &messages = *victim.inside().messages;
        if (made.id == control_id) {
            messages.handle_control(bytes.get(), made.bytes.size());
        } else if (made.id == rts_id) {
            messages.handle_rts(bytes.get(), made.bytes.size());
        } else if (made.id == ats_id) {
            messages.handle_ats(bytes.get(), made.bytes.size());
            end_as_ucp_does(bytes.get(), made.bytes.size());
        } else if (made.id == rndv_data_id && is_marked(bytes.get(), made.bytes.size())) {
            messages.handle_data(bytes.get(), made.bytes.size());
        }
    }
    // UCP ends a request that ATS names, as a rule.
    void end_as_ucp_does(const char *ats, size_t length) {
        uint64_t request = 0;
        if (length < failure_length || fuzzer_.one_in(4)) {
            return;
        }
        std::memcpy(&request, ats, sizeof(request));
        for (const auto &one : messages_) {
            if (reinterpret_cast<uint64_t>(one->from.request) == request) {
                one->from.end();
            }
        }
    }
    void write_log(const network_host &victim, const stub::recorded &made) {
        if (log_ == nullptr) {
            return;
        }
        std::fprintf(
            log_, "seed %llu: to the %s, id %u, %zu bytes:", static_cast<unsigned long long>(seed_),
            &victim == &left_ ? "left" : "right", made.id, made.bytes.size());
        for (char byte : made.bytes) {
            std::fprintf(log_, " %02x", static_cast<unsigned char>(byte));
        }
        std::fputc('\n', log_);
        std::fflush(log_);
    }
    // What became of each message, and what was said last.
    std::string account() const {
        std::ostringstream text;
        text << (far_ ? "far" : "near") << ", carrier full " << net_->full << "\n";
        for (const auto &one : messages_) {
            text << one->bytes.size() << " bytes: sent " << one->from.is_complete()
                 << (one->from.message != nullptr ? " (under way)" : "") << ", received "
                 << one->to.is_complete() << (one->to.message != nullptr ? " (under way)" : "")
                 << (one->to.by_gpu ? " by GPU" : "") << "\n";
        }
        const size_t last = std::min<size_t>(net_->controls.size(), 40);
        for (auto at = net_->controls.end() - static_cast<ptrdiff_t>(last);
             at != net_->controls.end(); ++at) {
            text << "kind " << static_cast<unsigned>(at->kind) << ", to " << std::hex << at->to
                 << ", from " << at->from << ", identity " << at->identity << std::dec << "\n";
        }
        return text.str();
    }
    bool are_complete() const {
        return std::all_of(messages_.begin(), messages_.end(), [](const auto &one) {
            return one->from.is_complete() && one->to.is_complete();
        });
    }
    void end() {
        for (const auto &one : messages_) {
            if (!hostile_) {
                EXPECT_TRUE(one->to.read() == one->bytes) << "wrong bytes";
            }
            one->from.end();
            one->to.end();
            EXPECT_TRUE(one->to.is_intact()) << "bytes beside the receiver's rows";
            EXPECT_TRUE(one->from.is_intact()) << "bytes of the sender's memory";
        }
        purge(left_.ep);
        purge(right_.ep);
        for (int i = 0; i < 50; ++i) {
            net_->step();
        }
        const uint64_t identities[] = {left_.inside().address.identity,
                                       right_.inside().address.identity};
        disconnect();
        // What a silent peer could still write to is released as if it said its last word.
        for (const control &one : net_->controls) {
            for (uint64_t identity : identities) {
                leave_quarantine({one.to, identity});
                leave_quarantine({one.from, identity});
            }
        }
        release_quarantined(true);
        messages_.clear();
        EXPECT_EQ(quarantined(), kept_);
        EXPECT_EQ(regions_lent(), regions_);
        EXPECT_EQ(ports_lent(), ports_);
        lent_ = regions_lent();
        TearDown();
    }

    const uint64_t seed_;
    message_fuzzer fuzzer_;
    const lent &child_;
    FILE *const log_;
    bool hostile_ = false, far_ = false;
    std::vector<std::unique_ptr<exchange>> messages_;
    alignas(8) char nobody_[256] = {};  // a request of UCP's that is none of ours
    size_t regions_ = 0, ports_ = 0, kept_ = 0;
};

class fuzz_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        child_ = std::make_unique<gpu::test::child_process>(
            "source_process.DISABLED_describes_memory", std::vector<std::string>{});
        ASSERT_TRUE(child_->receive(&lent_, sizeof(lent_))) << child_->output();
    }
    void run(bool hostile) {
        const uint64_t first = from_environment("CUDA_NC_FUZZ_SEED", 1);
        const uint64_t seconds = from_environment("CUDA_NC_FUZZ_SECONDS", 1);
        const uint64_t most = from_environment("CUDA_NC_FUZZ_CASES", 0);
        const char *name = std::getenv("CUDA_NC_FUZZ_LOG");
        FILE *log = name != nullptr ? std::fopen(name, "w") : nullptr;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
        uint64_t cases = 0;
        for (; most != 0 ? cases < most : std::chrono::steady_clock::now() < limit; ++cases) {
            SCOPED_TRACE("CUDA_NC_FUZZ_CASES=1 CUDA_NC_FUZZ_SEED=" + std::to_string(first + cases));
            kept_log said;
            fuzz_case(first + cases, lent_, log).run(hostile);
            EXPECT_EQ(said.text().find("illegal access"), std::string::npos) << said.text();
            if (HasFailure()) {
                break;
            }
        }
        if (log != nullptr) {
            std::fclose(log);
        }
        std::printf("%llu cases from seed %llu\n", static_cast<unsigned long long>(cases),
                    static_cast<unsigned long long>(first));
    }
    std::unique_ptr<gpu::test::child_process> child_;
    lent lent_ = {};
};

TEST_F(fuzz_test, what_strangers_say_changes_nothing) {
    run(false);
}

TEST_F(fuzz_test, what_a_hostile_peer_says_spoils_its_own_messages_alone) {
#ifdef __SANITIZE_THREAD__
    // It has UCP write into a buffer that a kernel writes into, and two messages into one slot.
    GTEST_SKIP() << "a hostile peer's bytes race with each other";
#endif
    run(true);
}

}  // namespace
}  // namespace cuda_nc::uct
