#include "ucs/layout/layout.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>

#include "ucs/layout/block_storage.hpp"
#include "ucs/layout/layout_make.hpp"

namespace cuda_nc {
namespace {

using wide = __int128;
constexpr wide limit = std::numeric_limits<int64_t>::max();

// Drops dims of count 1 and joins a dim with the next outer one where its stride continues. Returns
// how many are left.
unsigned simplify(unsigned num_dims, const layout_dim *dims, layout_dim *result) {
    unsigned kept = 0;
    for (unsigned d = 0; d < num_dims; ++d) {
        if (dims[d].count == 1) {
            continue;
        }
        uint64_t steps;
        if (kept != 0 && wide(result[kept - 1].stride) * result[kept - 1].count == dims[d].stride &&
            !__builtin_mul_overflow(result[kept - 1].count, dims[d].count, &steps)) {
            result[kept - 1].count = steps;
        } else {
            result[kept++] = dims[d];
        }
    }
    return kept;
}

void hash_layout(const layout_view &view, const content_hash &list, content_hash *result) {
    uint64_t words[3 + 2 * max_dims] = {view.num_dims, list.low, list.high};
    for (unsigned d = 0; d < view.num_dims; ++d) {
        words[3 + 2 * d] = view.dims[d].count;
        words[4 + 2 * d] = static_cast<uint64_t>(view.dims[d].stride);
    }
    XXH128_hash_t value = XXH3_128bits(words, (3 + 2 * view.num_dims) * sizeof(uint64_t));
    result->low = value.low64;
    result->high = value.high64;
}

// See layout::in_memory_order(); null where that is the layout itself. Throws std::bad_alloc.
layout_ref order_by_memory(const layout_view &view,
                           const std::shared_ptr<const layout::block_storage> &storage) {
    auto nearer = [](const layout_dim &a, const layout_dim &b) { return a.stride < b.stride; };
    const layout_dim *end = view.dims + view.num_dims;
    if (view.num_blocks != 1 || view.num_dims == 0 ||
        (view.dims[0].stride >= 0 && std::is_sorted(view.dims, end, nearer))) {
        return nullptr;
    }
    std::vector<layout_dim> dims(static_cast<const layout_dim *>(view.dims), end);
    wide first = view.first_displacement;  // becomes the lower bound
    for (layout_dim &dim : dims) {
        if (dim.stride < -limit) {
            return nullptr;  // -stride does not fit
        }
        if (dim.stride < 0) {  // start with the last block
            first += wide(dim.stride) * (dim.count - 1);
            dim.stride = -dim.stride;
        }
    }
    std::sort(dims.begin(), dims.end(), nearer);
    wide span = view.block_length;
    for (const layout_dim &dim : dims) {
        if (dim.stride < span) {
            return nullptr;
        }
        span += wide(dim.stride) * (dim.count - 1);
    }
    if (first == view.first_displacement) {
        return make_layout(storage, view.num_dims, dims.data());
    }
    return make_layout(
        std::make_shared<layout::block_storage>(std::vector<int64_t>{static_cast<int64_t>(first)},
                                                std::vector<uint64_t>{view.block_length}),
        view.num_dims, dims.data());
}

shape classify(const layout_view &view) {
    if (view.num_blocks == 1) {
        return view.num_dims == 0 ? shape::contiguous : shape::strided;
    }
    return view.num_blocks <= max_short_list ? shape::repeated : shape::irregular;
}

}  // namespace

layout_ref make_layout(std::shared_ptr<const layout::block_storage> storage, unsigned num_dims,
                       const layout_dim *dims) {
    auto result = std::make_shared<layout>();
    layout_view &view = result->view_;
    if (storage == nullptr) {
        hash_layout(view, content_hash(), &result->hash_);
        return result;
    }
    unsigned kept = simplify(num_dims, dims, view.dims);
    if (storage->num_blocks == 1 && kept != 0 &&
        view.dims[0].stride == static_cast<int64_t>(storage->block_length)) {
        // Blocks that touch are one longer block.
        wide length = wide(storage->block_length) * view.dims[0].count;
        if (length > limit || storage->first_displacement + length > limit) {
            return nullptr;
        }
        storage = std::make_shared<layout::block_storage>(
            std::vector<int64_t>{storage->first_displacement},
            std::vector<uint64_t>{static_cast<uint64_t>(length)});
        std::move(view.dims + 1, view.dims + kept, view.dims);
        --kept;
    }
    view.num_dims = static_cast<uint8_t>(kept);
    for (unsigned d = kept; d < max_dims; ++d) {
        view.dims[d] = layout_dim();
    }

    wide size = storage->list_size, lower = storage->lower_bound, upper = storage->upper_bound;
    uint64_t bits = storage->alignment;
    for (unsigned d = 0; d < kept; ++d) {
        const layout_dim &dim = view.dims[d];
        wide reach = wide(dim.stride) * (dim.count - 1);
        size *= dim.count;
        (reach < 0 ? lower : upper) += reach;
        bits |= static_cast<uint64_t>(dim.stride);
        view.by_dim[d] = fast_divide(dim.count);
        if (size > limit || upper > limit || lower < -limit) {
            return nullptr;
        }
    }
    view.align_log2 = static_cast<uint8_t>(trailing_zeros(bits, 4));
    view.granule_log2 = storage->granule_log2;
    view.packed_size = static_cast<uint64_t>(size);
    view.list_size = storage->list_size;
    view.num_blocks = storage->num_blocks;
    view.block_length = storage->block_length;
    view.longest_block = storage->longest_block;
    view.first_displacement = storage->first_displacement;
    view.by_list = fast_divide(view.list_size);
    if (view.block_length != 0) {
        view.by_block = fast_divide(view.block_length);
    }
    view.tables = storage->tables();
    view.progression = storage->progression;
    view.proof = &storage->proof;
    view.kind = classify(view);
    result->lower_bound_ = static_cast<int64_t>(lower);
    result->upper_bound_ = static_cast<int64_t>(upper);
    hash_layout(view, storage->hash, &result->hash_);
    result->ordered_ = order_by_memory(view, storage);
    result->storage_ = std::move(storage);
    return result;
}

layout_ref layout::repeat(uint64_t count, int64_t extent) const {
    try {
        if (count == 0 || kind() == shape::empty) {
            return make_layout(nullptr, 0, nullptr);
        }
        layout_dim dims[max_dims + 1];
        unsigned num_dims = view_.num_dims;
        std::copy(view_.dims, view_.dims + num_dims, dims);
        dims[num_dims].count = count;
        dims[num_dims].stride = extent;
        layout_dim simple[max_dims + 1];
        unsigned kept = simplify(num_dims + 1, dims, simple);
        if (kept <= max_dims) {
            return make_layout(storage_, kept, simple);
        }
        // All dims are in use: list the blocks, up to a limit.
        constexpr uint64_t most_listed = uint64_t(1) << 31;
        if (total_blocks() > most_listed / count) {
            return nullptr;
        }
        layout_builder builder;
        for (uint64_t i = 0; i < count; ++i) {
            layout_cursor cursor(*this, 0);
            for (block b = cursor.next(UINT64_MAX); b.length != 0; b = cursor.next(UINT64_MAX)) {
                wide displacement = wide(extent) * i + b.displacement;
                if (displacement > limit || displacement < -limit) {
                    return nullptr;
                }
                builder.append(static_cast<int64_t>(displacement), b.length);
            }
        }
        return builder.finish();
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

bool layout::equal(const layout &other) const noexcept {
    if (!(hash_ == other.hash_) || view_.packed_size != other.view_.packed_size ||
        view_.num_dims != other.view_.num_dims || view_.num_blocks != other.view_.num_blocks) {
        return false;
    }
    for (unsigned d = 0; d < view_.num_dims; ++d) {
        if (view_.dims[d].count != other.view_.dims[d].count ||
            view_.dims[d].stride != other.view_.dims[d].stride) {
            return false;
        }
    }
    if (storage_ == other.storage_) {
        return true;
    }
    const block_storage &a = *storage_, &b = *other.storage_;
    return a.first_displacement == b.first_displacement && a.block_length == b.block_length &&
           a.granule_log2 == b.granule_log2 && a.frame_displacement == b.frame_displacement &&
           a.frame_packed == b.frame_packed && a.displacement == b.displacement &&
           a.packed == b.packed && a.wide_displacement == b.wide_displacement &&
           a.wide_packed == b.wide_packed;
}

uint64_t layout::total_blocks() const noexcept {
    unsigned __int128 blocks = view_.num_blocks;
    for (unsigned d = 0; d < view_.num_dims; ++d) {
        blocks *= view_.dims[d].count;
        if (blocks > UINT64_MAX) {
            return UINT64_MAX;
        }
    }
    return static_cast<uint64_t>(blocks);
}

size_t layout::table_bytes() const noexcept {
    return storage_ == nullptr ? 0 : storage_->bytes();
}

std::string layout::describe() const {
    if (kind() == shape::empty) {
        return "empty";
    }
    char text[256];
    std::string line;
    const char *const names[] = {"empty", "contiguous", "strided", "repeated", "irregular"};
    line = names[static_cast<int>(kind())];
    for (unsigned d = view_.num_dims; d-- > 0;) {
        std::snprintf(text, sizeof(text), " %" PRIu64 " x", view_.dims[d].count);
        line += text;
    }
    if (view_.num_blocks == 1) {
        std::snprintf(text, sizeof(text), " %" PRIu64 " B", view_.block_length);
    } else if (view_.block_length != 0) {
        std::snprintf(text, sizeof(text), " list of %" PRIu64 " blocks of %" PRIu64 " B",
                      view_.num_blocks, view_.block_length);
    } else {
        std::snprintf(text, sizeof(text), " list of %" PRIu64 " blocks, mean %" PRIu64 " B",
                      view_.num_blocks, view_.list_size / view_.num_blocks);
    }
    line += text;
    for (unsigned d = view_.num_dims; d-- > 0;) {
        std::snprintf(text, sizeof(text), "%s %" PRId64,
                      d + 1 == view_.num_dims ? ", stride" : " x", view_.dims[d].stride);
        line += text;
    }
    std::snprintf(text, sizeof(text), "%s, %" PRIu64 " B packed, span %" PRIu64 " B",
                  view_.num_dims != 0 ? " B" : "", packed_size(),
                  static_cast<uint64_t>(upper_bound_) - static_cast<uint64_t>(lower_bound_));
    return line + text;
}

layout_cursor::layout_cursor(const layout &source, uint64_t packed_offset) noexcept
    : view_(&source.view()), offset_(packed_offset) {
    if (packed_offset >= view_->packed_size) {
        return;
    }
    pass_ = view_->num_dims == 0 ? 0 : view_->by_list.quotient(packed_offset);
    uint64_t in_list = packed_offset - pass_ * view_->list_size;
    if (view_->num_blocks == 1) {
        in_block_ = in_list;
    } else {
        block_ = view_->find_block(in_list);
        in_block_ = in_list - view_->block_packed(block_);
    }
    pass_displacement_ = view_->pass_displacement(pass_);
}

block layout_cursor::next(uint64_t max_length) noexcept {
    if (offset_ >= view_->packed_size || max_length == 0) {
        return {0, 0};
    }
    uint64_t length = view_->block_length != 0
                          ? view_->block_length
                          : view_->block_packed(block_ + 1) - view_->block_packed(block_);
    block span = {
        view_->block_displacement(block_) + pass_displacement_ + static_cast<int64_t>(in_block_),
        std::min(max_length, length - in_block_)};
    offset_ += span.length;
    in_block_ += span.length;
    if (in_block_ == length) {
        in_block_ = 0;
        if (++block_ == view_->num_blocks) {
            block_ = 0;
            ++pass_;
            if (offset_ < view_->packed_size) {  // behind the last pass it may not be a number
                pass_displacement_ = view_->pass_displacement(pass_);
            }
        }
    }
    return span;
}

}  // namespace cuda_nc
