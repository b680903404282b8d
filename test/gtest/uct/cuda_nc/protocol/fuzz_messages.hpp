// Made-up messages for the fuzz test: random ones, ones of a kind with random fields, and recorded
// ones that are changed, cut off or prolonged.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "uct/cuda_nc/protocol/wire.hpp"
#include "uct/cuda_nc/stub_network.hpp"

namespace cuda_nc::uct {

// What the author of made-up messages knows.
struct fuzz_knowledge {
    // False: the author is a stranger, who gets no message of others right: neither its number
    // together with its peer's identity, nor UCP's request. What strangers say must change nothing.
    bool hostile;
    uint64_t author;                   // identity of the interface that the victim has as its peer
    std::vector<uint64_t> identities;  // of all interfaces
    std::vector<uint64_t> numbers;     // of messages
    std::vector<uint64_t> lengths;     // of messages, in bytes
    // Of UCP, by address; the first is nobody's. UCP reads there, as it does for any peer: a random
    // address would be a fault of UCP's.
    std::vector<uint64_t> requests;
    std::vector<process_id> processes;
    std::vector<gpu::ipc_handle> handles;
    wire::source_descriptor source;  // of memory in another process
};

class message_fuzzer {
  public:
    explicit message_fuzzer(uint64_t seed) : random_(seed) {}

    // The id is rts_id, ats_id, rndv_data_id or control_id; data has our mark.
    stub::recorded next(const fuzz_knowledge &known, const std::vector<stub::recorded> &recorded);

    uint64_t below(uint64_t bound) { return random_() % bound; }
    bool one_in(uint64_t n) { return below(n) == 0; }

  private:
    template <typename T>
    const T &any(const std::vector<T> &of) {
        return of[below(of.size())];
    }
    uint64_t number();  // at the edge of something
    uint64_t stranger() { return random_() | 1; }
    uint64_t message_number(const fuzz_knowledge &known);
    process_id process(const fuzz_knowledge &known);
    gpu::ipc_handle handle(const fuzz_knowledge &known);
    wire::sender_offer offer(const fuzz_knowledge &known);
    wire::source_descriptor source(const fuzz_knowledge &known);
    std::vector<char> announcement_of(const fuzz_knowledge &known, const wire::control &like);
    std::vector<char> control(const fuzz_knowledge &known);
    std::vector<char> data(const fuzz_knowledge &known);
    std::vector<char> acknowledgement(const fuzz_knowledge &known);
    void change(std::vector<char> &bytes);
    void resize(std::vector<char> &bytes);
    void restrain_control(const fuzz_knowledge &known, std::vector<char> &bytes);
    void restrain_data(const fuzz_knowledge &known, std::vector<char> &bytes);

    std::mt19937_64 random_;
};

}  // namespace cuda_nc::uct
