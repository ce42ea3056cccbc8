/* extension: collects skills and commands, and hands them to the parts of a session. */

#include "extend/extension.h"

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
	TOOLS = 2,
	PROMPT_MAX = 1 << 20,
	OWN_MAX = 32 << 10, /* of the person's AGENTS.md */
	WHY_MAX = 256,
	STYLE_MAX = 32 << 10,
};

const struct tool *const extension_rows[TOOLS + 1] = {
	&skill_tool,
	&remember_tool,
	NULL,
};

struct extension {
	struct skills skills;
	struct commands commands, styles;
	struct value *servers_left_out; /* name -> why */
	struct tool tools[TOOLS];
	const struct tool **table, **table_before; /* a session may still use the last one */
	struct shape_shown *shown;
	struct buf told;  /* the person's AGENTS.md; empty when there is none */
	struct buf notes; /* on the workspace, as the session begins (notes.h); or empty */
	char *workspace;  /* the agent may add to its notes; NULL: it may not */
	char *prompt;
};

/*
 * The skills, commands and styles of the person: files in the folder of the configuration, and the
 * skills in ~/.agents/skills and ~/.claude/skills, which other agents read as well. They need no
 * trust, but a file that another user may write is left out.
 */

enum {
	OWN_ITEMS_MAX = 512,      /* of both kinds */
	OWN_NAMES_MAX = 16 << 10, /* names of one folder that are looked at */
	OWN_TEXT_MAX = 256 << 10,
	OWN_COMMANDS_DEPTH = 4,
	OWN_FILES_DEPTH = 4,
};

