#include "hooks/mpich/type_contents.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace cuda_nc::hooks {
namespace {

// MPICH's numbers. Others, as those of the standard's ABI, are not known.
enum combiner {
    named = 1,
    dup = 2,
    contiguous = 3,
    vector = 4,
    hvector = 6,
    indexed = 7,
    hindexed = 9,
    indexed_block = 10,
    structure = 12,
    subarray = 13,
    darray = 14,
    resized = 18,
    hindexed_block = 19
};
constexpr int order_c = 56;
constexpr int distribute_block = 121, distribute_cyclic = 122, default_argument = -49767;

// MPICH has predefined types of its own, which its public functions do not know; types that it
// makes in collectives hold some.
constexpr bool is_internal(int type) noexcept {
    return static_cast<unsigned>(type) >> 24 == 0x4c && (type & 0xff0000) != 0;
}

constexpr unsigned deepest = 64;

struct piece {
    int64_t displacement;
    uint64_t length;
};

// In type-map order, none empty. What begins where the one before ends lengthens that, so that the
// packed bytes stay the same.
class pieces {
  public:
    // False: too many, or too far away for 64 bits.
    bool usable() const noexcept { return usable_; }
    void give_up() noexcept { usable_ = false; }
    bool empty() const noexcept { return all_.empty(); }
    const std::vector<piece> &all() const noexcept { return all_; }

    void add(int64_t displacement, uint64_t length) {
        if (length == 0 || !usable_) {
            return;
        }
        if (!all_.empty() && ends_at(all_.back(), displacement)) {
            usable_ = !__builtin_add_overflow(all_.back().length, length, &all_.back().length);
        } else if (all_.size() < most) {
            all_.push_back({displacement, length});
        } else {
            usable_ = false;
        }
    }
    // `inner`, `count` times, each `extent` bytes after the one before. Each turn of the loop makes
    // a piece, so that the limit ends it: where all would be one, it is made at once.
    void add(const pieces &inner, int64_t extent, int64_t count, int64_t displacement) {
        usable_ = usable_ && inner.usable_;
        if (inner.empty() || count <= 0) {
            return;
        }
        const piece &first = inner.all_.front();
        if (inner.all_.size() == 1 && extent > 0 && first.length == static_cast<uint64_t>(extent)) {
            uint64_t length = 0;
            usable_ = usable_ && !__builtin_mul_overflow(first.length, count, &length);
            add(sum(displacement, first.displacement), length);
            return;
        }
        for (int64_t i = 0; i < count && usable_; ++i) {
            const int64_t start = sum(displacement, product(i, extent));
            for (const piece &one : inner.all_) {
                add(sum(start, one.displacement), one.length);
            }
        }
    }

    int64_t sum(int64_t a, int64_t b) noexcept {
        int64_t made = 0;
        usable_ = !__builtin_add_overflow(a, b, &made) && usable_;
        return made;
    }
    int64_t product(int64_t a, int64_t b) noexcept {
        int64_t made = 0;
        usable_ = !__builtin_mul_overflow(a, b, &made) && usable_;
        return made;
    }

  private:
    static constexpr size_t most = size_t(1) << 24;

    static bool ends_at(const piece &one, int64_t displacement) noexcept {
        int64_t end;
        return !__builtin_add_overflow(one.displacement, one.length, &end) && end == displacement;
    }

    std::vector<piece> all_;
    bool usable_ = true;
};

// A type that MPI gave us a reference to.
class held_type {
  public:
    held_type(const type_functions &mpi, int type) noexcept : mpi_(mpi), type_(type) {}
    ~held_type() {
        long long integers, addresses, counts, types;
        int how = named;
        if (mpi_.get_envelope(type_, &integers, &addresses, &counts, &types, &how) == 0 &&
            how != named) {
            mpi_.free(&type_);
        }
    }
    held_type(const held_type &) = delete;
    int get() const noexcept { return type_; }

  private:
    const type_functions &mpi_;
    int type_;
};

// As the functions of small counts have them.
struct arguments {
    int combiner = 0;
    std::vector<int64_t> integers, addresses;
    std::vector<int> types;
};

// How many of the large counts stand for integers; the rest stand for addresses.
size_t integers_among(int combiner, const std::vector<long long> &counts) {
    switch (combiner) {
        case hvector:
        case hindexed_block:
            return 2;
        case hindexed:
        case structure:
            return 1 + static_cast<size_t>(counts[0]);
        case resized:
            return 0;
        default:
            return counts.size();
    }
}

// An inner type: its blocks and extent.
struct part {
    pieces all;
    int64_t extent = 0;
};

class reader {
  public:
    explicit reader(const type_functions &mpi) noexcept : mpi_(mpi) {}

