/* SPDX-License-Identifier: MIT */
#include "agent/address_source.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "base/str.h"

static const struct {
	const char *word, *expected;
} forms[] = {
	[NP_SOURCE_HOSTS] = { "hosts:",
			      "hosts:NAME/LEN, in NAME %h, %H or %%, for example hosts:%h-ib0/24" },
	[NP_SOURCE_MAP] = { "map:", "map:FILE with the absolute path of a file" },
	[NP_SOURCE_OFFSET] = { "offset:",
			       "offset:NETDEV:PREFIX/LEN, PREFIX an IPv4 network without host part "
			       "and LEN from 1 to 31, for example offset:eth0:10.0.0.0/16" },
};

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

bool np_is_address_source(const char *text)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(forms); i++)
		if (np_starts_with(text, forms[i].word))
			return true;
	return false;
}

/* It will stand in messages. */
static bool is_printable(const char *text)
{
	while (*text > ' ' && *text <= '~')
		text++;
	return *text == '\0';
}

/* NAME/LEN */
static int parse_hosts(char *text, struct np_address_source *out)
{
	char *slash = strrchr(text, '/');
	uint64_t len;

	if (!slash || slash == text || np_parse_u64(slash + 1, 10, 128, &len) < 0 || len == 0)
		return -EINVAL;
	*slash = '\0';
	for (const char *c = text; *c; c++) {
		if (*c == '%' && (c[1] == 'h' || c[1] == 'H' || c[1] == '%'))
			c++;
		else if (!is_name_char(*c))
			return -EINVAL;
	}
	out->prefix_len = (uint8_t)len;
	return np_strcpy(out->subject, sizeof(out->subject), text) ? 0 : -EINVAL;
}

static uint32_t host_mask(uint8_t prefix_len)
{
	return (uint32_t)((UINT64_C(1) << (32 - prefix_len)) - 1);
}

static uint32_t value_of(const struct np_inet *a)
{
	uint32_t be;

	memcpy(&be, a->bytes, sizeof(be));
	return ntohl(be);
}

/* NETDEV:PREFIX/LEN; a NIC's name may have colons of its own */
static int parse_offset(char *text, struct np_address_source *out)
{
	char *colon = strrchr(text, ':');
	const struct np_inet *prefix = &out->prefix;

	if (!colon || colon == text || colon - text >= IFNAMSIZ ||
	    np_inet_parse_any(colon + 1, &out->prefix) < 0)
		return -EINVAL;
	*colon = '\0';
	if (prefix->family != AF_INET || prefix->prefix_len < 1 || prefix->prefix_len > 31 ||
	    (value_of(prefix) & host_mask(prefix->prefix_len)) || strchr(text, '/'))
		return -EINVAL;
	return np_strcpy(out->subject, sizeof(out->subject), text) ? 0 : -EINVAL;
}

int np_address_source_parse(const char *text, struct np_address_source *out, const char **expected)
{
	struct np_address_source src = { 0 };
	char rest[NP_SOURCE_LEN];
	size_t kind = 0;
	int r;

	while (kind < NP_ARRAY_SIZE(forms) - 1 && !np_starts_with(text, forms[kind].word))
		kind++;
	*expected = forms[kind].expected;
	if (!np_starts_with(text, forms[kind].word) || !is_printable(text) ||
	    !np_strcpy(src.text, sizeof(src.text), text) ||
	    !np_strcpy(rest, sizeof(rest), text + strlen(forms[kind].word)))
		return -EINVAL;
	src.kind = (enum np_source_kind)kind;
	if (src.kind == NP_SOURCE_HOSTS)
		r = parse_hosts(rest, &src);
	else if (src.kind == NP_SOURCE_OFFSET)
		r = parse_offset(rest, &src);
	else
		r = rest[0] == '/' && rest[1] && np_strcpy(src.subject, sizeof(src.subject), rest) ?
			    0 :
			    -EINVAL;
	if (r == 0)
		*out = src;
	return r;
}

bool np_host_name_is_own(const char *node_name)
{
	return *node_name && strcmp(node_name, "(none)") != 0 &&
	       strcmp(node_name, "localhost") != 0 && !np_starts_with(node_name, "localhost.");
}

/* What the resolver would take for an address: "10.0.0.1", but "10" and "0x7f" as well. */
static bool is_number(const char *name)
{
	struct in_addr ignored;

	return inet_aton(name, &ignored) != 0;
}

int np_address_source_name(const struct np_address_source *src, const char *node_name,
			   char out[NP_HOST_NAME_LEN], struct np_err *err)
{
	np_auto_buf struct np_buf name = { 0 };
	bool valid = true;
	char shown[80];

	for (const char *c = src->subject; *c; c++) {
		if (*c != '%')
			np_buf_add(&name, c, 1);
		else if (*++c == 'h')
			np_buf_add(&name, node_name, strcspn(node_name, "."));
		else if (*c == 'H')
			np_buf_str(&name, node_name);
		else
			np_buf_str(&name, "%");
	}
	if (name.failed)
		return np_err_nomem(err);
	for (size_t i = 0; i < name.len; i++)
		valid &= is_name_char(name.data[i]);
	if (valid && name.len > 0 && !is_number(name.data) &&
	    np_strcpy(out, NP_HOST_NAME_LEN, name.data))
		return 0;
	np_err_set(err, -EINVAL, "address.hosts_name", "\"%s\" is not a host name",
		   np_printable(name.data ? name.data : "", shown, sizeof(shown)));
	np_err_hint(err, "a name has letters, digits, '-', '_' and '.'; an address is written "
			 "without hosts:");
	return -EINVAL;
}

int np_address_source_offset(const struct np_address_source *src, const struct np_inet *nic,
			     struct np_inet *out, struct np_err *err)
{
	uint32_t host = value_of(nic) & host_mask(nic->prefix_len), sum;
	char text[NP_INET_STRLEN], prefix[NP_INET_STRLEN];
	struct np_inet inet = src->prefix;

	if (host & ~host_mask(inet.prefix_len)) {
		np_err_set(err, -EINVAL, "address.offset_no_fit",
			   "the host part of %s on %s, %u, does not fit into %s",
			   np_inet_str(nic, text), src->subject, host,
			   np_inet_str(&src->prefix, prefix));
		np_err_hint(err, "give a PREFIX with a length of %u or less", nic->prefix_len);
		return -EINVAL;
	}
	sum = htonl(value_of(&inet) | host);
	memcpy(inet.bytes, &sum, sizeof(sum));
	*out = inet;
	return 0;
}
