/*
 * Public C API of ucx-cuda-nc: non-contiguous memory of GPUs and host, described once and then
 * packed, copied, sent, put and got. For C99 and C++.
 *
 * What holds for all functions, unless a function says otherwise:
 *
 * Units       Sizes, strides and displacements are bytes.
 * Threads     Any thread may call any function at any time. The functions that take a UCP object
 *             (an endpoint, a key) follow the thread mode of its worker.
 * Errors      A status of UCX; nothing was done then. cuda_nc_last_error() has a sentence about it.
 * Buffers     Host, pinned host, GPU or managed memory, looked up in each call. All bytes that a
 *             layout covers in one call lie in memory of one kind, and of one GPU.
 * Processes   A child that was forked after the first call may use host memory alone.
 */
#ifndef CUDA_NC_H
#define CUDA_NC_H

#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#if defined(__GNUC__)
#define CUDA_NC_API __attribute__((visibility("default")))
#else
#define CUDA_NC_API
#endif

/* The API that this header describes. A library of the same major and a later minor number serves
 * programs that were compiled with it. */
#define CUDA_NC_API_MAJOR 1
#define CUDA_NC_API_MINOR 0

#ifdef __cplusplus
extern "C" {
#endif

/* "major.minor.patch" of the library in use; a static text. */
CUDA_NC_API const char *cuda_nc_version(void);

/*
 * Why the calling thread's last failed call failed: "stride: ...", with the name of the parameter
 * first where one is at fault. "" where none has failed. Valid until the thread's next call that
 * fails, or its end. Never NULL.
 */
CUDA_NC_API const char *cuda_nc_last_error(void);

/* ==== Layouts ====================================================================================
 *
 * A layout says which bytes belong to a buffer, as displacements from the buffer's address, and in
 * which order they are packed. It has no address of its own, never changes, and may be used by many
 * calls at a time. Regular layouts (vector, subarray, strided) take the same small memory however
 * many blocks they have.
 */
typedef struct cuda_nc_layout *cuda_nc_layout_t;

/*
 * Errors that all functions which create a layout share. *layout_p is not touched then.
 *
 * UCS_ERR_INVALID_PARAM   a null pointer; a negative count, length or size; layout_p is NULL; a
 *                         handle that is no layout, or was destroyed
 * UCS_ERR_EXCEEDS_LIMIT   the bytes in total, the place of one or the distance of two exceeds
 *                         2^63 - 1
 * UCS_ERR_NO_MEMORY
 *
 * The caller owns one reference to the layout, and gives it back by cuda_nc_layout_destroy(). What
 * the arguments point to is copied.
 *
 * Extent: the distance from one element to the next when the layout is repeated. Blocks of length 0
 * are left out. A layout of no bytes is valid; all calls on it do nothing.
 */

/* `count` blocks of `block_length` bytes, each `stride` bytes (any sign, 0 too) after the one
 * before. The extent is from the lowest to the highest byte. */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_vector(int64_t count, int64_t block_length,
                                                      int64_t stride, cuda_nc_layout_t *layout_p);

enum cuda_nc_order {
    CUDA_NC_ORDER_C = 0,      /* the last dimension is contiguous */
    CUDA_NC_ORDER_FORTRAN = 1 /* the first dimension is contiguous */
};

/*
 * A box in an array of `sizes` elements of `element_size` bytes: in dimension d the elements
 * [starts[d], starts[d] + subsizes[d]). `order` is of enum cuda_nc_order. Displacement 0 is the
 * array's first element, and the extent is the whole array's. Packed in the order of memory. 0 <=
 * ndims <= 64; with 0 dimensions it is one element.
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_subarray(int ndims, const int64_t *sizes,
                                                        const int64_t *subsizes,
                                                        const int64_t *starts, int64_t element_size,
                                                        int order, cuda_nc_layout_t *layout_p);

/*
 * An array as NumPy, DLPack and PyTorch describe it: `extents` elements of `element_size` bytes,
 * `strides` BYTES apart in each dimension (any sign, 0 too). The buffer's address is that of the
 * element with all indices 0. Packed with the last dimension fastest. `strides` may be NULL: dense,
 * in C order. DLPack and PyTorch count strides in elements: multiply by element_size. The extent is
 * from the lowest to the highest byte. 0 <= ndims <= 64.
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_strided(int ndims, const int64_t *extents,
                                                       const int64_t *strides, int64_t element_size,
                                                       cuda_nc_layout_t *layout_p);

/*
 * `count` blocks: block i has lengths[i] elements of `element_size` bytes and begins
 * displacements[i] ELEMENTS from the buffer's address (any sign). `lengths` may be NULL: one
 * element each, as pages of a cache are. The extent is from the lowest to the highest byte.
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_indexed(int64_t count, const int64_t *lengths,
                                                       const int64_t *displacements,
                                                       int64_t element_size,
                                                       cuda_nc_layout_t *layout_p);

/* Bytes [displacement, displacement + length) relative to the buffer's address. */
typedef struct cuda_nc_block {
    ptrdiff_t displacement;
    size_t length;
} cuda_nc_block_t;

/* The given blocks, packed in the given order. The extent is from the lowest to the highest byte.
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_blocks(const cuda_nc_block_t *blocks,
                                                      size_t num_blocks,
                                                      cuda_nc_layout_t *layout_p);

/*
 * Blocks by their addresses, as readv() and UCP have them. Displacements are taken from `base`,
 * which is the buffer of later calls; with `base` NULL the displacements are the addresses, and the
 * buffer of later calls is NULL.
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_iov(const void *base, const ucp_dt_iov_t *iov,
                                                   size_t num_entries, cuda_nc_layout_t *layout_p);

/* `members`, each at its displacement, packed one after the other. A member may be there several
 * times. Costs time for each block. The extent is from the lowest to the highest byte. */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_struct(size_t num_members,
                                                      const cuda_nc_layout_t *members,
                                                      const int64_t *displacements,
                                                      cuda_nc_layout_t *layout_p);

/* `element` `count` times, each `stride` bytes (any sign, 0 too) after the one before. The extent
 * is count * stride where stride > 0, else that of the element. */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_repeated(cuda_nc_layout_t element, int64_t count,
                                                        int64_t stride, cuda_nc_layout_t *layout_p);

/* The same bytes with another extent, of any sign. */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_resized(cuda_nc_layout_t layout, int64_t extent,
                                                       cuda_nc_layout_t *layout_p);

/*
 * `count` elements of a committed MPI datatype, read from the MPI library that is loaded in this
 * process (Open MPI, MPICH). `datatype` points to a variable of type MPI_Datatype, and
 * `datatype_size` is sizeof(MPI_Datatype): this library does not link to MPI. Between MPI_Init and
 * MPI_Finalize; the datatype may be freed afterwards. The extent is the datatype's.
 *
 * UCS_ERR_UNSUPPORTED     no MPI library that we can read is loaded, or several are
 * UCS_ERR_INVALID_PARAM   also: datatype_size is not that library's
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_mpi(const void *datatype, size_t datatype_size,
                                                   int64_t count, cuda_nc_layout_t *layout_p);

enum cuda_nc_layout_attr_field {
    CUDA_NC_LAYOUT_ATTR_PACKED_SIZE = 1 << 0,
    CUDA_NC_LAYOUT_ATTR_EXTENT = 1 << 1,
    CUDA_NC_LAYOUT_ATTR_BOUNDS = 1 << 2,
    CUDA_NC_LAYOUT_ATTR_NUM_BLOCKS = 1 << 3,
    CUDA_NC_LAYOUT_ATTR_OVERLAPS = 1 << 4
};

typedef struct cuda_nc_layout_attr {
    uint64_t field_mask;  /* in: which members to fill, of enum cuda_nc_layout_attr_field */
    uint64_t packed_size; /* bytes */
    int64_t extent;       /* bytes */
    int64_t lower_bound;  /* displacement of the lowest byte, and of the one behind the highest; */
    int64_t upper_bound;  /* both 0 for a layout of no bytes */
    uint64_t num_blocks;  /* after touching blocks were joined; saturates at 2^64 - 1 */
    int overlaps;         /* 0: no byte is covered twice, so the layout can be written to. 1: some
                             byte is, or it could not be proved that none is */
} cuda_nc_layout_attr_t;

