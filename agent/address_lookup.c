/* SPDX-License-Identifier: MIT */
#include "agent/address_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/address_map.h"
#include "base/child.h"
#include "base/file.h"
#include "base/trust.h"

/* A resolver without a server tries for 10 s and more (resolv.conf(5): timeout 5, attempts
 * 2, a server after the other); /etc/hosts and a server that is there take milliseconds. */
#define NAME_SERVICE_MS 5000
#define MAP_MAX		(16 << 20)
#define MAX_ANSWERS	8

/* ---- the name service ---- */

struct question {
	const char *name;
	int family;
};

/* Sent through the pipe as it is: both ends are this program. */
struct answer {
	int status; /* EAI_*; 0 = there are addresses */
	int number; /* errno of EAI_SYSTEM */
	bool other_family;
	size_t n;
	struct np_inet v[MAX_ANSWERS];
};

static void add_answer(struct answer *answer, const struct addrinfo *info)
{
	struct np_inet inet = { .family = info->ai_family };

	if (info->ai_family == AF_INET6)
		memcpy(inet.bytes, &((const struct sockaddr_in6 *)info->ai_addr)->sin6_addr, 16);
	else
		memcpy(inet.bytes, &((const struct sockaddr_in *)info->ai_addr)->sin_addr, 4);
	for (size_t i = 0; i < answer->n; i++)
		if (np_inet_same_addr(&answer->v[i], &inet))
			return;
	if (answer->n < MAX_ANSWERS)
		answer->v[answer->n++] = inet;
}

static int look_up(const char *name, int family, struct answer *answer)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM }, *list = NULL;
	int status;

	errno = 0;
	status = getaddrinfo(name, NULL, &hints, &list);
	answer->number = errno;
	for (const struct addrinfo *i = status == 0 ? list : NULL; i; i = i->ai_next)
		if (i->ai_family == family)
			add_answer(answer, i);
	if (status == 0)
		freeaddrinfo(list);
	return status == 0 && answer->n == 0 ? EAI_NODATA : status;
}

static bool is_not_found(int status)
{
	return status == EAI_NONAME || status == EAI_NODATA || status == EAI_ADDRFAMILY;
}

static int ask(void *arg, struct np_buf *out)
{
	const struct question *q = arg;
	struct answer answer = { 0 }, other = { 0 };

	answer.status = look_up(q->name, q->family, &answer);
	/* a name with addresses of the other family alone is worth saying */
	if (is_not_found(answer.status))
		answer.other_family =
			look_up(q->name, q->family == AF_INET ? AF_INET6 : AF_INET, &other) == 0;
	np_buf_add(out, &answer, sizeof(answer));
	return 0;
}

static int not_found(const struct question *q, const struct answer *answer, struct np_err *err)
{
	const char *family = q->family == AF_INET ? "IPv4" : "IPv6";

	if (answer->other_family) {
		np_err_set(err, -ENOENT, "address.hosts_not_found",
			   "the name service has no %s address of \"%s\", only one of %s", family,
			   q->name, q->family == AF_INET ? "IPv6" : "IPv4");
		np_err_hint(err, "a length up to 32 asks for IPv4, one above it for IPv6");
		return -ENOENT;
	}
	np_err_set(err, -ENOENT, "address.hosts_not_found",
		   "the name service knows no %s address of \"%s\"", family, q->name);
	np_err_hint(err, "add %s to /etc/hosts or to DNS, and look with: getent ahosts %s", q->name,
		    q->name);
	return -ENOENT;
}

static int failed(const struct question *q, const struct answer *answer, struct np_err *err)
{
	if (answer->status == EAI_MEMORY)
		return np_err_nomem(err);
	np_err_set(err, -EHOSTUNREACH, "address.hosts_failed",
		   "the name service cannot tell the address of \"%s\": %s", q->name,
		   answer->status == EAI_SYSTEM ? strerror(answer->number) :
						  gai_strerror(answer->status));
	np_err_hint(err,
		    "add %s to /etc/hosts, or look at resolv.conf and nsswitch.conf; at boot, run "
		    "after the network",
		    q->name);
	return -EHOSTUNREACH;
}

