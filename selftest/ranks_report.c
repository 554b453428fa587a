/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_report.h"

bool np_ranks_fatal(const struct np_err *err)
{
	static const char *const codes[] = { "ranks.died", "ranks.hung", "ranks.gone",
					     "ranks.absent", "ranks.version" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(codes); i++)
		if (err->num < 0 && np_streq(err->code, codes[i]))
			return true;
	return false;
}

bool np_ranks_report(struct np_ranks_job *job, struct np_buf *out)
{
	bool ready = true;

	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *b = job->boards[i];

		if (!b || b->err.num < 0)
			ready = false;
		np_buf_printf(out, "Rank %d: %s\n", i, !b ? "no report" : b->err.message);
		for (int j = 0; b && j < job->size; j++)
			np_buf_printf(out, "   %d: %d %d %s %.2f us %.1f MB/s\n", j,
				      b->cells[j].status, b->cells[j].trials,
				      b->cells[j].lane ? b->lanes[b->cells[j].lane - 1] : "",
				      b->cells[j].latency_us, b->cells[j].in_MBps);
		for (uint32_t j = 0; b && j < b->n_notes; j++)
			np_buf_printf(out, "   note %d %s %s\n", b->notes[j].peer, b->notes[j].code,
				      b->notes[j].message);
		if (b)
			np_buf_printf(out, "  connect %lu rounds %lu\n", b->connect_ms,
				      b->rounds_ms);
		if (b && b->allreduce.backend)
			np_buf_printf(out, "Rank %d Clique size: %u final_size: %u\n", i,
				      b->allreduce.clique_size, b->allreduce.final_size);
	}
	return ready;
}
