#include "hooks/convertor_map.hpp"

#include <cstring>
#include <vector>

namespace cuda_nc::hooks {
namespace {

constexpr size_t readable_convertor_bytes = 192;  // every release's convertor is larger

// Finds the one word of a convertor that had the expected value at every look.
class unique_word {
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
        size_t found = 0, candidates = 0;
        for (size_t i = 1; i < num_words; ++i) {
            if (!excluded_[i]) {
                found = i * sizeof(size_t);
                ++candidates;
            }
        }
        return candidates == 1 ? found : 0;
    }

  private:
    static constexpr size_t num_words = readable_convertor_bytes / sizeof(size_t);
    bool excluded_[num_words] = {};
};

}  // namespace

convertor_map explore_convertor(void *scratch, const void *byte_type,
                                int32_t (*prepare_for_send)(void *, const void *, size_t,
                                                            const void *),
                                int32_t (*pack)(void *, iovec *, uint32_t *, size_t *)) {
    std::vector<char> source(8192), target(8192);
    if (prepare_for_send(scratch, byte_type, source.size(), source.data()) != 0) {
        return {};
    }
    unique_word datatype, buffer, position;
    datatype.keep_equal(scratch, reinterpret_cast<uintptr_t>(byte_type));
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
    return {position.offset(), datatype.offset(), buffer.offset()};
}

}  // namespace cuda_nc::hooks
