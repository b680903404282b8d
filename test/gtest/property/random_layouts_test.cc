// The engine against type maps: random nested datatypes are folded, repeated, located, walked,
// packed, unpacked and copied, and every byte, also of gaps, is compared.
//
// CUDA_NC_TEST_LAYOUTS sets how many layouts, CUDA_NC_TEST_SEED the seed of the first; layout i has
// the seed of the first plus i, so a failure is repeated by the seed it prints and a count of 1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "property/random_type.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/exec/host/split.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc {
namespace {

using test::map_entry;
using test::random_type;
using test::random_types;

constexpr size_t guard_bytes = 64;

// Sanitizers slow the oracle down by a factor of eight.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t default_layouts = 12000;
#else
constexpr uint64_t default_layouts = 104000;
#endif

struct repetition {
    uint64_t count;
    int64_t extent;
};

// A message: a type, repeated, and the displacement of each of its packed bytes.
struct message {
    random_type type;
    std::vector<repetition> repetitions;  // the innermost first; an MPI message has one
    std::vector<int64_t> bytes;
    int64_t lower = 0, upper = 0;
    layout_ref folded;

    std::string text() const {
        std::string line;
        for (const repetition &one : repetitions) {
            line = std::to_string(one.count) + " x " + std::to_string(one.extent) + " of " + line;
        }
        return line + type.text + (folded == nullptr ? "" : "; " + folded->describe());
    }
};

void list_bytes(message *m) {
    for (const map_entry &entry : m->type.map) {
        for (uint64_t b = 0; b < entry.length; ++b) {
            m->bytes.push_back(entry.displacement + static_cast<int64_t>(b));
        }
    }
    for (const repetition &one : m->repetitions) {
        std::vector<int64_t> inner;
        inner.swap(m->bytes);
        for (uint64_t i = 0; i < one.count; ++i) {
            for (int64_t byte : inner) {
                m->bytes.push_back(byte + static_cast<int64_t>(i) * one.extent);
            }
        }
    }
    if (!m->bytes.empty()) {
        const auto ends = std::minmax_element(m->bytes.begin(), m->bytes.end());
        m->lower = *ends.first;
        m->upper = *ends.second + 1;
    }
}

layout_ref repeat(layout_ref folded, const message &m) {
    for (const repetition &one : m.repetitions) {
        folded = folded == nullptr ? nullptr : folded->repeat(one.count, one.extent);
    }
    return folded;
}

// How often and how far apart the type is repeated: `most` packed bytes, about.
void choose_repetitions(message *m, uint64_t most, random_types &random) {
    const bool deep = random.below(50) == 0;  // more dimensions than a layout has
    const unsigned levels = deep ? 9 : random.below(6) == 0 ? 2 : 1;
    uint64_t size = std::max<uint64_t>(m->type.size(), 1);
    for (unsigned level = 0; level < levels; ++level) {
        const uint64_t limit = most / size + 1;
        uint64_t count = 1 + random.below(random.below(4) == 0 ? limit : 4);
        count = deep ? (size < 2 * most ? 2 : 1) : std::min(count, 1 + most / size);
        count = random.below(50) == 0 ? 0 : count;
        const bool natural = level == 0 && random.below(4) != 0;
        const int64_t extent = natural ? m->type.extent() : random.between(-500, 900);
        m->repetitions.push_back({count, extent});
        size *= std::max<uint64_t>(count, 1);
    }
}

layout_ref fold(const random_type &type, random_types *random) {
    layout_builder builder;
    for (const map_entry &entry : type.map) {
        uint64_t done = 0;
        if (random != nullptr && entry.length > 1) {  // in two parts that touch
            done = random->below(entry.length + 1);
            builder.append(entry.displacement, done);
        }
        builder.append(entry.displacement + static_cast<int64_t>(done), entry.length - done);
    }
    return builder.finish();
}

// Sizes, bounds, hash and alignment.
void check_numbers(const message &m, random_types &random) {
    const layout &folded = *m.folded;
    ASSERT_EQ(folded.packed_size(), m.bytes.size());
    ASSERT_EQ(folded.lower_bound(), m.lower);
    ASSERT_EQ(folded.upper_bound(), m.upper);
    ASSERT_EQ(folded.kind() == shape::empty, m.bytes.empty());

    const layout_ref parts = fold(m.type, &random);
    ASSERT_NE(parts, nullptr);
    const layout_ref again = repeat(parts, m);
    ASSERT_NE(again, nullptr);
    ASSERT_TRUE(again->hash() == folded.hash()) << "hash depends on how blocks were given";
    ASSERT_TRUE(again->equal(folded));

    uint64_t bits = 0;
    for (size_t i = 0; i < m.bytes.size(); ++i) {
        if (i == 0 || m.bytes[i] != m.bytes[i - 1] + 1) {
            bits |= static_cast<uint64_t>(m.bytes[i]) | i;
        }
    }
    bits |= m.bytes.size();
    ASSERT_EQ(bits & ((uint64_t(1) << folded.view().align_log2) - 1), 0u) << "alignment";
}

void check_seeks(const message &m, random_types &random) {
    const uint64_t size = m.bytes.size();
    for (unsigned i = 0; i < 6; ++i) {
        const uint64_t offset = i == 0 ? size - 1 : random.below(size);
        const layout_position found = m.folded->view().locate(offset);
        ASSERT_EQ(found.displacement, m.bytes[offset]) << "locate " << offset;
        ASSERT_GE(found.remaining, 1u);
        ASSERT_LE(found.remaining, size - offset);
        ASSERT_EQ(m.bytes[offset + found.remaining - 1],
                  found.displacement + static_cast<int64_t>(found.remaining) - 1)
            << "locate " << offset;
    }
    uint64_t offset = random.below(size + 1);
    const uint64_t most = 1 + random.below(300);
    layout_cursor cursor(*m.folded, offset);
    while (offset < size) {
        const block span = cursor.next(most);
        ASSERT_GE(span.length, 1u) << "cursor at " << offset;
        ASSERT_LE(span.length, std::min(most, size - offset));
        for (uint64_t b = 0; b < span.length; ++b) {
            ASSERT_EQ(span.displacement + static_cast<int64_t>(b), m.bytes[offset + b])
                << "cursor at " << offset;
        }
        offset += span.length;
    }
    ASSERT_EQ(cursor.next(most).length, 0u);
}

void fill(random_types &random, std::vector<uint8_t> *bytes) {
    uint64_t state = random.engine()();
    for (uint8_t &byte : *bytes) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<uint8_t>(state >> 57);
    }
}

