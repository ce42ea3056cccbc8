/*
 * complete ROUNDS: a key of somebody who names a file with an @, a row of microseconds for each
 * round: 100,000 names are searched for one letter, for some letters, for a folder with a name, and
 * for what nothing fits.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "tui/choose/complete.h"

enum { NAMES = 100000, TEXT_MAX = 16 << 20 };

static int64_t used_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void add_names(struct buf *list)
{
	static const char *const parts[] = {"screen",  "paint",   "typing", "console",
					    "journal", "history", "policy", "worker",
					    "keeper",  "records"};

	for (unsigned i = 0; i < NAMES; i++) {
		(void)buf_addf(list, "src/%s/%s_%u/%s_%u.c", parts[i % 10],
			       parts[i / 10 % 10], i / 1000, parts[i / 100 % 10], i);
		(void)buf_addc(list, '\0');
	}
}

static void count(void *context, struct str name)
{
	size_t *found = context;

	*found += name.size;
}

int main(int argc, char **argv)
{
	static const char *const keys[] = {"e", "scrn", "tui/keep", "qqzzqqzz"};
	const long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	struct complete *complete = complete_new();
	size_t found = 0;
	struct buf list;

	buf_init(&list, TEXT_MAX);
	add_names(&list);
	complete_set(complete, buf_str(&list));
	for (long round = 0; round < rounds; round++) {
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			const int64_t begun = used_us();

			complete_find(complete, str_of(keys[i]), count, &found);
			(void)printf("%s%" PRId64, i > 0 ? " " : "", used_us() - begun);
		}
		(void)printf("\n");
	}
	complete_free(complete);
	buf_fini(&list);
	return found == 0;
}
