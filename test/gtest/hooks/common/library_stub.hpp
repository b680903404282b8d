// An MPI library whose datatypes are integers, as MPICH's are.
#pragma once

#include <string>

#include "hooks/common/mpi_library.hpp"

namespace cuda_nc::hooks::test {

// Every type has `blocks` blocks of 8 bytes, 24 bytes apart; type 0 is predefined.
class library_stub final : public mpi_library {
  public:
    const char *product() const noexcept override { return "Stub MPI"; }
    const std::string &version() const noexcept override { return version_; }
    size_t datatype_bytes() const noexcept override { return sizeof(int); }
    const void *datatype_of(void *context) const noexcept override {
        return reinterpret_cast<const void *>(static_cast<uintptr_t>(*static_cast<int *>(context)));
    }
    layout_ref element(const void *) const noexcept override {
        ++reads;
        layout_builder builder;
        for (int i = 0; i < blocks; ++i) {
            builder.append(24 * i, 8);
        }
        return builder.finish();
    }
    bool extent(const void *, int64_t *extent_p) const noexcept override {
        *extent_p = 24 * blocks;
        return true;
    }
    bool first_displacement(const void *, size_t, int64_t *displacement_p) const noexcept override {
        *displacement_p = 0;
        return true;
    }
    std::string name(const void *datatype) const override {
        return "type " + std::to_string(reinterpret_cast<uintptr_t>(datatype));
    }
    const char *packing_fault() const noexcept override { return fault; }
    bool takes_gpu_memory() const noexcept override { return false; }
    bool is_predefined(const void *datatype) const noexcept override { return datatype == nullptr; }
    bool watch_end(const void *, ended_f ended) const noexcept override {
        end = can_watch ? ended : nullptr;
        return can_watch;
    }

    int blocks = 4;
    const char *fault = nullptr;
    bool can_watch = true;
    mutable int reads = 0;
    mutable ended_f end = nullptr;

  private:
    const std::string version_ = "1.0";
};

}  // namespace cuda_nc::hooks::test
