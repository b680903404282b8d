#include "ucs/layout/block_storage.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>

namespace cuda_nc {
namespace {

uint64_t distance(int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
}

template <typename T>
void add_to_hash(XXH3_state_t *state, const std::vector<T> &table) {
    uint64_t entries = table.size();
    XXH3_128bits_update(state, &entries, sizeof(entries));
    if (entries != 0) {
        XXH3_128bits_update(state, table.data(), entries * sizeof(T));
    }
}

}  // namespace

layout::block_storage::block_storage(const std::vector<int64_t> &displacements,
                                     const std::vector<uint64_t> &lengths)
    : block_length(lengths.size() == 1 ? lengths[0] : 0),
      first_displacement(displacements[0]),
      num_blocks(displacements.size()) {
    lower_bound = displacements[0];
    upper_bound = displacements[0];
    for (uint64_t i = 0; i < num_blocks; ++i) {
        uint64_t length = block_length != 0 ? block_length : lengths[i];
        alignment |= static_cast<uint64_t>(displacements[i]) | length;
        list_size += length;
        longest_block = std::max(longest_block, length);
        lower_bound = std::min(lower_bound, displacements[i]);
        upper_bound = std::max(upper_bound, displacements[i] + static_cast<int64_t>(length));
    }
    if (num_blocks > 1) {
        if (fits_narrow(displacements, lengths)) {
            fill_narrow(displacements, lengths);
        } else {
            fill_wide(displacements, lengths);
        }
        find_progression(displacements, lengths);
    }
    make_hash();
}

// Kernels find a block of a progression by a square root in single precision and a step or two. So
// only progressions count whose radicand is a whole number below 2^63 and whose first length, in
// steps, is so small that the root errs by less than a block.
void layout::block_storage::find_progression(const std::vector<int64_t> &displacements,
                                             const std::vector<uint64_t> &lengths) noexcept {
    constexpr uint64_t longest = uint64_t{1} << 29, most_steps = uint64_t{1} << 22;
    if (block_length != 0 || lengths[0] > longest || lengths[1] > longest ||
        lengths[0] == lengths[1]) {
        return;
    }
    block_progression found;
    found.first_length = static_cast<uint32_t>(lengths[0]);
    found.length_step = static_cast<int32_t>(static_cast<int64_t>(lengths[1] - lengths[0]));
    found.stride = static_cast<int64_t>(distance(displacements[0], displacements[1]));
    const auto step = static_cast<uint64_t>(std::abs(found.length_step));
    if (lengths[0] / step > most_steps || step > (uint64_t{1} << 58) / list_size) {
        return;
    }
    uint64_t length = lengths[0], place = static_cast<uint64_t>(displacements[0]);
    for (uint64_t i = 0; i < num_blocks; ++i) {
        if (lengths[i] != length || length > longest ||
            static_cast<uint64_t>(displacements[i]) != place) {
            return;
        }
        length += static_cast<uint64_t>(int64_t{found.length_step});
        place += static_cast<uint64_t>(found.stride);
    }
    progression = found;
}

// Whether narrow tables can hold the list. Fills frame_displacement and granule_log2.
bool layout::block_storage::fits_narrow(const std::vector<int64_t> &displacements,
                                        const std::vector<uint64_t> &lengths) {
    uint64_t widest = 0, bits = 0;
    bool short_frames = true;
    frame_displacement.reserve((num_blocks + frame_blocks - 1) / frame_blocks);
    for (uint64_t first = 0; first < num_blocks; first += frame_blocks) {
        uint64_t end = std::min(first + frame_blocks, num_blocks);
        // Without branches: in lists of pages these are as good as random.
        int64_t low = displacements[first], high = low;
        for (uint64_t i = first + 1; i < end; ++i) {
            low = std::min(low, displacements[i]);
            high = std::max(high, displacements[i]);
        }
        frame_displacement.push_back(low);
        widest = std::max(widest, distance(low, high));
        uint64_t size = 0;
        for (uint64_t i = first; i < end; ++i) {
            bits |= distance(low, displacements[i]);
            if (block_length == 0) {
                short_frames = short_frames && lengths[i] <= UINT32_MAX;
                size += std::min<uint64_t>(lengths[i], uint64_t(UINT32_MAX) + 1);
            }
        }
        short_frames = short_frames && size <= UINT32_MAX;
    }
    granule_log2 = bits == 0 ? 0 : static_cast<uint8_t>(std::min(__builtin_ctzll(bits), 31));
    return (widest >> granule_log2) <= UINT32_MAX && short_frames;
}

void layout::block_storage::fill_narrow(const std::vector<int64_t> &displacements,
                                        const std::vector<uint64_t> &lengths) {
    displacement.resize(num_blocks);
    for (uint64_t i = 0; i < num_blocks; ++i) {
        displacement[i] = static_cast<uint32_t>(
            distance(frame_displacement[i >> frame_blocks_log2], displacements[i]) >> granule_log2);
    }
    if (block_length != 0) {
        return;
    }
    packed.resize(num_blocks);
    uint64_t offset = 0;
    for (uint64_t i = 0; i < num_blocks; ++i) {
        if ((i & (frame_blocks - 1)) == 0) {
            frame_packed.push_back(offset);
        }
        packed[i] = static_cast<uint32_t>(offset - frame_packed.back());
        offset += lengths[i];
    }
    frame_packed.push_back(offset);
}

void layout::block_storage::fill_wide(const std::vector<int64_t> &displacements,
                                      const std::vector<uint64_t> &lengths) {
    frame_displacement.clear();
    granule_log2 = 0;
    wide_displacement = displacements;
    if (block_length != 0) {
        return;
    }
    wide_packed.reserve(num_blocks + 1);
    uint64_t offset = 0;
    for (uint64_t i = 0; i < num_blocks; ++i) {
        wide_packed.push_back(offset);
        offset += lengths[i];
    }
    wide_packed.push_back(offset);
}

void layout::block_storage::make_hash() {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    uint64_t head[] = {num_blocks, block_length, list_size,
                       static_cast<uint64_t>(first_displacement), granule_log2};
    XXH3_128bits_update(&state, head, sizeof(head));
    add_to_hash(&state, frame_displacement);
    add_to_hash(&state, frame_packed);  // the only table with the length of a frame's last block
    add_to_hash(&state, displacement);
    add_to_hash(&state, packed);
    add_to_hash(&state, wide_displacement);
    add_to_hash(&state, wide_packed);
    XXH128_hash_t value = XXH3_128bits_digest(&state);
    hash.low = value.low64;
    hash.high = value.high64;
}

block_tables layout::block_storage::tables() const noexcept {
    auto pointer = [](const auto &table) { return table.empty() ? nullptr : table.data(); };
    block_tables result;
    result.frame_displacement = pointer(frame_displacement);
    result.frame_packed = pointer(frame_packed);
    result.displacement = pointer(displacement);
    result.packed = pointer(packed);
    result.wide_displacement = pointer(wide_displacement);
    result.wide_packed = pointer(wide_packed);
    return result;
}

size_t layout::block_storage::bytes() const noexcept {
    auto size = [](const auto &table) { return table.size() * sizeof(table[0]); };
    return size(frame_displacement) + size(frame_packed) + size(displacement) + size(packed) +
           size(wide_displacement) + size(wide_packed);
}

}  // namespace cuda_nc
