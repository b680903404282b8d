#include "bench/stencil_run.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "bench/stencil_check.hpp"
#include "bench/stencil_exchange.hpp"

namespace {

constexpr int warm_up = 5, least_samples = 3;
constexpr double most_work = 2e9;  // elements that the CPU computes for a check

std::unique_ptr<stencil_work> make_work(const std::string &memory, const stencil_grid &grid) {
#ifndef STENCIL_WITHOUT_CUDA
    if (memory == "cuda") {
        return stencil_work::make_gpu(grid);
    }
#endif
    return stencil_work::make_cpu(grid, memory == "sim");
}

struct measured_way {
    std::string name;
    std::unique_ptr<stencil_exchange> exchange;
    std::vector<double> exchange_us, step_us, kernel_us;
    double spent = 0;  // seconds

    bool fills_halo() const { return name != "contiguous"; }
    bool has_time(double seconds) const {
        return spent < seconds || exchange_us.size() < least_samples;
    }
};

class stencil_run {
  public:
    stencil_run(const stencil_options &options, const stencil_grid &grid, MPI_Comm line)
        : options_(options), grid_(grid) {
        state_.grid = grid;
        state_.line = line;
        for (int i = 0; i < 2; ++i) {
            state_.fields.emplace_back(options.memory, grid.rank, grid.elements(), 1);
        }
        if (options.memory != "sim") {
            const size_t faces = 4 * grid.face_pitch();
            state_.packed = std::make_unique<stencil_buffer>(options.memory, grid.rank, faces, 0);
            state_.plain = std::make_unique<stencil_buffer>(options.memory, grid.rank, faces, 0);
        }
        state_.work = make_work(options.memory, grid);
        for (const std::string &name : options.ways) {
            measured_way way;
            way.name = name;
            way.exchange = stencil_exchange::make(name, state_);
            ways_.push_back(std::move(way));
        }
        initial_ = initial_field(grid);
    }

    stencil_result run() {
        reset();
        if (options_.verify) {
            check_steps();
        }
        reset();
        measure();
        if (options_.verify) {
            check_after();
        }
        return result();
    }

  private:
    void reset() {
        for (stencil_buffer &field : state_.fields) {
            field.write(initial_);
        }
        now_ = taken_ = 0;
        if (state_.plain) {
            std::vector<double> faces(4 * grid_.face_pitch(), -1);
            for (int side = 0; side < 2; ++side) {
                put_face(pattern_of_face(grid_, grid_.rank, stencil_side(side)), side, &faces);
            }
            state_.plain->write(faces);
        }
    }
    void put_face(const std::vector<double> &face, int number, std::vector<double> *faces_p) {
        std::copy(face.begin(), face.end(),
                  faces_p->begin() + std::ptrdiff_t(grid_.face_pitch()) * number);
    }

    void exchange(measured_way &way) {
        way.exchange->start(now_);
        way.exchange->finish(now_);
    }
    void step(measured_way &way) {
        stencil_buffer &now = state_.fields[size_t(now_)], &next = state_.fields[size_t(1 - now_)];
        if (options_.first == "kernel") {
            state_.work->start_interior(now, next);
            way.exchange->start(now_);
        } else {
            way.exchange->start(now_);
            state_.work->start_interior(now, next);
        }
        way.exchange->finish(now_);
        state_.work->start_boundary(now, next);
        state_.work->wait_all();
        // Without a halo the step has not been taken: the next one computes the same elements anew.
        if (way.fills_halo()) {
            now_ = 1 - now_;
            ++taken_;
        }
    }

