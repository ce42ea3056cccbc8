/*
 * read_brought: reads what a workspace brings along for agents: roles, skills, commands, hooks
 * and servers (extend/brought.h). It runs in a worker, so that the front opens none of these
 * files by name. The worker reads and hashes; the front judges names and contents, and decides
 * what counts.
 *
 * Each item has a kind, a name, the file (of a skill: its folder), and either a problem or a
 * hash and a text. The text is what a person reads before the item is let in. The hash is that of
 * the text, except for a skill, which is a whole folder: its hash covers the names, modes and
 * contents of all files, and its text shows those that are short and readable.
 */

#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ITEMS_MAX = 256,      /* of one kind: people write these by hand */
	NAMES_MAX = 16 << 10, /* names of one folder that are looked at */
	COMMANDS_DEPTH = 4,
	TEXT_MAX = 256 << 10, /* of one item: far more than any prompt */
	TEXTS_MAX = 4 << 20,  /* of all items */
	SKILL_BYTES_MAX = 16 << 20,
	SKILL_DEPTH = 8,
	SHOWN_MAX = 64 << 10, /* a longer file of a skill is shown by its hash */
	TIMEOUT_S = 20,
};

static const struct row read_brought_params[] = {
	{"kind", ROW_TEXT, false, "Only items of this kind", .max = 16},
	{"name", ROW_TEXT, false, "Only the item of this name", .max = 128},
	{0},
};

struct reading {
	struct call *call;
	const char *kind, *name; /* the wanted ones; NULL: all */
	struct value *items;
	struct value *folders; /* the real paths of the folders that were read */
	size_t total;          /* bytes of all texts */
	size_t left_out;       /* items over ITEMS_MAX */
};

/* A file or folder of the workspace in which items may be. */
struct place {
	const char *kind, *path;
	void (*read)(struct reading *reading, const struct place *place);
	unsigned depth; /* of its folders */
};

/* Makes the items. */

static const struct value *find_item(const struct reading *reading, const char *kind,
				     const char *name, size_t *count)
{
	*count = 0;
	for (size_t i = 0; i < value_count(reading->items); i++) {
		const struct value *row = value_item(reading->items, i);

		if (strcmp(value_text(value_member(row, "kind")), kind) != 0)
			continue;
		*count += 1;
		if (strcmp(value_text(value_member(row, "name")), name) == 0)
			return row;
	}
	return NULL;
}

static void set_problem(struct value *row, const char *problem)
{
	value_set_text(row, "problem", problem);
}

/*
 * Add an item. NULL: it is not wanted, or there are too many. An item whose name was taken before
 * has a problem already.
 */
static struct value *add_item(struct reading *reading, const char *kind, const char *name,
			      const char *file)
{
	struct value *row = NULL;
	const struct value *first;
	size_t count;

	if (reading->name != NULL && strcmp(reading->name, name) != 0)
		return NULL;
	first = find_item(reading, kind, name, &count);
	if (first == NULL && count >= ITEMS_MAX) {
		reading->left_out++;
		return NULL;
	}
	row = value_new_object();
	value_set_text(row, "kind", kind);
	value_set_text(row, "name", name);
	value_set_text(row, "file", file);
	value_append(reading->items, row);
	if (first != NULL) {
		struct buf problem;

		buf_init(&problem, 2 * PATH_MAX);
		(void)buf_addf(&problem, "the name is taken by %s",
			       value_text(value_member(first, "file")));
		set_problem(row, problem.data);
		buf_fini(&problem);
		return NULL;
	}
	return row;
}

/* Put TEXT into ROW as NAME, if there is room for it. */
static bool set_text(struct reading *reading, struct value *row, const char *name,
		     struct str text)
{
	reading->total += text.size;
	if (reading->total > TEXTS_MAX) {
		set_problem(row, "all texts together are larger than 4 MiB");
		return false;
	}
	value_set_str(row, name, text);
	return true;
}

static void set_whole(struct reading *reading, struct value *row, struct str text)
{
	char hex[HASH_HEX + 1];

	hash_text(text, hex);
	if (set_text(reading, row, "text", text))
		value_set_text(row, "hash", hex);
}

static bool is_text(struct str bytes)
{
	return text_is_utf8(bytes) && memchr(bytes.data, '\0', bytes.size) == NULL;
}

/* Read FD into TEXT. NULL, or the reason why it is no text. */
static const char *read_text(int fd, struct buf *text)
{
	struct err err = {0};

	if (fd < 0)
		return "it is no file that can be read";
	if (!fd_read_all(fd, text, "it", &err))
		return err.code == EFBIG ? "it is larger than 256 KiB"
					 : "it cannot be read";
	if (!is_text(buf_str(text)))
		return "it is not UTF-8, or holds a NUL byte";
	return NULL;
}

