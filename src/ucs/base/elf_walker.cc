#include "ucs/base/elf_walker.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "ucs/base/log.hpp"

namespace cuda_nc {
namespace {

// Relocations whose word holds the symbol's address and nothing else.
bool is_plain_address(const ElfW(Rela) & relocation) noexcept {
    switch (ELF64_R_TYPE(relocation.r_info)) {
#if defined(__x86_64__)
        case R_X86_64_JUMP_SLOT:
        case R_X86_64_GLOB_DAT:
            return true;
        case R_X86_64_64:
            return relocation.r_addend == 0;
#elif defined(__aarch64__)
        case R_AARCH64_JUMP_SLOT:
        case R_AARCH64_GLOB_DAT:
            return true;
        case R_AARCH64_ABS64:
            return relocation.r_addend == 0;
#endif
        default:
            return false;
    }
}

struct range {
    uintptr_t begin = 0, end = 0;
    bool holds(uintptr_t address) const noexcept { return address >= begin && address < end; }
};

// What the dynamic section of one object says.
struct object {
    const ElfW(Sym) *symbols = nullptr;
    const char *strings = nullptr;
    const ElfW(Rela) * tables[2] = {nullptr, nullptr};  // of the PLT, and all others
    size_t table_bytes[2] = {0, 0};
    range read_only;  // after relocation
};

object read_object(const dl_phdr_info &info) noexcept {
    object found;
    const ElfW(Dyn) *entry = nullptr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr) &header = info.dlpi_phdr[i];
        uintptr_t address = info.dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_DYNAMIC) {
            entry = reinterpret_cast<const ElfW(Dyn) *>(address);
        } else if (header.p_type == PT_GNU_RELRO) {
            found.read_only = {address, address + header.p_memsz};
        }
    }
    // glibc has relocated these pointers, other loaders (and the kernel's vdso) have not
    auto pointer = [&info](const ElfW(Dyn) & of) {
        return of.d_un.d_ptr < info.dlpi_addr ? of.d_un.d_ptr + info.dlpi_addr : of.d_un.d_ptr;
    };
    bool plt_has_addends = true;
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
            case DT_SYMTAB:
                found.symbols = reinterpret_cast<const ElfW(Sym) *>(pointer(*entry));
                break;
            case DT_STRTAB:
                found.strings = reinterpret_cast<const char *>(pointer(*entry));
                break;
            case DT_JMPREL:
                found.tables[0] = reinterpret_cast<const ElfW(Rela) *>(pointer(*entry));
                break;
            case DT_PLTRELSZ:
                found.table_bytes[0] = entry->d_un.d_val;
                break;
            case DT_PLTREL:
                plt_has_addends = entry->d_un.d_val == DT_RELA;
                break;
            case DT_RELA:
                found.tables[1] = reinterpret_cast<const ElfW(Rela) *>(pointer(*entry));
                break;
            case DT_RELASZ:
                found.table_bytes[1] = entry->d_un.d_val;
                break;
            default:
                break;
        }
    }
    if (!plt_has_addends) {
        found.tables[0] = nullptr;
    }
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
    size_t changed;
};

void redirect(const ElfW(Rela) & relocation, const object &in, const dl_phdr_info &info,
              walk &all) noexcept {
    if (!is_plain_address(relocation)) {
        return;
    }
    const char *name = in.strings + in.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
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
    if (std::strstr(info->dlpi_name, "linux-vdso") != nullptr) {
        return 0;
    }
    object in = read_object(*info);
    if (in.symbols == nullptr || in.strings == nullptr) {
        return 0;
    }
    for (int table = 0; table < 2; ++table) {
        size_t entries =
            in.tables[table] != nullptr ? in.table_bytes[table] / sizeof(ElfW(Rela)) : 0;
        for (size_t i = 0; i < entries; ++i) {
            redirect(in.tables[table][i], in, *info, all);
        }
    }
    return 0;
}

}  // namespace

size_t redirect_loaded_objects(const replacement *replacements, size_t num_replacements) noexcept {
    walk all = {replacements, num_replacements, 0};
    dl_iterate_phdr(visit, &all);
    return all.changed;
}

}  // namespace cuda_nc
