/* SPDX-License-Identifier: MIT */
/*
 * FAKE (fake.h), to be preloaded before UCX: it gives another version than the library has.
 * FAKE_UCX: minor=N, default 99.
 */
#include "fake.h"

FAKE_EXPORT void ucp_get_version(unsigned int *major, unsigned int *minor, unsigned int *release)
{
	*major = 1;
	*minor = (unsigned int)fake_number("FAKE_UCX", "minor=", 99);
	*release = 0;
}
