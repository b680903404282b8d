#include "ucs/backend/sim/pipe.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <vector>

#include "ucs/base/log.hpp"
#include "ucs/gpu/box.hpp"
#include "ucs/backend/sim/access.hpp"

namespace cuda_nc::gpu::sim {
namespace {

uint64_t load(const uint64_t *word) noexcept {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void store(uint64_t *word, uint64_t value) noexcept {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Moves the chunks of one side of a pipe, channel by channel.
class chunk_mover {
  public:
    chunk_mover(const pipe_work &work, int ordinal, const address_space &space)
        : work_(work), ordinal_(ordinal), space_(space), done_(work.geometry.channels) {
        seen_.dir = work.dir;
        seen_.layout = *work.layout;
        seen_.base = work.base;
        seen_.into_own_memory = work.pulls && work.into_own_memory;
        source_.layout = work.source == nullptr ? *work.layout : *work.source;
        source_.base = work.source_base;
    }

    // Translates the addresses that all channels use. False, logged: the device cannot access one.
    bool open() noexcept {
        access_checker words(space_, ordinal_);
        const pipe_geometry &g = work_.geometry;
        auto reach = [&](const void *address, uint64_t length, const char *what) {
            return words.reach(reinterpret_cast<uintptr_t>(address), length, what);
        };
        if (work_.state != nullptr) {
            state_ = reinterpret_cast<pipe_state *>(
                reach(work_.state, sizeof(pipe_state), "a pipe's state"));
            report_ = reinterpret_cast<pipe_report *>(
                reach(work_.report, sizeof(pipe_report), "a pipe's report"));
            if (state_ == nullptr || report_ == nullptr) {
                return false;
            }
        }
        if (!translate_tables(space_, ordinal_, &seen_.layout)) {
            return false;
        }
        if (work_.pulls) {
            if (!translate_tables(space_, ordinal_, &source_.layout)) {
                return false;
            }
        } else {
            flags_ = reach(work_.flags, g.words_size(), "a pipe's flags");
            credits_ = reach(work_.credits, g.words_size(), "a pipe's credits");
            bool ring = reach(work_.ring, g.ring_size(), "a pipe's ring") != nullptr;
            if (flags_ == nullptr || credits_ == nullptr || !ring) {
                return false;
            }
        }
        for (uint32_t channel = 0; channel < g.channels; ++channel) {
            uint64_t chunks = work_.resumes ? state_->position[channel] - work_.sequence : 0;
            done_[channel] = chunks <= chunks_of(channel) ? static_cast<uint32_t>(chunks) : 0;
        }
        return true;
    }

    bool aborted() const noexcept {
        return state_ != nullptr && load(&state_->abort) == work_.sequence;
    }

    bool complete() const noexcept {
        for (uint32_t channel = 0; channel < work_.geometry.channels; ++channel) {
            if (!is_through(channel)) {
                return false;
            }
        }
        return true;
    }

    // Moves the channel's next chunk if flags and credits allow it; *moved_p says whether. False:
    // an illegal access.
    bool advance(uint32_t channel, bool *moved_p) noexcept {
        const pipe_geometry &g = work_.geometry;
        const bool sending = work_.dir == direction::pack;
        const uint32_t k = done_[channel], total = chunks_of(channel);
        *moved_p = false;
        if (k == total) {
            return true;
        }
        if (work_.pulls) {
            *moved_p = true;
            return pull(channel);
        }
        if (sending ? k >= g.depth &&
                          load(pipe_word(credits_, channel)) < work_.sequence + (k - g.depth) + 1
                    : load(pipe_word(flags_, channel)) < work_.sequence + k + 1) {
            return true;
        }
        uint64_t begin = (uint64_t{k} * g.channels + channel) * g.chunk_size;
        uint64_t end = std::min(begin + g.chunk_size, work_.length);
        seen_.packed = work_.ring + (uint64_t{channel} * g.depth + k % g.depth) * g.chunk_size;
        seen_.packed_offset = work_.packed_offset + begin;
        if (!move_piece(seen_, ordinal_, space_, seen_.packed_offset, work_.packed_offset + end)) {
            return false;
        }
        done_[channel] = k + 1;
        if (sending) {
            store(pipe_word(flags_, channel), work_.sequence + k + 1);
        } else if (k + g.depth < total) {
            store(pipe_word(credits_, channel), work_.sequence + k + 1);
        }
        *moved_p = true;
        return true;
    }

    void leave() noexcept {
        if (state_ == nullptr) {
            return;
        }
        for (uint32_t channel = 0; channel < work_.geometry.channels; ++channel) {
            state_->position[channel] = work_.sequence + done_[channel];
        }
        const uint32_t channels = work_.geometry.channels, size = pipe_group_size(channels);
        for (uint32_t first = 0; first < channels; first += size) {
            bool through = true;
            for (uint32_t channel = first; channel < first + size; ++channel) {
                through &= is_through(channel);
            }
            __atomic_store_n(&report_->groups[first / size].left,
                             pipe_left(work_.launch_number, through), __ATOMIC_RELEASE);
        }
    }

  private:
    // The channel's next chunk, from the source's memory into the target's.
    bool pull(uint32_t channel) noexcept {
        const pipe_geometry &g = work_.geometry;
        const uint64_t begin = (uint64_t{done_[channel]} * g.channels + channel) * g.chunk_size;
        const uint64_t end = std::min(begin + g.chunk_size, work_.length);
        ++done_[channel];
        return pull_piece(source_, seen_, ordinal_, space_, work_.packed_offset + begin,
                          work_.packed_offset + end);
    }

    uint32_t chunks_of(uint32_t channel) const noexcept {
        return pipe_channel_chunks(work_.length, work_.geometry, channel);
    }
    bool is_through(uint32_t channel) const noexcept {
        return done_[channel] == chunks_of(channel);
    }

    const pipe_work &work_;
    int ordinal_;
    const address_space &space_;
    transfer seen_, source_;  // tables translated
    std::vector<uint32_t> done_;
    pipe_state *state_ = nullptr;
    pipe_report *report_ = nullptr;
    char *flags_ = nullptr, *credits_ = nullptr;
};

// The running kernel of one side: the chunk mover and its patience.
class pipe_kernel {
  public:
    pipe_kernel(const pipe_work &work, int ordinal, const address_space &space)
        : mover_(work, ordinal, space),
          channels_(work.geometry.channels),
          patience_(work.patience_us),
          last_progress_(clock::now()) {}

    bool open() noexcept { return mover_.open(); }
    bool has_left() const noexcept { return has_left_; }

    // Moves one chunk of each channel that can. False: an illegal access.
    bool step(random_source &random, bool *moved_p) {
        bool moved = false;
        auto first = static_cast<uint32_t>(random.up_to(channels_ - 1));
        for (uint32_t i = 0; i < channels_ && !mover_.aborted(); ++i) {
            bool one_moved;
            if (!mover_.advance((first + i) % channels_, &one_moved)) {
                return false;
            }
            moved |= one_moved;
        }
        auto now = clock::now();
        if (moved) {
            last_progress_ = now;
        }
        if (mover_.complete() || mover_.aborted() || now - last_progress_ > patience_) {
            mover_.leave();
            has_left_ = true;
        }
        *moved_p |= moved;
        return true;
    }

  private:
    using clock = std::chrono::steady_clock;

    chunk_mover mover_;
    uint32_t channels_;
    std::chrono::microseconds patience_;
    clock::time_point last_progress_;
    bool has_left_ = false;
};

// What a copy engine does, row by row.
ucs_status_t copy_rows(const pipe_work &work, int ordinal, const address_space &space) {
    box rows;
    if (!find_box(work.source != nullptr ? *work.source : *work.layout, *work.layout, work.length,
                  &rows)) {
        nc_error("simulated GPU: a pull by copy engines, of layouts that are not rows");
        return UCS_ERR_IO_ERROR;
    }
    access_checker from(space, ordinal), to(space, ordinal), words(space, ordinal);
    auto place = [&rows](const char *base, const box::side &side, uint64_t i) {
        const uint64_t row = i / rows.rows * side.rows_of_slice + i % rows.rows;
        return reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(side.displacement) +
               row * side.pitch;
    };
    for (uint64_t i = 0; i < rows.all_rows(); ++i) {
        const char *theirs =
            from.reach(place(work.source_base, rows.source, i), rows.width, "a row to be copied");
        char *ours = to.reach(place(work.base, rows.target, i), rows.width, "a row's place");
        if (theirs == nullptr || ours == nullptr) {
            return UCS_ERR_IO_ERROR;
        }
        std::memcpy(ours, theirs, rows.width);
    }
    auto *report = reinterpret_cast<pipe_report *>(words.reach(
        reinterpret_cast<uintptr_t>(work.report), sizeof(pipe_report), "a pipe's report"));
    if (report == nullptr) {
        return UCS_ERR_IO_ERROR;
    }
    __atomic_store_n(&report->groups[0].left, pipe_left(work.launch_number, true),
                     __ATOMIC_RELEASE);
    return UCS_OK;
}

}  // namespace

ucs_status_t execute(const std::vector<pipe_work> &sides, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause) {
    if (sides[0].copies) {
        return copy_rows(sides[0], ordinal, space);
    }
    std::vector<pipe_kernel> running;
    running.reserve(sides.size());
    for (const pipe_work &work : sides) {
        running.emplace_back(work, ordinal, space);
        if (!running.back().open()) {
            return UCS_ERR_IO_ERROR;
        }
    }
    for (size_t left = 0; left < running.size();) {
        bool moved = false;
        for (pipe_kernel &one : running) {
            if (one.has_left()) {
                continue;
            }
            if (!one.step(random, &moved)) {
                return UCS_ERR_IO_ERROR;
            }
            left += one.has_left() ? 1 : 0;
        }
        if (!moved && left < running.size()) {
            pause();
        }
    }
    return UCS_OK;
}

}  // namespace cuda_nc::gpu::sim