/* UCS_ERR_INVALID_PARAM: a null pointer, no layout, or a bit of field_mask that is not known here.
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_query(cuda_nc_layout_t layout, cuda_nc_layout_attr_t *attr);

/*
 * Makes tables of `layout` in the memory of the GPU with this CUDA ordinal, which kernels read for
 * irregular layouts: those that are not one block, or blocks of one length that regular strides
 * lead to. Returns when they are there: it may wait for the GPU, and may allocate GPU memory. For
 * regular layouts it does nothing. The tables stay until the layout is destroyed and nothing uses
 * them any more.
 *
 * Without it, the first pack, unpack or copy on a GPU does the same, except while its stream is
 * captured: there an unprepared irregular layout is an error.
 *
 * UCS_ERR_INVALID_PARAM   no layout
 * UCS_ERR_NO_DEVICE       there is no such GPU
 * UCS_ERR_NO_MEMORY       of the GPU or the host
 * UCS_ERR_UNSUPPORTED     2^32 blocks or more
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_prepare(cuda_nc_layout_t layout, int device);

/*
 * Gives the caller's reference back; the handle is invalid from here on. Work that was enqueued
 * with the layout, graphs that captured it, datatypes made of it and requests under way keep what
 * they need: events tell when a stream is through with it, and graphs own it. GPU memory is given
 * back by a later cuda_nc_layout_prepare or cuda_nc_layout_destroy. Waits for no work of the
 * layout's. NULL does nothing. A handle that is no layout is ignored, with
 * an error in the log.
 */
