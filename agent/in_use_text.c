/* SPDX-License-Identifier: MIT */
/* What the kernel says of LNET and of NFS, as text. Pure. */
#include <errno.h>
#include <string.h>

#include "agent/in_use.h"

/* ---- LNET ---- */

bool np_lnet_nid_addr(const char *nid, struct np_inet *out)
{
	const char *at = strchr(nid, '@');
	char text[INET6_ADDRSTRLEN];

	if (!at || (size_t)(at - nid) >= sizeof(text))
		return false;
	memcpy(text, nid, (size_t)(at - nid));
	text[at - nid] = '\0';
	return np_inet_parse_host(text, out) == 0;
}

int np_lnet_parse(const char *text, struct np_strv *nids)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct np_inet addr;
		char nid[128];
		size_t len = strcspn(line, " \t\n");

		if (len == 0 || len >= sizeof(nid))
			continue;
		memcpy(nid, line, len);
		nid[len] = '\0';
		/* neither the header nor LNET's own loopback, "0@lo" */
		if (np_lnet_nid_addr(nid, &addr) && np_strv_add(nids, nid) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- mounts ---- */

/* Cuts the next field, at blanks, off *@rest; undoes the kernel's \ooo in it. "" = no more. */
static const char *next_field(char **rest)
{
	char *field = *rest, *to;
	size_t len = strcspn(field, " ");

	*rest = field + len + (field[len] == ' ');
	field[len] = '\0';
	to = field;
	for (const char *from = field; *from; from++) {
		bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' &&
			     from[2] >= '0' && from[2] <= '7' && from[3] >= '0' && from[3] <= '7';

		*to++ = octal ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0')) :
				*from;
		from += octal ? 3 : 0;
	}
	*to = '\0';
	return field;
}

static void take_option(struct np_nfs_mount *m, const char *option)
{
	/* proto=rdma6 is RDMA to an IPv6 address */
	if (np_starts_with(option, "proto="))
		m->rdma = np_starts_with(option + 6, "rdma");
	else if (np_starts_with(option, "addr="))
		(void)!np_inet_parse_host(option + 5, &m->server);
	else if (np_starts_with(option, "clientaddr="))
		(void)!np_inet_parse_host(option + 11, &m->client);
}

/* "36 35 98:0 / /data rw,noatime shared:1 - nfs4 srv:/data rw,vers=4.2,proto=rdma,addr=..."
 * Returns false for anything but NFS. */
static bool parse_line(char *line, struct np_nfs_mount *m)
{
	char *options, *save = NULL;
	const char *type;

	for (int i = 0; i < 4; i++)
		next_field(&line);
	np_printable(next_field(&line), m->where, sizeof(m->where));
	/* optional fields end with a dash */
	while (*line && strcmp(next_field(&line), "-") != 0)
		;
	type = next_field(&line);
	if (strcmp(type, "nfs") != 0 && strcmp(type, "nfs4") != 0)
		return false;
	np_printable(next_field(&line), m->source, sizeof(m->source));
	options = line;
	for (char *o = strtok_r(options, ",", &save); o; o = strtok_r(NULL, ",", &save))
		take_option(m, o);
	return true;
}

int np_nfs_mounts_parse(const char *mountinfo, struct np_nfs_mounts *out)
{
	_cleanup_free_ char *text = strdup(mountinfo);
	char *save = NULL;

	if (!text)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct np_nfs_mount m = { 0 }, *v;

		if (!parse_line(line, &m))
			continue;
		v = reallocarray(out->v, out->n + 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		out->v = v;
		v[out->n++] = m;
	}
	return 0;
}
