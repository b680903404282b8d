#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ucs/base/definer.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ucs/base/elf_tables.h"

/*
 * UCX redirects calls of dlopen and dlclose to its own functions, which walk all objects each time
 * (200 us). The C library's own are found by their symbols.
 */
static void *open_again(const char *path) {
    typedef void *(*dlopen_f)(const char *, int);
    static dlopen_f known;
    dlopen_f open = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (open == NULL) {
        void *address = dlsym(RTLD_DEFAULT, "dlopen");
        if (address == NULL) {
            return NULL;
        }
        memcpy(&open, &address, sizeof(open));
        __atomic_store_n(&known, open, __ATOMIC_RELAXED);
    }
    /* the program has no path, and NULL opens it */
    return open(*path != '\0' ? path : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

static void close_again(void *handle) {
    typedef int (*dlclose_f)(void *);
    dlclose_f close;
    void *address = dlsym(RTLD_DEFAULT, "dlclose");
    if (address != NULL) {
        memcpy(&close, &address, sizeof(close));
        close(handle);
    }
}

/* The object that holds `address`; NULL: none that the loader knows. */
static const struct link_map *object_of(const void *address, const void **base_p) {
    Dl_info info;
    void *map = NULL;
    if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        return NULL;
    }
    *base_p = info.dli_fbase;
    return map;
}

/* Whether the object of `address` itself defines `marker`. */
static int defines(const void *address, const char *marker, cuda_nc_definer_t *found) {
    const void *base;
    const struct link_map *object = object_of(address, &found->base);
    void *handle = object != NULL ? open_again(object->l_name) : NULL;
    const void *definition = handle != NULL ? dlsym(handle, marker) : NULL;
    if (definition != NULL && object_of(definition, &base) != NULL && base == found->base) {
        found->handle = handle;
        return 1;
    }
    if (handle != NULL) {
        close_again(handle);
    }
    return 0;
}

enum by_words { found_by_words, words_not_bound, no_words };

/* As the caller's words are bound now; those that the loader has not bound yet lead back into the
 * caller's object. */
static enum by_words find_by_words(const struct link_map *caller, const void *caller_base,
                                   const char *prefix, const char *marker,
                                   cuda_nc_definer_t *found) {
    const cuda_nc_elf_tables_t tables = cuda_nc_read_elf_tables(caller->l_addr, caller->l_ld);
    const size_t length = strlen(prefix);
    enum by_words result = no_words;
    size_t i;
    int table;
    for (table = 0; table < 2 && tables.symbols != NULL; ++table) {
        for (i = 0; i < tables.num_relocations[table]; ++i) {
            const ElfW(Rela) *one = &tables.relocations[table][i];
            const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(one->r_info)];
            const void *const *word = (const void *const *)(caller->l_addr + one->r_offset);
            const void *value, *base;
            if (strncmp(tables.strings + symbol->st_name, prefix, length) != 0 ||
                !cuda_nc_is_plain_address(one)) {
                continue;
            }
            result = words_not_bound;
            value = __atomic_load_n(word, __ATOMIC_RELAXED);
            if (object_of(value, &base) == NULL ||
                (base == caller_base && (symbol->st_shndx == SHN_UNDEF ||
                                         (uintptr_t)value != caller->l_addr + symbol->st_value))) {
                continue;
            }
            if (defines(value, marker, found)) {
                return found_by_words;
            }
        }
    }
    return result;
}

/* The first definition that a look-up by `handle` reaches, which is closed. */
static int find_by_handle(void *handle, const char *marker, cuda_nc_definer_t *found) {
    const void *definition = handle != NULL ? dlsym(handle, marker) : NULL;
    const int is_found = definition != NULL && defines(definition, marker, found);
    if (handle != NULL) {
        close_again(handle);
    }
    return is_found;
}

int cuda_nc_find_global_definer(const char *marker, cuda_nc_definer_t *found) {
    return find_by_handle(open_again(""), marker, found);
}

int cuda_nc_find_definer(const void *caller, const char *prefix, const char *marker,
                         cuda_nc_definer_t *found) {
    const void *base;
    const struct link_map *object = object_of(caller, &base);
    enum by_words by_words =
        object != NULL ? find_by_words(object, base, prefix, marker, found) : no_words;
    if (by_words == no_words ||
        (by_words == words_not_bound && !cuda_nc_find_global_definer(marker, found) &&
         !find_by_handle(open_again(object->l_name), marker, found))) {
        return 0;
    }
    (void)open_again(object->l_name); /* keeps it */
    return 1;
}

/* ---- all objects */

typedef struct {
    char **paths;
    size_t count, room;
} path_list_t;

static int collect(struct dl_phdr_info *info, size_t size, void *argument) {
    path_list_t *list = argument;
    (void)size;
    if (list->count == list->room) {
        const size_t room = 2 * list->room + 64;
        char **paths = realloc(list->paths, room * sizeof(*paths));
        if (paths == NULL) {
            return 1;
        }
        list->paths = paths;
        list->room = room;
    }
    list->paths[list->count] = strdup(info->dlpi_name);
    list->count += list->paths[list->count] != NULL;
    return 0;
}

void cuda_nc_visit_definers(const char *marker,
                            void (*visit)(const cuda_nc_definer_t *one, void *argument),
                            void *argument) {
    path_list_t list = {NULL, 0, 0};
    size_t i;
    dl_iterate_phdr(collect, &list); /* nothing may be opened in there */
    for (i = 0; i < list.count; ++i) {
        void *handle = open_again(list.paths[i]);
        struct link_map *object = handle;
        cuda_nc_definer_t one;
        const void *base;
        const void *definition = handle != NULL ? dlsym(handle, marker) : NULL;
        /* the object's own definition, and not one of those that it depends on */
        if (definition != NULL && object_of(definition, &base) == object &&
            defines(definition, marker, &one)) {
            visit(&one, argument);
        }
        if (handle != NULL) {
            close_again(handle);
        }
        free(list.paths[i]);
    }
    free(list.paths);
}

static int read_loads(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    *(unsigned long long *)argument = info->dlpi_adds;
    return 1;
}

unsigned long long cuda_nc_count_loads(void) {
    unsigned long long loads = 0;
    dl_iterate_phdr(read_loads, &loads);
    return loads;
}
