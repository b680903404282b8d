#include "hooks/open_mpi/convertor_map.hpp"

#include <cstring>
#include <vector>

namespace cuda_nc::hooks {
namespace {

// Finds the words of a convertor that had the expected value at every look.
class sought_word {
  public:
    void keep_equal(const void *convertor, size_t value) noexcept {
        for (size_t i = 0; i < num_words; ++i) {
            size_t word;
            std::memcpy(&word, static_cast<const char *>(convertor) + i * sizeof(word),
                        sizeof(word));
            excluded_[i] = excluded_[i] || word != value;
        }
    }

    // 0 where there is none, or more than one. Word 0 is the object's class.
    size_t offset() const noexcept {
        size_t found = first();
        for (size_t i = found / sizeof(size_t) + 1; i < num_words; ++i) {
            if (!excluded_[i]) {
                return 0;
            }
        }
        return found;
    }

    // The first of several; 0 where there is none.
    size_t first() const noexcept {
        for (size_t i = 1; i < num_words; ++i) {
            if (!excluded_[i]) {
                return i * sizeof(size_t);
            }
        }
        return 0;
    }

  private:
    static constexpr size_t num_words = readable_convertor_bytes / sizeof(size_t);
    bool excluded_[num_words] = {};
};

}  // namespace

convertor_map explore_convertor(void *scratch, const known_types &types,
                                int32_t (*prepare_for_send)(void *, const void *, size_t,
                                                            const void *),
                                int32_t (*pack)(void *, iovec *, uint32_t *, size_t *)) {
    std::vector<char> source(8192), target(8192);
    sought_word datatype, buffer, position, count, total;
    if (types.of_8_bytes != nullptr) {
        const size_t elements = source.size() / 8 - 24;
        char *const within = source.data() + 64;
        if (prepare_for_send(scratch, types.of_8_bytes, elements, within) != 0) {
            return {};
        }
        // Words that nobody has set may hold either value, but not one after the other.
        datatype.keep_equal(scratch, reinterpret_cast<uintptr_t>(types.of_8_bytes));
        buffer.keep_equal(scratch, reinterpret_cast<uintptr_t>(within));
        count.keep_equal(scratch, elements);
        total.keep_equal(scratch, elements * 8);
    }
    if (prepare_for_send(scratch, types.of_1_byte, source.size(), source.data()) != 0) {
        return {};
    }
    count.keep_equal(scratch, source.size());
    total.keep_equal(scratch, source.size());
    datatype.keep_equal(scratch, reinterpret_cast<uintptr_t>(types.of_1_byte));
    buffer.keep_equal(scratch, reinterpret_cast<uintptr_t>(source.data()));
    size_t passed = 0;
    for (size_t step : {size_t(1031), size_t(1517)}) {
        iovec part = {target.data(), step};
        uint32_t parts = 1;
        size_t moved = step;
        pack(scratch, &part, &parts, &moved);
        passed += step;
        position.keep_equal(scratch, passed);
    }
    convertor_map map{position.offset(), datatype.offset(), buffer.offset()};
    if (types.of_8_bytes != nullptr) {
        // Copies of both follow where the convertor keeps its stack and the receiver's size.
        map.count = count.first();
        map.total = total.first();
    }
    return map;
}

}  // namespace cuda_nc::hooks
