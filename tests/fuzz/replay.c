/* SPDX-License-Identifier: MIT */
/* Runs the files given on the command line through a fuzz target, for compilers
 * that have no libFuzzer. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		np_auto_buf struct np_buf input = { 0 };
		int r = np_file_read_at(AT_FDCWD, argv[i], 16 << 20, &input);

		if (r < 0) {
			fprintf(stderr, "%s: errno %d\n", argv[i], -r);
			return 1;
		}
		LLVMFuzzerTestOneInput((const uint8_t *)input.data, input.len);
	}
	printf("%d inputs\n", argc - 1);
	return 0;
}
