/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_NCCL_LINE_H
#define NP_AGENT_NCCL_LINE_H

#include <stdbool.h>
#include <stddef.h>

/* NCCL cuts a name and a value at this many bytes (NCCL src/misc/param.cc,
 * setEnvFile: arrays of 1024). */
#define NP_NCCL_FIELD_MAX 1023
/* NCCL 2.30 and newer read pieces of this many bytes, each as a line of its own. */
#define NP_NCCL_LINE_MAX 4095

/* One line of an nccl.conf, as NCCL 2.26 to 2.29 reads it. All pointers point
 * into the text. */
struct np_nccl_line {
	const char *text; /* the line, without its newline */
	size_t len;
	bool newline;	  /* a newline follows */
	size_t shown_len; /* up to the first NUL byte, where NCCL stops reading */
	bool read;	  /* NCCL sets a variable from it */
	const char *key;
	size_t key_len; /* not cut */
	const char *value;
	size_t value_len; /* not cut */
};

/* Takes the line at *pos and moves *pos behind it. False at the end of the text. */
bool np_nccl_line_next(const char *text, size_t len, size_t *pos, struct np_nccl_line *line);

/* NCCL would set @key from this line. */
bool np_nccl_line_is(const struct np_nccl_line *line, const char *key);

#endif
