/* bash_job: marks; see bash_job.h. */
#include "tools/bash_job.h"

#include <string.h>

struct bash_mark bash_job_from(const struct bash_job *job, int64_t since)
{
	size_t at = job->count;

	while (at > 0 && since >= 0 &&
	       job->marks[at - 1].out + job->marks[at - 1].error > (uint64_t)since)
		at--;
	return at > 0 ? job->marks[at - 1] : (struct bash_mark){0};
}

void bash_job_shown(struct bash_job *job, struct bash_mark mark)
{
	if (job->count == BASH_MARKS) {
		job->count = BASH_MARKS / 2;
		memmove(job->marks, job->marks + BASH_MARKS - job->count,
			job->count * sizeof(job->marks[0]));
	}
	job->marks[job->count++] = mark;
}
