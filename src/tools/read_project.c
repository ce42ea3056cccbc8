/*
 * read_project: the front's own tools that read files of a project: its texts for agents,
 * and spill files. The texts for agents are AGENTS.md, else CLAUDE.md, of each
 * folder from the workspace down to the agent's base, with the files of the workspace that their
 * lines `@path` name. Only texts within bounds are read;
 * anything else under such a name is skipped and reported.
 */

#include "base/fd.h"
#include "base/path.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/*
	 * Of all files together. Other agents read as much (32 KiB, some 8,000 tokens),
	 * and no model follows more.
	 */
	INSTRUCTIONS_MAX = 32 << 10,
	/* The most folders on the way. When there are more, the deepest ones count. */
	FOLDERS_MAX = 32,
	/* A file named by a line `@path` may name others, so deep; a circle ends there. */
	INCLUDED_DEPTH = 5,
};

static const char *const names[] = {"AGENTS.md", "CLAUDE.md"};

static const struct row read_instructions_params[] = {
	{"leaf", ROW_TEXT, true, "The deepest folder, relative to the workspace",
	 .max = PATH_MAX - 1},
	{0},
};

struct instructions {
	struct call *call;
	struct tool_result *result;
	struct buf texts[FOLDERS_MAX]; /* of each folder, the deepest first */
	size_t room;                   /* bytes that are left of INSTRUCTIONS_MAX */
	struct value *files, *skipped;
};

static void skip(struct instructions *instructions, const char *path, const char *why)
{
	struct value *row = value_new_object();

	value_set_text(row, "path", path);
	value_set_text(row, "why", why);
	value_append(instructions->skipped, row);
}

/* Read at most MAX bytes of FD. */
static bool read_some(int fd, size_t max, struct buf *content, struct err *err)
{
	while (content->size < max) {
		char *at = buf_reserve(content, max - content->size);
		ssize_t got = read(fd, at, max - content->size);

		if (got < 0 && errno != EINTR)
			return err_set(err, errno, "%s", strerror(errno));
		if (got == 0)
			return true;
		if (got > 0)
			buf_commit(content, (size_t)got);
	}
	return true;
}

/*
 * Read the text of FILE into CONTENT, as far as there is room. False: it is none, and *WHY says so.
 */
static bool read_text(const struct instructions *instructions, const struct file *file,
		      struct buf *content, const char **why, struct err *err)
{
	/* Read some bytes more, so that a cut character can be recognised. */
	if (!read_some(file->fd, instructions->room + 4, content, err)) {
		*why = err->text;
		return false;
	}
	*why = "no text in UTF-8";
	return memchr(content->data, '\0', content->size) == NULL &&
	       text_is_utf8(str_part(buf_str(content), 0,
				     text_character_border(buf_str(content),
							   instructions->room)));
}

static void add_lines(struct instructions *instructions, const char *path,
		      struct str text, unsigned depth, struct buf *out);

/* Add the text of NAME, which a line of the file PATH names. False: it cannot be read. */
static bool include(struct instructions *instructions, const char *path, struct str name,
		    unsigned depth, struct buf *out)
{
	const char *slash = strrchr(path, '/');
	struct buf place, content;
	struct err err = {0};
	const char *why = err.text;
	struct file file;
	bool fine;

	buf_init(&place, PATH_MAX);
	buf_init(&content, INSTRUCTIONS_MAX + 4);
	file_init(&file);
	if (slash != NULL)
		(void)buf_add(&place, path, (size_t)(slash - path) + 1);
	(void)buf_addstr(&place, name);
	fine = files_reach(instructions->call->files, place.data, FILES_READ, &file, &err);
	/* The project chooses the name: it must not show what lies beside the project. */
	if (fine &&
	    !path_within(file.path.data, files_workspace(instructions->call->files))) {
		fine = false;
		why = "it is outside of the workspace";
	}
	fine = fine && read_text(instructions, &file, &content, &why, &err);
	if (fine) {
		buf_truncate(&content,
			     text_character_border(buf_str(&content), instructions->room));
		instructions->room -= content.size;
		add_lines(instructions, place.data, buf_str(&content), depth + 1, out);
	} else {
		skip(instructions, place.data, why);
	}
	file_fini(&file);
	buf_fini(&content);
	buf_fini(&place);
	return fine;
}

/* Add TEXT of the file PATH; a line `@path` stands for the file that it names, if there is one. */
static void add_lines(struct instructions *instructions, const char *path,
		      struct str text, unsigned depth, struct buf *out)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		const struct str named = str_trim(line);

		if (depth < INCLUDED_DEPTH && named.size > 1 && named.data[0] == '@' &&
		    memchr(named.data, ' ', named.size) == NULL &&
		    include(instructions, path, str_part(named, 1, named.size), depth, out))
			continue;
		(void)buf_addstr(out, line);
		(void)buf_addc(out, '\n');
	}
}

