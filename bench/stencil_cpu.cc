#include <chrono>
#include <vector>

#include "bench/stencil_work.hpp"

namespace {

class cpu_work : public stencil_work {
  public:
    cpu_work(const stencil_grid &grid, bool simulated) : grid_(grid), simulated_(simulated) {}

    std::string processor() const override { return simulated_ ? "simulated GPU" : "CPU loops"; }

    void start_interior(stencil_buffer &now, stencil_buffer &next) override {
        const auto begin = std::chrono::steady_clock::now();
        relax(now, next, {grid_.interior()});
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        interior_us_ = took.count();
    }
    void start_boundary(stencil_buffer &now, stencil_buffer &next) override {
        relax(now, next, {grid_.face(stencil_side::low), grid_.face(stencil_side::high)});
    }
    // Never on a simulated GPU: no MPI can send contiguous memory from there.
    void start_pack(stencil_buffer &field, stencil_buffer &faces) override {
        for (int side = 0; side < 2; ++side) {
            double *to = faces.data() + grid_.face_pitch() * size_t(side);
            const double *from = field.data();
            walk(grid_.face(stencil_side(side)), [&](size_t at) { *to++ = from[at]; });
        }
    }
    void start_unpack(stencil_buffer &faces, stencil_buffer &field) override {
        for (int side = 0; side < 2; ++side) {
            const double *from = faces.data() + grid_.face_pitch() * size_t(2 + side);
            double *to = field.data();
            walk(grid_.halo(stencil_side(side)), [&](size_t at) { to[at] = *from++; });
        }
    }
    void wait_halo() override {}
    void wait_all() override {}
    double interior_us() override { return interior_us_; }

  private:
    template <class Function>
    void walk(const stencil_region &region, const Function &visit) const {
        for (int x = region.from[0]; x < region.to[0]; ++x) {
            for (int y = region.from[1]; y < region.to[1]; ++y) {
                for (int z = region.from[2]; z < region.to[2]; ++z) {
                    visit(grid_.index(x, y, z));
                }
            }
        }
    }
    void relax(stencil_buffer &now, stencil_buffer &next,
               const std::vector<stencil_region> &regions) const {
        if (!simulated_) {
            relax(now.data(), next.data(), regions);
            return;
        }
        const std::vector<double> from = now.read();
        std::vector<double> to = next.read();
        relax(from.data(), to.data(), regions);
        next.write(to);
    }
    void relax(const double *from, double *to, const std::vector<stencil_region> &regions) const {
        const size_t row = size_t(grid_.across()), plane = row * row;
        for (const stencil_region &region : regions) {
            walk(region, [&](size_t at) {
                to[at] = stencil_next(from[at], from[at - plane], from[at + plane], from[at - row],
                                      from[at + row], from[at - 1], from[at + 1]);
            });
        }
    }

    const stencil_grid grid_;
    const bool simulated_;
    double interior_us_ = 0;
};

}  // namespace

std::unique_ptr<stencil_work> stencil_work::make_cpu(const stencil_grid &grid, bool simulated) {
    return std::make_unique<cpu_work>(grid, simulated);
}
