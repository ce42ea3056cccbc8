/*
 * read_output: the front's own tool that reads a spill file (spill.h) whole, for a client that
 * asks for it as a resource. What is over the ceiling loses its middle.
 */
#include "base/fd.h"
#include "base/text/text.h"
#include "tool/call.h"
#include "tool/spill.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_MAX = 64 << 20,
	SHOWN_MAX = 2 << 20, /* clients cut far less; escaping may double it */
	TIMEOUT_S = 20,
};

static const struct tool_param read_output_params[] = {
	{"name", PARAM_TEXT, true, "Name of the spill file: \"3.log\"", .max = 32},
	{0},
};

/* The file NAME in FOLDER, made by us and no link. */
static int open_output(const char *folder, const char *name)
{
	auto_close int folder_fd =
		open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder_fd < 0 || strchr(name, '/') != NULL)
		return -1;
	return openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static enum result_status read_output_execute(struct call *call, struct tool_result *result)
{
	static const struct text_limits limits = {.bytes = SHOWN_MAX};
	const char *name = value_text(value_member(call->arguments, "name"));
	struct text_cut cut;
	struct buf folder, content;
	struct err err;

	buf_init(&folder, PATH_MAX);
	buf_init(&content, READ_MAX);
	(void)spill_folder(call->environment, &folder);
	auto_close int fd = open_output(folder.data, name);
	bool read = fd >= 0 && fd_read_all(fd, &content, name, &err);
	if (read)
		(void)text_shorten(buf_str(&content), &limits, &result->text, &cut);
	buf_fini(&content);
	buf_fini(&folder);
	if (!read)
		return tool_fail(result,
				 "The output %.40s is no longer kept (the newest %d are), or is "
				 "over %d MiB.",
				 name, SPILL_KEPT, READ_MAX >> 20);
	return tool_done(result);
}

const struct tool read_output_tool = {
	.name = "read_output",
	.description = "Read a spill file.",
	.example = "{\"name\": \"3.log\"}",
	.params = read_output_params,
	.effects = EFFECT_READS,
	.timeout_s = TIMEOUT_S,
	.internal = true,
	.execute = read_output_execute,
};
