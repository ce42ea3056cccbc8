/* program_score: who goes first when memory runs out; see program.h. */
#include "process/program_parts.h"

#include <string.h>
#include <unistd.h>

#define FIRST "1000" /* the kernel's ceiling */

static void score_write(struct program_score *score, const char *text, bool is_own)
{
	/* Refused: all have the same then, as they would without this. */
	if (score != NULL && score->is_own != is_own &&
	    pwrite(score->fd, text, strlen(text), 0) > 0)
		score->is_own = is_own;
}

void program_score_raise(struct program_score *score)
{
	score_write(score, FIRST, false);
}

void program_score_lower(struct program_score *score)
{
	if (score != NULL)
		score_write(score, score->own, true);
}
