#include "hooks/open_mpi/type_faults.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "hooks/open_mpi/datatype_words.hpp"
#include "hooks/open_mpi/originals.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

constexpr ptrdiff_t not_given = -1;

// False where the words are not found.
bool read_words(const opal_originals &originals, const void *datatype,
                datatype_words *words_p) noexcept {
    const size_t offset = originals.api != nullptr ? originals.api->datatype_words_offset() : 0;
    if (offset == 0) {
        return false;
    }
    std::memcpy(words_p, static_cast<const char *>(datatype) + offset, sizeof(*words_p));
    return true;
}

constexpr int32_t expected_members = 4;
constexpr int32_t out_of_resource = -2;  // OPAL_ERR_OUT_OF_RESOURCE

member_list *members_of(void *datatype, size_t words) noexcept {
    return reinterpret_cast<member_list *>(static_cast<char *>(datatype) + words +
                                           member_list::offset);
}

// A datatype without bytes; null: no memory, or this release has no such call.
class datatype_handle {
  public:
    explicit datatype_handle(const open_mpi &api) noexcept
        : api_(api), datatype_(api.create_datatype(expected_members)) {}
    ~datatype_handle() {
        if (datatype_ != nullptr) {
            api_.destroy_datatype(datatype_);
        }
    }
    datatype_handle(const datatype_handle &) = delete;
    void *get() const noexcept { return datatype_; }

    // Whether its list of members lies where every datatype's does.
    bool has_list(size_t words) const noexcept {
        const member_list &list = *members_of(datatype_, words);
        return list.room == expected_members + 1 && list.used == 0 && list.members != nullptr;
    }

  private:
    const open_mpi &api_;
    void *const datatype_;
};

// Room for `more` members and the one that the commit adds: Open MPI gives a type room for what a
// stride that it understands takes. False: no memory.
bool reserve(member_list &list, size_t more) noexcept {
    constexpr size_t spare = 8;
    const size_t needed = list.used + more + 1;
    if (needed <= list.room) {
        return true;
    }
    const size_t room = needed + spare;
    void *members = std::realloc(list.members, room * member_list::bytes_of_one);
    if (members == nullptr) {
        return false;
    }
    list.members = members;
    list.room = room;
    return true;
}

// Open MPI rounds the upper bound up to the alignment with every addition, also to a pair of copies
// that nobody asked for. Sets it as the one addition that was asked for would have: `ends` is where
// the last byte of what was added lies. A bound that the program set stays.
void round_once(void *base, size_t offset, ptrdiff_t old_ub, ptrdiff_t ends) noexcept {
    char *const at = static_cast<char *>(base) + offset;
    datatype_words words;
    std::memcpy(&words, at, sizeof(words));
    if ((words.flags & datatype_words::user_ub) != 0) {
        return;
    }
    words.ub = std::max(old_ub, ends);
    const auto alignment = static_cast<ptrdiff_t>(std::max<uint32_t>(words.alignment, 1));
    const ptrdiff_t over = (words.ub - words.lb) % alignment;
    words.ub += over != 0 ? alignment - over : 0;
    std::memcpy(at, &words, sizeof(words));
}

// Adds `count` copies, two or more, each one byte in front of the one before it. Pairs of them are
// two bytes apart, which is no sign for anything.
int32_t add_backwards(const opal_originals &originals, void *base, const void *added, size_t count,
                      ptrdiff_t displacement) noexcept {
    constexpr size_t loop = 2;  // members around those that are repeated
    const open_mpi &api = *originals.api;
    const size_t words = api.datatype_words_offset();
    const auto add = originals.opal_datatype_add;
    datatype_handle pair(api);
    if (pair.get() == nullptr) {
        return out_of_resource;
    }
    if (!pair.has_list(words)) {  // an Open MPI that we do not know
        return add(base, added, count, displacement, not_given);
    }
    const size_t members = members_of(const_cast<void *>(added), words)->used;
    if (!reserve(*members_of(pair.get(), words), 2 * (members + loop)) ||
        !reserve(*members_of(base, words), 3 * members + 2 * loop)) {
        return out_of_resource;
    }
    datatype_words before, one;
    read_words(originals, base, &before);
    read_words(originals, added, &one);
    const auto odd = displacement - static_cast<ptrdiff_t>(count - 1);
    int32_t status = add(pair.get(), added, 1, 0, 0);
    status = status != 0 ? status : add(pair.get(), added, 1, -1, 0);
    status = status != 0 ? status : add(base, pair.get(), count / 2, displacement, -2);
    status = status != 0 || count % 2 == 0 ? status : add(base, added, 1, odd, 0);
    if (status == 0) {
        round_once(base, words, before.ub, displacement + one.ub);
    }
    return status;
}

// The flags that the other words allow, and that UCX's layer of Open MPI understands.
uint16_t true_flags(const datatype_words &words) noexcept {
    const auto size = static_cast<ptrdiff_t>(words.size);
    uint16_t flags = words.flags;
    const bool is_contiguous = words.size == 0 || words.true_ub - words.true_lb == size;
    const bool has_no_gaps =
        is_contiguous && words.ub - words.lb == size && (words.lb != 0 || words.true_lb == 0);
    if (!is_contiguous) {
        flags = static_cast<uint16_t>(flags & ~datatype_words::contiguous);
    }
    if (!has_no_gaps && words.size != 0) {
        flags = static_cast<uint16_t>(flags & ~datatype_words::no_gaps);
    }
    return flags;
}

void mend_flags(const opal_originals &originals, void *datatype) noexcept {
    datatype_words words;
    if (!read_words(originals, datatype, &words)) {
        return;
    }
    const uint16_t flags = true_flags(words);
    if (flags != words.flags) {
        nc_debug("a datatype is not contiguous, though Open MPI takes it for that");
        std::memcpy(static_cast<char *>(datatype) + originals.api->datatype_words_offset(), &flags,
                    sizeof(flags));
    }
}

}  // namespace

int32_t datatype_add(void *base, const void *added, size_t count, ptrdiff_t displacement,
                     ptrdiff_t extent) noexcept {
    const opal_originals &originals = opal();
    datatype_words words;
    if (CUDA_NC_UNLIKELY(extent == not_given) && count > 1 &&
        read_words(originals, added, &words) && words.ub - words.lb != not_given) {
        nc_debug("a datatype has a stride of -1 byte: Open MPI would take it for another one");
        return add_backwards(originals, base, added, count, displacement);
    }
    return originals.opal_datatype_add(base, added, count, displacement, extent);
}

int32_t datatype_resize(void *datatype, ptrdiff_t lb, ptrdiff_t extent) noexcept {
    const opal_originals &originals = opal();
    const int32_t status = originals.opal_datatype_resize(datatype, lb, extent);
    mend_flags(originals, datatype);
    return status;
}

int32_t datatype_commit(void *datatype) noexcept {
    const opal_originals &originals = opal();
    datatype_words words;
    if (read_words(originals, datatype, &words) && (words.flags & datatype_words::committed) == 0) {
        mend_flags(originals, datatype);
    }
    return originals.opal_datatype_commit(datatype);
}

}  // namespace cuda_nc::hooks
