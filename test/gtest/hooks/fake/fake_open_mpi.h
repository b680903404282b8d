/*
 * libfake_open_mpi.so: what the hooks use of an Open MPI, with a plain convertor that moves byte by
 * byte. Every call of it is counted.
 */
#ifndef CUDA_NC_FAKE_OPEN_MPI_H
#define CUDA_NC_FAKE_OPEN_MPI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    ptrdiff_t displacement;
    size_t length;
} fake_block_t;

typedef struct {
    const char *name;
    ptrdiff_t extent;
    size_t lie; /* added to the packed size that the original operations tell */
    size_t num_blocks;
    const fake_block_t *blocks;
} fake_datatype_t;

/* Public, so that a test can look into it and move it as Open MPI's own inline functions do. */
typedef struct {
    void *object_class;
    int32_t references;
    uint32_t flags;
    uint32_t remote_arch;
    uint32_t unused;
    size_t local_size;
    const fake_datatype_t *datatype;
    size_t count;
    char *buffer;
    size_t position;
    void *stack; /* of one that was created: own_stack, or allocated for many blocks */
    size_t stack_size;
    char own_stack[16];
    char more[256];
} fake_convertor_t;

typedef struct {
    int starts, packed_sizes, packs, unpacks, finishes; /* of the operations */
    int convertor_moves, copies, moves_between;
    int reads;       /* of a datatype's blocks */
    int lost_stacks; /* prepared while it had an allocated stack: debug builds of Open MPI abort */
} fake_calls_t;

extern fake_calls_t fake_calls;
extern uint32_t opal_local_arch;

/* Registers the type with UCP through the linker, as a program does. */
uint64_t fake_register(const fake_datatype_t *datatype);
void fake_unregister(uint64_t datatype);
/* Registered types that are unregistered from within their next finish(). */
extern uint64_t fake_unregister_in_finish;
const void *fake_operations(void);
/* Where its calls of ucp_tag_send_nbx lead. */
const void *fake_sends_by(void);
/* Ends a type: whoever set an attribute on it is told. Returns how many those were. */
int fake_type_dies(const fake_datatype_t *datatype);
extern int fake_finalized;

int32_t opal_convertor_prepare_for_send(void *convertor, const void *datatype, size_t count,
                                        const void *buffer);
int32_t opal_convertor_prepare_for_recv(void *convertor, const void *datatype, size_t count,
                                        const void *buffer);
int32_t opal_convertor_pack(void *convertor, struct iovec *iov, uint32_t *count, size_t *max);
int32_t opal_convertor_unpack(void *convertor, struct iovec *iov, uint32_t *count, size_t *max);
int32_t opal_datatype_copy_content_same_ddt(const void *datatype, int32_t count, char *destination,
                                            char *source);
int32_t ompi_datatype_sndrcv(const void *source, int32_t source_count, const void *source_type,
                             void *target, int32_t target_count, const void *target_type);
/* The same call through the linker, as from another library. */
int32_t fake_call_pack(void *convertor, struct iovec *iov, uint32_t *count, size_t *max);

#ifdef __cplusplus
}
#endif
#endif