    bool read(int type, unsigned depth, pieces *made_p) {
        arguments of;
        if (depth > deepest || !get(type, &of)) {
            return false;
        }
        if (of.combiner == named) {
            return read_named(type, made_p);
        }
        std::vector<part> parts(of.types.size());
        bool all = true;
        {
            std::vector<std::unique_ptr<held_type>> held;
            for (int inner : of.types) {
                if (!is_internal(inner)) {
                    held.push_back(std::make_unique<held_type>(mpi_, inner));
                }
            }
            all = held.size() == of.types.size();
            for (size_t i = 0; i < parts.size() && all; ++i) {
                intptr_t lower_bound, extent;
                all = read(of.types[i], depth + 1, &parts[i].all) &&
                      mpi_.get_extent(of.types[i], &lower_bound, &extent) == 0;
                parts[i].extent = all ? extent : 0;
            }
        }
        made_ = made_p;
        return all && combine(of, parts) && made_p->usable();
    }

  private:
    bool get(int type, arguments *of_p) {
        long long num_integers = 0, num_addresses = 0, num_counts = 0, num_types = 0;
        if (mpi_.get_envelope(type, &num_integers, &num_addresses, &num_counts, &num_types,
                              &of_p->combiner) != 0) {
            return false;
        }
        if (of_p->combiner == named) {
            return true;
        }
        std::vector<int> integers(static_cast<size_t>(num_integers));
        std::vector<intptr_t> addresses(static_cast<size_t>(num_addresses));
        std::vector<long long> counts(static_cast<size_t>(num_counts));
        of_p->types.resize(static_cast<size_t>(num_types));
        if (mpi_.get_contents(type, num_integers, num_addresses, num_counts, num_types,
                              integers.data(), addresses.data(), counts.data(),
                              of_p->types.data()) != 0) {
            return false;
        }
        of_p->integers.assign(integers.begin(), integers.end());
        of_p->addresses.assign(addresses.begin(), addresses.end());
        if (!counts.empty()) {
            const size_t split = std::min(integers_among(of_p->combiner, counts), counts.size());
            const auto middle = counts.begin() + static_cast<ptrdiff_t>(split);
            // behind the dimensions of arrays; there are no other integers elsewhere
            const size_t before = of_p->combiner == subarray ? 1 : of_p->combiner == darray ? 3 : 0;
            of_p->integers.insert(of_p->integers.begin() + static_cast<ptrdiff_t>(before),
                                  counts.begin(), middle);
            of_p->addresses.insert(of_p->addresses.end(), middle, counts.end());
        }
        return true;
    }

    bool read_named(int type, pieces *made_p) const {
        constexpr intptr_t most = 4;  // a pair has two
        type_block blocks[most];
        intptr_t number = 0, bytes = 0;
        int size = 0;
        if (mpi_.get_size(type, &size) != 0 ||
            mpi_.get_blocks(type, 0, blocks, most, &number) != 0) {
            return false;
        }
        for (intptr_t i = 0; i < number; ++i) {
            made_p->add(blocks[i].displacement, static_cast<uint64_t>(blocks[i].length));
            bytes += blocks[i].length;
        }
        return bytes == size;
    }

    void add_many(const part &of, int64_t count, int64_t displacement) {
        made_->add(of.all, of.extent, count, displacement);
    }
    // `count` blocks of `length` elements.
    void add_blocks(const part &of, int64_t count, int64_t length, int64_t stride) {
        if (length == 1) {
            made_->add(of.all, stride, count, 0);
            return;
        }
        pieces block;
        block.add(of.all, of.extent, length, 0);
        made_->add(block, stride, count, 0);
    }
    // In bytes. The stride of a single block does not matter, however large.
    int64_t stride_of(const part &of, int64_t elements, int64_t count) noexcept {
        return count > 1 ? made_->product(elements, of.extent) : 0;
    }

