// windows-test [--memory KINDS] [--rounds N] [--calls N] [--seed N] [--no-sums] [--no-self]
//              [--allocate] [--only NAME]
//
// MPI_Put, MPI_Get and MPI_Accumulate of derived types between all ranks, in epochs of every kind:
// fence, post and start, lock, lock_all and flush. Every byte of windows and of what was gotten is
// compared, gaps included. Each rank knows the calls of all by the seed, so it knows what is to lie
// in its own window.
//
// KINDS: host, sim, cuda, or a list that the ranks take turns over; no-sums: no MPI_Accumulate that
// computes; no-self: nothing to the rank itself; allocate: memory of MPI_Win_allocate
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/memory.hpp"
#include "windows/int_layout.hpp"

using namespace mpi_test;

namespace {

struct choices {
    std::string memory = "host", only;
    int rounds = 6, calls = 12;
    uint64_t seed = 1;
    bool sums = true, self = true, allocate = false;
} chosen;

int rank_, ranks_;
long wrong_ = 0;

// A window holds, in ints: what is read alone; a strip for each call of each rank; one into which
// all add.
constexpr int most_ints = 600;        // that a call moves
constexpr int strip = 4 * most_ints;  // a layout's span at most, but for columns and boxes
constexpr int read_part = 8 * strip;
int written_begin() {
    return read_part;
}
int added_begin() {
    return read_part + strip * chosen.calls * ranks_;
}
int window_ints() {
    return added_begin() + strip;
}

enum class action { put, get, replace, add };

struct call {
    action what;
    int origin, target;
    int number;  // ints
    int_layout here, there;
    int place;  // of `there` in the target's window, an int
};

int read_value(int rank, int place) {
    return static_cast<int>((static_cast<uint32_t>(place) + 1) * 2654435761u) ^ (rank * 7919);
}
int sent_value(int origin, uint64_t salt, int place) {
    return static_cast<int>(static_cast<uint32_t>(read_value(origin + 100, place)) +
                            static_cast<uint32_t>(salt * 65537));
}
constexpr int untouched = 0x55555555;

call make_call(random_stream &random, int origin, int index) {
    call made;
    do {
        made.target = static_cast<int>(random.next() % static_cast<uint64_t>(ranks_));
    } while (made.target == origin && !chosen.self && ranks_ > 1);
    const auto kind = random.next() % (chosen.sums ? 4 : 3);
    made.what = kind == 0   ? action::put
                : kind == 1 ? action::get
                : kind == 2 ? action::replace
                            : action::add;
    made.origin = origin;
    do {
        made.number = static_cast<int>(random.between(1, random.one_in(3) ? 20 : most_ints));
        made.here = make_int_layout(random, made.number);
        made.there = make_int_layout(random, made.number);
        if (made.here.span <= strip && made.there.span <= strip) {
            break;
        }
        free_int_layout(&made.here);
        free_int_layout(&made.there);
    } while (true);
    const int room = strip - made.there.span;
    const int offset = static_cast<int>(random.between(0, room));
    made.place = made.what == action::get ? static_cast<int>(random.between(0, read_part - strip))
                 : made.what == action::add
                     ? added_begin()
                     : written_begin() + strip * (origin * chosen.calls + index);
    made.place += offset;
    return made;
}

class window {
  public:
    explicit window(memory &where) : where_(where) {
        const MPI_Aint bytes = static_cast<MPI_Aint>(window_ints()) * MPI_Aint{sizeof(int)};
        if (chosen.allocate) {
            MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &handle_);
        } else {
            base_ = where_.allocate(static_cast<size_t>(bytes));
            MPI_Win_create(base_, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &handle_);
        }
    }
    ~window() {
        MPI_Win_free(&handle_);
        if (!chosen.allocate) {
            where_.release(base_);
        }
    }
    window(const window &) = delete;
    window &operator=(const window &) = delete;

    MPI_Win handle() const { return handle_; }
    void write(const std::vector<int> &all) {
        where_.copy(base_, all.data(), all.size() * sizeof(int));
    }
    std::vector<int> read() {
        std::vector<int> all(static_cast<size_t>(window_ints()));
        where_.copy(all.data(), base_, all.size() * sizeof(int));
        return all;
    }

