// Layouts of the C API made from bytes that choose everything, each with what it should be: a list
// of displacements made by plain loops. Random tests and the fuzzer share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cuda_nc/cuda_nc.h"

namespace cuda_nc::capi::test {

// Numbers out of bytes; all are the least ones once the bytes are used up.
class byte_source {
  public:
    byte_source(const uint8_t *bytes, size_t size) noexcept : at_(bytes), left_(size) {}

    int64_t number(int64_t least, int64_t most) noexcept {
        uint64_t value = 0;
        const auto range = static_cast<uint64_t>(most - least);
        for (uint64_t reach = range; reach != 0; reach >>= 8) {
            value = value << 8 | next();
        }
        return least + static_cast<int64_t>(value % (range + 1));
    }
    bool chance(int64_t one_in) noexcept { return number(1, one_in) == one_in; }

  private:
    uint8_t next() noexcept {
        if (left_ == 0) {
            return 0;
        }
        --left_;
        return *at_++;
    }
    const uint8_t *at_;
    size_t left_;
};

struct made_layout {
    cuda_nc_layout_t handle = nullptr;
    std::vector<int64_t> bytes;  // displacements in packed order
    int64_t extent = 0;

    made_layout() = default;
    made_layout(made_layout &&other) noexcept { *this = std::move(other); }
    made_layout &operator=(made_layout &&other) noexcept {
        std::swap(handle, other.handle);
        bytes.swap(other.bytes);
        std::swap(extent, other.extent);
        return *this;
    }
    ~made_layout() { cuda_nc_layout_destroy(handle); }

    int64_t lower() const {
        return bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end());
    }
    int64_t upper() const {
        return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()) + 1;
    }
    bool overlaps() const {
        std::vector<int64_t> sorted = bytes;
        std::sort(sorted.begin(), sorted.end());
        return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    }
    size_t span() const { return static_cast<size_t>(upper() - lower()); }
};

constexpr size_t most_bytes = 1 << 13;

class layout_maker {
  public:
    explicit layout_maker(byte_source &from) noexcept : from_(from) {}

    // Of any kind. `fault` says what is wrong; empty where nothing is.
    made_layout make(std::string *fault, int depth = 2) {
        made_layout made;
        ucs_status_t status = UCS_OK;
        switch (from_.number(0, depth > 0 ? 8 : 5)) {
            case 0:
                status = make_vector(&made);
                break;
            case 1:
                status = make_subarray(&made);
                break;
            case 2:
                status = make_strided(&made);
                break;
            case 3:
                status = make_indexed(&made);
                break;
            case 4:
                status = make_blocks(&made);
                break;
            case 5:
                status = make_iov(&made);
                break;
            case 6:
                status = make_struct(&made, fault, depth);
                break;
            case 7:
                status = make_repeated(&made, fault, depth);
                break;
            default:
                status = make_resized(&made, fault, depth);
                break;
        }
        if (status != UCS_OK && fault->empty()) {
            *fault = std::string("refused: ") + cuda_nc_last_error();
        }
        if (fault->empty()) {
            check(made, fault);
        }
        return made;
    }

    // Blocks without overlap of `size` bytes in all.
    made_layout make_target(size_t size) {
        made_layout made;
        std::vector<cuda_nc_block_t> blocks;
        int64_t at = from_.number(-100, 100);
        const int64_t longest = from_.number(1, 200), gap = from_.number(0, 30);
        for (size_t done = 0; done < size;) {
            const auto length =
                std::min(size - done, static_cast<size_t>(from_.number(1, longest)));
            blocks.push_back({at, length});
            append(&made.bytes, at, static_cast<int64_t>(length));
            at += static_cast<int64_t>(length) + from_.number(0, gap);
            done += length;
        }
        cuda_nc_layout_create_blocks(blocks.data(), blocks.size(), &made.handle);
        return made;
    }

