#include "operations/typed_buffer.hpp"

#include "support/random.hpp"

namespace mpi_test {
namespace {

constexpr int64_t margin = 64;

std::vector<char> content(int64_t length, uint64_t key) {
    std::vector<char> bytes(static_cast<size_t>(length));
    random_stream{key}.fill(bytes.data(), bytes.size());
    return bytes;
}

int64_t span(const type_map &map) {
    return map.true_ub() - map.true_lb() + 2 * margin;
}

int64_t origin(const type_map &map) {
    return margin - map.true_lb();
}

}  // namespace

typed_buffer::typed_buffer(memory &where, const made_type &type, int count, uint64_t key)
    : typed_buffer(where, repeated(type.map(), count), key) {}

typed_buffer::typed_buffer(memory &where, type_map all, uint64_t key)
    : where_(where), map_(std::move(all)), origin_(origin(map_)), length_(span(map_)) {
    start_ = static_cast<char *>(where_.allocate(static_cast<size_t>(length_)));
    refill(key);
}

void typed_buffer::refill(uint64_t key) {
    expected_ = content(length_, key);
    anything_ = false;
    where_.copy(start_, expected_.data(), expected_.size());
}

std::vector<char> typed_buffer::packed() const {
    return map_.pack(expected_.data() + origin_);
}

void typed_buffer::expect(const std::vector<char> &packed) {
    map_.unpack(expected_.data() + origin_, packed.data(), static_cast<int64_t>(packed.size()));
}

void typed_buffer::store(const std::vector<char> &packed) {
    expect(packed);
    where_.copy(start_, expected_.data(), expected_.size());
}

void typed_buffer::expect_anything() {
    anything_ = true;
}

bool typed_buffer::right() const {
    std::vector<char> found(expected_.size());
    where_.copy(found.data(), start_, found.size());
    if (anything_) {
        std::vector<char> inside = map_.pack(expected_.data() + origin_);
        map_.unpack(found.data() + origin_, inside.data(), map_.size());
    }
    return found == expected_;
}

std::vector<char> packed_content(const type_map &map, uint64_t key) {
    return map.pack(content(span(map), key).data() + origin(map));
}

}  // namespace mpi_test