  private:
    memory &where_;
    void *base_ = nullptr;
    MPI_Win handle_ = MPI_WIN_NULL;
};

// The origin's memory of one call.
class local_side {
  public:
    local_side(memory &where, const call &what, uint64_t salt)
        : where_(where),
          what_(what),
          salt_(salt),
          bytes_(static_cast<size_t>(strip) * sizeof(int)) {
        base_ = where_.allocate(bytes_);
        std::vector<int> all(static_cast<size_t>(strip), untouched);
        for (int place = 0; what_.what != action::get && place < strip; ++place) {
            all[static_cast<size_t>(place)] = sent_value(what_.origin, salt_, place);
        }
        where_.copy(base_, all.data(), bytes_);
    }
    ~local_side() { where_.release(base_); }
    local_side(const local_side &) = delete;
    local_side &operator=(const local_side &) = delete;

    void start(MPI_Win window) {
        const int_layout &here = what_.here, &there = what_.there;
        if (what_.what == action::put) {
            MPI_Put(base_, here.count, here.type, what_.target, what_.place, there.count,
                    there.type, window);
        } else if (what_.what == action::get) {
            MPI_Get(base_, here.count, here.type, what_.target, what_.place, there.count,
                    there.type, window);
        } else {
            MPI_Accumulate(base_, here.count, here.type, what_.target, what_.place, there.count,
                           there.type, what_.what == action::add ? MPI_SUM : MPI_REPLACE, window);
        }
    }
    // What a get has brought, and nothing else.
    void check() {
        std::vector<int> wanted(static_cast<size_t>(strip), untouched), seen(wanted.size());
        for (size_t i = 0; i < what_.here.places.size(); ++i) {
            wanted[static_cast<size_t>(what_.here.places[i])] =
                read_value(what_.target, what_.place + what_.there.places[i]);
        }
        where_.copy(seen.data(), base_, bytes_);
        wrong_ += what_.what == action::get && seen != wanted;
    }

  private:
    memory &where_;
    const call &what_;
    const uint64_t salt_;
    const size_t bytes_;
    void *base_;
};

enum class epoch { fence, post, lock, flush };
struct named_epoch {
    const char *name;
    epoch kind;
};
constexpr named_epoch epochs[] = {
    {"fence", epoch::fence}, {"post", epoch::post}, {"lock", epoch::lock}, {"flush", epoch::flush}};

