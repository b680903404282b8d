/*
 * What the dynamic section of a loaded object says: its symbols, and the words that the loader
 * fills with addresses. Plain C, for the shim as well.
 */
#ifndef CUDA_NC_UCS_BASE_ELF_TABLES_H
#define CUDA_NC_UCS_BASE_ELF_TABLES_H

#include <elf.h>
#include <link.h>
#include <stddef.h>

typedef struct cuda_nc_elf_tables {
    const ElfW(Sym) * symbols; /* NULL: the object has none */
    const char *strings;
    const ElfW(Rela) * relocations[2]; /* of the PLT, and all others that have a symbol */
    size_t num_relocations[2];
} cuda_nc_elf_tables_t;

/* Whether the word holds the symbol's address and nothing else. */
static inline int cuda_nc_is_plain_address(const ElfW(Rela) * relocation) {
    switch (ELF64_R_TYPE(relocation->r_info)) {
#if defined(__x86_64__)
        case R_X86_64_JUMP_SLOT:
        case R_X86_64_GLOB_DAT:
            return 1;
        case R_X86_64_64:
            return relocation->r_addend == 0;
#elif defined(__aarch64__)
        case R_AARCH64_JUMP_SLOT:
        case R_AARCH64_GLOB_DAT:
            return 1;
        case R_AARCH64_ABS64:
            return relocation->r_addend == 0;
#endif
        default:
            return 0;
    }
}

/* `base`: where the object is loaded; `entry`: its dynamic section, or NULL. */
static inline cuda_nc_elf_tables_t cuda_nc_read_elf_tables(ElfW(Addr) base,
                                                           const ElfW(Dyn) * entry) {
    cuda_nc_elf_tables_t found = {NULL, NULL, {NULL, NULL}, {0, 0}};
    int plt_has_addends = 1;
    /* They come first, have no symbol, and are most of those of a large library. */
    size_t num_relative = 0;
    for (; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
        /* glibc has relocated these pointers, other loaders (and the kernel's vdso) have not */
        const ElfW(Addr) address =
            entry->d_un.d_ptr < base ? entry->d_un.d_ptr + base : entry->d_un.d_ptr;
        const size_t num_relocations = entry->d_un.d_val / sizeof(ElfW(Rela));
        switch (entry->d_tag) {
            case DT_SYMTAB:
                found.symbols = (const ElfW(Sym) *)address;
                break;
            case DT_STRTAB:
                found.strings = (const char *)address;
                break;
            case DT_JMPREL:
                found.relocations[0] = (const ElfW(Rela) *)address;
                break;
            case DT_PLTRELSZ:
                found.num_relocations[0] = num_relocations;
                break;
            case DT_PLTREL:
                plt_has_addends = entry->d_un.d_val == DT_RELA;
                break;
            case DT_RELA:
                found.relocations[1] = (const ElfW(Rela) *)address;
                break;
            case DT_RELASZ:
                found.num_relocations[1] = num_relocations;
                break;
            case DT_RELACOUNT:
                num_relative = entry->d_un.d_val;
                break;
            default:
                break;
        }
    }
    if (found.relocations[1] == NULL) {
        found.num_relocations[1] = 0;
    } else if (num_relative <= found.num_relocations[1]) {
        found.relocations[1] += num_relative;
        found.num_relocations[1] -= num_relative;
    }
    if (!plt_has_addends || found.relocations[0] == NULL) {
        found.num_relocations[0] = 0;
    }
    if (found.strings == NULL) {
        found.symbols = NULL;
    }
    return found;
}

#endif