static int ambiguous(const struct question *q, const struct answer *answer, struct np_err *err)
{
	np_auto_buf struct np_buf list = { 0 };
	char text[NP_INET_STRLEN];

	for (size_t i = 0; i < answer->n; i++)
		np_buf_printf(&list, "%s%s", i ? ", " : "", np_inet_addr_str(&answer->v[i], text));
	np_err_set(err, -ENOTUNIQ, "address.hosts_ambiguous",
		   "the name service has several addresses of \"%s\": %s", q->name,
		   list.data ? list.data : "");
	np_err_hint(err, "give that name one address, in /etc/hosts or DNS");
	return -ENOTUNIQ;
}

int np_address_lookup_name(const char *name, uint8_t prefix_len, struct np_inet *out,
			   struct np_err *err)
{
	struct question q = { name, prefix_len > 32 ? AF_INET6 : AF_INET };
	np_auto_buf struct np_buf reply = { 0 };
	struct answer answer;
	int r = np_with_deadline("the name service", NAME_SERVICE_MS, ask, &q, &reply, err);

	if (r == -ETIMEDOUT) {
		np_err_set(err, r, "address.hosts_timeout",
			   "the name service gave no answer about \"%s\" within %d s", name,
			   NAME_SERVICE_MS / 1000);
		np_err_hint(err,
			    "add %s to /etc/hosts, or look at resolv.conf and nsswitch.conf; at "
			    "boot, run after the network",
			    name);
	}
	if (r < 0)
		return r;
	if (reply.len != sizeof(answer))
		return np_err_set(err, -EIO, "internal.child", "half an answer about \"%s\"", name);
	memcpy(&answer, reply.data, sizeof(answer));
	if (answer.status)
		return is_not_found(answer.status) ? not_found(&q, &answer, err) :
						     failed(&q, &answer, err);
	if (answer.n > 1)
		return ambiguous(&q, &answer, err);
	*out = answer.v[0];
	out->prefix_len = prefix_len;
	return 0;
}

/* ---- map files ---- */

static int refused(const char *path, const char *why, const char *fix, struct np_err *err)
{
	np_err_set(err, -EPERM, "address.map_refused", "%s is not read: %s", path, why);
	np_err_hint(err, "%s %s", fix, path);
	return -EPERM;
}

/* It says what root will do: the file, and every folder that leads to it. */
static int check_trust(const char *path, const struct stat *st, struct np_err *err)
{
	char which[PATH_MAX], shown[120], why[200];
	int r;

	if (!S_ISREG(st->st_mode))
		return refused(path, "not a regular file", "put a plain file there:", err);
	if (st->st_uid != 0)
		return refused(path, "it does not belong to root", "chown root", err);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return refused(path, "others than root can write it", "chmod go-w", err);
	r = np_path_trusted(path, which, sizeof(which));
	if (r == 0)
		return 0;
	snprintf(why, sizeof(why), "others than root can change %s, which leads to it",
		 np_printable(r == -EPERM ? which : path, shown, sizeof(shown)));
	return refused(path, why, "put it into a folder that is root's alone, such as /etc:", err);
}

static int unreadable(const char *path, int number, struct np_err *err)
{
	np_err_set(err, -number, "address.map_unreadable", "%s: %s", path,
		   number == EFBIG ? "larger than 16 MiB" : strerror(number));
	np_err_hint(err, "put the map there, readable, or correct map:");
	return -number;
}

static int read_map(const char *path, struct np_buf *text, struct np_err *err)
{
	/* a FIFO would make a boot wait for ever */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return unreadable(path, errno, err);
	r = check_trust(path, &st, err);
	if (r < 0)
		return r;
	r = np_file_read_fd(fd, MAP_MAX, text);
	return r < 0 ? unreadable(path, -r, err) : 0;
}

int np_address_lookup_map(const char *path, const char *node_name, struct np_inet *out, int *line,
			  struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	int r = read_map(path, &text, err);

	if (r < 0)
		return r;
	return np_address_map_find(path, text.data ? text.data : "", text.len, node_name, out, line,
				   err);
}
