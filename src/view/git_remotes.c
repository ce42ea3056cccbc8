/* git_remotes: reads `remote.*.url`, `remote.*.pushurl` and what changes them. */

#include "view/git_remotes.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "guard/readers.h"
#include "view/shape.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	REWRITES_MAX = 64,
	ADDRESS_MAX = 4096, /* a longer one is of no forge */
};

/* `url.BASE.insteadOf = PREFIX`, or with PUSHES `pushInsteadOf`. */
struct rewrite {
	const char *base, *prefix;
	bool pushes;
};

struct reading {
	struct arena *arena;
	const char **urls, **pushed; /* as the file has them; GIT_REMOTES_MAX each */
	size_t url_count, pushed_count;
	struct rewrite rewrites[REWRITES_MAX];
	size_t rewrite_count;
};

static void take(struct reading *reading, const char **list, size_t *count, struct str value)
{
	if (*count < GIT_REMOTES_MAX && value.size > 0 && value.size < ADDRESS_MAX &&
	    memchr(value.data, '\0', value.size) == NULL)
		list[(*count)++] = arena_copy(reading->arena, value);
}

static void each_key(void *context, const char *section, const char *sub, const char *key,
		     struct str value)
{
	struct reading *reading = context;
	const bool pushes = strcmp(key, "pushinsteadof") == 0;

	if (strcmp(section, "remote") == 0 && strcmp(key, "url") == 0) {
		take(reading, reading->urls, &reading->url_count, value);
	} else if (strcmp(section, "remote") == 0 && strcmp(key, "pushurl") == 0) {
		take(reading, reading->pushed, &reading->pushed_count, value);
	} else if (strcmp(section, "url") == 0 && value.size > 0 &&
		   (pushes || strcmp(key, "insteadof") == 0) &&
		   memchr(value.data, '\0', value.size) == NULL &&
		   reading->rewrite_count < REWRITES_MAX) {
		reading->rewrites[reading->rewrite_count++] =
			(struct rewrite){arena_copy(reading->arena, str_of(sub)),
					 arena_copy(reading->arena, value), pushes};
	}
}

/*
 * ADDRESS as the rewriting with the longest prefix changes it; NULL: none does. PUSHES:
 * only those of `pushInsteadOf`, else only those of `insteadOf`.
 */
static const char *rewritten(struct reading *reading, const char *address, bool pushes)
{
	const struct rewrite *best = NULL;
	const char *changed;
	struct buf text;

	for (size_t i = 0; i < reading->rewrite_count; i++) {
		const struct rewrite *at = &reading->rewrites[i];

		if (at->pushes == pushes && str_starts(str_of(address), str_of(at->prefix)) &&
		    (best == NULL || strlen(at->prefix) > strlen(best->prefix)))
			best = at;
	}
	if (best == NULL)
		return NULL;
	buf_init(&text, 2 * ADDRESS_MAX);
	(void)buf_addf(&text, "%s%s", best->base, address + strlen(best->prefix));
	changed = arena_copy(reading->arena, buf_str(&text));
	buf_fini(&text);
	return changed;
}

/* The addresses that git uses for those of READING. */
static const char **settle(struct reading *reading)
{
	const size_t room = 2 * reading->url_count + reading->pushed_count + 1;
	const char **found = arena_alloc(reading->arena, room * sizeof(*found));
	size_t count = 0;

	for (size_t i = 0; i < reading->url_count; i++) {
		const char *fetched = rewritten(reading, reading->urls[i], false);
		const char *pushed = rewritten(reading, reading->urls[i], true);

		found[count++] = fetched != NULL ? fetched : reading->urls[i];
		if (pushed != NULL)
			found[count++] = pushed;
	}
	for (size_t i = 0; i < reading->pushed_count; i++) {
		const char *pushed = rewritten(reading, reading->pushed[i], false);

		found[count++] = pushed != NULL ? pushed : reading->pushed[i];
	}
	return found;
}

static bool read_config(const char *repository, struct buf *text)
{
	char path[PATH_MAX];
	struct stat st;
	int size = snprintf(path, sizeof(path), "%s/config", repository);

	if (size < 0 || (size_t)size >= sizeof(path))
		return false;
	auto_close int fd =
		open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fd_read_all(fd, text, path, NULL);
}

const char **git_remotes_read(const char *workspace, struct arena *arena)
{
	struct reading reading = {.arena = arena};
	auto_free char *repository = shape_repository_of(workspace);
	struct git_config config;
	struct buf text;

	reading.urls = arena_alloc(arena, (GIT_REMOTES_MAX + 1) * sizeof(*reading.urls));
	reading.pushed =
		arena_alloc(arena, (GIT_REMOTES_MAX + 1) * sizeof(*reading.pushed));
	git_config_init(&config);
	config.each = each_key;
	config.context = &reading;
	buf_init(&text, GIT_CONFIG_MAX);
	if (repository != NULL && read_config(repository, &text))
		git_config_read(buf_str(&text), &config);
	buf_fini(&text);
	git_config_fini(&config);
	return settle(&reading);
}