    // `count` blocks of `length` bytes, with gaps, in the order of memory or in any.
    made_layout make_pages(int64_t count, int64_t length) {
        made_layout made;
        std::vector<cuda_nc_block_t> blocks;
        int64_t at = from_.number(-100, 100);
        const int64_t gap = from_.number(1, 40);
        const bool evenly = from_.chance(2), in_order = evenly && from_.chance(2);
        for (int64_t i = 0; i < count; ++i) {
            blocks.push_back({at, static_cast<size_t>(length)});
            at += length + (evenly ? gap : from_.number(1, gap));
        }
        for (int64_t i = count - 1; i > 0 && !in_order; --i) {
            std::swap(blocks[static_cast<size_t>(i)],
                      blocks[static_cast<size_t>(from_.number(0, i))]);
        }
        for (const cuda_nc_block_t &one : blocks) {
            append(&made.bytes, one.displacement, length);
        }
        set_extent(&made);
        cuda_nc_layout_create_blocks(blocks.data(), blocks.size(), &made.handle);
        return made;
    }

    // With numbers of any size: it may be refused, but says why.
    void make_extreme(std::string *fault) {
        auto any = [&] {
            constexpr int64_t corners[] = {
                0,         1,         -1,           INT64_MAX, INT64_MIN, INT64_MAX / 2,
                1ll << 31, 1ll << 40, -(1ll << 40), 7};
            return from_.chance(2) ? corners[from_.number(0, 9)] : from_.number(-3, 300);
        };
        int64_t a[4], b[4], c[4];
        for (int i = 0; i < 4; ++i) {
            a[i] = any();
            b[i] = any();
            c[i] = any();
        }
        cuda_nc_layout_t made = nullptr;
        ucs_status_t status = UCS_OK;
        const int ndims = static_cast<int>(from_.number(-1, 4));
        switch (from_.number(0, 4)) {
            case 0:
                status = cuda_nc_layout_create_vector(a[0], a[1], a[2], &made);
                break;
            case 1:
                status = cuda_nc_layout_create_strided(ndims, a, from_.chance(4) ? nullptr : b,
                                                       c[0], &made);
                break;
            case 2:
                status = cuda_nc_layout_create_subarray(ndims, a, b, c, any(), from_.number(0, 2),
                                                        &made);
                break;
            case 3:
                status = cuda_nc_layout_create_indexed(
                    from_.number(-1, 4), from_.chance(4) ? nullptr : a, b, c[0], &made);
                break;
            default: {
                const cuda_nc_block_t blocks[2] = {{a[0], static_cast<size_t>(b[0])},
                                                   {a[1], static_cast<size_t>(b[1])}};
                status = cuda_nc_layout_create_blocks(blocks, 2, &made);
                break;
            }
        }
        if (status == UCS_OK) {
            cuda_nc_layout_attr_t attr = {};
            attr.field_mask = CUDA_NC_LAYOUT_ATTR_PACKED_SIZE | CUDA_NC_LAYOUT_ATTR_BOUNDS |
                              CUDA_NC_LAYOUT_ATTR_NUM_BLOCKS;
            if (cuda_nc_layout_query(made, &attr) != UCS_OK ||
                attr.packed_size > static_cast<uint64_t>(INT64_MAX) ||
                attr.lower_bound > attr.upper_bound) {
                *fault = "an extreme layout contradicts itself";
            }
            cuda_nc_layout_destroy(made);
        } else if (made != nullptr || *cuda_nc_last_error() == '\0') {
            *fault = "refused without a word";
        }
    }

  private:
    static void append(std::vector<int64_t> *bytes, int64_t at, int64_t length) {
        for (int64_t i = 0; i < length; ++i) {
            bytes->push_back(at + i);
        }
    }

    void set_extent(made_layout *made) const { made->extent = made->upper() - made->lower(); }

    ucs_status_t make_vector(made_layout *made) {
        const int64_t count = from_.number(0, 60), length = from_.number(0, 40),
                      stride = from_.number(-90, 90);
        for (int64_t i = 0; i < count; ++i) {
            append(&made->bytes, i * stride, length);
        }
        set_extent(made);
        return cuda_nc_layout_create_vector(count, length, stride, &made->handle);
    }

    // Calls visit(indices) for all, the last or the first dimension fastest.
    template <typename Visit>
    static void for_each_index(int ndims, const int64_t *counts, bool last_is_fastest,
                               Visit &&visit) {
        int64_t total = 1, at[8] = {};
        for (int d = 0; d < ndims; ++d) {
            total *= counts[d];
        }
        for (int64_t i = 0; i < total; ++i) {
            int64_t rest = i;
            for (int e = 0; e < ndims; ++e) {
                const int d = last_is_fastest ? ndims - 1 - e : e;
                at[d] = rest % counts[d];
                rest /= counts[d];
            }
            visit(at);
        }
    }

