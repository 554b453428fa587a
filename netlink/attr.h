/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_ATTR_H
#define NP_NETLINK_ATTR_H

/* Private to netlink/: attribute payloads, never read beyond what was sent. */

#include <netlink/attr.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Copies @size bytes; a longer payload is a newer kernel's and fine, a shorter
 * one leaves @out untouched. */
static inline bool np_attr_bytes(const struct nlattr *attr, void *out, size_t size)
{
	if (!attr || nla_len(attr) < (int)size)
		return false;
	memcpy(out, nla_data(attr), size);
	return true;
}

static inline uint32_t np_attr_u32(const struct nlattr *attr, uint32_t otherwise)
{
	np_attr_bytes(attr, &otherwise, sizeof(otherwise));
	return otherwise;
}

static inline uint8_t np_attr_u8(const struct nlattr *attr, uint8_t otherwise)
{
	np_attr_bytes(attr, &otherwise, sizeof(otherwise));
	return otherwise;
}

/* Text that need not be terminated; false (and "") when it is empty or too long. */
static inline bool np_attr_str(const struct nlattr *attr, char *out, size_t size)
{
	size_t len = attr ? strnlen(nla_data(attr), (size_t)nla_len(attr)) : 0;

	out[0] = '\0';
	if (len == 0 || len >= size)
		return false;
	memcpy(out, nla_data(attr), len);
	out[len] = '\0';
	return true;
}

/* Like nla_parse_nested, but an absent or malformed attribute is an empty one. */
static inline void np_attr_nested(struct nlattr **tb, int max, struct nlattr *attr)
{
	/* an array of pointers: NOLINTBEGIN(bugprone-sizeof-expression) */
	memset(tb, 0, sizeof(*tb) * (size_t)(max + 1));
	if (attr && nla_parse_nested(tb, max, attr, NULL) < 0)
		memset(tb, 0, sizeof(*tb) * (size_t)(max + 1));
	/* NOLINTEND(bugprone-sizeof-expression) */
}

#endif