// Memory for the span of a message, with guards, at some alignment.
struct span_memory {
    std::vector<uint8_t> bytes;
    size_t start;

    span_memory(const message &m, random_types &random)
        : bytes(static_cast<size_t>(m.upper - m.lower) + 2 * guard_bytes + 64),
          start(guard_bytes + random.below(64)) {
        fill(random, &bytes);
    }
    size_t index(const message &m, int64_t displacement) const {
        return start + static_cast<size_t>(displacement - m.lower);
    }
    void *base(const message &m) {
        return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(bytes.data() + start) -
                                        static_cast<uintptr_t>(m.lower));
    }
};

// Moves [offset, offset + length) by all three calls.
void check_range(const message &m, uint64_t offset, uint64_t length, random_types &random) {
    SCOPED_TRACE("offset " + std::to_string(offset) + " length " + std::to_string(length));
    const layout_view &view = m.folded->view();
    const int64_t *map = m.bytes.data() + offset;
    span_memory memory(m, random);

    const size_t start = guard_bytes + random.below(64);
    std::vector<uint8_t> packed(start + length + guard_bytes, 0xff);
    std::vector<uint8_t> expected = packed;
    for (uint64_t i = 0; i < length; ++i) {
        expected[start + i] = memory.bytes[memory.index(m, map[i])];
    }
    exec::host_pack(view, memory.base(m), offset, packed.data() + start, length);
    ASSERT_TRUE(packed == expected) << "pack";

    span_memory other(m, random);
    expected = other.bytes;
    for (uint64_t i = 0; i < length; ++i) {
        expected[other.index(m, map[i])] = memory.bytes[memory.index(m, map[i])];
    }
    exec::host_copy(view, memory.base(m), other.base(m), offset, length);
    ASSERT_TRUE(other.bytes == expected) << "copy";

    fill(random, &packed);
    expected = memory.bytes;
    for (uint64_t i = 0; i < length; ++i) {
        expected[memory.index(m, map[i])] = packed[start + i];
    }
    exec::host_unpack(view, memory.base(m), offset, packed.data() + start, length);
    ASSERT_TRUE(memory.bytes == expected) << "unpack";
}

struct totals {
    uint64_t layouts = 0, moved = 0, bytes = 0;
    uint64_t shapes[5] = {};
};