    ucs_status_t make_subarray(made_layout *made) {
        const int ndims = static_cast<int>(from_.number(0, 4));
        int64_t sizes[8], subsizes[8], starts[8];
        const int64_t element = from_.number(1, 9);
        int64_t whole = element;
        for (int d = 0; d < ndims; ++d) {
            sizes[d] = from_.number(from_.chance(20) ? 0 : 1, 7);
            subsizes[d] = from_.number(from_.chance(20) || sizes[d] == 0 ? 0 : 1, sizes[d]);
            starts[d] = from_.number(0, sizes[d] - subsizes[d]);
            whole *= sizes[d];
        }
        const bool in_c = from_.chance(2);
        for_each_index(ndims, subsizes, in_c, [&](const int64_t *at) {
            int64_t offset = 0;
            for (int e = 0; e < ndims; ++e) {
                const int d = in_c ? e : ndims - 1 - e;
                offset = offset * sizes[d] + starts[d] + at[d];
            }
            append(&made->bytes, offset * element, element);
        });
        made->extent = whole;
        return cuda_nc_layout_create_subarray(ndims, sizes, subsizes, starts, element,
                                              in_c ? CUDA_NC_ORDER_C : CUDA_NC_ORDER_FORTRAN,
                                              &made->handle);
    }

    ucs_status_t make_strided(made_layout *made) {
        const int ndims = static_cast<int>(from_.number(0, 5));
        int64_t extents[8], strides[8];
        const int64_t element = from_.number(0, 9);
        for (int d = 0; d < ndims; ++d) {
            extents[d] = from_.number(from_.chance(20) ? 0 : 1, 5);
            strides[d] = from_.number(-120, 120);
        }
        const bool dense = from_.chance(5);
        if (dense) {
            int64_t stride = element;
            for (int d = ndims - 1; d >= 0; --d) {
                strides[d] = stride;
                stride *= extents[d];
            }
        }
        for_each_index(ndims, extents, true, [&](const int64_t *at) {
            int64_t offset = 0;
            for (int d = 0; d < ndims; ++d) {
                offset += at[d] * strides[d];
            }
            append(&made->bytes, offset, element);
        });
        set_extent(made);
        return cuda_nc_layout_create_strided(ndims, extents, dense ? nullptr : strides, element,
                                             &made->handle);
    }

    ucs_status_t make_indexed(made_layout *made) {
        const int64_t count = from_.number(0, 80), element = from_.number(0, 12);
        const bool has_lengths = from_.chance(2);
        std::vector<int64_t> lengths, displacements;
        for (int64_t i = 0; i < count; ++i) {
            lengths.push_back(has_lengths ? from_.number(0, 6) : 1);
            displacements.push_back(from_.number(-500, 500));
            append(&made->bytes, displacements.back() * element, lengths.back() * element);
        }
        set_extent(made);
        return cuda_nc_layout_create_indexed(count, has_lengths ? lengths.data() : nullptr,
                                             displacements.data(), element, &made->handle);
    }

    ucs_status_t make_blocks(made_layout *made) {
        std::vector<cuda_nc_block_t> blocks;
        for (int64_t count = from_.number(0, 80); count > 0; --count) {
            blocks.push_back({from_.number(-4000, 4000), static_cast<size_t>(from_.number(0, 40))});
            append(&made->bytes, blocks.back().displacement,
                   static_cast<int64_t>(blocks.back().length));
        }
        set_extent(made);
        return cuda_nc_layout_create_blocks(blocks.data(), blocks.size(), &made->handle);
    }

    ucs_status_t make_iov(made_layout *made) {
        static char memory[4096];
        char *const base = memory + from_.number(0, 4000);
        std::vector<ucp_dt_iov_t> entries;
        for (int64_t count = from_.number(0, 60); count > 0; --count) {
            const int64_t at = from_.number(0, 4000), length = from_.number(0, 60);
            entries.push_back({memory + at, static_cast<size_t>(length)});
            append(&made->bytes, memory + at - base, length);
        }
        set_extent(made);
        return cuda_nc_layout_create_iov(base, entries.data(), entries.size(), &made->handle);
    }

