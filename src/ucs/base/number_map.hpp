// Objects by number, for those that come and go with each message: no memory is taken or freed for
// one of them. A table of a power of two of places; a number that finds its place taken has the
// next free one (linear probing, with the others moved up when one goes: D. E. Knuth, The Art of
// Computer Programming, volume 3, 6.4, algorithm R).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace cuda_nc {

// Holds pointers, none of them null; owns nothing. Not thread safe.
template <typename object>
class number_map {
  public:
    // Null: there is none.
    object *find(uint64_t number) const noexcept {
        return size_ != 0 ? places_[place_of(number)].what : nullptr;
    }
    // In place of the one of that number, if there is one. Throws std::bad_alloc, and then has
    // changed nothing.
    void set(uint64_t number, object *what) {
        if (places_.size() < 2 * (size_ + 1)) {
            grow();
        }
        put(number, what);
    }
    // Of a number that is there.
    void replace(uint64_t number, object *what) noexcept { put(number, what); }
    void erase(uint64_t number) noexcept {
        size_t hole = size_ != 0 ? place_of(number) : 0;
        if (size_ == 0 || places_[hole].what == nullptr) {
            return;
        }
        for (size_t at = next(hole); places_[at].what != nullptr; at = next(at)) {
            // Whether it may be as far back as the hole.
            const size_t from_home = distance(home_of(places_[at].number), at);
            if (from_home >= distance(hole, at)) {
                places_[hole] = places_[at];
                hole = at;
            }
        }
        places_[hole].what = nullptr;
        if (--size_ == 0 && places_.size() > most_unused) {
            std::vector<place>().swap(places_);
        }
    }
    size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    // Calls `what` with each object that is there when its turn comes, in the order of numbers.
    template <typename function>
    void for_each(function what) {
        uint64_t last = 0;
        bool any = false;
        try {
            std::vector<uint64_t> numbers;
            numbers.reserve(size_);
            for (const place &one : places_) {
                if (one.what != nullptr) {
                    numbers.push_back(one.number);
                }
            }
            std::sort(numbers.begin(), numbers.end());
            for (const uint64_t number : numbers) {
                last = number;
                any = true;
                if (object *one = find(number)) {
                    what(*one);
                }
            }
        } catch (const std::bad_alloc &) {
            // The rest is found one by one.
        }
        while (const place *one = first_after(last, any)) {
            last = one->number;
            any = true;
            what(*one->what);
        }
    }

  private:
    static constexpr size_t least = 16, most_unused = 4096;  // places
    struct place {
        uint64_t number = 0;
        object *what = nullptr;
    };

    // Numbers that follow each other are far apart: no run of them fills neighbouring places.
    size_t home_of(uint64_t number) const noexcept {
        return static_cast<size_t>(number * 0x9E3779B97F4A7C15u >> 20) & (places_.size() - 1);
    }
    // Where the number is, or the free place where it would be. There must be places.
    size_t place_of(uint64_t number) const noexcept {
        size_t at = home_of(number);
        while (places_[at].what != nullptr && places_[at].number != number) {
            at = next(at);
        }
        return at;
    }
    size_t next(size_t at) const noexcept { return (at + 1) & (places_.size() - 1); }
    size_t distance(size_t from, size_t to) const noexcept {
        return (to - from) & (places_.size() - 1);
    }
    void put(uint64_t number, object *what) noexcept {
        const size_t at = place_of(number);
        size_ += places_[at].what == nullptr ? 1 : 0;
        places_[at] = {number, what};
    }
    void grow() {
        std::vector<place> before(std::max(least, 2 * places_.size()));
        before.swap(places_);
        size_ = 0;
        for (const place &one : before) {
            if (one.what != nullptr) {
                put(one.number, one.what);
            }
        }
    }
    // Of the places with numbers above `last`, or of all; null: there is none.
    const place *first_after(uint64_t last, bool has_last) const noexcept {
        const place *first = nullptr;
        for (const place &one : places_) {
            if (one.what != nullptr && (!has_last || one.number > last) &&
                (first == nullptr || one.number < first->number)) {
                first = &one;
            }
        }
        return first;
    }

    std::vector<place> places_;
    size_t size_ = 0;
};

}  // namespace cuda_nc
