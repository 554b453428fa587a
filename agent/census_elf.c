/* SPDX-License-Identifier: MIT */
/* What a shared object says of itself, told from its bytes. */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/census_read.h"

/* of read-only data: NCCL and UCX have some hundred KiB */
#define TEXT_MAX     (16U << 20)
#define DYNAMIC_MAX  (64U << 10)
#define HEADERS_MAX  128
#define SECTIONS_MAX 512

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define MACHINE EM_PPC64
#else
#define MACHINE EM_NONE
#endif
#define ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

/* ---- bytes ---- */

static ssize_t read_fd(const struct np_bytes *b, uint64_t offset, void *buf, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(b->fd, (char *)buf + got, len - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static ssize_t read_data(const struct np_bytes *b, uint64_t offset, void *buf, size_t len)
{
	if (offset >= b->size)
		return 0;
	if (len > b->size - offset)
		len = b->size - offset;
	memcpy(buf, (const char *)b->data + offset, len);
	return (ssize_t)len;
}

struct np_bytes np_bytes_fd(int fd, uint64_t size)
{
	return (struct np_bytes){ .read = read_fd, .size = size, .fd = fd };
}

struct np_bytes np_bytes_data(const void *data, size_t len)
{
	return (struct np_bytes){ .read = read_data, .size = len, .fd = -1, .data = data };
}

/* All of it or nothing. */
static int get(const struct np_bytes *b, uint64_t offset, void *buf, size_t len)
{
	ssize_t n;

	if (offset > b->size || len > b->size - offset)
		return -ENOEXEC;
	n = b->read(b, offset, buf, len);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -ENOEXEC;
}

/* ---- headers ---- */

struct elf {
	const struct np_bytes *b;
	Elf64_Ehdr head;
	Elf64_Phdr segments[HEADERS_MAX];
	size_t n;
};

static int read_headers(struct elf *e, bool *other_machine)
{
	int r = get(e->b, 0, &e->head, sizeof(e->head));

	if (r < 0)
		return r;
	if (memcmp(e->head.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	*other_machine = e->head.e_ident[EI_CLASS] != ELFCLASS64 ||
			 e->head.e_ident[EI_DATA] != ORDER || e->head.e_machine != MACHINE;
	if (*other_machine)
		return 0;
	if (e->head.e_type != ET_DYN || e->head.e_phentsize != sizeof(Elf64_Phdr) ||
	    e->head.e_phnum == 0 || e->head.e_phnum > HEADERS_MAX)
		return -ENOEXEC;
	e->n = e->head.e_phnum;
	return get(e->b, e->head.e_phoff, e->segments, e->n * sizeof(e->segments[0]));
}

/* Where in the file @address is, with at least one byte there. */
static bool offset_of(const struct elf *e, uint64_t address, uint64_t *offset, uint64_t *left)
{
	for (size_t i = 0; i < e->n; i++) {
		const Elf64_Phdr *s = &e->segments[i];

		if (s->p_type != PT_LOAD || address < s->p_vaddr ||
		    address - s->p_vaddr >= s->p_filesz ||
		    s->p_offset > UINT64_MAX - (address - s->p_vaddr))
			continue;
		*offset = s->p_offset + (address - s->p_vaddr);
		*left = s->p_filesz - (address - s->p_vaddr);
		return true;
	}
	return false;
}

static int read_soname(const struct elf *e, const Elf64_Phdr *dynamic, char *out, size_t size)
{
	_cleanup_free_ Elf64_Dyn *entries = NULL;
	size_t n = dynamic->p_filesz / sizeof(*entries);
	uint64_t strings = 0, name = 0, offset, left;
	bool has_strings = false, has_name = false;
	int r;

	if (dynamic->p_filesz > DYNAMIC_MAX || n == 0)
		return -ENOEXEC;
	entries = malloc(n * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	r = get(e->b, dynamic->p_offset, entries, n * sizeof(*entries));
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB) {
			strings = entries[i].d_un.d_ptr;
			has_strings = true;
		} else if (entries[i].d_tag == DT_SONAME) {
			name = entries[i].d_un.d_val;
			has_name = true;
		}
	}
	if (!has_strings || !has_name)
		return 0;
	if (strings > UINT64_MAX - name || !offset_of(e, strings + name, &offset, &left))
		return -ENOEXEC;
	if (left > size - 1)
		left = size - 1;
	r = get(e->b, offset, out, left);
	out[r < 0 ? 0 : left] = '\0';
	return r;
}

/* ---- strings ---- */

struct region {
	uint64_t offset, len;
};

/* .rodata by the section headers; false where they were stripped. */
static bool find_rodata(const struct elf *e, struct region *out)
{
	_cleanup_free_ Elf64_Shdr *sections = NULL;
	const Elf64_Shdr *names;
	size_t n = e->head.e_shnum;
	char name[8];

	if (n == 0 || n > SECTIONS_MAX || e->head.e_shentsize != sizeof(*sections) ||
	    e->head.e_shstrndx >= n)
		return false;
	sections = malloc(n * sizeof(*sections));
	if (!sections || get(e->b, e->head.e_shoff, sections, n * sizeof(*sections)) < 0)
		return false;
	names = &sections[e->head.e_shstrndx];
	for (size_t i = 0; i < n; i++) {
		if (sections[i].sh_type != SHT_PROGBITS || sections[i].sh_name >= names->sh_size ||
		    names->sh_offset > UINT64_MAX - sections[i].sh_name ||
		    get(e->b, names->sh_offset + sections[i].sh_name, name, sizeof(name)) < 0 ||
		    memcmp(name, ".rodata", sizeof(name)) != 0)
			continue;
		*out = (struct region){ sections[i].sh_offset, sections[i].sh_size };
		return true;
	}
	return false;
}

/* All that is loaded and neither code nor changed later. */
static size_t find_read_only(const struct elf *e, struct region *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n && n < max; i++)
		if (e->segments[i].p_type == PT_LOAD && !(e->segments[i].p_flags & (PF_X | PF_W)))
			out[n++] =
				(struct region){ e->segments[i].p_offset, e->segments[i].p_filesz };
	return n;
}

/* "1.13.1" at @s, its end; NULL: none. A third number may be missing where @three is not. */
static const char *skip_version(const char *s, const char *end, bool three)
{
	for (int part = 0; part < 3; part++) {
		const char *start = s;

		if (part > 0) {
			if (s == end || *s != '.')
				return part == 2 && !three ? s : NULL;
			start = ++s;
		}
		while (s < end && isdigit((unsigned char)*s) && s - start < 5)
			s++;
		if (s == start || (s < end && isdigit((unsigned char)*s)))
			return NULL;
	}
	return s;
}

static bool copy(char *out, size_t size, const char *s, const char *end)
{
	if ((size_t)(end - s) >= size)
		return false;
	memcpy(out, s, (size_t)(end - s));
	out[end - s] = '\0';
	return true;
}

bool np_nccl_version_in(const void *data, size_t len, char *out, size_t size)
{
	static const char words[] = "NCCL version ";
	const size_t n_words = sizeof(words) - 1;
	const char *s = data, *end = s + len;

	while ((s = memmem(s, (size_t)(end - s), words, n_words))) {
		const char *stop;

		s += n_words;
		stop = skip_version(s, end, true);
		if (stop && stop < end && copy(out, size, s, stop))
			return true;
	}
	return false;
}

/* What is behind @before is a part of something longer: "GLIBC_2.2.5", "x=1.2.3". */
static bool goes_on(char before)
{
	return before != '\0' && strchr("._-=/:", before);
}

/* UCX has its version as a string of its own. The compiler may put a constant's bytes right
 * in front of it, so that only its end is sure; where two such are found neither is taken. */
static void ucx_version_in(const char *data, size_t len, char *out, size_t size)
{
	const char *s = data, *end = data + len;
	bool found = false;

	while (s < end) {
		const char *stop = isdigit((unsigned char)*s) ? skip_version(s, end, true) : NULL;
		char one[40];

		if (!stop || stop == end || *stop != '\0' || (s > data && goes_on(s[-1]))) {
			const char *next = s + 1;

			while (isdigit((unsigned char)*s) && next < end &&
			       isdigit((unsigned char)*next))
				next++;
			s = next;
			continue;
		}
		if (copy(one, sizeof(one), s, stop)) {
			if (found && !np_streq(one, out)) {
				*out = '\0';
				return;
			}
			found = np_strcpy(out, size, one);
		}
		s = stop;
	}
}

static enum np_tri as_tri(bool yes)
{
	return yes ? NP_TRI_YES : NP_TRI_NO;
}

/* UCX 1.14 and newer tell how they were configured; the string stands behind its format. */
static void learn_ucp(const char *data, size_t len, struct np_elf *out)
{
	const char *end = data + len, *s = memmem(data, len, "Configured with: %s", 19);

	ucx_version_in(data, len, out->version, sizeof(out->version));
	s = s ? memmem(s, (size_t)(end - s), "\0--", 3) : NULL;
	if (s)
		out->mt = as_tri(
			memmem(s + 1, strnlen(s + 1, (size_t)(end - s) - 1), "--enable-mt", 11));
}

/* libuct has a list of the modules that it was built with: ":cuda:ib:rdmacm:cma". */
static void learn_uct(const char *data, size_t len, struct np_elf *out)
{
	const char *s = data, *end = data + len;

	while ((s = memmem(s, (size_t)(end - s), "\0:", 2))) {
		size_t n = strnlen(s + 1, (size_t)(end - s) - 1);
		char list[256];

		s++;
		if (n < 3 || n >= sizeof(list) - 1 || s + n == end ||
		    strspn(s, ":abcdefghijklmnopqrstuvwxyz0123456789_") != n ||
		    memmem(s, n, "::", 2))
			continue;
		memcpy(list, s, n);
		list[n] = ':';
		list[n + 1] = '\0';
		out->verbs = as_tri(strstr(list, ":ib:"));
		out->cuda = as_tri(strstr(list, ":cuda:"));
		return;
	}
}

static int read_region(const struct np_bytes *b, const struct region *where,
		       enum np_library_kind kind, struct np_elf *out)
{
	uint64_t left = where->offset < b->size ? b->size - where->offset : 0;
	_cleanup_free_ char *data = NULL;
	size_t len = TEXT_MAX - 2;
	ssize_t n;

	if (len > where->len)
		len = where->len;
	if (len > left)
		len = left;
	data = malloc(len + 2);
	if (!data)
		return -ENOMEM;
	/* an end in front of the first string, and one behind the last */
	data[0] = '\0';
	n = b->read(b, where->offset, data + 1, len);
	if (n < 0)
		return (int)n;
	data[1 + n] = '\0';
	len = (size_t)n + 2;
	if (kind == NP_LIBRARY_NCCL && !out->version[0])
		np_nccl_version_in(data, len, out->version, sizeof(out->version));
	else if (kind == NP_LIBRARY_UCP)
		learn_ucp(data, len, out);
	else if (kind == NP_LIBRARY_UCT)
		learn_uct(data, len, out);
	return 0;
}

int np_elf_read(const struct np_bytes *b, enum np_library_kind kind, struct np_elf *out)
{
	struct elf e = { .b = b };
	struct region regions[4];
	size_t n = 1;
	int r;

	memset(out, 0, sizeof(*out));
	r = read_headers(&e, &out->other_machine);
	if (r < 0 || out->other_machine)
		return r;
	for (size_t i = 0; i < e.n && r == 0; i++)
		if (e.segments[i].p_type == PT_DYNAMIC) {
			r = read_soname(&e, &e.segments[i], out->soname, sizeof(out->soname));
			break;
		}
	if (r < 0)
		return r;
	if (!find_rodata(&e, &regions[0]))
		n = find_read_only(&e, regions, NP_ARRAY_SIZE(regions));
	for (size_t i = 0; i < n && r == 0; i++)
		r = read_region(b, &regions[i], kind, out);
	return r;
}
