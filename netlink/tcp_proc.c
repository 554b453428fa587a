/* SPDX-License-Identifier: MIT */
/* TCP connections by /proc/net/tcp and tcp6, for a kernel whose socket monitoring is a module
 * that it may not load. Slower, and without the netdev that a socket is bound to. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "netlink/tcp.h"

#define TABLE_MAX ((size_t)256 * 1024 * 1024)

/* "3200000A:03DC": words of the address as the processor has them, and the port. */
static bool parse_end(char *text, struct np_inet *addr, uint16_t *port)
{
	char *colon = strchr(text, ':'), word[9];
	size_t words;
	uint64_t value;

	if (!colon)
		return false;
	*colon = '\0';
	words = (size_t)(colon - text) / 8;
	if ((words != 1 && words != 4) || (size_t)(colon - text) % 8)
		return false;
	for (size_t i = 0; i < words; i++) {
		uint32_t bytes;

		memcpy(word, text + 8 * i, 8);
		word[8] = '\0';
		if (np_parse_u64(word, 16, UINT32_MAX, &value) < 0)
			return false;
		bytes = (uint32_t)value;
		memcpy(addr->bytes + 4 * i, &bytes, 4);
	}
	addr->family = words == 1 ? AF_INET : AF_INET6;
	np_tcp_unmap(addr);
	if (np_parse_u64(colon + 1, 16, UINT16_MAX, &value) < 0)
		return false;
	*port = (uint16_t)value;
	return true;
}

/* "0: LOCAL REMOTE STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE ..." */
static bool parse_line(char *line, struct np_tcp *out)
{
	char *words[10] = { NULL }, *save = NULL;
	uint64_t state;
	size_t n = 0;

	for (char *w = strtok_r(line, " ", &save); w && n < NP_ARRAY_SIZE(words);
	     w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	return n == NP_ARRAY_SIZE(words) && np_parse_u64(words[3], 16, UINT8_MAX, &state) == 0 &&
	       state == TCP_ESTABLISHED && parse_end(words[1], &out->local, &out->local_port) &&
	       parse_end(words[2], &out->remote, &out->remote_port) &&
	       np_parse_u64(words[9], 10, UINT64_MAX, &out->inode) == 0;
}

int np_tcp_parse(char *text, bool (*wanted)(const struct np_tcp *tcp, void *arg), void *arg,
		 struct np_tcp_list *out)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct np_tcp found = { 0 }, *v;

		if (!parse_line(line, &found) || (wanted && !wanted(&found, arg)))
			continue;
		v = reallocarray(out->v, out->n + 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		out->v = v;
		v[out->n++] = found;
	}
	return 0;
}

int np_tcp_read_proc(bool (*wanted)(const struct np_tcp *tcp, void *arg), void *arg,
		     struct np_tcp_list *out)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	int r = 0;

	for (size_t i = 0; i < NP_ARRAY_SIZE(tables) && r == 0; i++) {
		np_auto_buf struct np_buf text = { 0 };

		r = np_file_read_at(AT_FDCWD, tables[i], TABLE_MAX, &text);
		/* a kernel without IPv6 */
		if (r == -ENOENT && i > 0)
			return 0;
		if (r == 0)
			r = np_tcp_parse(text.data, wanted, arg, out);
	}
	return r;
}