    bool combine(const arguments &of, const std::vector<part> &parts) {
        const std::vector<int64_t> &n = of.integers;
        const std::vector<int64_t> &a = of.addresses;
        const size_t count = n.empty() ? 0 : static_cast<size_t>(n[0]);
        switch (of.combiner) {
            case dup:
            case resized:
                add_many(parts[0], 1, 0);
                return true;
            case contiguous:
                add_many(parts[0], n[0], 0);
                return true;
            case vector:
                add_blocks(parts[0], n[0], n[1], stride_of(parts[0], n[2], n[0]));
                return true;
            case hvector:
                add_blocks(parts[0], n[0], n[1], a[0]);
                return true;
            case indexed:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1 + i], made_->product(n[1 + count + i], parts[0].extent));
                }
                return true;
            case hindexed:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1 + i], a[i]);
                }
                return true;
            case indexed_block:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1], made_->product(n[2 + i], parts[0].extent));
                }
                return true;
            case hindexed_block:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1], a[i]);
                }
                return true;
            case structure:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[i], n[1 + i], a[i]);
                }
                return true;
            case subarray:
                add_array(parts[0], of_subarray(n), n);
                return true;
            case darray:
                add_array(parts[0], of_darray(n), {n.begin() + 2, n.end()});
                return true;
            default:
                return false;
        }
    }

    // Which indexes of a dimension belong to the type: pieces, counted in indexes.
    using index_lists = std::vector<pieces>;

    static index_lists of_subarray(const std::vector<int64_t> &n) {
        const auto dimensions = static_cast<size_t>(n[0]);
        index_lists lists(dimensions);
        for (size_t d = 0; d < dimensions; ++d) {
            const int64_t part = n[1 + dimensions + d], start = n[1 + 2 * dimensions + d];
            lists[d].add(start, static_cast<uint64_t>(std::max<int64_t>(part, 0)));
        }
        return lists;
    }

    // Integers: processes, rank, dimensions; of each dimension its size, distribution, argument and
    // processes; the order. Processes count in C's order.
    static index_lists of_darray(const std::vector<int64_t> &n) {
        const auto dimensions = static_cast<size_t>(n[2]);
        index_lists lists(dimensions);
        int64_t rest = n[1];
        for (size_t d = dimensions; d-- > 0;) {
            const int64_t size = n[3 + d], processes = n[3 + 3 * dimensions + d];
            const int64_t how = n[3 + dimensions + d], argument = n[3 + 2 * dimensions + d];
            const int64_t mine = rest % processes;
            rest /= processes;
            const bool given = argument != default_argument;
            const int64_t length = processes == 1 ? size
                                   : how == distribute_block
                                       ? (given ? argument : (size + processes - 1) / processes)
                                   : how == distribute_cyclic ? (given ? argument : 1)
                                                              : size;
            for (int64_t begin = mine * length; begin < size && length > 0 && lists[d].usable();
                 begin += processes * length) {
                lists[d].add(begin, static_cast<uint64_t>(std::min(length, size - begin)));
            }
        }
        return lists;
    }

    // `n`: dimensions, their sizes, ...; the order is last. From the dimension that runs fastest
    // on: the parts of one are the elements of the next.
    void add_array(const part &of, const index_lists &lists, const std::vector<int64_t> &n) {
        const auto dimensions = static_cast<size_t>(n[0]);
        const bool c_order = n.back() == order_c;
        const pieces *inner = &of.all;
        pieces whole;
        int64_t stride = of.extent;
        for (size_t i = 0; i < dimensions; ++i) {
            const size_t d = c_order ? dimensions - 1 - i : i;
            pieces made;
            for (const piece &run : lists[d].all()) {
                made.add(*inner, stride, static_cast<int64_t>(run.length),
                         made.product(run.displacement, stride));
            }
            if (!lists[d].usable()) {
                made.give_up();
            }
            stride = made.product(stride, n[1 + d]);
            whole = std::move(made);
            inner = &whole;
        }
        made_->add(*inner, stride, 1, 0);
    }

    const type_functions &mpi_;
    pieces *made_ = nullptr;
};

}  // namespace

layout_ref read_contents(const type_functions &mpi, int type) {
    pieces all;
    if (!reader(mpi).read(type, 0, &all)) {
        return nullptr;
    }
    layout_builder builder;
    for (const piece &one : all.all()) {
        builder.append(one.displacement, one.length);
    }
    return builder.finish();
}

}  // namespace cuda_nc::hooks
