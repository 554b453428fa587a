/* SPDX-License-Identifier: MIT */
#ifndef NP_TESTS_UNIT_CENSUS_BYTES_H
#define NP_TESTS_UNIT_CENSUS_BYTES_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

/* A shared object and a loader cache of a few hundred bytes, for the tests and the seeds of
 * the readers. */

struct small_elf {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2]; /* all of it, read-only; the dynamic section */
	Elf64_Dyn dynamic[3];
	char strings[32];
	char text[160];
};

static inline void small_elf(struct small_elf *e, const char *soname, const void *text, size_t len)
{
	const uint64_t at = 0x1000;

	memset(e, 0, sizeof(*e));
	memcpy(e->head.e_ident, ELFMAG, SELFMAG);
	e->head.e_ident[EI_CLASS] = ELFCLASS64;
	e->head.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	e->head.e_type = ET_DYN;
#if defined(__aarch64__)
	e->head.e_machine = EM_AARCH64;
#else
	e->head.e_machine = EM_X86_64;
#endif
	e->head.e_phoff = offsetof(struct small_elf, segments);
	e->head.e_phentsize = sizeof(Elf64_Phdr);
	e->head.e_phnum = 2;
	e->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R,
				       .p_vaddr = at,
				       .p_filesz = sizeof(*e),
				       .p_memsz = sizeof(*e) };
	e->segments[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				       .p_flags = PF_R,
				       .p_offset = offsetof(struct small_elf, dynamic),
				       .p_filesz = sizeof(e->dynamic) };
	e->dynamic[0] = (Elf64_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = 1 };
	e->dynamic[1] = (Elf64_Dyn){ .d_tag = DT_STRTAB,
				     .d_un.d_ptr = at + offsetof(struct small_elf, strings) };
	strncpy(e->strings + 1, soname, sizeof(e->strings) - 2);
	memcpy(e->text, text, len);
}

/* Two entries of this machine, and one of another. */
static inline size_t small_cache(unsigned char out[512])
{
	static const char strings[] = "libnccl.so.2\0/opt/x/libnccl.so.2\0libucp.so.0\0/lib/u";
	const uint32_t abi =
#if defined(__aarch64__)
		0x0a03;
#else
		0x0303;
#endif
	const uint32_t base = 48 + 3 * 24, entries[3][3] = { { abi, base, base + 13 },
							     { 0x0003, base, base + 13 },
							     { abi, base + 33, base + 45 } };
	const uint32_t n = 3, len = sizeof(strings);

	memset(out, 0, 512);
	memcpy(out, "glibc-ld.so.cache1.1", 20);
	memcpy(out + 20, &n, 4);
	memcpy(out + 24, &len, 4);
	for (size_t i = 0; i < 3; i++)
		memcpy(out + 48 + i * 24, entries[i], sizeof(entries[i]));
	memcpy(out + base, strings, sizeof(strings));
	return base + sizeof(strings);
}

#endif
