#include "operations/sides.hpp"

namespace mpi_test {
namespace {

// A single byte, which no MPI takes for contiguous.
made_type one_byte() {
    made_type made = resized(0, 5, basic("BYTE"));
    made.commit();
    return made;
}

std::vector<sample> make_all() {
    std::vector<sample> made;
    made.push_back({one_byte(), 1});
    for (int64_t bytes : {16, 1000, 9000, 70000, 300000}) {
        for (int shape = 0; shape < num_shapes; ++shape) {
            made.push_back({sample_type(shape, bytes), 1 + shape % 3});
        }
    }
    made.push_back({sample_type(3, 4 << 20), 1});
    made.push_back({sample_type(0, 4 << 20), 1});
    return made;
}

const std::vector<sample> &all_sides() {
    static const auto *made = new auto(make_all());  // types may not outlive MPI
    return *made;
}

const std::vector<made_type> &forms() {
    static const auto *made = [] {
        auto *all = new std::vector<made_type>;
        all->push_back(duplicate(basic("BYTE")));
        all->push_back(contiguous(8, basic("BYTE")));
        for (made_type &one : *all) {
            one.commit();
        }
        all->emplace_back(MPI_PACKED, basic("BYTE").map(), "PACKED");
        all->emplace_back(MPI_BYTE, basic("BYTE").map(), "BYTE");
        all->emplace_back(MPI_DOUBLE, basic("DOUBLE").map(), "DOUBLE");
        return all;
    }();
    return *made;
}

// A form whose elements fill the bytes.
const made_type &form_of(int64_t bytes, int number) {
    const size_t all = forms().size();
    for (size_t i = static_cast<size_t>(number);; ++i) {
        const made_type &one = forms()[i % all];
        if (bytes % one.map().size() == 0) {
            return one;
        }
    }
}

struct memories {
    bool both_on_gpus;
    bool on_gpu[2];
};

memories ask_for_memories(harness &t) {
    int mine = t.device().is_device() ? 1 : 0, all[2] = {};
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    return {all[0] != 0 && all[1] != 0, {all[0] != 0, all[1] != 0}};
}

void count(harness &t, const one_sided_message &m, int number) {
    t.from_gpu_to_gpu += t.rank() == m.sender && !m.plain_sends ? number : 0;
    t.to_gpu_from_gpu += t.rank() != m.sender ? number : 0;
}

void call_for(harness &t, const std::vector<sample> &types,
              const std::function<void(const one_sided_message &)> &call) {
    const memories where = ask_for_memories(t);
    int number = 0;
    for (const sample &s : types) {
        const auto bytes = static_cast<int>(s.type.map().size() * s.count);
        for (int i = 0; i < 4; ++i) {
            one_sided_message m = {i % 2, i / 2 != 0, bytes, &s, nullptr, ++number, 0, {}};
            m.form = &form_of(bytes, number);
            const int plain = m.plain_sends ? m.sender : 1 - m.sender;
            m.text = std::to_string(bytes) + " B, contiguous " +
                     (m.plain_sends ? "sends " : "receives ") + m.form->text() + "; " +
                     s.type.text();
            if (!where.both_on_gpus && where.on_gpu[plain]) {
                continue;
            }
            m.counts = where.both_on_gpus ? 1 : 0;
            count(t, m, m.counts);
            call(m);
        }
    }
}

}  // namespace

type_map one_sided_message::map(int rank) const {
    return is_plain(rank) ? repeated(form->map(), count(rank))
                          : repeated(typed->type.map(), typed->count);
}

int one_sided_message::count(int rank) const {
    return is_plain(rank) ? static_cast<int>(bytes / form->map().size()) : typed->count;
}

void for_each_side(harness &t, const std::function<void(const one_sided_message &)> &call) {
    call_for(t, all_sides(), call);
}

void for_few_sides(harness &t, const std::function<void(const one_sided_message &)> &call) {
    call_for(t, few_samples(), call);
}

void do_not_count(harness &t, const one_sided_message &m) {
    count(t, m, -m.counts);
}

void count_also(harness &t, const one_sided_message &m) {
    count(t, m, m.counts);
}

}  // namespace mpi_test
