/* own: walks the person's folders of skills, commands and styles. */

#include "extend/own.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ITEMS_MAX = 512,      /* of both kinds */
	NAMES_MAX = 16 << 10, /* names of one folder that are looked at */
	TEXT_MAX = 256 << 10,
	COMMANDS_DEPTH = 4,
	FILES_DEPTH = 4,
};

static int open_folder(int folder, const char *name)
{
	return openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Add an item; NULL: there are too many. */
static struct brought *add(struct brought_list *list, enum brought_kind kind,
			   const char *name, const char *file)
{
	struct brought *item;

	if (list->count >= ITEMS_MAX) {
		list->left_out++;
		return NULL;
	}
	list->items = memory_grow(list->items, list->count + 1, sizeof(list->items[0]));
	item = &list->items[list->count++];
	*item = (struct brought){.kind = kind,
				 .name = memory_copy(name),
				 .file = memory_copy(file)};
	return item;
}

/* Read NAME of FOLDER. NULL, or the reason why it is left out. */
static const char *read_text(int folder, const char *name, struct buf *text)
{
	auto_close int fd =
		openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "it has no file that can be read";
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & S_IWOTH))
		return "another user may write it; chmod go-w";
	if (!fd_read_all(fd, text, name, NULL))
		return "it is larger than 256 KiB, or cannot be read";
	if (!text_is_utf8(buf_str(text)) || strlen(text->data) != text->size)
		return "it is not UTF-8, or holds a NUL byte";
	return NULL;
}

static void take_text(struct brought *item, int folder, const char *name)
{
	struct buf text;
	const char *problem;

	buf_init(&text, TEXT_MAX);
	problem = read_text(folder, name, &text);
	if (problem != NULL)
		item->problem = memory_copy(problem);
	else
		item->text = memory_copy(text.data);
	buf_fini(&text);
}

/* Note the names of the files of a skill. */
static void note_files(struct value *files, int folder, const char *prefix, unsigned depth)
{
	struct fd_names names;

	fd_names_read(&names, folder, NAMES_MAX, false);
	for (size_t i = 0; i < names.count && value_count(files) < READ_BROUGHT_FILES_MAX;
	     i++) {
		auto_close int below = open_folder(folder, names.items[i]);
		struct buf name;

		buf_init(&name, PATH_MAX);
		(void)buf_addf(&name, "%s%s", prefix, names.items[i]);
		if (below < 0)
			value_append(files, value_new_text(name.data));
		else if (depth > 0 && buf_addc(&name, '/'))
			note_files(files, below, name.data, depth - 1);
		buf_fini(&name);
	}
	fd_names_fini(&names);
}

static void take_skills(struct brought_list *list, const char *before, const char *path)
{
	struct fd_names names;
	struct buf place;

	if (before == NULL)
		return;
	buf_init(&place, PATH_MAX);
	(void)buf_addf(&place, "%s/%s", before, path);
	auto_close int folder = open_folder(AT_FDCWD, place.data);
	fd_names_read(&names, folder, NAMES_MAX, false);
	for (size_t i = 0; folder >= 0 && i < names.count; i++) {
		auto_close int below = open_folder(folder, names.items[i]);
		struct brought *item = NULL;

		/* A link may lead to it; its own path is where it is shown. */
		if (below >= 0 && fd_real_path(below, &place))
			item = add(list, BROUGHT_SKILL, names.items[i], place.data);
		if (item == NULL)
			continue;
		take_text(item, below, "SKILL.md");
		item->body = memory_copy(item->text);
		item->files = value_new_array();
		note_files(item->files, below, "", FILES_DEPTH);
	}
	fd_names_fini(&names);
	buf_fini(&place);
}

static void take_commands(struct brought_list *list, int folder, const char *path,
			  const char *prefix, unsigned depth)
{
	struct fd_names names;

	fd_names_read(&names, folder, NAMES_MAX, false);
	for (size_t i = 0; i < names.count; i++) {
		const struct str file = str_of(names.items[i]);
		const bool is_markdown = str_ends(file, STR(".md"));
		const size_t size = file.size - (is_markdown ? strlen(".md") : 0);
		auto_close int below =
			is_markdown || depth == 0 ? -1 : open_folder(folder, file.data);
		struct buf name, place;

		buf_init(&name, PATH_MAX);
		buf_init(&place, PATH_MAX);
		(void)buf_addf(&name, "%s%.*s", prefix, (int)size, file.data);
		(void)buf_addf(&place, "%s/%s", path, file.data);
		if (is_markdown && size > 0) {
			struct brought *item =
				add(list, BROUGHT_COMMAND, name.data, place.data);

			if (item != NULL)
				take_text(item, folder, file.data);
		} else if (below >= 0 && buf_addc(&name, ':')) {
			take_commands(list, below, place.data, name.data, depth - 1);
		}
		buf_fini(&place);
		buf_fini(&name);
	}
	fd_names_fini(&names);
}

/* Take the files of the folder NAME in CONFIG (or NULL). */
static void take_folder(struct brought_list *list, const char *config, const char *name,
			unsigned depth)
{
	struct buf path;

	if (config == NULL)
		return;
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s", config, name);
	auto_close int folder = open_folder(AT_FDCWD, path.data);
	if (folder >= 0)
		take_commands(list, folder, path.data, "", depth);
	buf_fini(&path);
}

void own_read(const char *config, const char *home, struct brought_list *list)
{
	*list = (struct brought_list){0};
	take_skills(list, config, "skills");
	take_skills(list, home, ".agents/skills");
	take_skills(list, home, ".claude/skills");
	take_folder(list, config, "commands", COMMANDS_DEPTH);
}

void own_styles_read(const char *config, struct brought_list *list)
{
	*list = (struct brought_list){0};
	take_folder(list, config, "styles", 0);
}

bool own_instructions(const char *config, struct buf *out)
{
	auto_close int folder = config != NULL ? open_folder(AT_FDCWD, config) : -1;

	return folder >= 0 && read_text(folder, "AGENTS.md", out) == NULL;
}