static void take_text(struct instructions *instructions, const char *path,
		      const struct file *file, struct buf *content, struct buf *out)
{
	size_t size = file->st.st_size > 0 ? (size_t)file->st.st_size : content->size;
	struct value *row = value_new_object();

	buf_truncate(content, text_character_border(buf_str(content), instructions->room));
	(void)buf_addf(out, "## %s\n\n", path);
	instructions->room -= content->size;
	add_lines(instructions, path, buf_str(content), 0, out);
	if (size > content->size)
		(void)buf_addf(out, "[… %zu bytes left out: read %s for the rest]\n",
			       size - content->size, path);
	value_set_text(row, "path", path);
	value_set_integer(row, "bytes", (int64_t)size);
	value_set_integer(row, "left_out", (int64_t)(size - content->size));
	value_append(instructions->files, row);
}

/* False: there is no file of that name, and another name may be tried. */
static bool take_file(struct instructions *instructions, const char *path, struct buf *out)
{
	struct file file;
	struct buf content;
	struct err err = {0};
	const char *why = err.text;
	bool reached;

	file_init(&file);
	reached = files_reach(instructions->call->files, path, FILES_READ, &file, &err);
	if (!reached) {
		file_fini(&file);
		if (err.code != ENOENT)
			skip(instructions, path, err.text);
		return err.code != ENOENT;
	}
	buf_init(&content, INSTRUCTIONS_MAX + 4);
	if (!read_text(instructions, &file, &content, &why, &err))
		skip(instructions, path, why);
	else if (str_trim(buf_str(&content)).size > 0)
		take_text(instructions, path, &file, &content, out);
	buf_fini(&content);
	file_fini(&file);
	return true;
}

static void take_folder(struct instructions *instructions, const char *folder,
			struct buf *out)
{
	struct buf path;
	bool taken = false;

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !taken; i++) {
		buf_clear(&path);
		if (!buf_addf(&path, "%s%s%s", folder, folder[0] ? "/" : "", names[i]))
			break;
		taken = take_file(instructions, path.data, out);
	}
	buf_fini(&path);
}

static enum result_status read_instructions_execute(struct call *call,
						    struct tool_result *result)
{
	struct instructions instructions = {
		.call = call,
		.result = result,
		.room = INSTRUCTIONS_MAX,
		.files = value_new_array(),
		.skipped = value_new_array(),
	};
	struct buf folder;
	size_t count = 0;

	buf_init(&folder, PATH_MAX);
	(void)buf_adds(&folder, call_text(call, "leaf"));
	if (strcmp(folder.data, ".") == 0)
		buf_clear(&folder);
	/*
	 * The deepest folder comes first: its text precedes the others, and so does its
	 * share of the room.
	 */
	for (bool more = true; more && count < FOLDERS_MAX && !call_stopped(call);) {
		const char *slash = strrchr(folder.data, '/');

		buf_init(&instructions.texts[count], 2 * INSTRUCTIONS_MAX);
		take_folder(&instructions, folder.data, &instructions.texts[count++]);
		more = folder.size > 0;
		buf_truncate(&folder, slash ? (size_t)(slash - folder.data) : 0);
	}
	for (size_t i = count; i > 0; i--) {
		(void)buf_addstr(&result->text, buf_str(&instructions.texts[i - 1]));
		if (i > 1 && instructions.texts[i - 1].size > 0)
			(void)buf_addc(&result->text, '\n');
		buf_fini(&instructions.texts[i - 1]);
	}
	buf_fini(&folder);
	value_set(tool_details(result), "files", instructions.files);
	value_set(tool_details(result), "skipped", instructions.skipped);
	return call_stopped(call) ? call_stop_result(call, result) : tool_done(result);
}

const struct tool read_instructions_tool = {
	.name = "read_instructions",
	.description = "Read what the project's files tell agents.",
	.params = read_instructions_params,
	.effects = EFFECT_READS,
	.timeout_s = 10,
	.internal = true,
	.execute = read_instructions_execute,
};

/*
 * The tool that reads a spill file (tool/call.h) whole, for a client that asks for it as a
 * resource. An output over the ceiling loses its middle.
 */

enum {
	READ_MAX = 64 << 20,
	SHOWN_MAX = 2 << 20, /* clients show far less; escaping may double the size */
	OUTPUT_TIMEOUT_S = 20,
};

static const struct row read_output_params[] = {
	{"name", ROW_TEXT, true, "Name of the spill file: \"3.log\"", .max = 32},
	{0},
};

/* Open the file NAME in FOLDER, which must be made by us and be no link. */
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
	.timeout_s = OUTPUT_TIMEOUT_S,
	.internal = true,
	.execute = read_output_execute,
};
