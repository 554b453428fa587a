/* SPDX-License-Identifier: MIT */
#ifndef NP_FAKE_H
#define NP_FAKE_H

/*
 * FAKES for the tests of the GPU rungs: libraries with the names of NVIDIA's that play
 * error codes and keep "GPU memory" in host memory. A rung that passes over them proves
 * that the rung's own logic works, nothing of a GPU. What they play comes from an
 * environment variable of blank-separated words, "gpus=2 fail=cuMemAlloc_v2:2", or, for a
 * process whose environment is made from nothing, from the file of that name in /etc/fake.
 * What they are asked to count they write into the file FAKE_LOG there, if there is one.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* A file is read once: a rung asks thousands of times. */
static inline const char *fake_words(const char *name)
{
	static __thread struct {
		char name[16], words[256];
		bool there;
	} files[4];
	const char *text = getenv(name);
	char path[64];
	size_t i = 0;
	FILE *file;

	if (text)
		return text;
	while (files[i].name[0] && strcmp(files[i].name, name) != 0)
		if (++i == sizeof(files) / sizeof(files[0]))
			abort();
	if (!files[i].name[0]) {
		snprintf(files[i].name, sizeof(files[i].name), "%s", name);
		snprintf(path, sizeof(path), "/etc/fake/%s", name);
		file = fopen(path, "re");
		files[i].there = file && fgets(files[i].words, sizeof(files[i].words), file);
		if (file)
			fclose(file);
	}
	return files[i].there ? files[i].words : NULL;
}

/* The text after "@word" in variable @name, or NULL; ends at a blank or the end. */
static inline const char *fake_word(const char *name, const char *word)
{
	const char *at = fake_words(name);

	while (at && *at) {
		if (strncmp(at, word, strlen(word)) == 0)
			return at + strlen(word);
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

static inline long fake_number(const char *name, const char *word, long otherwise)
{
	const char *text = fake_word(name, word);

	return text ? strtol(text, NULL, 10) : otherwise;
}

/* "WORD" and a newline into /etc/fake/FAKE_LOG. */
static inline void fake_log(const char *word)
{
	int fd = open("/etc/fake/FAKE_LOG", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return;
	if (dprintf(fd, "%s\n", word) < 0)
		abort();
	close(fd);
}

#endif
