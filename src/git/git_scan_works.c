/* git_scan_works: interrupted work, which the user's `--continue` goes on with. */
#include "base/fd.h"
#include "git/git_scan_parts.h"
#include "git/git_text.h"

#include <string.h>

static bool options_are_inert(struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		struct str at = str_trim(line);
		size_t equals = str_find(at, STR("="), 0);
		if (!str_starts(at, STR("strategy")) || equals == (size_t)-1)
			continue;
		if (str_is(str_trim(str_part(at, 0, equals)), "strategy") &&
		    !git_text_strategy_is_own(str_part(at, equals + 1, at.size)))
			return false;
	}
	return true;
}

struct work {
	const char *folder, *name;
	size_t max;
	bool (*is_inert)(struct str text);
};

static const struct work works[] = {
	{"rebase-merge", "git-rebase-todo", GIT_TODO_MAX, git_text_todo_is_inert},
	{"rebase-merge", "strategy", GIT_POINTER_MAX, git_text_strategy_is_own},
	{"sequencer", "todo", GIT_TODO_MAX, git_text_todo_is_inert},
	{"sequencer", "opts", GIT_POINTER_MAX, options_are_inert},
};

static void look_work(const struct look *look, const struct work *work)
{
	char path[PATH_MAX];
	auto_close int fd = look_enter_or_mark(look, work->folder, path);
	const struct look below = {look->scan, fd, path};
	struct buf text;
	struct stat st;

	if (fd < 0)
		return;
	buf_init(&text, work->max);
	enum look_found found = look_read(&below, work->name, work->max, &text, &st);
	if (found == LOOK_ODD)
		look_mark_stat(look, work->folder, &st);
	else if (found == LOOK_READ && !work->is_inert(buf_str(&text)))
		look_mark(look, work->folder, buf_str(&text));
	buf_fini(&text);
}

void git_scan_works(const struct look *look)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		look_work(look, &works[i]);
}