    double timed_exchange(measured_way &way) {
        MPI_Barrier(state_.line);
        const double begin = MPI_Wtime();
        exchange(way);
        way.exchange->settle();
        return MPI_Wtime() - begin;
    }
    double timed_step(measured_way &way) {
        MPI_Barrier(state_.line);
        const double begin = MPI_Wtime();
        step(way);
        return MPI_Wtime() - begin;
    }
    double kernel_alone() {
        MPI_Barrier(state_.line);
        state_.work->start_interior(state_.fields[size_t(now_)], state_.fields[size_t(1 - now_)]);
        state_.work->wait_all();
        return state_.work->interior_us();
    }
    void measure(measured_way &way, bool recorded) {
        double times[3] = {timed_exchange(way), 0, 0}, slowest[3];
        if (options_.has_steps()) {
            times[1] = timed_step(way);
            times[2] = state_.work->interior_us();
        }
        MPI_Allreduce(times, slowest, 3, MPI_DOUBLE, MPI_MAX, state_.line);
        way.spent += slowest[0] + slowest[1];
        if (!recorded) {
            return;
        }
        way.exchange_us.push_back(slowest[0] * 1e6);
        if (options_.has_steps()) {
            way.step_us.push_back(slowest[1] * 1e6);
            way.kernel_us.push_back(slowest[2]);
        }
    }
    // The ways in turn, so that what disturbs the machine hits all alike; each some times in a row,
    // as a program goes one way. A very slow one is not measured for long.
    void measure() {
        for (int round = -warm_up; round * options_.in_a_row < options_.steps; ++round) {
            if (options_.has_steps()) {
                double mine = kernel_alone(), slowest = 0;
                MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, state_.line);
                if (round >= 0) {
                    kernel_alone_us_.push_back(slowest);
                }
            }
            for (measured_way &way : ways_) {
                const int left = options_.steps - std::max(round, 0) * options_.in_a_row;
                for (int i = 0; i < std::min(left, options_.in_a_row); ++i) {
                    if (round < 0 ? way.spent < options_.seconds / 4
                                  : way.has_time(options_.seconds)) {
                        measure(way, round >= 0);
                    }
                }
            }
        }
    }

    // Each way takes some steps from the beginning, and exchanges once more.
    void check_steps() {
        const std::vector<double> expected = expected_field(grid_, stencil_checked_steps);
        for (measured_way &way : ways_) {
            reset();
            for (int i = 0; i < stencil_checked_steps; ++i) {
                step(way);
                if (i == 0 && options_.inject == "step") {
                    damage(state_.fields[size_t(now_)], element_of_face(), 40);
                }
            }
            check_exchange(way, expected, "after the first steps");
        }
    }
    // Each way brings the halo once more to the field that all the steps have made.
    void check_after() {
        stencil_buffer &field = state_.fields[size_t(now_)];
        recomputed_ = expected_work(grid_, taken_) <= most_work;
        std::vector<double> expected, image = field.read();
        if (recomputed_) {
            expected = expected_field(grid_, taken_);
        } else {
            expected = image;
            for (int side = 0; side < 2; ++side) {
                fetch_halo(image, stencil_side(side), &expected);
            }
        }
        for (int side = 0; side < 2; ++side) {
            const stencil_region halo = grid_.halo(stencil_side(side));
            set_elements(grid_, halo, elements_of(grid_, halo, initial_), &image);
        }
        for (measured_way &way : ways_) {
            field.write(image);
            check_exchange(way, expected, "after all steps");
        }
    }
    // The halo on one side by a message between contiguous host memory.
    void fetch_halo(const std::vector<double> &image, stencil_side side,
                    std::vector<double> *field_p) {
        const stencil_side other =
            side == stencil_side::low ? stencil_side::high : stencil_side::low;
        std::vector<double> face = elements_of(grid_, grid_.face(other), image);
        MPI_Sendrecv_replace(face.data(), int(face.size()), MPI_DOUBLE, grid_.neighbour(other), 2,
                             grid_.neighbour(side), 2, state_.line, MPI_STATUS_IGNORE);
        set_elements(grid_, grid_.halo(side), face, field_p);
    }

