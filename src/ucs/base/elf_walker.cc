#include "ucs/base/elf_walker.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "ucs/base/elf_tables.h"
#include "ucs/base/log.hpp"

namespace cuda_nc {
namespace {

struct range {
    uintptr_t begin = 0, end = 0;
    bool holds(uintptr_t address) const noexcept { return address >= begin && address < end; }
};

struct object {
    cuda_nc_elf_tables_t tables;
    range read_only;  // after relocation
};

object read_object(const dl_phdr_info &info) noexcept {
    object found = {};
    const ElfW(Dyn) *dynamic = nullptr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr) &header = info.dlpi_phdr[i];
        uintptr_t address = info.dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_DYNAMIC) {
            dynamic = reinterpret_cast<const ElfW(Dyn) *>(address);
        } else if (header.p_type == PT_GNU_RELRO) {
            found.read_only = {address, address + header.p_memsz};
        }
    }
    found.tables = cuda_nc_read_elf_tables(info.dlpi_addr, dynamic);
    return found;
}

// The word may lie in pages that the loader has made read-only.
bool write_word(void **word, void *value, const range &read_only) noexcept {
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto address = reinterpret_cast<uintptr_t>(word);
    auto *start = reinterpret_cast<void *>(address & ~(page - 1));
    // the loader protects whole pages only: a word in the last, partial one is writable
    range pages = {read_only.begin & ~(page - 1), read_only.end & ~(page - 1)};
    bool is_protected = pages.holds(address);
    if (is_protected && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (is_protected) {
        mprotect(start, page, PROT_READ);
    }
    return true;
}

struct walk {
    const replacement *replacements;
    size_t num_replacements;
    const void *inside;  // of the one object that is wanted; null: all are
    size_t changed;
};

bool holds(const dl_phdr_info &info, const void *address) noexcept {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const auto &part = info.dlpi_phdr[i];
        const uintptr_t offset =
            reinterpret_cast<uintptr_t>(address) - info.dlpi_addr - part.p_vaddr;
        if (part.p_type == PT_LOAD && offset < part.p_memsz) {
            return true;
        }
    }
    return false;
}

void redirect(const ElfW(Rela) & relocation, const object &in, const dl_phdr_info &info,
              walk &all) noexcept {
    if (!cuda_nc_is_plain_address(&relocation)) {
        return;
    }
    const char *name =
        in.tables.strings + in.tables.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
    for (size_t i = 0; i < all.num_replacements; ++i) {
        const replacement &wanted = all.replacements[i];
        if (std::strcmp(name, wanted.symbol) != 0) {
            continue;
        }
        auto **word = reinterpret_cast<void **>(info.dlpi_addr + relocation.r_offset);
        if (*word == wanted.value) {
            return;
        }
        if (write_word(word, wanted.value, in.read_only)) {
            ++all.changed;
        } else {
            nc_debug("%s in %s cannot be redirected", name, info.dlpi_name);
        }
        return;
    }
}

int visit(dl_phdr_info *info, size_t, void *argument) noexcept {
    auto &all = *static_cast<walk *>(argument);
    if (std::strstr(info->dlpi_name, "linux-vdso") != nullptr ||
        (all.inside != nullptr && !holds(*info, all.inside))) {
        return 0;
    }
    object in = read_object(*info);
    if (in.tables.symbols == nullptr) {
        return 0;
    }
    for (int table = 0; table < 2; ++table) {
        for (size_t i = 0; i < in.tables.num_relocations[table]; ++i) {
            redirect(in.tables.relocations[table][i], in, *info, all);
        }
    }
    return 0;
}

}  // namespace

size_t redirect_loaded_objects(const replacement *replacements, size_t num_replacements) noexcept {
    walk all = {replacements, num_replacements, nullptr, 0};
    dl_iterate_phdr(visit, &all);
    return all.changed;
}

size_t redirect_object(const void *address, const replacement *replacements,
                       size_t num_replacements) noexcept {
    walk one = {replacements, num_replacements, address, 0};
    if (address != nullptr) {
        dl_iterate_phdr(visit, &one);
    }
    return one.changed;
}

}  // namespace cuda_nc