CUDA_NC_API void cuda_nc_layout_destroy(cuda_nc_layout_t layout);

/* ==== Pack, unpack, copy on a stream =============================================================
 *
 * `stream` is a cudaStream_t, of the GPU that holds the memory. NULL is CUDA's legacy default
 * stream of that GPU, as everywhere in CUDA; cudaStreamPerThread and cudaStreamLegacy are taken
 * too. With the simulated GPU it is what cuda_nc_sim_stream_create() gave, or NULL: one stream that
 * the process has for each GPU.
 *
 * GPU memory on either side   The work is enqueued on `stream`, in its order, and the call returns:
 *                             it never waits for the GPU. The other side may be memory of the same
 *                             GPU, managed memory, or pinned host memory.
 * Host memory on both sides   The CPU moves the bytes before the call returns, whatever the stream
 *                             has to do; `stream` is not looked at. Pinned memory is host memory.
 *
 * Capture   A call on a stream that is being captured (cudaStreamBeginCapture) becomes kernels of
 *           the graph. It allocates nothing on the GPU, asks no events and adds no host functions.
 *           Irregular layouts have to be prepared for that GPU. The graph and what was instantiated
 *           from it keep the layouts' tables; buffers are the caller's to keep.
 * Lifetime  Buffers must stay until the stream has done the work. Layouts may be destroyed as soon
 *           as the call has returned.
 *
 * Neither side's bytes may be bytes of the other. A target in which a byte would be written twice
 * is refused.
 *
 * Errors that these functions share, after which nothing was enqueued:
 *
 * UCS_ERR_INVALID_PARAM   no layout; a null buffer; a target whose blocks overlap; a stream of
 *                         another GPU than the memory's
 * UCS_ERR_UNSUPPORTED     a buffer in pageable host memory where the other is on a GPU; buffers on
 *                         two GPUs; memory that no kernel reaches; an irregular layout that is not
 *                         prepared, on a stream that is being captured
 * UCS_ERR_NO_MEMORY       for the tables of an irregular layout
 * UCS_ERR_IO_ERROR        the GPU failed, now or in earlier work
 */

/* Gathers the layout's bytes at `buffer` into `packed`, which has room for the packed size. */
CUDA_NC_API ucs_status_t cuda_nc_pack(cuda_nc_layout_t layout, const void *buffer, void *packed,
                                      void *stream);

/* Scatters the packed bytes to the layout's places at `buffer`. Touches no byte between them. */
CUDA_NC_API ucs_status_t cuda_nc_unpack(cuda_nc_layout_t layout, const void *packed, void *buffer,
                                        void *stream);

/* From the places of one layout to those of another: packed byte i of the source becomes packed
 * byte i of the target. Also UCS_ERR_INVALID_PARAM: their packed sizes differ. Needs no packed
 * buffer. */
CUDA_NC_API ucs_status_t cuda_nc_copy(cuda_nc_layout_t source_layout, const void *source,
                                      cuda_nc_layout_t target_layout, void *target, void *stream);

/* ==== Datatypes of UCP ===========================================================================
 *
 * For ucp_tag_send_nbx, ucp_tag_recv_nbx and all other calls of UCP that take generic datatypes.
 * UCP's count repeats the layout, an extent apart. A receive in which a byte would be written twice
 * is refused: an error is logged, and the request ends with UCS_ERR_MESSAGE_TRUNCATED.
 */

/*
 * The UCX is that of the caller: the library that calls this function.
 *
 * UCS_ERR_INVALID_PARAM   a null pointer, no layout
 * UCS_ERR_NO_MEMORY
 * UCS_ERR_UNSUPPORTED     no libucp.so.0 is loaded in this process
 */
CUDA_NC_API ucs_status_t cuda_nc_layout_create_dt(cuda_nc_layout_t layout,
                                                  ucp_datatype_t *datatype_p);