    void check_exchange(measured_way &way, const std::vector<double> &expected, const char *when) {
        exchange(way);
        way.exchange->settle();
        if (!way.fills_halo()) {
            check_plain(way, when);
            return;
        }
        stencil_buffer &field = state_.fields[size_t(now_)];
        if (options_.inject == "halo") {
            const stencil_region halo = grid_.halo(stencil_side::high);
            damage(field, grid_.index(halo.from[0], halo.from[1], halo.from[2]), 0);
        } else if (options_.inject == "gap") {
            damage(field, 0, 0);
        }
        compare(way, field.read(), expected, when, true);
    }
    // The contiguous faces.
    void check_plain(measured_way &way, const char *when) {
        std::vector<double> expected(4 * grid_.face_pitch(), -1);
        for (int side = 0; side < 2; ++side) {
            const auto mine = stencil_side(side), other = stencil_side(1 - side);
            put_face(pattern_of_face(grid_, grid_.rank, mine), side, &expected);
            put_face(pattern_of_face(grid_, grid_.neighbour(mine), other), 2 + side, &expected);
        }
        if (options_.inject == "halo") {
            damage(*state_.plain, 2 * grid_.face_pitch(), 0);
        }
        compare(way, state_.plain->read(), expected, when, false);
    }
    void compare(const measured_way &way, const std::vector<double> &found,
                 const std::vector<double> &expected, const char *when, bool is_field) {
        size_t first = 0;
        const size_t wrong = count_wrong(found, expected, &first);
        if (wrong == 0) {
            return;
        }
        const std::string place =
            is_field ? place_of(grid_, first) : "contiguous element " + std::to_string(first);
        std::fprintf(stderr,
                     "WRONG: %s, box %d, dimension %c, %s: rank %d: wrong elements: %zu; the first "
                     "is %s: %.17g, expected %.17g\n",
                     way.name.c_str(), grid_.box, "xyz"[grid_.dimension], when, grid_.rank, wrong,
                     place.c_str(), found[first], expected[first]);
        wrong_ += long(wrong);
    }

    size_t element_of_face() const {
        const stencil_region face = grid_.face(stencil_side::high);
        return grid_.index(face.from[0], face.from[1], face.from[2]);
    }
    // Flips one bit on rank 0, for tests of the checks.
    void damage(stencil_buffer &buffer, size_t element, int bit) {
        if (grid_.rank != 0) {
            return;
        }
        std::vector<double> values = buffer.read();
        uint64_t bits;
        std::memcpy(&bits, &values[element], sizeof(bits));
        bits ^= uint64_t(1) << bit;
        std::memcpy(&values[element], &bits, sizeof(bits));
        buffer.write(values);
    }

    stencil_result result() const {
        stencil_result made;
        made.processor = state_.work->processor();
        made.kernel_alone = cuda_nc::tools::summarise(kernel_alone_us_);
        for (const measured_way &way : ways_) {
            made.rows.push_back({way.name, cuda_nc::tools::summarise(way.exchange_us),
                                 cuda_nc::tools::summarise(way.step_us),
                                 cuda_nc::tools::summarise(way.kernel_us)});
        }
        made.steps_taken = taken_;
        made.recomputed = recomputed_;
        MPI_Allreduce(&wrong_, &made.wrong, 1, MPI_LONG, MPI_SUM, state_.line);
        return made;
    }

    const stencil_options &options_;
    const stencil_grid grid_;
    stencil_state state_;
    std::vector<measured_way> ways_;  // they work on state_
    std::vector<double> initial_, kernel_alone_us_;
    int now_ = 0;    // which field is the current one
    int taken_ = 0;  // steps, since the fields were reset
    bool recomputed_ = false;
    long wrong_ = 0;
};

}  // namespace

stencil_result run_stencil(const stencil_options &options, const stencil_grid &grid,
                           MPI_Comm line) {
    return stencil_run(options, grid, line).run();
}