void run_epoch(epoch kind, const window &where, const std::vector<call> &calls,
               const std::vector<std::unique_ptr<local_side>> &sides, random_stream &random) {
    const MPI_Win handle = where.handle();
    MPI_Group all = MPI_GROUP_NULL;
    if (kind == epoch::fence) {
        MPI_Win_fence(0, handle);
    } else if (kind == epoch::post) {
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Win_post(all, 0, handle);
        MPI_Win_start(all, 0, handle);
    } else if (kind == epoch::flush) {
        MPI_Win_lock_all(0, handle);
    }
    for (size_t i = 0; i < calls.size(); ++i) {
        const int target = calls[i].target;
        if (kind == epoch::lock) {
            MPI_Win_lock(random.one_in(2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0,
                         handle);
        }
        sides[i]->start(handle);
        if (kind == epoch::lock) {
            MPI_Win_unlock(target, handle);
            sides[i]->check();
        } else if (kind == epoch::flush && random.one_in(3)) {
            MPI_Win_flush(target, handle);
            sides[i]->check();
        }
    }
    if (kind == epoch::fence) {
        MPI_Win_fence(0, handle);
    } else if (kind == epoch::post) {
        MPI_Win_complete(handle);
        MPI_Win_wait(handle);
        MPI_Group_free(&all);
    } else if (kind == epoch::flush) {
        MPI_Win_flush_all(handle);
        MPI_Win_unlock_all(handle);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void round(const named_epoch &kind, int number, memory &where, window &shared) {
    std::vector<int> wanted(static_cast<size_t>(window_ints()), untouched);
    for (int i = 0; i < read_part; ++i) {
        wanted[static_cast<size_t>(i)] = read_value(rank_, i);
    }
    std::fill(wanted.begin() + added_begin(), wanted.end(), 0);
    shared.write(wanted);
    MPI_Win_fence(0, shared.handle());
    const uint64_t salt = chosen.seed * 1000 + static_cast<uint64_t>(number);
    std::vector<call> own;
    for (int origin = 0; origin < ranks_; ++origin) {
        random_stream random({salt, static_cast<uint64_t>(origin)});
        for (int i = 0; i < chosen.calls; ++i) {
            call one = make_call(random, origin, i);
            for (size_t k = 0; one.target == rank_ && k < one.there.places.size(); ++k) {
                int &at = wanted[static_cast<size_t>(one.place + one.there.places[k])];
                const int sent = sent_value(origin, salt, one.here.places[k]);
                // Sums go round, as those of the machine do.
                at = one.what == action::get ? at
                     : one.what == action::add
                         ? static_cast<int>(static_cast<unsigned>(at) + static_cast<unsigned>(sent))
                         : sent;
            }
            if (origin == rank_) {
                own.push_back(std::move(one));
            } else {
                free_int_layout(&one.here);
                free_int_layout(&one.there);
            }
        }
    }
    std::vector<std::unique_ptr<local_side>> sides;
    for (const call &one : own) {
        sides.push_back(std::make_unique<local_side>(where, one, salt));
    }
    random_stream random({salt, 1000 + static_cast<uint64_t>(rank_)});
    const long wrong_before = wrong_;
    run_epoch(kind.kind, shared, own, sides, random);
    for (const auto &one : sides) {
        one->check();
    }
    MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, shared.handle());  // both copies of the window agree
    const std::vector<int> seen = shared.read();
    MPI_Win_unlock(rank_, shared.handle());
    for (size_t i = 0; i < seen.size(); ++i) {
        if (seen[i] != wanted[i] && wrong_++ == wrong_before) {
            std::printf("WRONG rank %d, %s, round %d: int %zu of the window is %d, not %d\n", rank_,
                        kind.name, number, i, seen[i], wanted[i]);
        }
    }
    sides.clear();
    for (call &one : own) {
        free_int_layout(&one.here);
        free_int_layout(&one.there);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--no-sums") {
            chosen.sums = false;
        } else if (name == "--no-self") {
            chosen.self = false;
        } else if (name == "--allocate") {
            chosen.allocate = true;
        } else if (i + 1 == argc) {
            std::fprintf(stderr, "no such option, or no value: %s\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        } else if (name == "--memory") {
            chosen.memory = argv[++i];
        } else if (name == "--only") {
            chosen.only = argv[++i];
        } else if (name == "--rounds") {
            chosen.rounds = std::atoi(argv[++i]);
        } else if (name == "--calls") {
            chosen.calls = std::atoi(argv[++i]);
        } else if (name == "--seed") {
            chosen.seed = std::strtoull(argv[++i], nullptr, 10);
        } else {
            std::fprintf(stderr, "no such option: %s\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    read_options(argc, argv);
    const std::unique_ptr<memory> where = open_memory(chosen.memory, rank_);
    {
        window shared(*where);
        int number = 0;
        for (const named_epoch &kind : epochs) {
            for (int i = 0; i < chosen.rounds; ++i, ++number) {
                if (chosen.only.empty() || chosen.only == kind.name) {
                    round(kind, number, *where, shared);
                }
            }
            if (rank_ == 0) {
                std::printf("%s: seed %llu\n", kind.name,
                            static_cast<unsigned long long>(chosen.seed));
                std::fflush(stdout);
            }
        }
    }
    long all = 0;
    MPI_Reduce(&wrong_, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank_ == 0) {
        std::printf(all == 0 ? "RIGHT\n" : "WRONG in %ld places\n", all);
    }
    MPI_Finalize();
    return all != 0 && rank_ == 0 ? 1 : 0;
}