    ucs_status_t make_struct(made_layout *made, std::string *fault, int depth) {
        std::vector<made_layout> members;
        std::vector<cuda_nc_layout_t> handles;
        std::vector<int64_t> displacements;
        for (int64_t count = from_.number(0, 4); count > 0 && fault->empty(); --count) {
            members.push_back(make(fault, depth - 1));
            if (made->bytes.size() + members.back().bytes.size() > most_bytes) {
                members.pop_back();
                break;
            }
            handles.push_back(members.back().handle);
            displacements.push_back(from_.number(-2000, 2000));
            for (const int64_t one : members.back().bytes) {
                made->bytes.push_back(one + displacements.back());
            }
        }
        set_extent(made);
        return cuda_nc_layout_create_struct(handles.size(), handles.data(), displacements.data(),
                                            &made->handle);
    }

    ucs_status_t make_repeated(made_layout *made, std::string *fault, int depth) {
        const made_layout element = make(fault, depth - 1);
        const int64_t stride = from_.number(-3000, 3000);
        int64_t count = from_.number(0, 12);
        if (element.bytes.size() * static_cast<size_t>(count) > most_bytes) {
            count = 1;
        }
        for (int64_t i = 0; i < count; ++i) {
            for (const int64_t one : element.bytes) {
                made->bytes.push_back(one + i * stride);
            }
        }
        made->extent = stride > 0 ? count * stride : element.extent;
        return cuda_nc_layout_create_repeated(element.handle, count, stride, &made->handle);
    }

    ucs_status_t make_resized(made_layout *made, std::string *fault, int depth) {
        const made_layout element = make(fault, depth - 1);
        made->bytes = element.bytes;
        made->extent = from_.number(-5000, 5000);
        return cuda_nc_layout_create_resized(element.handle, made->extent, &made->handle);
    }

    static void check(const made_layout &made, std::string *fault) {
        cuda_nc_layout_attr_t attr = {};
        attr.field_mask = CUDA_NC_LAYOUT_ATTR_PACKED_SIZE | CUDA_NC_LAYOUT_ATTR_EXTENT |
                          CUDA_NC_LAYOUT_ATTR_BOUNDS | CUDA_NC_LAYOUT_ATTR_NUM_BLOCKS |
                          CUDA_NC_LAYOUT_ATTR_OVERLAPS;
        if (cuda_nc_layout_query(made.handle, &attr) != UCS_OK) {
            *fault = "query";
        } else if (attr.packed_size != made.bytes.size()) {
            *fault = "packed size " + std::to_string(attr.packed_size) + ", should be " +
                     std::to_string(made.bytes.size());
        } else if (attr.extent != made.extent) {
            *fault = "extent " + std::to_string(attr.extent) + ", should be " +
                     std::to_string(made.extent);
        } else if (attr.lower_bound != made.lower() || attr.upper_bound != made.upper()) {
            *fault = "bounds " + std::to_string(attr.lower_bound) + " to " +
                     std::to_string(attr.upper_bound);
        } else if ((attr.overlaps != 0) != made.overlaps()) {
            *fault = "overlaps " + std::to_string(attr.overlaps);
        } else if ((attr.num_blocks == 0) != made.bytes.empty() ||
                   attr.num_blocks > made.bytes.size()) {
            *fault = "blocks " + std::to_string(attr.num_blocks);
        }
    }

    byte_source &from_;
};

// The memory and streams of a GPU.
struct gpu_calls {
    void *(*allocate)(size_t size);
    void (*release)(void *address);
    void (*copy)(void *destination, const void *source, size_t length);
    ucs_status_t (*wait)(void *stream);
};
inline const gpu_calls sim_gpu = {cuda_nc_sim_malloc, cuda_nc_sim_free, cuda_nc_sim_memcpy,
                                  cuda_nc_sim_stream_synchronize};

// Memory of one case: host memory where `gpu` is null, or a GPU's with a copy on the host.
class test_buffer {
  public:
    test_buffer(size_t size, unsigned salt, const gpu_calls *gpu)
        : host_(size + 1), size_(size), calls_(gpu) {
        for (size_t i = 0; i < size; ++i) {
            host_[i] = static_cast<char>((i * 2654435761u + salt * 40503u) >> 11);
        }
        before_ = host_;
        if (calls_ != nullptr) {
            gpu_ = calls_->allocate(size + 1);
            calls_->copy(gpu_, host_.data(), size);
        }
    }
    test_buffer(const test_buffer &) = delete;
    test_buffer &operator=(const test_buffer &) = delete;
    ~test_buffer() {
        if (gpu_ != nullptr) {
            calls_->release(gpu_);
        }
    }
    char *address() { return gpu_ != nullptr ? static_cast<char *>(gpu_) : host_.data(); }
    const std::vector<char> &before() const { return before_; }
    // As it is now.
    const std::vector<char> &now() {
        if (gpu_ != nullptr) {
            calls_->copy(host_.data(), gpu_, size_);
        }
        return host_;
    }