/*
 * The short form: a datatype of the given blocks and extent (any sign), without a layout object.
 * Errors as above, and UCS_ERR_EXCEEDS_LIMIT.
 */
CUDA_NC_API ucs_status_t cuda_nc_dt_create(const cuda_nc_block_t *blocks, size_t num_blocks,
                                           ptrdiff_t extent, ucp_datatype_t *datatype_p);

/* Of both. May be called while messages use the datatype: they keep what they need. */
CUDA_NC_API void cuda_nc_dt_destroy(ucp_datatype_t datatype);

/* ==== Strided puts and gets ======================================================================
 *
 * Like ucp_put_nbx and ucp_get_nbx with a layout on each side: packed byte i of one side becomes
 * packed byte i of the other. `remote_address` is the address of displacement 0 in the other
 * process, `rkey` covers all bytes of the remote layout. The remote layout is known here alone; the
 * other process does nothing.
 *
 * Memory on GPUs of one machine, reached by the transport cuda_nc, is moved by one kernel from
 * layout to layout, where the context was made with UCP_FEATURE_RMA; host memory of its processes,
 * where it was made without UCP_FEATURE_TAG besides, by a call of the operating system for many
 * blocks. All else goes through UCP as one put or get for each block that both layouts have in
 * common, issued before the call returns; where one fails later, cb.send is told its error, and
 * the log (the request alone, which is UCP's for a flush, ends well).
 *
 * Result, request and `param` are as in ucp_put_nbx: NULL (done), an error (UCS_PTR_IS_ERR), or a
 * request for ucp_request_check_status and ucp_request_free. Of `param` the members cb.send,
 * user_data, memory_type and memh (of all local bytes) count, and the flags FAST_CMPL and
 * MULTI_SEND; all others are refused. A put's end means that the local memory may be used again;
 * that the bytes are there is what ucp_ep_flush_nbx and ucp_worker_flush_nbx tell, as in UCP.
 * ucp_worker_progress moves all of it.
 *
 * Both layouts may be destroyed when the call has returned.
 *
 * UCS_ERR_INVALID_PARAM    no layout, different packed sizes, a null pointer, a target whose blocks
 *                          overlap, a member of `param` that is not served, memory outside of the
 *                          key
 * UCS_ERR_EXCEEDS_LIMIT    more than 2^20 common blocks, where it takes UCP's puts and gets
 * UCS_ERR_UNSUPPORTED      no libucp.so.0 is loaded in this process
 * UCS_ERR_NO_MEMORY, and UCP's. After these and UCS_ERR_EXCEEDS_LIMIT some blocks may be under way:
 * flush the endpoint before the memory is used for something else.
 */
CUDA_NC_API ucs_status_ptr_t cuda_nc_put_nbx(ucp_ep_h ep, const void *local,
                                             cuda_nc_layout_t local_layout, uint64_t remote_address,
                                             ucp_rkey_h rkey, cuda_nc_layout_t remote_layout,
                                             const ucp_request_param_t *param);
CUDA_NC_API ucs_status_ptr_t cuda_nc_get_nbx(ucp_ep_h ep, void *local,
                                             cuda_nc_layout_t local_layout, uint64_t remote_address,
                                             ucp_rkey_h rkey, cuda_nc_layout_t remote_layout,
                                             const ucp_request_param_t *param);

/* ==== The simulated GPU ==========================================================================
 *
 * UCX_CUDA_NC_GPU=sim, for tests and machines without a GPU. Memory of cuda_nc_sim_malloc may not
 * be touched by the CPU: a touch ends the process with SIGSEGV. Returns NULL where the simulated
 * GPU is not chosen, or memory is exhausted.
 */
CUDA_NC_API void *cuda_nc_sim_malloc(size_t size);
CUDA_NC_API void cuda_nc_sim_free(void *address);
/* Each address may lie in simulated or host memory. Returns when the bytes are there. Not ordered
 * with any stream. */
CUDA_NC_API void cuda_nc_sim_memcpy(void *destination, const void *source, size_t length);

/* A stream of simulated GPU `device`, for pack, unpack and copy; NULL as above. One thread at a
 * time uses a stream. */
CUDA_NC_API void *cuda_nc_sim_stream_create(int device);
/* Waits until the stream has done all its work. NULL: that of all GPUs' streams NULL. Returns
 * UCS_OK, or the error with which some of the work failed. */
CUDA_NC_API ucs_status_t cuda_nc_sim_stream_synchronize(void *stream);
/* Waits until the stream has done all its work, and frees it. NULL does nothing. */
CUDA_NC_API void cuda_nc_sim_stream_destroy(void *stream);

#ifdef __cplusplus
}
#endif
#endif
