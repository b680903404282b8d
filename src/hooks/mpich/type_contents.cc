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

struct piece {
    int64_t displacement;
    uint64_t length;
};

using pieces = std::vector<piece>;

// MPICH has predefined types of its own, which its public functions do not know; types that it
// makes in collectives hold some.
constexpr bool is_internal(int type) noexcept {
    return static_cast<unsigned>(type) >> 24 == 0x4c && (type & 0xff0000) != 0;
}

constexpr size_t most_pieces = size_t(1) << 24;
constexpr unsigned deepest = 64;

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
        return all && combine(of, parts) && made_p->size() <= most_pieces;
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
            made_p->push_back({blocks[i].displacement, static_cast<uint64_t>(blocks[i].length)});
            bytes += blocks[i].length;
        }
        return bytes == size;
    }

    void add(const part &of, int64_t displacement) {
        for (const piece &one : of.all) {
            if (one.length != 0 && made_->size() <= most_pieces) {
                made_->push_back({displacement + one.displacement, one.length});
            }
        }
    }
    void add_many(const part &of, int64_t count, int64_t displacement) {
        for (int64_t i = 0; i < count && made_->size() <= most_pieces; ++i) {
            add(of, displacement + i * of.extent);
        }
    }
    void add_blocks(const part &of, int64_t count, int64_t length, int64_t stride) {
        for (int64_t i = 0; i < count && made_->size() <= most_pieces; ++i) {
            add_many(of, length, i * stride);
        }
    }

    bool combine(const arguments &of, const std::vector<part> &parts) {
        const std::vector<int64_t> &n = of.integers;
        const std::vector<int64_t> &a = of.addresses;
        const size_t count = n.empty() ? 0 : static_cast<size_t>(n[0]);
        switch (of.combiner) {
            case dup:
            case resized:
                add(parts[0], 0);
                return true;
            case contiguous:
                add_many(parts[0], n[0], 0);
                return true;
            case vector:
                add_blocks(parts[0], n[0], n[1], n[2] * parts[0].extent);
                return true;
            case hvector:
                add_blocks(parts[0], n[0], n[1], a[0]);
                return true;
            case indexed:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1 + i], n[1 + count + i] * parts[0].extent);
                }
                return true;
            case hindexed:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1 + i], a[i]);
                }
                return true;
            case indexed_block:
                for (size_t i = 0; i < count; ++i) {
                    add_many(parts[0], n[1], n[2 + i] * parts[0].extent);
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

    // Which indexes of each dimension belong to the type.
    using index_lists = std::vector<std::vector<int64_t>>;

    static index_lists of_subarray(const std::vector<int64_t> &n) {
        const auto dimensions = static_cast<size_t>(n[0]);
        index_lists lists(dimensions);
        for (size_t d = 0; d < dimensions; ++d) {
            const int64_t part = n[1 + dimensions + d], start = n[1 + 2 * dimensions + d];
            for (int64_t i = 0; i < part; ++i) {
                lists[d].push_back(start + i);
            }
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
            const int64_t length = how == distribute_block
                                       ? (given ? argument : (size + processes - 1) / processes)
                                   : how == distribute_cyclic ? (given ? argument : 1)
                                                              : size;
            for (int64_t begin = mine * length; begin < size; begin += processes * length) {
                for (int64_t i = begin; i < std::min(begin + length, size); ++i) {
                    lists[d].push_back(i);
                }
            }
        }
        return lists;
    }

    // `n`: dimensions, their sizes, ...; the order is last.
    void add_array(const part &of, index_lists lists, const std::vector<int64_t> &n) {
        const auto dimensions = static_cast<size_t>(n[0]);
        std::vector<int64_t> strides(dimensions);
        const bool c_order = n.back() == order_c;
        int64_t stride = of.extent;
        for (size_t i = 0; i < dimensions; ++i) {
            const size_t d = c_order ? dimensions - 1 - i : i;
            strides[d] = stride;
            stride *= n[1 + d];
        }
        if (!c_order) {  // the first dimension runs fastest
            std::reverse(lists.begin(), lists.end());
            std::reverse(strides.begin(), strides.end());
        }
        add_dimension(of, lists, strides, 0, 0);
    }
    void add_dimension(const part &of, const index_lists &lists,
                       const std::vector<int64_t> &strides, size_t dimension,
                       int64_t displacement) {
        if (dimension == lists.size()) {
            add(of, displacement);
            return;
        }
        for (int64_t index : lists[dimension]) {
            if (made_->size() > most_pieces) {
                return;
            }
            add_dimension(of, lists, strides, dimension + 1,
                          displacement + index * strides[dimension]);
        }
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
    for (const piece &one : all) {
        builder.append(one.displacement, one.length);
    }
    return builder.finish();
}

}  // namespace cuda_nc::hooks