  private:
    std::vector<char> host_, before_;
    size_t size_;
    const gpu_calls *calls_;
    void *gpu_ = nullptr;
};

// Packs `what`, unpacks and copies to another layout, all by plain loops too. Empty: all bytes are
// right, and no other was touched. `stream`: of the GPU, if any.
inline std::string move_and_compare(const made_layout &what, const made_layout &target,
                                    const gpu_calls *gpu, void *stream) {
    const size_t size = what.bytes.size();
    const int64_t lower = what.lower(), other_lower = target.lower();
    test_buffer laid(what.span(), 1, gpu), packed(size, 2, gpu), other(target.span(), 3, gpu);
    char *const base = laid.address() - lower;
    char *const other_base = other.address() - other_lower;
    auto refused = [](const char *call) { return std::string(call) + ": " + cuda_nc_last_error(); };
    auto wait = [&] { return gpu != nullptr ? gpu->wait(stream) : UCS_OK; };
    std::vector<char> expected_packed = packed.before(), expected_other = other.before();
    for (size_t i = 0; i < size; ++i) {
        const char byte = laid.before()[static_cast<size_t>(what.bytes[i] - lower)];
        expected_packed[i] = byte;
        expected_other[static_cast<size_t>(target.bytes[i] - other_lower)] = byte;
    }
    if (cuda_nc_pack(what.handle, base, packed.address(), stream) != UCS_OK) {
        return refused("pack");
    }
    if (cuda_nc_copy(what.handle, base, target.handle, other_base, stream) != UCS_OK) {
        return refused("copy");
    }
    if (wait() != UCS_OK || packed.now() != expected_packed) {
        return "packed bytes differ";
    }
    if (other.now() != expected_other) {
        return "copied bytes differ";
    }
    if (laid.now() != laid.before()) {
        return "the source was written to";
    }
    // Back, into a buffer of other bytes.
    test_buffer again(what.span(), 4, gpu);
    std::vector<char> expected = again.before();
    for (size_t i = 0; i < size; ++i) {
        expected[static_cast<size_t>(what.bytes[i] - lower)] = expected_packed[i];
    }
    const ucs_status_t status =
        cuda_nc_unpack(what.handle, packed.address(), again.address() - lower, stream);
    if (what.overlaps()) {
        return status == UCS_ERR_INVALID_PARAM ? "" : "an overlap was written to";
    }
    if (status != UCS_OK) {
        return refused("unpack");
    }
    return wait() == UCS_OK && again.now() == expected ? "" : "unpacked bytes differ";
}

// Pages to pages, of one length or of lengths with a common step; some too long for one warp.
inline std::string run_pages_case(byte_source &from, const gpu_calls *gpu, void *stream) {
    layout_maker maker(from);
    const int64_t step = from.chance(6) ? from.number(16000, 35000) : from.number(1, 300);
    const int64_t source = from.number(1, 4), target = from.number(1, 4);
    const int64_t number = from.number(1, step > 300 ? 2 : 60);
    const made_layout what = maker.make_pages(number * target, source * step);
    return move_and_compare(what, maker.make_pages(number * source, target * step), gpu, stream);
}

// One case; empty: all is well.
inline std::string run_case(const uint8_t *bytes, size_t size, const gpu_calls *gpu = nullptr,
                            void *stream = nullptr) {
    byte_source from(bytes, size);
    layout_maker maker(from);
    std::string fault;
    if (from.chance(8)) {
        maker.make_extreme(&fault);
        return fault;
    }
    if (from.chance(6)) {
        return run_pages_case(from, gpu, stream);
    }
    const made_layout what = maker.make(&fault);
    if (!fault.empty()) {
        return fault;
    }
    const made_layout target = maker.make_target(what.bytes.size());
    return move_and_compare(what, target, gpu, stream);
}

}  // namespace cuda_nc::capi::test
