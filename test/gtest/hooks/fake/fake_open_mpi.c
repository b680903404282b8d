#include "fake_open_mpi.h"

#include <stdlib.h>
#include <string.h>

fake_calls_t fake_calls;
uint64_t fake_unregister_in_finish;
uint32_t opal_local_arch = 0xffc00203;
int mca_pml_ucx_component, ompi_mpi_local_convertor;
static const fake_block_t one_byte = {0, 1};
const fake_datatype_t ompi_mpi_byte = {"MPI_BYTE", 1, 0, 1, &one_byte};
static const fake_block_t eight_bytes = {0, 8};
const fake_datatype_t ompi_mpi_double = {"MPI_DOUBLE", 8, 0, 1, &eight_bytes};
int fake_finalized;

int8_t ucp_dt_create_generic(const void *ops, void *context, uint64_t *datatype_p);
void ucp_dt_destroy(uint64_t datatype);
void *ucp_tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param);

const void *fake_sends_by(void) {
    return (const void *)(uintptr_t)ucp_tag_send_nbx;
}

/* ---- the MPI interface */

int PMPI_Type_get_extent(const void *datatype, ptrdiff_t *lower_bound, ptrdiff_t *extent) {
    *lower_bound = 0;
    *extent = ((const fake_datatype_t *)datatype)->extent;
    return 0;
}

int PMPI_Type_get_name(const void *datatype, char *name, int *length) {
    strcpy(name, ((const fake_datatype_t *)datatype)->name);
    *length = (int)strlen(name);
    return 0;
}

int PMPI_Get_library_version(char *text, int *length) {
    const char *version = getenv("FAKE_OPEN_MPI_VERSION");
    strcpy(text, "Open MPI v");
    strcat(text, version != NULL ? version : "4.1.4");
    strcat(text, ", package: fake");
    *length = (int)strlen(text);
    return 0;
}

int PMPI_Initialized(int *flag) {
    *flag = 1;
    return 0;
}

int PMPI_Finalized(int *flag) {
    *flag = fake_finalized;
    return 0;
}

int32_t ompi_datatype_get_args(const void *datatype, int32_t which, int32_t *integers, int32_t *i,
                               int32_t *addresses, ptrdiff_t *a, int32_t *datatypes, void **d,
                               int32_t *combiner) {
    const char *version = getenv("FAKE_OPEN_MPI_VERSION");
    if (version != NULL && atoi(version) >= 6) {
        abort(); /* it has more arguments there */
    }
    (void)which, (void)i, (void)a, (void)d;
    *integers = *addresses = *datatypes = 0;
    *combiner = datatype != &ompi_mpi_byte && datatype != &ompi_mpi_double;
    return 0;
}

/* One attribute at a time of each type, and one key at a time. */
typedef int (*delete_f)(const void *datatype, int key, void *value, void *extra);
enum { max_attributes = 64 };
static delete_f new_key;
static struct {
    const void *datatype;
    delete_f forget;
    void *value;
} attributes[max_attributes];

int PMPI_Type_create_keyval(void *copy, delete_f forget, int *key, void *extra) {
    (void)copy, (void)extra;
    new_key = forget;
    *key = 7;
    return 0;
}

int PMPI_Type_free_keyval(int *key) {
    *key = -1;
    new_key = NULL;
    return 0;
}

int PMPI_Type_set_attr(const void *datatype, int key, void *value) {
    int i;
    for (i = 0; i < max_attributes; ++i) {
        if (attributes[i].datatype == NULL && new_key != NULL && key == 7) {
            attributes[i].datatype = datatype;
            attributes[i].forget = new_key;
            attributes[i].value = value;
            return 0;
        }
    }
    return 1;
}

int fake_type_dies(const fake_datatype_t *datatype) {
    int i, count = 0;
    for (i = 0; i < max_attributes; ++i) {
        if (attributes[i].datatype == datatype) {
            attributes[i].forget(datatype, 7, attributes[i].value, NULL);
            attributes[i].datatype = NULL;
            ++count;
        }
    }
    return count;
}

/* ---- the convertor */