void check_layout(uint64_t seed, totals *sum) {
    test::type_limits limits{2048, 300, 4, 2000};
    const bool large = seed % 400 == 0, far = seed % 16 == 1;
    if (large) {
        limits = {300000, 20000, 3, 20000};
    } else if (far) {
        limits.far = int64_t(1) << (20 + seed / 16 % 21);  // too far apart for memory
    }
    random_types random(seed, limits);
    message m;
    m.type = random.make();
    choose_repetitions(&m, limits.bytes, random);
    list_bytes(&m);
    const layout_ref one = fold(m.type, nullptr);
    ASSERT_NE(one, nullptr) << m.type.text;
    m.folded = repeat(one, m);
    SCOPED_TRACE("CUDA_NC_TEST_SEED=" + std::to_string(seed) + " CUDA_NC_TEST_LAYOUTS=1");
    ASSERT_NE(m.folded, nullptr) << m.text();
    SCOPED_TRACE(m.text());

    ++sum->layouts;
    sum->bytes += m.bytes.size();
    ++sum->shapes[static_cast<unsigned>(m.folded->kind())];
    ASSERT_NO_FATAL_FAILURE(check_numbers(m, random));
    if (m.bytes.empty()) {
        exec::host_pack(m.folded->view(), nullptr, 0, nullptr, 0);
        return;
    }
    ASSERT_NO_FATAL_FAILURE(check_seeks(m, random));
    if (m.upper - m.lower > (large ? 4 << 20 : 64 << 10)) {
        return;
    }
    ++sum->moved;
    ASSERT_NO_FATAL_FAILURE(check_range(m, 0, m.bytes.size(), random));
    for (unsigned i = 0; i < 2; ++i) {
        const uint64_t offset = random.below(m.bytes.size());
        const uint64_t length = 1 + random.below(m.bytes.size() - offset);
        ASSERT_NO_FATAL_FAILURE(check_range(m, offset, length, random));
    }
}

uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

class random_layouts : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override {
        const bool threads = std::strcmp(GetParam(), "threads") == 0;
        setenv("UCX_CUDA_NC_HOST_SIMD", threads ? "auto" : GetParam(), 1);
        setenv("UCX_CUDA_NC_HOST_THREADS", threads ? "4" : "1", 1);
        reload_config_for_test();
        exec::reload_kernels_for_test();
        exec::reload_split_for_test(threads ? 100 : 0);
    }
    void TearDown() override {
        unsetenv("UCX_CUDA_NC_HOST_SIMD");
        unsetenv("UCX_CUDA_NC_HOST_THREADS");
        reload_config_for_test();
        exec::reload_kernels_for_test();
        exec::reload_split_for_test(0);
    }
};

// Each instruction set takes its share; where the processor lacks one, the next lower runs. Threads
// move an eighth of them again, the last.
TEST_P(random_layouts, agree_with_their_type_map) {
    const uint64_t total = number_from("CUDA_NC_TEST_LAYOUTS", default_layouts);
    const uint64_t first = number_from("CUDA_NC_TEST_SEED", 20260101);
    const bool widest = std::strcmp(GetParam(), "auto") == 0;
    const uint64_t share = total / 4;
    const bool threads = std::strcmp(GetParam(), "threads") == 0;
    const uint64_t begin = std::strcmp(GetParam(), "scalar") == 0 ? 0
                           : threads                              ? total - (total + 7) / 8
                           : std::strcmp(GetParam(), "sse2") == 0 ? share
                           : std::strcmp(GetParam(), "avx2") == 0 ? 2 * share
                                                                  : 3 * share;
    const uint64_t end = widest || threads ? total : begin + share;
    totals sum;
    for (uint64_t i = begin; i < end && !HasFailure(); ++i) {
        check_layout(first + i, &sum);
    }
    std::printf(
        "%s: seeds %llu to %llu: %llu layouts (%llu empty, %llu contiguous, %llu strided, "
        "%llu repeated, %llu irregular), %llu moved, %llu bytes\n",
        exec::host_simd_name(), static_cast<unsigned long long>(first + begin),
        static_cast<unsigned long long>(first + end), static_cast<unsigned long long>(sum.layouts),
        static_cast<unsigned long long>(sum.shapes[0]),
        static_cast<unsigned long long>(sum.shapes[1]),
        static_cast<unsigned long long>(sum.shapes[2]),
        static_cast<unsigned long long>(sum.shapes[3]),
        static_cast<unsigned long long>(sum.shapes[4]), static_cast<unsigned long long>(sum.moved),
        static_cast<unsigned long long>(sum.bytes));
}

INSTANTIATE_TEST_SUITE_P(simd, random_layouts,
                         testing::Values("scalar", "sse2", "avx2", "auto", "threads"),
                         [](const auto &set) { return std::string(set.param); });

}  // namespace
}  // namespace cuda_nc