static void take_file(struct reading *reading, const char *kind, const char *name,
		      const char *path, int folder_fd, const char *file)
{
	struct value *row = add_item(reading, kind, name, path);
	const char *problem;
	struct buf text;

	if (row == NULL)
		return;
	auto_close int fd = files_open_below(folder_fd, file, FILES_READ);
	buf_init(&text, TEXT_MAX);
	problem = read_text(fd, &text);
	if (problem != NULL)
		set_problem(row, problem);
	else
		set_whole(reading, row, buf_str(&text));
	buf_fini(&text);
}

/*
 * Reach the folder PATH. False: it is missing, or was read before under another name, as when
 * .claude/skills is a link to .agents/skills.
 */
static bool reach_folder(struct reading *reading, const char *path, struct file *folder)
{
	struct err err;

	file_init(folder);
	if (!files_reach(reading->call->files, path, FILES_FOLDER, folder, &err) ||
	    value_has_text(reading->folders, folder->path.data)) {
		file_fini(folder);
		return false;
	}
	value_append(reading->folders, value_new_text(folder->path.data));
	return true;
}

/* Roles and commands: Markdown files. */

/*
 * Take the files NAME.md of FOLDER, whose path is PATH, as items with names that begin with
 * PREFIX; below it, down to DEPTH folders, those of a folder `a` have names that begin with `a:`.
 */
static void take_markdown(struct reading *reading, const char *kind, int folder_fd,
			  const char *path, const char *prefix, unsigned depth)
{
	struct fd_names names;

	fd_names_read(&names, folder_fd, NAMES_MAX, false);
	for (size_t i = 0; i < names.count && !call_stopped(reading->call); i++) {
		const struct str file = str_of(names.items[i]);
		const bool is_markdown = str_ends(file, STR(".md"));
		const size_t size = file.size - (is_markdown ? strlen(".md") : 0);
		struct buf name, below;

		buf_init(&name, PATH_MAX);
		buf_init(&below, PATH_MAX);
		(void)buf_addf(&name, "%s%.*s", prefix, (int)size, file.data);
		(void)buf_addf(&below, "%s/%s", path, file.data);
		auto_close int fd =
			is_markdown || depth == 0
				? -1
				: files_open_below(folder_fd, file.data, FILES_FOLDER);
		if (is_markdown && size > 0)
			take_file(reading, kind, name.data, below.data, folder_fd,
				  file.data);
		else if (fd >= 0 && buf_addc(&name, ':'))
			take_markdown(reading, kind, fd, below.data, name.data, depth - 1);
		buf_fini(&below);
		buf_fini(&name);
	}
	fd_names_fini(&names);
}

static void read_markdown(struct reading *reading, const struct place *place)
{
	struct file folder;

	if (!reach_folder(reading, place->path, &folder))
		return;
	take_markdown(reading, place->kind, folder.fd, place->path, "", place->depth);
	file_fini(&folder);
}

/* Skills: whole folders. */

struct skill {
	struct hash *hash;
	struct buf text;     /* what a person reads */
	struct value *files; /* relative names */
	size_t bytes;
	struct buf problem; /* empty: there is none */
};

static void skill_refuse(struct skill *skill, const char *name, const char *why)
{
	if (skill->problem.size == 0)
		(void)buf_addf(&skill->problem, "%s %s", name, why);
}

/* Show the content of NAME in the text, or its size and hash. */
static void skill_show(struct skill *skill, const char *name, struct str content)
{
	char hex[HASH_HEX + 1];

	(void)buf_addf(&skill->text, "%s==> %s <==\n", skill->text.size > 0 ? "\n" : "",
		       name);
	if (content.size <= SHOWN_MAX && is_text(content) &&
	    buf_addstr(&skill->text, content)) {
		(void)buf_end_line(&skill->text);
		return;
	}
	hash_text(content, hex);
	(void)buf_addf(&skill->text, "(%zu bytes, not shown; SHA-256 %s)\n", content.size,
		       hex);
}

