#include "tui/notify.h"

#include "process/program.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
	[NOTIFY_AUTO] = "auto",
	[NOTIFY_BELL] = "bell",
	[NOTIFY_OFF] = "off",
	[NOTIFY_COMMAND] = "command",
};

bool notify_parse(const char *name, enum notify_way *way)
{
	for (size_t i = NOTIFY_AUTO; i < NOTIFY_COMMAND; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*way = (enum notify_way)i;
		return true;
	}
	return false;
}

const char *notify_name(enum notify_way way)
{
	return names[way];
}

bool notify_is_due(const struct term *term)
{
	return term->focus == TERM_UNFOCUSED ||
	       (term->focus == TERM_FOCUS_UNKNOWN && !term->has_focus);
}

void notify_add(enum notify_way way, const struct term *term, const char *text,
		struct buf *out)
{
	static const char *const forms[] = {
		[TERM_NOTICE_9] = "\x1b]9;glovebox: %s\x1b\\",
		[TERM_NOTICE_99] = "\x1b]99;;glovebox: %s\x1b\\",
		[TERM_NOTICE_777] = "\x1b]777;notify;glovebox;%s\x1b\\",
	};

	if (way == NOTIFY_OFF || way == NOTIFY_COMMAND)
		return;
	if (way == NOTIFY_BELL || term->notice == TERM_NOTICE_BELL) {
		(void)buf_addc(out, '\a');
		return;
	}
	const char *form = forms[term->notice];
	const char *place = strstr(form, "%s");

	(void)buf_add(out, form, (size_t)(place - form));
	(void)buf_adds(out, text);
	(void)buf_adds(out, place + 2);
}

bool notify_start(const char *const *words, const char *text, struct err *err)
{
	const char *argv[NOTIFY_WORDS_MAX + 2] = {NULL};
	size_t count = 0;

	while (count < NOTIFY_WORDS_MAX && words[count] != NULL) {
		argv[count] = words[count];
		count++;
	}
	argv[count] = text;
	const struct program_start start = {.argv = argv,
					    .environment = (const char *const *)environ,
					    .folder = "/",
					    .fds = {-1, -1, -1}};

	return program_start_apart(&start, err);
}
