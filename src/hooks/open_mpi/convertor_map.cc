#include "hooks/open_mpi/convertor_map.hpp"

#include <cstring>
#include <vector>

namespace cuda_nc::hooks {
namespace {

// Finds the words of a convertor that had the expected value each time.
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

size_t *convertor_map::position_in(void *convertor) const noexcept {
    return position != 0 ? reinterpret_cast<size_t *>(static_cast<char *>(convertor) + position)
                         : nullptr;
}

bool convertor_map::is_prepared_for(const void *convertor, const void *expected_datatype,
                                    const void *expected_buffer) const noexcept {
    auto holds = [convertor](size_t offset, const void *expected) {
        const void *word = expected;
        if (offset != 0) {
            std::memcpy(&word, static_cast<const char *>(convertor) + offset, sizeof(word));
        }
        return word == expected;
    };
    return holds(datatype, expected_datatype) && holds(buffer, expected_buffer);
}

bool convertor_map::read(void *convertor, convertor_content *content_p) const noexcept {
    if (position == 0 || datatype == 0 || buffer == 0 || count == 0 || total == 0) {
        return false;
    }
    auto read_word = [convertor](size_t offset, auto *word_p) {
        std::memcpy(word_p, static_cast<const char *>(convertor) + offset, sizeof(*word_p));
    };
    read_word(datatype, &content_p->datatype);
    read_word(buffer, &content_p->buffer);
    read_word(count, &content_p->count);
    read_word(total, &content_p->total);
    content_p->position_p = position_in(convertor);
    return true;
}

convertor_map explore_convertor(void *scratch, const known_types &types, prepare_f prepare_for_send,
                                move_f pack) {
    std::vector<char> source(8192), target(8192);
    sought_word datatype, buffer, position, count, total;
    if (types.of_8_bytes != nullptr) {
        const size_t elements = source.size() / 8 - 24;
        char *const within = source.data() + 64;
        if (prepare_for_send(scratch, types.of_8_bytes, elements, within) != 0) {
            return {};
        }
        // A word that nobody sets may hold either value by chance, but not one after the other.
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
        // Later words repeat both: the stack, and the receiver's size.
        map.count = count.first();
        map.total = total.first();
    }
    return map;
}

}  // namespace cuda_nc::hooks
