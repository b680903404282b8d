// MPI_Pack, MPI_Unpack and their forms, on GPU memory: of the elements, of the packed bytes, or of
// both. Each function takes what MPI's takes and returns what that returns, or pass_on.
#pragma once

#include "hooks/mpich/staged_call.hpp"

namespace cuda_nc::hooks::local {

// MPI's position, as wide as the caller has it.
class position {
  public:
    position(int *where) noexcept : narrow_(where) {}
    position(count_t *where) noexcept : wide_(where) {}
    position(intptr_t *where) noexcept : wide_(reinterpret_cast<count_t *>(where)) {}
    count_t get() const noexcept { return narrow_ != nullptr ? *narrow_ : *wide_; }
    void set(count_t value) noexcept {
        if (narrow_ != nullptr) {
            *narrow_ = static_cast<int>(value);
        } else {
            *wide_ = value;
        }
    }

  private:
    int *narrow_ = nullptr;
    count_t *wide_ = nullptr;
};

int pack(not_called, const void *from, count_t count, handle type, void *to, count_t size,
         position at, handle comm);
int unpack(not_called, const void *from, count_t size, position at, void *to, count_t count,
           handle type, handle comm);
int pack_external(decltype(pmpi_functions::Pack_external_c) function, const char *form,
                  const void *from, count_t count, handle type, void *to, count_t size,
                  position at);
int unpack_external(decltype(pmpi_functions::Unpack_external_c) function, const char *form,
                    const void *from, count_t size, position at, void *to, count_t count,
                    handle type);

}  // namespace cuda_nc::hooks::local
