/*
 * Fuzz target of agent/when: a time that is taken stays as it is kept, and its next run
 * lies ahead. The forms that the refusal of words names are themselves taken. Stored times
 * are read, whatever they are.
 */
#include "agent/when.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW_S = 1000000000 };

/* Take TEXT, and the text that it is kept as. */
static bool settle(const char *text, struct err *err)
{
	struct buf times, again;
	int64_t next_s = 0;
	bool ok;

	buf_init(&times, 4096);
	buf_init(&again, 4096);
	ok = when_schedule_settle(text, NULL, NOW_S, &times, &next_s, err);
	if (ok && (next_s <= NOW_S ||
		   next_s != when_schedule_next(buf_str(&times), STR(""), 0, NOW_S) ||
		   !when_schedule_settle(times.data, NULL, NOW_S, &again, &next_s, NULL) ||
		   strcmp(times.data, again.data) != 0))
		abort();
	buf_fini(&again);
	buf_fini(&times);
	return ok;
}

/* Take every text in quotes behind "say it as". */
static void settle_nearest(const char *sentence)
{
	const char *from = strstr(sentence, ": say it as \"");
	const char *to;

	while (from && (from = strchr(from, '"')) != NULL && (to = strchr(from + 1, '"'))) {
		struct buf form;

		buf_init(&form, 4096);
		(void)buf_addf(&form, "%.*s", (int)(to - from - 1), from + 1);
		if (!settle(form.data, NULL))
			abort();
		buf_fini(&form);
		from = to + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schedule stored = {.times = {(const char *)data, size}};
	struct err err = {0};
	struct buf text;

	buf_init(&text, SIZE_MAX);
	(void)buf_addstr(&text, stored.times);
	if (!memchr(text.data, '\0', text.size) && !settle(text.data, &err) &&
	    !memmem(data, size, "say it as", 9))
		settle_nearest(err.text);
	buf_clear(&text);
	when_schedule_add(&stored, NOW_S, &text);
	buf_fini(&text);
	return 0;
}