static int own_open(int folder, const char *name)
{
	return openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Add an item; NULL: there are too many. */
static struct brought *own_add(struct brought_list *list, enum brought_kind kind,
			       const char *name, const char *file)
{
	struct brought *item;

	if (list->count >= OWN_ITEMS_MAX) {
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
static const char *own_text(int folder, const char *name, struct buf *text)
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

static void own_take_text(struct brought *item, int folder, const char *name)
{
	struct buf text;
	const char *problem;

	buf_init(&text, OWN_TEXT_MAX);
	problem = own_text(folder, name, &text);
	if (problem != NULL)
		item->problem = memory_copy(problem);
	else
		item->text = memory_copy(text.data);
	buf_fini(&text);
}

/* Note the names of the files of a skill. */
static void own_note_files(struct value *files, int folder, const char *prefix,
			   unsigned depth)
{
	struct fd_names names;

	fd_names_read(&names, folder, OWN_NAMES_MAX, false);
	for (size_t i = 0; i < names.count && value_count(files) < READ_BROUGHT_FILES_MAX;
	     i++) {
		auto_close int below = own_open(folder, names.items[i]);
		struct buf name;

		buf_init(&name, PATH_MAX);
		(void)buf_addf(&name, "%s%s", prefix, names.items[i]);
		if (below < 0)
			value_append(files, value_new_text(name.data));
		else if (depth > 0 && buf_addc(&name, '/'))
			own_note_files(files, below, name.data, depth - 1);
		buf_fini(&name);
	}
	fd_names_fini(&names);
}

static void own_skills(struct brought_list *list, const char *before, const char *path)
{
	struct fd_names names;
	struct buf place;

	if (before == NULL)
		return;
	buf_init(&place, PATH_MAX);
	(void)buf_addf(&place, "%s/%s", before, path);
	auto_close int folder = own_open(AT_FDCWD, place.data);
	fd_names_read(&names, folder, OWN_NAMES_MAX, false);
	for (size_t i = 0; folder >= 0 && i < names.count; i++) {
		auto_close int below = own_open(folder, names.items[i]);
		struct brought *item = NULL;

		/* A link may lead to it; its own path is where it is shown. */
		if (below >= 0 && fd_real_path(below, &place))
			item = own_add(list, BROUGHT_SKILL, names.items[i], place.data);
		if (item == NULL)
			continue;
		own_take_text(item, below, "SKILL.md");
		item->body = memory_copy(item->text);
		item->files = value_new_array();
		own_note_files(item->files, below, "", OWN_FILES_DEPTH);
	}
	fd_names_fini(&names);
	buf_fini(&place);
}

static void own_commands(struct brought_list *list, int folder, const char *path,
			 const char *prefix, unsigned depth)
{
	struct fd_names names;

	fd_names_read(&names, folder, OWN_NAMES_MAX, false);
	for (size_t i = 0; i < names.count; i++) {
		const struct str file = str_of(names.items[i]);
		const bool is_markdown = str_ends(file, STR(".md"));
		const size_t size = file.size - (is_markdown ? strlen(".md") : 0);
		auto_close int below =
			is_markdown || depth == 0 ? -1 : own_open(folder, file.data);
		struct buf name, place;

		buf_init(&name, PATH_MAX);
		buf_init(&place, PATH_MAX);
		(void)buf_addf(&name, "%s%.*s", prefix, (int)size, file.data);
		(void)buf_addf(&place, "%s/%s", path, file.data);
		if (is_markdown && size > 0) {
			struct brought *item =
				own_add(list, BROUGHT_COMMAND, name.data, place.data);

			if (item != NULL)
				own_take_text(item, folder, file.data);
		} else if (below >= 0 && buf_addc(&name, ':')) {
			own_commands(list, below, place.data, name.data, depth - 1);
		}
		buf_fini(&place);
		buf_fini(&name);
	}
	fd_names_fini(&names);
}

/* Take the files of the folder NAME in CONFIG (or NULL). */
static void own_folder(struct brought_list *list, const char *config, const char *name,
		       unsigned depth)
{
	struct buf path;

	if (config == NULL)
		return;
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s", config, name);
	auto_close int folder = own_open(AT_FDCWD, path.data);
	if (folder >= 0)
		own_commands(list, folder, path.data, "", depth);
	buf_fini(&path);
}

/*
 * Read the skills and commands of the person into LIST, whose items have absolute names of files and no
 * hashes. CONFIG: the folder of the configuration; HOME: that of the person. Either may be NULL.
 * Call brought_fini.
 */
static void own_read(const char *config, const char *home, struct brought_list *list)
{
	*list = (struct brought_list){0};
	own_skills(list, config, "skills");
	own_skills(list, home, ".agents/skills");
	own_skills(list, home, ".claude/skills");
	own_folder(list, config, "commands", OWN_COMMANDS_DEPTH);
}

/* Read the styles, in the folder `styles` of CONFIG, in the same way. Their kind has no meaning. */
static void own_styles_read(const char *config, struct brought_list *list)
{
	*list = (struct brought_list){0};
	own_folder(list, config, "styles", 0);
}

/* Append the AGENTS.md in the folder CONFIG, which holds for each agent. False: there is none. */
static bool own_instructions(const char *config, struct buf *out)
{
	auto_close int folder = config != NULL ? own_open(AT_FDCWD, config) : -1;

	return folder >= 0 && own_text(folder, "AGENTS.md", out) == NULL;
}

static void add(struct extension *extension, const struct brought *item,
		const char *workspace)
{
	if (item->kind == BROUGHT_SKILL)
		skills_add(&extension->skills, item, workspace);
	else if (item->kind == BROUGHT_COMMAND)
		commands_add(&extension->commands, item, workspace == NULL);
}

/* ITEM, of WORKSPACE, does not count in STATE: the person learns why, and how it would. */
static void leave_out(struct extension *extension, const struct brought *item,
		      const char *workspace, enum trust_state state)
{
	struct brought kept = *item;
	struct buf why;

	buf_init(&why, WHY_MAX);
	(void)buf_addf(&why, "you have not let it in (%s); /trust asks you about it",
		       trust_state_name(state));
	if (kept.problem == NULL)
		kept.problem = why.data;
	if (item->kind == BROUGHT_SERVER)
		value_set_text(extension->servers_left_out, item->name, kept.problem);
	else if (item->kind == BROUGHT_SKILL)
		skills_add(&extension->skills, &kept, workspace);
	buf_fini(&why);
}

static void add_all(struct extension *extension, const struct extension_options *options)
{
	const struct brought_list *brought = options->brought;
	struct brought_list own;

	own_read(options->config, options->home, &own);
	for (size_t i = 0; i < own.count; i++)
		add(extension, &own.items[i], NULL);
	brought_fini(&own);
	for (size_t i = 0; brought != NULL && i < brought->count; i++) {
		const struct brought *item = &brought->items[i];
		const enum trust_state state = trust_of(options->trust, item);

		/* A command that cannot count is kept, so that the person learns why. */
		if (state == TRUST_GIVEN ||
		    (item->problem != NULL && item->kind == BROUGHT_COMMAND))
			add(extension, item, options->workspace);
		else
			leave_out(extension, item, options->workspace, state);
	}
}

static void add_styles(struct extension *extension, const char *config)
{
	struct brought_list own;

	own_styles_read(config, &own);
	for (size_t i = 0; i < own.count; i++) {
		struct brought *item = &own.items[i];

		if (item->text != NULL && strlen(item->text) > STYLE_MAX)
			item->problem = memory_copy("it is longer than 32 KiB");
		commands_add(&extension->styles, item, true);
	}
	brought_fini(&own);
}

/* Show the folder of each skill at its own path, unless it has gone meanwhile. */
static void make_shown(struct extension *extension, const struct shape_shown *shown)
{
	size_t count = 0;
	struct stat st;

	while (shown != NULL && shown[count].source != NULL)
		count++;
	extension->shown = memory_array(count + extension->skills.count + 1,
					sizeof(extension->shown[0]));
	if (count > 0)
		memcpy(extension->shown, shown, count * sizeof(shown[0]));
	for (size_t i = 0; i < extension->skills.count; i++) {
		const struct skill *skill = &extension->skills.items[i];

		if (skill->problem == NULL && lstat(skill->folder, &st) == 0 &&
		    S_ISDIR(st.st_mode))
			extension->shown[count++] = (struct shape_shown){
				.source = skill->folder,
				.path = skill->folder,
				.why = "skill",
				.exact = true,
			};
	}
}

static void take_notes(struct extension *extension, const struct extension_options *options)
{
	buf_init(&extension->notes, NOTES_BYTES_MAX);
	if (options->notes == NOTES_NONE)
		return;
	/* Notes that cannot be read are told by the tool, and by /memory. */
	if (!notes_read(options->workspace, &extension->notes, NULL))
		buf_clear(&extension->notes);
	if (options->notes == NOTES_WRITTEN)
		extension->workspace = memory_copy(options->workspace);
}

struct extension *extension_open(const struct extension_options *options)
{
	struct extension *extension = memory_alloc(sizeof(*extension));

	extension->servers_left_out = value_new_object();
	buf_init(&extension->told, OWN_MAX);
	if (!own_instructions(options->config, &extension->told))
		buf_clear(&extension->told);
	add_all(extension, options);
	add_styles(extension, options->config);
	make_shown(extension, options->shown);
	for (size_t i = 0; i < TOOLS; i++)
		extension->tools[i] = *extension_rows[i];
	extension->tools[0].keeper = &extension->skills;
	take_notes(extension, options);
	extension->tools[1].keeper = extension->workspace;
	return extension;
}

void extension_close(struct extension *extension)
{
	if (extension == NULL)
		return;
	skills_fini(&extension->skills);
	commands_fini(&extension->commands);
	commands_fini(&extension->styles);
	value_free(extension->servers_left_out);
	free(extension->table);
	free(extension->table_before);
	free(extension->shown);
	buf_fini(&extension->told);
	buf_fini(&extension->notes);
	free(extension->workspace);
	free(extension->prompt);
	free(extension);
}

const struct skills *extension_skills(const struct extension *extension)
{
	return &extension->skills;
}

const struct commands *extension_commands(const struct extension *extension)
{
	return &extension->commands;
}

const struct value *extension_servers_left_out(const struct extension *extension)
{
	return extension->servers_left_out;
}

const struct commands *extension_styles(const struct extension *extension)
{
	return &extension->styles;
}

/* Can the tool NUMBER of the rows do anything here? */
static bool serves(const struct extension *extension, size_t number)
{
	struct buf text;

	if (extension_rows[number] == &remember_tool)
		return extension->workspace != NULL;
	buf_init(&text, PROMPT_MAX);
	skills_prompt(&extension->skills, &text);
	const bool any = text.size > 0;
	buf_fini(&text);
	return any;
}

const struct tool *const *extension_tools(struct extension *extension,
					  const struct tool *const *tools)
{
	size_t count = 0;

	while (tools[count] != NULL)
		count++;
	free(extension->table_before);
	extension->table_before = extension->table;
	extension->table = memory_array(count + 1, sizeof(const struct tool *));
	for (size_t i = 0; i < count; i++) {
		extension->table[i] = tools[i];
		for (size_t j = 0; j < TOOLS; j++) {
			if (tools[i] == extension_rows[j] && serves(extension, j))
				extension->table[i] = &extension->tools[j];
		}
	}
	return extension->table;
}

const struct shape_shown *extension_shown(const struct extension *extension)
{
	return extension->shown;
}

const char *extension_prompt(struct extension *extension, const char *prompt)
{
	struct buf text;

	if (extension == NULL)
		return prompt;
	buf_init(&text, PROMPT_MAX);
	if (prompt != NULL)
		(void)buf_adds(&text, prompt);
	(void)buf_end_line(&text);
	if (extension->told.size > 0) {
		(void)buf_adds(&text, "\nThe user tells every agent:\n\n");
		(void)buf_addstr(&text, str_trim(buf_str(&extension->told)));
		(void)buf_addc(&text, '\n');
	}
	skills_prompt(&extension->skills, &text);
	if (str_trim(buf_str(&extension->notes)).size > 0)
		notes_prompt(buf_str(&extension->notes), &text);
	while (text.size > 0 && text.data[text.size - 1] == '\n')
		buf_truncate(&text, text.size - 1);
	free(extension->prompt);
	extension->prompt = memory_copy(text.data);
	buf_fini(&text);
	return extension->prompt;
}