static size_t element_size(const fake_datatype_t *datatype) {
    size_t i, size = 0;
    for (i = 0; i < datatype->num_blocks; ++i) {
        size += datatype->blocks[i].length;
    }
    return size;
}

/* Displacement of packed byte `position`. */
static ptrdiff_t locate(const fake_datatype_t *datatype, size_t position) {
    size_t i = 0, size = element_size(datatype), rest = position % size;
    while (rest >= datatype->blocks[i].length) {
        rest -= datatype->blocks[i++].length;
    }
    return (ptrdiff_t)(position / size) * datatype->extent + datatype->blocks[i].displacement +
           (ptrdiff_t)rest;
}

void *opal_convertor_create(int32_t arch, int32_t mode) {
    fake_convertor_t *made = calloc(1, sizeof(*made));
    (void)mode;
    made->remote_arch = (uint32_t)arch;
    made->stack = made->own_stack;
    made->stack_size = sizeof(made->own_stack);
    return made;
}

static int32_t prepare(fake_convertor_t *convertor, const void *datatype, size_t count,
                       const void *buffer) {
    convertor->datatype = datatype;
    convertor->count = count;
    convertor->buffer = (char *)buffer;
    convertor->position = 0;
    convertor->local_size = count * element_size(datatype);
    if (convertor->stack != NULL && convertor->datatype->num_blocks > convertor->stack_size) {
        fake_calls.lost_stacks += convertor->stack != convertor->own_stack;
        convertor->stack_size = convertor->datatype->num_blocks;
        convertor->stack = malloc(convertor->stack_size);
    }
    return 0;
}

int32_t opal_convertor_prepare_for_send(void *convertor, const void *datatype, size_t count,
                                        const void *buffer) {
    return prepare(convertor, datatype, count, buffer);
}

int32_t opal_convertor_prepare_for_recv(void *convertor, const void *datatype, size_t count,
                                        const void *buffer) {
    return prepare(convertor, datatype, count, buffer);
}

static int32_t move(fake_convertor_t *convertor, struct iovec *iov, uint32_t *count, size_t *max,
                    int packs) {
    size_t total = 0;
    uint32_t part;
    ++fake_calls.convertor_moves;
    for (part = 0; part < *count && convertor->position < convertor->local_size; ++part) {
        char *packed = iov[part].iov_base;
        size_t i, left = convertor->local_size - convertor->position;
        iov[part].iov_len = iov[part].iov_len < left ? iov[part].iov_len : left;
        for (i = 0; i < iov[part].iov_len; ++i) {
            char *laid_out = convertor->buffer + locate(convertor->datatype, convertor->position++);
            *(packs ? packed + i : laid_out) = *(packs ? laid_out : packed + i);
        }
        total += i;
    }
    *count = part;
    *max = total;
    return convertor->position == convertor->local_size;
}

int32_t opal_convertor_pack(void *convertor, struct iovec *iov, uint32_t *count, size_t *max) {
    return move(convertor, iov, count, max, 1);
}

int32_t opal_convertor_unpack(void *convertor, struct iovec *iov, uint32_t *count, size_t *max) {
    return move(convertor, iov, count, max, 0);
}

int32_t opal_datatype_add(void *base, const void *added, size_t count, ptrdiff_t displacement,
                          ptrdiff_t extent) {
    (void)base, (void)added, (void)count, (void)displacement, (void)extent;
    return 0;
}

int32_t opal_datatype_resize(void *datatype, ptrdiff_t lb, ptrdiff_t extent) {
    (void)datatype, (void)lb, (void)extent;
    return 0;
}

int32_t opal_datatype_commit(void *datatype) {
    (void)datatype;
    return 0;
}

int32_t fake_call_pack(void *convertor, struct iovec *iov, uint32_t *count, size_t *max) {
    return opal_convertor_pack(convertor, iov, count, max);
}

