/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool mostly(size_t bad, size_t there)
{
	return bad >= 2 && 4 * bad >= 3 * there;
}

static void mark_lines(const uint8_t *there, const uint8_t *bad, struct np_ranks_shape *out)
{
	size_t n = (size_t)out->n;

	for (size_t i = 0; i < n; i++) {
		size_t row_there = 0, row_bad = 0, column_there = 0, column_bad = 0;

		for (size_t j = 0; j < n; j++) {
			row_there += there[i * n + j];
			row_bad += there[i * n + j] && bad[i * n + j];
			column_there += there[j * n + i];
			column_bad += there[j * n + i] && bad[j * n + i];
		}
		out->row[i] = mostly(row_bad, row_there);
		out->column[i] = mostly(column_bad, column_there);
		out->n_bad += row_bad;
	}
}

int np_ranks_shape_make(int n, const uint8_t *there, const uint8_t *bad, struct np_ranks_shape *out)
{
	size_t count = (size_t)n;

	memset(out, 0, sizeof(*out));
	out->n = n;
	out->row = calloc(count, 1);
	out->column = calloc(count, 1);
	out->single = calloc(count * count, 1);
	if (!out->row || !out->column || !out->single) {
		np_ranks_shape_done(out);
		return -ENOMEM;
	}
	mark_lines(there, bad, out);
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			size_t cell = i * count + j;
			/* a rank that is bad as sender is often so as receiver, less plainly */
			bool explained =
				out->row[i] || out->column[j] || out->row[j] || out->column[i];

			out->single[cell] = there[cell] && bad[cell] && !explained;
			out->n_single += out->single[cell];
		}
	}
	return 0;
}

void np_ranks_shape_done(struct np_ranks_shape *shape)
{
	free(shape->row);
	free(shape->column);
	free(shape->single);
	memset(shape, 0, sizeof(*shape));
}

static int cmp_float(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

double np_ranks_usual(int n, const uint8_t *there, const float *value, bool more)
{
	size_t cells = (size_t)n * (size_t)n, count = 0;
	float *values = malloc(cells * sizeof(*values));
	double usual;

	if (!values)
		return 0;
	for (size_t i = 0; i < cells; i++)
		if (there[i] && value[i] > 0)
			values[count++] = value[i];
	qsort(values, count, sizeof(*values), cmp_float);
	usual = count == 0 ? 0 :
			     (double)values[more ? count - 1 - (count - 1) / 4 : (count - 1) / 4];
	free(values);
	return usual;
}

size_t np_ranks_slow_cells(int n, const uint8_t *there, const float *value, double usual,
			   double factor, bool more, uint8_t *bad)
{
	size_t cells = (size_t)n * (size_t)n, count = 0;

	for (size_t i = 0; i < cells; i++) {
		double v = (double)value[i];

		bad[i] = there[i] && v > 0 && usual > 0 &&
			 (more ? v * factor < usual : v > usual * factor);
		count += bad[i];
	}
	return count;
}

bool np_ranks_wait_is_cause(int n, const int *waits, int rank)
{
	int peer = waits[rank];

	if (peer < 0 || peer >= n)
		return false;
	return waits[peer] < 0 || waits[peer] == rank;
}
