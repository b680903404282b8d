// ucp/dt/datatype.hpp, by the C API, inside a real UCX over its own transports.
#include <atomic>
#include <thread>

#include "ucp/dt/oracle.hpp"
#include "ucp/dt/settings_guard.hpp"
#include "ucp/dt/staging.hpp"
#include "ucp/dt/ucx_pair.hpp"

namespace cuda_nc::test {
namespace {

using place = buffer::place;

struct setup {
    const char *transports;
    place where;
    const char *staging_size;
};

std::string name_of_setup(const ::testing::TestParamInfo<setup> &info) {
    std::string name = std::string(info.param.transports) + "_" + name_of(info.param.where) +
                       "_staging" + info.param.staging_size;
    std::replace(name.begin(), name.end(), ',', '_');
    return name;
}

ucp_datatype_t make_type(const datatype &type) {
    ucp_datatype_t made = 0;
    EXPECT_EQ(cuda_nc_dt_create(type.blocks.data(), type.blocks.size(), type.extent, &made),
              UCS_OK);
    return made;
}

const ucp_datatype_t as_bytes = ucp_dt_make_contig(1);

// Packed sizes on both sides of every protocol's bounds.
const size_t magnitudes[] = {1, 100, 3000, 9000, 60000, 300000, 1000000};

class ucx_test : public ::testing::TestWithParam<setup> {
  protected:
    void SetUp() override {
        if (!is_there(GetParam().where)) {
            GTEST_SKIP() << "no such GPU, simulated or real";
        }
        ASSERT_TRUE(pair_.ready()) << "UCX does not start with " << GetParam().transports;
    }

    void TearDown() override {
        dt::release_unused();
        EXPECT_EQ(dt::device_staging::bytes_in_use(), 0u);
    }

    int peer() const { return std::string(GetParam().transports) == "self" ? 0 : 1; }

    // From worker 0 to its peer. Any side may be plain bytes in host memory.
    void exchange(random_engine &random, size_t size, bool typed_source, bool typed_target,
                  bool unexpected) {
        datatype type = random_datatype(random, size);
        datatype other = random_datatype(random, size);
        size_t element = std::max<size_t>(1, other.element_size());
        // Longer than the message, unless an element has no bytes.
        other.count = (type.element_size() * type.count + element - 1) / element + 1;
        if (other.element_size() == 0) {
            other.blocks[0].length = type.element_size() * type.count;
            other.count = 1;
        }
        ucp_datatype_t source_type = make_type(type), target_type = make_type(other);
        buffer source(type, GetParam().where, random), target(other, GetParam().where, random);
        bytes packed = source.packed();
        size_t most = std::max(packed.size(), target.packed_size());
        bytes plain(most, 0xaa);
        ucp_tag_t tag = ++tag_;
        auto post_receive = [&] {
            return typed_target
                       ? pair_.receive(peer(), target.base(), other.count, target_type, tag)
                       : pair_.receive(peer(), plain.data(), plain.size(), as_bytes, tag);
        };
        void *receive = unexpected ? nullptr : post_receive();
        void *send = typed_source
                         ? pair_.send(0, peer(), source.base(), type.count, source_type, tag)
                         : pair_.send(0, peer(), packed.data(), packed.size(), as_bytes, tag);
        if (unexpected) {
            pair_.progress_until_unexpected(peer(), tag);
            receive = post_receive();
        }
        cuda_nc_dt_destroy(source_type);  // in flight
        cuda_nc_dt_destroy(target_type);
        EXPECT_EQ(pair_.wait(send), UCS_OK);
        EXPECT_EQ(pair_.wait(receive), UCS_OK);
        if (typed_target) {
            target.expect(0, packed.data(), packed.size());
            EXPECT_TRUE(target.is_as_expected());
        } else {
            EXPECT_EQ(std::memcmp(plain.data(), packed.data(), packed.size()), 0);
        }
        EXPECT_TRUE(source.is_as_expected());
    }

