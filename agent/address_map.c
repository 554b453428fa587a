/* SPDX-License-Identifier: MIT */
#include "agent/address_map.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

/* Room for a host name of 253 bytes, an IPv6 address and blanks. */
#define LINE_MAX_LEN 400

struct map {
	const char *path, *next, *end;
	int line;
	struct np_err *err;
	char copy[LINE_MAX_LEN + 1];
};

struct entry {
	const char *name; /* into map->copy: until the next one */
	struct np_inet inet;
};

static int fault(const struct map *map, const char *what, const char *word)
{
	char shown[80];

	np_err_set(map->err, -EBADMSG, "address.map_syntax", "%s:%d: %s%s%s%s", map->path,
		   map->line, what, word ? " \"" : "",
		   word ? np_printable(word, shown, sizeof(shown)) : "", word ? "\"" : "");
	np_err_hint(map->err, "write HOSTNAME ADDR/LEN, or # and a comment");
	return -EBADMSG;
}

/* "HOSTNAME ADDR/LEN", blanks and comment cut. */
static int parse_line(struct map *map, char *line, struct entry *out)
{
	static const char blanks[] = " \t";
	char *address = line + strcspn(line, blanks), *more;
	struct np_err why;
	int r;

	if (!*address)
		return fault(map, "a host name without an address:", line);
	*address++ = '\0';
	address += strspn(address, blanks);
	more = address + strcspn(address, blanks);
	if (*more)
		return fault(map,
			     "more than a host name and an address:", more + strspn(more, blanks));
	r = np_inet_parse(address, &out->inet, &why);
	if (r < 0) {
		fault(map, why.message, NULL);
		np_err_hint(map->err, "%s", why.hint);
		return -EBADMSG;
	}
	out->name = line;
	return 1;
}

/* Returns 1 with the next entry, 0 at the end, or a negative errno with message. */
static int next_entry(struct map *map, struct entry *out)
{
	while (map->next < map->end) {
		const char *start = map->next,
			   *newline = memchr(start, '\n', (size_t)(map->end - start)), *comment;
		size_t len = (size_t)((newline ? newline : map->end) - start);
		char *line;

		map->next = newline ? newline + 1 : map->end;
		map->line++;
		if (memchr(start, '\0', len))
			return fault(map, "a NUL byte", NULL);
		/* a comment may be longer than what is kept of it */
		comment = memchr(start, '#', len);
		len = comment ? (size_t)(comment - start) : len;
		if (len > LINE_MAX_LEN)
			return fault(map, "the line is too long", NULL);
		memcpy(map->copy, start, len);
		map->copy[len] = '\0';
		line = np_strip(map->copy);
		if (*line)
			return parse_line(map, line, out);
	}
	return 0;
}

static void rewind_map(struct map *map, const char *text, size_t len)
{
	/* a byte order mark, as some editors leave it */
	size_t mark = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	map->next = text + mark;
	map->end = text + len;
	map->line = 0;
}

static bool is_this_node(const char *name, const char *node_name)
{
	size_t shorter = strcspn(node_name, ".");

	return strcasecmp(name, node_name) == 0 ||
	       (strlen(name) == shorter && strncasecmp(name, node_name, shorter) == 0);
}

static int duplicate(const struct map *map, int first, const char *what)
{
	np_err_set(map->err, -EBADMSG, "address.map_duplicate", "%s:%d and %s:%d: %s", map->path,
		   first, map->path, map->line, what);
	np_err_hint(map->err, "remove one of the two lines");
	return -EBADMSG;
}

/* The address of this node stands there for another host too: both would take it. */
static int refuse_shared(struct map *map, const char *node_name, int line,
			 const struct np_inet *inet)
{
	struct entry entry;
	int r;

	while ((r = next_entry(map, &entry)) > 0) {
		char text[NP_INET_STRLEN], own[80], other[80];

		if (map->line == line || !np_inet_same_addr(&entry.inet, inet))
			continue;
		np_err_set(map->err, -EBADMSG, "address.map_duplicate",
			   "%s:%d and %s:%d give %s to both %s and %s", map->path,
			   line < map->line ? line : map->line, map->path,
			   line < map->line ? map->line : line, np_inet_addr_str(inet, text),
			   np_printable(node_name, own, sizeof(own)),
			   np_printable(entry.name, other, sizeof(other)));
		np_err_hint(map->err, "correct one of the two lines");
		return -EBADMSG;
	}
	return r;
}

static int no_entry(const struct map *map, const char *node_name)
{
	char full[80], brief[80];

	np_printable(node_name, full, sizeof(full));
	np_strcpy(brief, strcspn(full, ".") + 1, full);
	np_err_set(map->err, -ENOENT, "address.map_no_entry", "%s has no line for \"%s\"%s%s%s",
		   map->path, full, strchr(full, '.') ? ", nor for \"" : "",
		   strchr(full, '.') ? brief : "", strchr(full, '.') ? "\"" : "");
	np_err_hint(map->err, "add the line: %s ADDR/LEN", brief);
	return -ENOENT;
}

int np_address_map_find(const char *path, const char *text, size_t len, const char *node_name,
			struct np_inet *out, int *line, struct np_err *err)
{
	struct map map = { .path = path, .err = err };
	struct np_inet found = { 0 };
	struct entry entry;
	int found_line = 0, r;

	rewind_map(&map, text, len);
	while ((r = next_entry(&map, &entry)) > 0) {
		if (!is_this_node(entry.name, node_name))
			continue;
		if (found_line)
			return duplicate(&map, found_line, "both are for this node");
		found = entry.inet;
		found_line = map.line;
	}
	if (r < 0)
		return r;
	if (!found_line) {
		return no_entry(&map, node_name);
	}
	rewind_map(&map, text, len);
	r = refuse_shared(&map, node_name, found_line, &found);
	if (r < 0)
		return r;
	*out = found;
	*line = found_line;
	return 0;
}
