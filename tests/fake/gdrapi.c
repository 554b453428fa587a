/* SPDX-License-Identifier: MIT */
/*
 * FAKE libgdrapi.so.2 (fake.h): it has a version and opens nothing. FAKE_GDRAPI:
 *   version=N       206 = 2.6, the default
 */

#include "fake.h"

#define FAILS 22 /* EINVAL */

FAKE_EXPORT void gdr_runtime_get_version(int *major, int *minor)
{
	long version = fake_number("FAKE_GDRAPI", "version=", 206);

	*major = (int)(version / 100);
	*minor = (int)(version % 100);
}

FAKE_EXPORT void *gdr_open(void)
{
	return NULL;
}

/* Without an open one none of these is called. */
FAKE_EXPORT int gdr_close(void *gdr)
{
	(void)gdr;
	return FAILS;
}

FAKE_EXPORT int gdr_driver_get_version(void *gdr, int *major, int *minor)
{
	(void)gdr;
	(void)major;
	(void)minor;
	return FAILS;
}

#define FAKE(name) \
	FAKE_EXPORT int name(void) \
	{ \
		return FAILS; \
	}
FAKE(gdr_pin_buffer)
FAKE(gdr_unpin_buffer)
FAKE(gdr_map)
FAKE(gdr_unmap)
FAKE(gdr_copy_to_mapping)
FAKE(gdr_copy_from_mapping)
FAKE(gdr_get_info_v2)