    void exchange_all(uint64_t seed, bool typed_source, bool typed_target) {
        random_engine random(seed);
        for (size_t magnitude : magnitudes) {
            for (int i = 0; i < 4 && !HasFailure(); ++i) {
                SCOPED_TRACE("seed " + std::to_string(seed) + ", about " +
                             std::to_string(magnitude) + " B, message " + std::to_string(i));
                exchange(random, uniform(random, magnitude / 2 + 1, magnitude), typed_source,
                         typed_target, i % 2 != 0);
            }
        }
    }

    settings_guard settings_{{"STAGING_SIZE", GetParam().staging_size}};
    ucx_pair pair_{GetParam().transports};
    ucp_tag_t tag_ = 0;
    std::atomic<int> arrived_{0};
};

TEST_P(ucx_test, datatype_to_datatype) {
    exchange_all(1, true, true);
}

TEST_P(ucx_test, datatype_to_bytes) {
    exchange_all(2, true, false);
}

TEST_P(ucx_test, bytes_to_datatype) {
    exchange_all(3, false, true);
}

TEST_P(ucx_test, sixteen_megabytes) {
    datatype type;
    type.blocks = {{8, 24}};
    type.extent = 40;
    type.count = 1 << 10;
    // The oracle's map is of one thousandth; the type repeats it.
    constexpr size_t times = 700;
    ptrdiff_t span = type.extent * static_cast<ptrdiff_t>(type.count);
    bytes source_host(static_cast<size_t>(span) * times), target_host(source_host.size(), 0x11);
    for (size_t i = 0; i < source_host.size(); ++i) {
        source_host[i] = static_cast<unsigned char>(i * 31 + (i >> 9));
    }
    std::unique_ptr<gpu::memory> source_gpu, target_gpu;
    unsigned char *source = source_host.data(), *target = target_host.data();
    if (GetParam().where != place::host) {
        gpu::device *device = gpu::platform::instance().get_device(0);
        ASSERT_EQ(device->allocate(source_host.size(), &source_gpu), UCS_OK);
        ASSERT_EQ(device->allocate(target_host.size(), &target_gpu), UCS_OK);
        source = reinterpret_cast<unsigned char *>(source_gpu->address());
        target = reinterpret_cast<unsigned char *>(target_gpu->address());
        gpu_copy(0, source, source_host.data(), source_host.size());
        gpu_copy(0, target, target_host.data(), target_host.size());
    }
    ucp_datatype_t made = make_type(type);
    size_t count = type.count * times;
    void *receive = pair_.receive(peer(), target, count, made, 1);
    void *send = pair_.send(0, peer(), source, count, made, 1);
    EXPECT_EQ(pair_.wait(send), UCS_OK);
    EXPECT_EQ(pair_.wait(receive), UCS_OK);
    cuda_nc_dt_destroy(made);
    if (target_gpu != nullptr) {
        gpu_copy(0, target_host.data(), target, target_host.size());
    }
    size_t wrong = 0;
    for (size_t i = 0; i < target_host.size(); ++i) {
        bool covered = i % 40 >= 8 && i % 40 < 32;
        wrong += target_host[i] != (covered ? source_host[i] : 0x11);
    }
    EXPECT_EQ(wrong, 0u);
}

TEST_P(ucx_test, many_in_flight) {
    random_engine random(4);
    constexpr size_t num = 60;
    std::vector<datatype> types;
    std::vector<std::unique_ptr<buffer>> sources, targets;
    std::vector<void *> requests;
    for (size_t i = 0; i < num; ++i) {
        size_t size = uniform(random, 1, i % 4 == 0 ? 100000 : 9000);
        types.push_back(random_datatype(random, size));
        place to = random() % 4 == 0 ? place::host : GetParam().where;
        sources.push_back(std::make_unique<buffer>(types[i], GetParam().where, random));
        targets.push_back(std::make_unique<buffer>(types[i], to, random));
        bytes packed = sources[i]->packed();
        targets[i]->expect(0, packed.data(), packed.size());
    }
    for (size_t i = 0; i < num; ++i) {
        ucp_datatype_t made = make_type(types[i]);
        requests.push_back(pair_.send(0, peer(), sources[i]->base(), types[i].count, made, i));
        if (i % 3 == 0) {
            pair_.progress();
        }
        cuda_nc_dt_destroy(made);
    }
    for (size_t i = num; i-- > 0;) {
        ucp_datatype_t made = make_type(types[i]);
        requests.push_back(pair_.receive(peer(), targets[i]->base(), types[i].count, made, i));
        cuda_nc_dt_destroy(made);
    }
    for (void *one : requests) {
        EXPECT_EQ(pair_.wait(one), UCS_OK);
    }
    for (auto &one : targets) {
        EXPECT_TRUE(one->is_as_expected());
    }
}

TEST_P(ucx_test, one_type_with_many_counts) {
    random_engine random(5);
    datatype type = random_datatype(random, 50);
    ucp_datatype_t made = make_type(type);
    for (size_t count = 0; count < 100; ++count) {
        type.count = count * 7 % 100;
        buffer source(type, GetParam().where, random), target(type, GetParam().where, random);
        bytes packed = source.packed();
        target.expect(0, packed.data(), packed.size());
        void *receive = pair_.receive(peer(), target.base(), type.count, made, count);
        EXPECT_EQ(pair_.wait(pair_.send(0, peer(), source.base(), type.count, made, count)),
                  UCS_OK);
        EXPECT_EQ(pair_.wait(receive), UCS_OK);
        ASSERT_TRUE(target.is_as_expected()) << type.count;
    }
    cuda_nc_dt_destroy(made);
}

TEST_P(ucx_test, truncation_is_an_error_and_spares_memory) {
    random_engine random(6);
    for (size_t magnitude : {100, 9000, 60000, 300000}) {
        datatype type = random_datatype(random, magnitude);
        type.count += 1;
        buffer source(type, GetParam().where, random);
        datatype less = type;
        less.count = type.count - 1;
        if (source.packed_size() == 0 || less.map().size() == source.packed_size()) {
            continue;
        }
        buffer target(less, GetParam().where, random);
        ucp_datatype_t made = make_type(type);
        void *receive = pair_.receive(peer(), target.base(), less.count, made, magnitude);
        void *send = pair_.send(0, peer(), source.base(), type.count, made, magnitude);
        ucs_status_t received = pair_.wait(receive);
        pair_.wait(send);
        EXPECT_EQ(received, UCS_ERR_MESSAGE_TRUNCATED);
        cuda_nc_dt_destroy(made);
    }
}

TEST_P(ucx_test, what_covers_a_byte_twice_is_sent_but_not_received) {
    random_engine random(8);
    datatype overlapping = {{{0, 8}, {4, 8}}, 16, 3}, long_one = uneven_words(300);
    long_one.blocks.push_back({long_one.blocks[7].displacement + 7, 8});
    for (const datatype &type : {overlapping, strided_words(4, 100), long_one}) {
        const buffer source(type, GetParam().where, random);
        const buffer target(type, GetParam().where, random);
        const bytes packed = source.packed();
        bytes plain(packed.size(), 0);
        const ucp_datatype_t made = make_type(type);
        void *sent = pair_.send(0, peer(), source.base(), type.count, made, ++tag_);
        EXPECT_EQ(pair_.wait(pair_.receive(peer(), plain.data(), plain.size(), as_bytes, tag_)),
                  UCS_OK);
        EXPECT_EQ(pair_.wait(sent), UCS_OK);
        EXPECT_EQ(plain, packed);
        sent = pair_.send(0, peer(), packed.data(), packed.size(), as_bytes, ++tag_);
        EXPECT_EQ(pair_.wait(pair_.receive(peer(), target.base(), type.count, made, tag_)),
                  UCS_ERR_MESSAGE_TRUNCATED);
        pair_.wait(sent);
        EXPECT_TRUE(target.is_as_expected());
        cuda_nc_dt_destroy(made);
    }
}

// Elements that overlap are refused together, and one by itself is received.
TEST_P(ucx_test, one_of_elements_that_overlap_is_received) {
    random_engine random(9);
    const datatype both = strided_words(4, 2), one = strided_words(4, 1);
    const ucp_datatype_t made = make_type(both);
    for (const datatype &type : {one, both, one, both}) {
        const buffer source(type, GetParam().where, random);
        buffer target(type, GetParam().where, random);
        const bytes packed = source.packed();
        void *receive = pair_.receive(peer(), target.base(), type.count, made, ++tag_);
        void *sent = pair_.send(0, peer(), source.base(), type.count, made, tag_);
        EXPECT_EQ(pair_.wait(receive), type.count == 1 ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED);
        pair_.wait(sent);
        if (type.count == 1) {
            target.expect(0, packed.data(), packed.size());
        }
        EXPECT_TRUE(target.is_as_expected());
    }
    cuda_nc_dt_destroy(made);
}

TEST_P(ucx_test, a_cancelled_receive_changes_nothing) {
    random_engine random(7);
    datatype type = random_datatype(random, 20000);
    buffer target(type, GetParam().where, random);
    ucp_datatype_t made = make_type(type);
    void *receive = pair_.receive(peer(), target.base(), type.count, made, 1);
    ASSERT_TRUE(UCS_PTR_IS_PTR(receive));
    ucp_request_cancel(pair_.worker(peer()), receive);
    EXPECT_EQ(pair_.wait(receive), UCS_ERR_CANCELED);
    EXPECT_TRUE(target.is_as_expected());
    cuda_nc_dt_destroy(made);
    exchange(random, 20000, true, true, false);
}

class ucx_two_workers_test : public ucx_test {};

TEST_P(ucx_two_workers_test, two_threads_send_to_each_other) {
    auto run = [this](int me) {
        random_engine random(200 + static_cast<unsigned>(me));
        auto progress = [this, me] { ucp_worker_progress(pair_.worker(me)); };
        for (ucp_tag_t tag = 1; tag <= 12; ++tag) {
            // Both know what the other sends.
            random_engine shared(tag);
            datatype type = random_datatype(shared, uniform(shared, 1, 120000));
            buffer source(type, GetParam().where, random);
            buffer target(type, GetParam().where, random);
            bytes packed(source.packed_size());
            // Replace the source's bytes by what the peer expects.
            for (size_t i = 0; i < packed.size(); ++i) {
                packed[i] = static_cast<unsigned char>(i * 7 + tag * 3 + static_cast<unsigned>(me));
            }
            auto *writer =
                dt::request_state::start_unpack(type.make_layout(), source.base(), source.info());
            writer->unpack(0, packed.data(), packed.size());
            writer->finish();
            for (size_t i = 0; i < packed.size(); ++i) {
                packed[i] =
                    static_cast<unsigned char>(i * 7 + tag * 3 + static_cast<unsigned>(1 - me));
            }
            target.expect(0, packed.data(), packed.size());
            ucp_datatype_t made = make_type(type);
            void *receive = pair_.receive(me, target.base(), type.count, made, tag);
            void *send = pair_.send(me, 1 - me, source.base(), type.count, made, tag);
            EXPECT_EQ(ucx_pair::wait(send, progress), UCS_OK);
            EXPECT_EQ(ucx_pair::wait(receive, progress), UCS_OK);
            EXPECT_TRUE(target.is_as_expected());
            cuda_nc_dt_destroy(made);
        }
        arrived_.fetch_add(1);
        while (arrived_.load() < 2) {  // the other still needs this side's progress
            progress();
            std::this_thread::yield();
        }
    };
    std::thread other(run, 1);
    run(0);
    other.join();
}

const setup two_workers[] = {
    {"posix,self", place::host, "256M"},   {"posix,self", place::device0, "256M"},
    {"posix,self", place::device0, "64K"}, {"tcp", place::host, "256M"},
    {"tcp", place::device0, "256M"},
};
const setup one_worker[] = {{"self", place::host, "256M"}, {"self", place::device0, "256M"}};

INSTANTIATE_TEST_SUITE_P(one, ucx_test, ::testing::ValuesIn(one_worker), name_of_setup);
INSTANTIATE_TEST_SUITE_P(two, ucx_test, ::testing::ValuesIn(two_workers), name_of_setup);
INSTANTIATE_TEST_SUITE_P(two, ucx_two_workers_test, ::testing::ValuesIn(two_workers),
                         name_of_setup);

}  // namespace
}  // namespace cuda_nc::test
