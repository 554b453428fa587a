/* SPDX-License-Identifier: MIT */
/* /etc/ld.so.cache, read as data. */
#include <errno.h>
#include <string.h>

#include "agent/census_read.h"

#define OLD_MAGIC "ld.so-1.7.0"
#define NEW_MAGIC "glibc-ld.so.cache1.1"

/* sysdeps/generic/dl-cache.h and ldconfig.h of glibc */
#define OLD_HEADER 16 /* magic, padding, number of libraries */
#define OLD_ENTRY  12
#define NEW_HEADER 48
#define NEW_ENTRY  24
#define FLAG_LIBC6 0x0003
#define FLAG_TYPE  0x00ff
#define FLAG_ABI   0xff00
#if defined(__x86_64__)
#define ABI 0x0300
#elif defined(__aarch64__)
#define ABI 0x0a00
#elif defined(__powerpc64__)
#define ABI 0x0500
#else
#define ABI 0
#endif

static uint32_t word_at(const unsigned char *data, size_t offset)
{
	uint32_t v;

	memcpy(&v, data + offset, sizeof(v));
	return v;
}

/* A string at @offset that ends inside; NULL else. */
static const char *string_at(const unsigned char *data, size_t len, uint32_t offset)
{
	return offset < len && memchr(data + offset, '\0', len - offset) ?
		       (const char *)data + offset :
		       NULL;
}

/* The new format is what glibc 2.2 and newer read; before 2.32 it was written behind the
 * old one, whose strings start right after it. */
static size_t find_new(const unsigned char *data, size_t len)
{
	size_t at;

	if (len < OLD_HEADER || memcmp(data, OLD_MAGIC, strlen(OLD_MAGIC)) != 0)
		return 0;
	at = OLD_HEADER + (size_t)word_at(data, OLD_HEADER - 4) * OLD_ENTRY;
	return (at + 7) / 8 * 8;
}

int np_ld_cache_each(const void *bytes, size_t len,
		     int (*fn)(const char *name, const char *path, void *arg), void *arg)
{
	const unsigned char *data = bytes;
	size_t at = find_new(data, len);
	uint32_t n;

	if (at > len || len - at < NEW_HEADER ||
	    memcmp(data + at, NEW_MAGIC, strlen(NEW_MAGIC)) != 0)
		return -EBADMSG;
	/* its strings are counted from its own start */
	data += at;
	len -= at;
	n = word_at(data, 20);
	if (n > (len - NEW_HEADER) / NEW_ENTRY)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		size_t entry = NEW_HEADER + (size_t)i * NEW_ENTRY;
		uint32_t flags = word_at(data, entry);
		const char *name = string_at(data, len, word_at(data, entry + 4));
		const char *path = string_at(data, len, word_at(data, entry + 8));
		int r;

		if (!name || !path)
			return -EBADMSG;
		if ((flags & FLAG_TYPE) != FLAG_LIBC6 || (flags & FLAG_ABI) != ABI)
			continue;
		r = fn(name, path, arg);
		if (r != 0)
			return r;
	}
	return 0;
}