static void skill_add_file(struct skill *skill, int folder_fd, const char *file,
			   const char *name)
{
	struct stat st;
	struct buf content, head;
	auto_close int fd = files_open_regular(folder_fd, file, &st);

	if (fd < 0) {
		skill_refuse(skill, name, "is a link, or cannot be read");
		return;
	}
	buf_init(&content, SKILL_BYTES_MAX - skill->bytes);
	if (!fd_read_all(fd, &content, name, NULL)) {
		skill_refuse(skill, "it", "is larger than 16 MiB");
	} else {
		buf_init(&head, 2 * PATH_MAX);
		(void)buf_addf(&head, "%s %zu %s", st.st_mode & S_IXUSR ? "x" : "-",
			       content.size, name);
		hash_add(skill->hash, (struct str){head.data, head.size + 1});
		hash_add(skill->hash, buf_str(&content));
		buf_fini(&head);
		skill->bytes += content.size;
		skill_show(skill, name, buf_str(&content));
		value_append(skill->files, value_new_text(name));
	}
	buf_fini(&content);
}

static void skill_add_folder(struct skill *skill, struct call *call, int folder_fd,
			     const char *prefix, unsigned depth)
{
	struct fd_names names;

	fd_names_read(&names, folder_fd, NAMES_MAX, true);
	for (size_t i = 0; i < names.count && skill->problem.size == 0; i++) {
		const char *file = names.items[i];
		struct stat st;
		struct buf name;

		buf_init(&name, PATH_MAX);
		(void)buf_addf(&name, "%s%s", prefix, file);
		auto_close int fd = files_open_below(folder_fd, file, FILES_FOLDER);
		if (call_stopped(call) || value_count(skill->files) >= READ_BROUGHT_FILES_MAX)
			skill_refuse(skill, "it", "has more than 1,000 files");
		else if (name.overflowed || !is_text(buf_str(&name)))
			skill_refuse(skill, "a name in it", "is too long, or not UTF-8");
		else if (fd >= 0 && depth == 0)
			skill_refuse(skill, name.data, "is too deep");
		else if (fd >= 0 && buf_addc(&name, '/'))
			skill_add_folder(skill, call, fd, name.data, depth - 1);
		else if (fstatat(folder_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
			skill_add_file(skill, folder_fd, file, name.data);
		buf_fini(&name);
	}
	fd_names_fini(&names);
}

/* Read FOLDER as a skill into ROW. */
static void read_skill(struct reading *reading, struct value *row, int folder_fd)
{
	struct skill skill = {.hash = hash_new(), .files = value_new_array()};
	struct buf body;
	const char *problem;
	uint8_t digest[HASH_BYTES];
	char hex[HASH_HEX + 1];

	buf_init(&skill.text, TEXT_MAX);
	buf_init(&skill.problem, 2 * PATH_MAX);
	buf_init(&body, TEXT_MAX);
	auto_close int fd = files_open_below(folder_fd, "SKILL.md", FILES_READ);
	problem = fd < 0 ? "it has no SKILL.md that can be read" : read_text(fd, &body);
	if (problem == NULL)
		skill_add_folder(&skill, reading->call, folder_fd, "", SKILL_DEPTH);
	if (problem == NULL && skill.problem.size > 0)
		problem = skill.problem.data;
	if (problem != NULL) {
		set_problem(row, problem);
	} else if (set_text(reading, row, "text", buf_str(&skill.text)) &&
		   set_text(reading, row, "body", buf_str(&body))) {
		hash_digest(skill.hash, digest);
		for (size_t i = 0; i < HASH_BYTES; i++)
			(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
		value_set_text(row, "hash", hex);
		value_set(row, "files", value_ref(skill.files));
	}
	value_free(skill.files);
	hash_free(skill.hash);
	buf_fini(&body);
	buf_fini(&skill.problem);
	buf_fini(&skill.text);
}

/* Take the folders of PLACE as skills. */
static void read_skills(struct reading *reading, const struct place *place)
{
	struct file folder, below;
	struct fd_names names;

	if (!reach_folder(reading, place->path, &folder))
		return;
	fd_names_read(&names, folder.fd, NAMES_MAX, false);
	for (size_t i = 0; i < names.count && !call_stopped(reading->call); i++) {
		struct value *row;
		struct buf name;

		buf_init(&name, PATH_MAX);
		(void)buf_addf(&name, "%s/%s", place->path, names.items[i]);
		/* A file beside the skills, such as a README, is none. */
		if (reach_folder(reading, name.data, &below)) {
			/* A link may lead to it; its own path is where it is shown. */
			const char *real =
				path_relative(below.path.data,
					      files_workspace(reading->call->files));

			row = add_item(reading, place->kind, names.items[i], real);
			if (row != NULL && real[0] == '/')
				set_problem(row, "it leads out of the workspace");
			else if (row != NULL)
				read_skill(reading, row, below.fd);
			file_fini(&below);
		}
		buf_fini(&name);
	}
	fd_names_fini(&names);
	file_fini(&folder);
}

/* Hooks and servers: JSON files. */

/* Read the JSON of PATH. False: there is no such file, or TEXT is none: *PROBLEM says why. */
static bool read_json(struct reading *reading, const char *path, struct buf *text,
		      struct value **read, const char **problem)
{
	struct file file;
	struct err err;
	bool there;

	file_init(&file);
	there = files_reach(reading->call->files, path, FILES_READ, &file, &err);
	if (there) {
		*problem = read_text(file.fd, text);
		if (*problem == NULL && !value_parse(buf_str(text), 0, read, NULL))
			*problem = "it is no JSON";
	}
	file_fini(&file);
	return there;
}

/* The number of hooks in HOOKS: event -> list of {matcher, hooks: list}. */
static size_t count_hooks(const struct value *hooks)
{
	size_t count = 0;

	for (void *at = value_first(hooks); at != NULL; at = value_next(hooks, at))
		for (size_t i = 0; i < value_count(value_at(at)); i++)
			count += value_count(
				value_member(value_item(value_at(at), i), "hooks"));
	return count;
}

/* The file of hooks PLACE. A settings.json without hooks brings nothing. */
static void read_hooks(struct reading *reading, const struct place *place)
{
	auto_value struct value *read = NULL;
	const char *problem = NULL;
	struct value *row;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (read_json(reading, place->path, &text, &read, &problem) &&
	    (problem != NULL || value_count(value_member(read, "hooks")) > 0)) {
		row = add_item(reading, place->kind, place->path, place->path);
		if (row != NULL && problem != NULL)
			set_problem(row, problem);
		else if (row != NULL)
			set_whole(reading, row, buf_str(&text));
		if (row != NULL)
			value_set_integer(row, "count",
					  (int64_t)count_hooks(value_member(read, "hooks")));
	}
	buf_fini(&text);
}

/* Each server of PLACE is an item, whose text is its entry. */
static void read_servers(struct reading *reading, const struct place *place)
{
	auto_value struct value *read = NULL;
	const char *problem = NULL;
	const struct value *servers;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (read_json(reading, place->path, &text, &read, &problem) && problem != NULL) {
		struct value *row =
			add_item(reading, place->kind, place->path, place->path);

		if (row != NULL)
			set_problem(row, problem);
	}
	servers = value_member(read, "mcpServers");
	for (void *at = value_first(servers); at != NULL; at = value_next(servers, at)) {
		struct value *row =
			add_item(reading, place->kind, value_key(at), place->path);

		buf_clear(&text);
		if (row != NULL &&
		    value_print(value_at(at), VALUE_PRETTY | VALUE_SORTED, &text))
			set_whole(reading, row, buf_str(&text));
	}
	buf_fini(&text);
}

/* Of two items of one name the first one counts. */
static const struct place places[] = {
	{"agent", ".glovebox/agents", read_markdown, 0},
	{"skill", ".agents/skills", read_skills, 0},
	{"skill", ".glovebox/skills", read_skills, 0},
	{"skill", ".claude/skills", read_skills, 0},
	{"command", ".glovebox/commands", read_markdown, COMMANDS_DEPTH},
	{"command", ".claude/commands", read_markdown, COMMANDS_DEPTH},
	{"hook", ".glovebox/hooks.json", read_hooks, 0},
	{"hook", ".claude/settings.json", read_hooks, 0},
	{"server", ".mcp.json", read_servers, 0},
};

const char *tools_brought_place(size_t index)
{
	return index < sizeof(places) / sizeof(places[0]) ? places[index].path : NULL;
}

/* Read all that is wanted. */
static void read_all(struct reading *reading)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (reading->kind == NULL || strcmp(reading->kind, places[i].kind) == 0)
			places[i].read(reading, &places[i]);
	}
}

static enum result_status read_brought_execute(struct call *call, struct tool_result *result)
{
	struct reading reading = {
		.call = call,
		.kind = value_text(value_member(call->arguments, "kind")),
		.name = value_text(value_member(call->arguments, "name")),
		.items = value_new_array(),
		.folders = value_new_array(),
	};

	read_all(&reading);
	value_set(tool_details(result), "items", reading.items);
	value_set_integer(tool_details(result), "left_out", (int64_t)reading.left_out);
	value_free(reading.folders);
	return call_stopped(call) ? call_stop_result(call, result) : tool_done(result);
}

const struct tool read_brought_tool = {
	.name = "read_brought",
	.description = "Read what a workspace brings along for agents.",
	.example = "{}",
	.params = read_brought_params,
	.effects = EFFECT_READS,
	.timeout_s = TIMEOUT_S,
	.internal = true,
	.plain = true,
	.execute = read_brought_execute,
};
