#include "hooks/mpich/local_packs.hpp"

#include <algorithm>

#include "ucs/base/log.hpp"

namespace cuda_nc::hooks::local {
namespace {

typed_memory elements(const void *buffer, count_t count, handle type, handle comm) {
    typed_memory made(comm);
    made.add(buffer, 0, count, type);
    return made;
}

// Bytes [place, place + length) of a buffer.
typed_memory plain(const void *buffer, int64_t place, uint64_t length, handle comm) {
    typed_memory made(comm);
    made.add(buffer, place, static_cast<count_t>(length), byte_type);
    return made;
}

bool holds(count_t size, count_t at, uint64_t length) noexcept {
    return at >= 0 && at <= size && static_cast<uint64_t>(size - at) >= length;
}

}  // namespace

int pack(not_called, const void *from, count_t count, handle type, void *to, count_t size,
         position at, handle comm) {
    if (!on_gpu(to, byte_type, size) && !on_gpu(from, type, count)) {
        return pass_on;
    }
    const typed_memory memory = elements(from, count, type, comm);
    if (!holds(size, at.get(), memory.size())) {
        return report({comm, error_truncate});
    }
    memory.pack(dt::packed_place_at(static_cast<char *>(to) + at.get()));
    at.set(at.get() + static_cast<count_t>(memory.size()));
    return 0;
}

int unpack(not_called, const void *from, count_t size, position at, void *to, count_t count,
           handle type, handle comm) {
    if (!on_gpu(from, byte_type, size) && !on_gpu(to, type, count)) {
        return pass_on;
    }
    const typed_memory memory = elements(to, count, type, comm);
    if (!holds(size, at.get(), memory.size())) {
        return report({comm, error_truncate});
    }
    char *packed = static_cast<char *>(writable(from)) + at.get();
    memory.unpack(dt::packed_place_at(packed), memory.size());
    at.set(at.get() + static_cast<count_t>(memory.size()));
    return 0;
}

// MPICH changes the order of bytes, in host memory.
int pack_external(decltype(pmpi_functions::Pack_external_c) function, const char *form,
                  const void *from, count_t count, handle type, void *to, count_t size,
                  position at) {
    const bool to_gpu = on_gpu(to, byte_type, size);
    const bool from_gpu = on_gpu(from, type, count);
    count_t length = 0;
    if (!to_gpu && !from_gpu) {
        return pass_on;
    }
    if (const int error = pmpi().Pack_external_size_c(form, count, type, &length)) {
        return error;
    }
    if (!holds(size, at.get(), static_cast<uint64_t>(length))) {
        return report({self, error_truncate});
    }
    staged_call call(self, nullptr);
    if (from_gpu) {
        call.stage_alike(&from, count, type, use::send);
    }
    count_t done = at.get();
    int error = 0;
    if (to_gpu) {
        const dt::packed_memory bytes = host_memory(static_cast<uint64_t>(length));
        count_t packed = 0;
        error = function(form, from, count, type, bytes.start(), length, &packed);
        if (error == 0) {
            plain(to, done, static_cast<uint64_t>(packed), self)
                .unpack(bytes.place(), static_cast<uint64_t>(packed));
            done += packed;
        }
    } else {
        error = function(form, from, count, type, to, size, &done);
    }
    if (error == 0) {
        at.set(done);
    }
    return error;
}

int unpack_external(decltype(pmpi_functions::Unpack_external_c) function, const char *form,
                    const void *from, count_t size, position at, void *to, count_t count,
                    handle type) {
    const bool from_gpu = on_gpu(from, byte_type, size);
    const bool to_gpu = on_gpu(to, type, count);
    if (!from_gpu && !to_gpu) {
        return pass_on;
    }
    count_t length = 0;
    if (const int error = pmpi().Pack_external_size_c(form, count, type, &length)) {
        return error;
    }
    if (!holds(size, at.get(), static_cast<uint64_t>(length))) {
        return report({self, error_truncate});
    }
    staged_call call(self, nullptr);
    const void *target = to;
    if (to_gpu) {
        call.stage_alike(&target, count, type, use::receive);
    }
    count_t done = at.get();
    int error = 0;
    if (from_gpu) {
        const dt::packed_memory bytes = host_memory(static_cast<uint64_t>(length));
        count_t unpacked = 0;
        plain(from, done, static_cast<uint64_t>(length), self).pack(bytes.place());
        error = function(form, bytes.start(), length, &unpacked, writable(target), count, type);
        done += unpacked;
    } else {
        error = function(form, from, size, &done, writable(target), count, type);
    }
    error = error != 0 ? error : call.finish();
    if (error == 0) {
        at.set(done);
    }
    return error;
}

}  // namespace cuda_nc::hooks::local
