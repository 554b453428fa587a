/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_GDR_API_H
#define NP_SELFTEST_GDR_API_H

#include <stddef.h>
#include <stdint.h>

/*
 * The part of gdrcopy's library that is used here, declared by hand: names, types and
 * values are those of gdrapi.h of gdrcopy 2.0 to 2.6.
 */

typedef struct np_gdr_ *np_gdr; /* gdr_t, opaque */

typedef struct {
	unsigned long h;
} np_gdr_handle; /* gdr_mh_t */

/* gdr_info_v2_t; up to 2.3 without the last member, the others are the same */
struct np_gdr_info {
	uint64_t va; /* of the GPU, where the mapping starts */
	uint64_t mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned int mapped : 1;
	unsigned int wc_mapping : 1;
	int mapping_type;
};

/* gdr_attr_t, since 2.6 */
enum { NP_GDR_ATTR_DMA_BUF_MMAP = 3 };

/* X(result, member, symbol, parameters); result 0 or an errno */
#define NP_GDR_FUNCTIONS(X) \
	X(np_gdr, open, "gdr_open", (void)) \
	X(int, close, "gdr_close", (np_gdr gdr)) \
	X(int, pin, "gdr_pin_buffer", \
	  (np_gdr gdr, unsigned long address, size_t size, uint64_t token, uint32_t space, \
	   np_gdr_handle *handle)) \
	X(int, unpin, "gdr_unpin_buffer", (np_gdr gdr, np_gdr_handle handle)) \
	X(int, map, "gdr_map", (np_gdr gdr, np_gdr_handle handle, void **mapping, size_t size)) \
	X(int, unmap, "gdr_unmap", (np_gdr gdr, np_gdr_handle handle, void *mapping, size_t size)) \
	X(int, copy_to, "gdr_copy_to_mapping", \
	  (np_gdr_handle handle, void *mapping, const void *host, size_t size)) \
	X(int, copy_from, "gdr_copy_from_mapping", \
	  (np_gdr_handle handle, void *host, const void *mapping, size_t size)) \
	X(void, library_version, "gdr_runtime_get_version", (int *major, int *minor)) \
	X(int, driver_version, "gdr_driver_get_version", (np_gdr gdr, int *major, int *minor))

/* Newer than 2.0: NULL otherwise */
#define NP_GDR_OPTIONAL(X) \
	X(int, attribute, "gdr_get_attribute", (np_gdr gdr, int attribute, int *value)) \
	X(int, info, "gdr_get_info_v2", \
	  (np_gdr gdr, np_gdr_handle handle, struct np_gdr_info * info))

/* a declarator has no parentheses around its parameters */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define NP_GDR_MEMBER(result, member, symbol, parameters) result(*member) parameters;

struct np_gdr_lib {
	void *handle;
	char path[256];
	int major, minor;    /* of the library */
	const char *standin; /* what it says of itself when it is a stand-in; NULL = gdrcopy's */
	NP_GDR_FUNCTIONS(NP_GDR_MEMBER)
	NP_GDR_OPTIONAL(NP_GDR_MEMBER)
};

#undef NP_GDR_MEMBER

#endif