int32_t opal_convertor_raw(void *of, struct iovec *iov, uint32_t *count, size_t *length) {
    fake_convertor_t *convertor = of;
    const fake_datatype_t *datatype = convertor->datatype;
    size_t blocks = datatype->num_blocks * convertor->count; /* position counts blocks here */
    uint32_t n = 0;
    ++fake_calls.reads;
    *length = 0;
    for (; n < *count && convertor->position < blocks; ++n, ++convertor->position) {
        const fake_block_t *block = &datatype->blocks[convertor->position % datatype->num_blocks];
        ptrdiff_t element = (ptrdiff_t)(convertor->position / datatype->num_blocks);
        iov[n].iov_base = convertor->buffer + element * datatype->extent + block->displacement;
        iov[n].iov_len = block->length;
        *length += block->length;
    }
    *count = n;
    return convertor->position == blocks;
}

int32_t opal_datatype_copy_content_same_ddt(const void *datatype, int32_t count, char *destination,
                                            char *source) {
    size_t i;
    ++fake_calls.copies;
    for (i = 0; i < (size_t)count * element_size(datatype); ++i) {
        destination[locate(datatype, i)] = source[locate(datatype, i)];
    }
    return 0;
}

int32_t ompi_datatype_sndrcv(const void *source, int32_t source_count, const void *source_type,
                             void *target, int32_t target_count, const void *target_type) {
    const char *from = source;
    char *to = target;
    const size_t sent = (size_t)source_count * element_size(source_type);
    const size_t received = (size_t)target_count * element_size(target_type);
    size_t i;
    ++fake_calls.moves_between;
    for (i = 0; i < sent && i < received; ++i) {
        to[locate(target_type, i)] = from[locate(source_type, i)];
    }
    return sent <= received ? 0 : 15; /* MPI_ERR_TRUNCATE */
}

/* ---- the operations that are registered with UCP */

static void *start_pack(void *context, const void *buffer, size_t count) {
    fake_convertor_t *convertor = opal_convertor_create((int32_t)opal_local_arch, 0);
    ++fake_calls.starts;
    opal_convertor_prepare_for_send(convertor, context, count, buffer);
    return convertor;
}

static void *start_unpack(void *context, void *buffer, size_t count) {
    fake_convertor_t *convertor = opal_convertor_create((int32_t)opal_local_arch, 0);
    ++fake_calls.starts;
    opal_convertor_prepare_for_recv(convertor, context, count, buffer);
    return convertor;
}

static size_t packed_size(void *state) {
    ++fake_calls.packed_sizes;
    return ((fake_convertor_t *)state)->local_size + ((fake_convertor_t *)state)->datatype->lie;
}

static size_t pack(void *state, size_t offset, void *destination, size_t length) {
    struct iovec iov = {destination, length};
    uint32_t one = 1;
    size_t moved = length;
    ++fake_calls.packs;
    ((fake_convertor_t *)state)->position = offset;
    opal_convertor_pack(state, &iov, &one, &moved);
    return moved;
}

static int8_t unpack(void *state, size_t offset, const void *source, size_t length) {
    struct iovec iov = {(void *)source, length};
    uint32_t one = 1;
    size_t moved = length;
    ++fake_calls.unpacks;
    ((fake_convertor_t *)state)->position = offset;
    opal_convertor_unpack(state, &iov, &one, &moved);
    return 0;
}

static void finish(void *state) {
    fake_convertor_t *convertor = state;
    ++fake_calls.finishes;
    if (convertor->stack != convertor->own_stack) {
        free(convertor->stack);
    }
    free(state);
    if (fake_unregister_in_finish != 0) {
        uint64_t datatype = fake_unregister_in_finish;
        fake_unregister_in_finish = 0;
        fake_unregister(datatype);
    }
}

static const void *const operations[6] = {(void *)start_pack,  (void *)start_unpack,
                                          (void *)packed_size, (void *)pack,
                                          (void *)unpack,      (void *)finish};

const void *fake_operations(void) {
    return operations;
}

uint64_t fake_register(const fake_datatype_t *datatype) {
    uint64_t made = 0;
    return ucp_dt_create_generic(operations, (void *)datatype, &made) == 0 ? made : 0;
}

void fake_unregister(uint64_t datatype) {
    ucp_dt_destroy(datatype);
}
