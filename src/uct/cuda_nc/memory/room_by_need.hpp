// How many things that are dear to open stay open: as many as their user comes back to, no more.
//
// A user who goes round more of them than stay open opens each one anew, every time; a user who
// never comes back to one wants none of them. So what is closed for want of room is remembered by
// its name, and the room grows by one when such a one is opened again: this is the "ghost list" of
// 2Q and ARC (Johnson and Shasha, VLDB 1994; Megiddo and Modha, FAST 2003), here for the size of
// the whole. The room shrinks by one for every fourth one that is opened in a full room and is not
// remembered: so who opens those pays for few that he comes back to.
//
// One user at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <set>

namespace cuda_nc::uct {

template <typename name>
class room_by_need {
  public:
    static constexpr size_t least = 64, most = 4096;

    size_t room() const noexcept { return room_; }

    // One more is to be opened, while `open` are open. How many are to be closed, those first that
    // were used least recently: two at most, so no open waits for many closes. `returned`: forget()
    // found the new one.
    size_t to_close(bool returned, size_t open) noexcept {
        if (open < room_) {
            return 0;
        }
        if (returned && room_ < most) {
            ++room_;
            return 0;
        }
        if (!returned && room_ > least && ++opened_once_ % 4 == 0) {
            --room_;
        }
        return std::min(open - room_ + 1, size_t{2});
    }

    // Those that needed the room are gone, and `open` are left.
    void shrink_to(size_t open) noexcept { room_ = std::clamp(open, least, room_); }

    // It was closed for want of room.
    void remember(const name &one) noexcept try {
        if (closed_.size() >= most) {
            closed_before_.swap(closed_);
            closed_.clear();
        }
        closed_.insert(one);
    } catch (const std::bad_alloc &) {
    }

    // Whether it was; it is forgotten by that.
    bool forget(const name &one) noexcept {
        const size_t found = closed_.erase(one) + closed_before_.erase(one);
        return found != 0;
    }

  private:
    size_t room_ = least;
    uint64_t opened_once_ = 0;  // in a full room
    std::set<name> closed_, closed_before_;
};

}  // namespace cuda_nc::uct
