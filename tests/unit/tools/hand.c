/* hand: see hand.h. */
#include "hand.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HAND_DEADLINE_MS = 60000 };

int hand_set_up(void **state)
{
	struct hand *hand = memory_alloc(sizeof(*hand));
	struct files_root root;
	struct err err;
	char *real;

	/* Modes of files are what a test says, whatever the umask of the person who tests. */
	(void)umask(022);
	(void)snprintf(hand->base, sizeof(hand->base), "/tmp/glovebox-unit-XXXXXX");
	assert_non_null(mkdtemp(hand->base));
	real = realpath(hand->base, NULL);
	assert_non_null(real);
	(void)snprintf(hand->base, sizeof(hand->base), "%s", real);
	free(real);
	(void)snprintf(hand->workspace, sizeof(hand->workspace), "%s/ws", hand->base);
	(void)snprintf(hand->outside, sizeof(hand->outside), "%s/outside", hand->base);
	assert_int_equal(mkdir(hand->workspace, 0755), 0);
	assert_int_equal(mkdir(hand->outside, 0755), 0);
	root = (struct files_root){.path = hand->workspace, .writable = true};
	assert_true(files_open(&root, 1, hand->workspace, NULL, &hand->files, &err));
	(void)snprintf(hand->temporary, sizeof(hand->temporary), "TMPDIR=%s",
		       hand->workspace);
	hand->environment[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
	hand->environment[1] = "HOME=/tmp";
	hand->environment[2] = hand->temporary;
	hand->seen = value_new_object();
	hand->folder = memory_copy(hand->workspace);
	tool_result_init(&hand->result);
	*state = hand;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	(void)remove(path);
	return 0;
}

int hand_tear_down(void **state)
{
	struct hand *hand = *state;

	files_close(hand->files);
	tool_result_fini(&hand->result);
	value_free(hand->arguments);
	value_free(hand->seen);
	free(hand->folder);
	(void)nftw(hand->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(hand);
	return 0;
}

/*
 * What a session does with a result: remember what was read.
 */
static void remember(struct hand *hand)
{
	for (void *at = value_first(hand->result.seen); at;
	     at = value_next(hand->result.seen, at)) {
		if (strcmp(value_key(at), CALL_FOLDER_KEY) == 0) {
			free(hand->folder);
			hand->folder = memory_copy(value_text(value_at(at)));
		} else {
			value_set(hand->seen, value_key(at), value_ref(value_at(at)));
		}
	}
}

static enum result_status run(struct hand *hand, const struct tool *tool, int64_t ms,
			      int fd, const char *json)
{
	struct err err;
	enum result_status status;

	tool_result_fini(&hand->result);
	tool_result_init(&hand->result);
	value_free(hand->arguments);
	hand->arguments = NULL;
	if (!value_parse(str_of(json), 0, &hand->arguments, &err))
		fail_msg("%s: %s", err.text, json);
	hand->call = (struct call){.tool = tool,
				   .arguments = hand->arguments,
				   .files = hand->files,
				   .workspace = hand->workspace,
				   .folder = hand->folder,
				   .environment = hand->environment,
				   .deadline_ms = clock_now_ms() + ms,
				   .seen = hand->seen,
				   .fds = {fd, -1, -1, -1, -1},
				   .control_fd = -1};
	status = tool->execute(&hand->call, &hand->result);
	assert_int_equal(status, hand->result.status);
	remember(hand);
	return status;
}

enum result_status hand_run_for(struct hand *hand, const struct tool *tool, int64_t ms,
				const char *json)
{
	return run(hand, tool, ms, -1, json);
}

enum result_status hand_run_with(struct hand *hand, const struct tool *tool, int fd,
				 const char *json)
{
	return run(hand, tool, 10000, fd, json);
}

enum result_status hand_run(struct hand *hand, const struct tool *tool, const char *json, ...)
{
	enum result_status status;
	struct buf text;
	va_list arguments;

	buf_init(&text, 64 << 20);
	va_start(arguments, json);
	assert_true(buf_addv(&text, json, arguments));
	va_end(arguments);
	status = hand_run_for(hand, tool, HAND_DEADLINE_MS, text.data);
	buf_fini(&text);
	return status;
}

char *hand_path(struct hand *hand, const char *path)
{
	struct buf absolute;

	buf_init(&absolute, 8192);
	buf_addf(&absolute, "%s/%s", hand->workspace, path);
	return buf_take(&absolute);
}

void hand_write(struct hand *hand, const char *path, const char *content, size_t size)
{
	auto_free char *absolute = hand_path(hand, path);
	struct err err;

	for (char *slash = absolute + strlen(hand->workspace) + 1;
	     (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(absolute, 0755);
		*slash = '/';
	}
	auto_close int fd = open(absolute, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, content, size, &err));
}

void hand_puts(struct hand *hand, const char *path, const char *content)
{
	hand_write(hand, path, content, strlen(content));
}

char *hand_read(struct hand *hand, const char *path, size_t *size)
{
	auto_free char *absolute = hand_path(hand, path);
	auto_close int fd = open(absolute, O_RDONLY | O_CLOEXEC);
	struct buf content;
	struct err err;

	if (fd < 0)
		return NULL;
	buf_init(&content, 256 << 20);
	assert_true(fd_read_all(fd, &content, path, &err));
	*size = content.size;
	return buf_take(&content);
}

void hand_assert_file(struct hand *hand, const char *path, const char *content)
{
	size_t size;
	auto_free char *found = hand_read(hand, path, &size);

	assert_non_null(found);
	assert_string_equal(found, content);
	assert_int_equal(size, strlen(content));
}

void hand_assert_says(struct hand *hand, const char *fragment)
{
	if (!strstr(hand->result.text.data, fragment))
		fail_msg("\"%s\" is not in: %s", fragment, hand->result.text.data);
}

void hand_assert_says_not(struct hand *hand, const char *fragment)
{
	if (strstr(hand->result.text.data, fragment))
		fail_msg("\"%s\" is in: %s", fragment, hand->result.text.data);
}

void hand_assert_status(struct hand *hand, enum result_status status)
{
	if (hand->result.status != status)
		fail_msg("%s instead of %s: %s", result_status_name(hand->result.status),
			 result_status_name(status), hand->result.text.data);
}
