/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_CUDA_API_H
#define NP_SELFTEST_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/*
 * The part of the CUDA driver's interface that is used here. No distribution ships
 * its header freely, so what is called is declared by hand: names, types and values
 * are those of the CUDA Driver API reference ("Data types used by CUDA driver" and
 * the chapters on devices, primary contexts, memory and streams). A name with
 * a suffix _v2 is the symbol that all drivers since CUDA 3.2 export (4.0 for
 * cuCtx..., 11.0 for cuDevicePrimaryCtxRelease).
 */

typedef int np_cu_result;
typedef int np_cu_device;
typedef uint64_t np_cu_ptr; /* CUdeviceptr of a 64-bit system */
typedef void *np_cu_context;
typedef void *np_cu_stream;

/* CUresult */
enum {
	NP_CU_SUCCESS = 0,
	NP_CU_INVALID_VALUE = 1,
	NP_CU_OUT_OF_MEMORY = 2,
	NP_CU_STUB_LIBRARY = 34,
	NP_CU_DEVICE_UNAVAILABLE = 46,
	NP_CU_NO_DEVICE = 100,
	NP_CU_INVALID_DEVICE = 101,
	NP_CU_DEVICE_NOT_LICENSED = 102,
	NP_CU_ECC_UNCORRECTABLE = 214,
	NP_CU_NVLINK_UNCORRECTABLE = 220,
	NP_CU_OPERATING_SYSTEM = 304,
	NP_CU_NOT_READY = 600, /* of a stream that is busy */
	NP_CU_NOT_PERMITTED = 800,
	NP_CU_NOT_SUPPORTED = 801,
	NP_CU_SYSTEM_NOT_READY = 802,
	NP_CU_SYSTEM_DRIVER_MISMATCH = 803,
	NP_CU_COMPAT_NOT_SUPPORTED = 804,
	NP_CU_UNKNOWN = 999,
};

/* CUdevice_attribute */
enum {
	NP_CU_ATTR_COMPUTE_MODE = 20,
	NP_CU_ATTR_GPU_DIRECT_RDMA = 116, /* nvidia_p2p_get_pages works: nvidia_peermem can */
	NP_CU_ATTR_DMA_BUF = 124,
};

/* CUcomputemode */
enum { NP_CU_MODE_DEFAULT = 0, NP_CU_MODE_PROHIBITED = 2, NP_CU_MODE_EXCLUSIVE_PROCESS = 3 };

/* CUpointer_attribute: copies of that allocation are done when the call returns */
enum { NP_CU_POINTER_SYNC_MEMOPS = 6 };

/* CUstream_flags, CUmemRangeHandleType */
enum { NP_CU_STREAM_NON_BLOCKING = 1, NP_CU_RANGE_DMA_BUF_FD = 1 };

/* X(member, symbol, parameters) for what every driver has */
#define NP_CUDA_FUNCTIONS(X) \
	X(init, "cuInit", (unsigned int flags)) \
	X(driver_version, "cuDriverGetVersion", (int *version)) \
	X(error_name, "cuGetErrorName", (np_cu_result result, const char **name)) \
	X(error_string, "cuGetErrorString", (np_cu_result result, const char **text)) \
	X(device_count, "cuDeviceGetCount", (int *n)) \
	X(device_get, "cuDeviceGet", (np_cu_device * device, int ordinal)) \
	X(device_name, "cuDeviceGetName", (char *name, int len, np_cu_device device)) \
	X(device_bus_id, "cuDeviceGetPCIBusId", (char *id, int len, np_cu_device device)) \
	X(device_attribute, "cuDeviceGetAttribute", \
	  (int *value, int attribute, np_cu_device device)) \
	X(primary_retain, "cuDevicePrimaryCtxRetain", \
	  (np_cu_context * context, np_cu_device device)) \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", (np_cu_device device)) \
	X(set_current, "cuCtxSetCurrent", (np_cu_context context)) \
	X(synchronize, "cuCtxSynchronize", (void)) \
	X(mem_alloc, "cuMemAlloc_v2", (np_cu_ptr * mem, size_t len)) \
	X(mem_free, "cuMemFree_v2", (np_cu_ptr mem)) \
	X(host_alloc, "cuMemHostAlloc", (void **mem, size_t len, unsigned int flags)) \
	X(host_free, "cuMemFreeHost", (void *mem)) \
	X(copy_in, "cuMemcpyHtoD_v2", (np_cu_ptr to, const void *from, size_t len)) \
	X(copy_out, "cuMemcpyDtoH_v2", (void *to, np_cu_ptr from, size_t len)) \
	X(copy_on, "cuMemcpyDtoD_v2", (np_cu_ptr to, np_cu_ptr from, size_t len)) \
	X(copy_in_async, "cuMemcpyHtoDAsync_v2", \
	  (np_cu_ptr to, const void *from, size_t len, np_cu_stream stream)) \
	X(copy_out_async, "cuMemcpyDtoHAsync_v2", \
	  (void *to, np_cu_ptr from, size_t len, np_cu_stream stream)) \
	X(pointer_set, "cuPointerSetAttribute", (const void *value, int attribute, np_cu_ptr mem)) \
	X(stream_create, "cuStreamCreate", (np_cu_stream * stream, unsigned int flags)) \
	X(stream_destroy, "cuStreamDestroy_v2", (np_cu_stream stream)) \
	X(stream_synchronize, "cuStreamSynchronize", (np_cu_stream stream)) \
	X(stream_query, "cuStreamQuery", (np_cu_stream stream))

/* CUDA 11.7 and newer: NULL otherwise */
#define NP_CUDA_OPTIONAL(X) \
	X(range_handle, "cuMemGetHandleForAddressRange", \
	  (void *handle, np_cu_ptr mem, size_t len, int type, unsigned long long flags))

/* a declarator has no parentheses around its parameters */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define NP_CUDA_MEMBER(member, symbol, parameters) np_cu_result(*member) parameters;

struct np_cuda {
	void *handle;
	char path[256]; /* of the library that was loaded */
	int version;	/* 13000 = CUDA 13.0 */
	NP_CUDA_FUNCTIONS(NP_CUDA_MEMBER)
	NP_CUDA_OPTIONAL(NP_CUDA_MEMBER)
};

#undef NP_CUDA_MEMBER

#endif
