/* appearance: finds the person's themes. */

#include "front/output/appearance.h"

#include "base/buf.h"
#include "base/memory.h"
#include "front/config_file.h"
#include "front/verb.h"
#include "policy/config.h"
#include "tui/theme.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char automatic[] = "auto", folder_name[] = "themes", suffix[] = ".json";

/* Take the key `notify`: the name of a way, or the words of a command. */
static void load_notify(struct appearance *appearance, const struct value *said)
{
	const char *name = value_text(said);

	if (name != NULL)
		(void)notify_parse(name, &appearance->notify);
	for (size_t i = 0; i < value_count(said) && i < NOTIFY_WORDS_MAX; i++)
		appearance->words[i] = memory_copy(value_text(value_item(said, i)));
	if (appearance->words[0] != NULL)
		appearance->notify = NOTIFY_COMMAND;
}

void appearance_load(struct appearance *appearance, const struct options *options)
{
	auto_config struct config *config = NULL;
	struct err err = {0};
	const char *theme = NULL;

	*appearance = (struct appearance){0};
	if (config_file_load(options_text(options, "config"), &config, &err)) {
		theme = value_text(config_value(config, "theme"));
		appearance->thinking =
			str_is(value_str(config_value(config, "thinking")), "show");
		load_notify(appearance, config_value(config, "notify"));
		if (config_value(config, "footer") != NULL)
			appearance->footer = value_copy(config_value(config, "footer"));
	}
	appearance->theme = memory_copy(theme != NULL ? theme : automatic);
}

struct screen_options appearance_look(const struct appearance *appearance)
{
	struct screen_options look = screen_options_of(STDOUT_FILENO);

	look.thinking = appearance->thinking;
	return look;
}

void appearance_prepare(const struct options *options)
{
	auto_config struct config *config = NULL;
	bool reader = options_given(options, "reader");
	struct err err = {0};

	if (!reader && config_file_load(options_text(options, "config"), &config, &err))
		reader = value_is_true(config_value(config, "reader"));
	if (reader)
		(void)setenv("GLOVEBOX_READER", "1", 1);
}

void appearance_fini(struct appearance *appearance)
{
	free(appearance->theme);
	value_free(appearance->footer);
	for (size_t i = 0; i < NOTIFY_WORDS_MAX; i++)
		free(appearance->words[i]);
	*appearance = (struct appearance){0};
}

/* Read the person's own theme NAME. A name that is no file of the folder is refused. */
static bool read_theme(const char *name, struct theme *theme, struct err *err)
{
	char file[NAME_MAX];
	struct buf path, text;
	struct err why = {0};
	bool fine = false;

	if (!config_check_name(name, err))
		return false;
	(void)snprintf(file, sizeof(file), "%s/%s%s", folder_name, name, suffix);
	buf_init(&path, PATH_MAX);
	buf_init(&text, THEME_FILE_MAX);
	if (!config_file_beside(file, &path))
		(void)err_set(err, ENOENT, "there is no theme \"%s\"", name);
	else if (!config_file_read(path.data, &text, &why))
		(void)(why.code == ENOENT || why.code == ENOTDIR
			       ? err_set(err, ENOENT,
					 "there is no theme \"%s\": it is auto, dark, light, "
					 "plain, or a file %s",
					 name, path.data)
			       : err_set(err, why.code, "%s", why.text));
	else
		fine = theme_parse(buf_str(&text), theme_has_rgb(), theme, &why) ||
		       err_set(err, EINVAL, "%s: %s", path.data, why.text);
	buf_fini(&text);
	buf_fini(&path);
	return fine;
}

static bool use(const char *name, struct console *console, struct err *err)
{
	const struct theme *shipped = theme_shipped(name, theme_has_rgb());
	const bool follows = strcmp(name, automatic) == 0;
	struct theme own;

	if (!follows && shipped == NULL && !read_theme(name, &own, err))
		return false;
	console_set_theme(console, follows ? NULL : shipped != NULL ? shipped : &own);
	return true;
}

bool appearance_apply(const struct appearance *appearance, struct console *console,
		      struct err *err)
{
	console_set_notify(console, appearance->notify,
			   (const char *const *)appearance->words);
	return use(appearance->theme, console, err) ||
	       err_while(err, "the key \"theme\" of the configuration");
}

bool appearance_set_theme(struct appearance *appearance, struct console *console,
			  const char *name, struct err *err)
{
	if (!use(name, console, err))
		return false;
	free(appearance->theme);
	appearance->theme = memory_copy(name);
	return true;
}

bool appearance_set_notify(struct appearance *appearance, struct console *console,
			   const char *name, struct err *err)
{
	const bool is_command = strcmp(name, "command") == 0;

	if (is_command && appearance->words[0] == NULL)
		return err_set(err, EINVAL,
			       "the key \"notify\" of the configuration names no command");
	if (is_command)
		appearance->notify = NOTIFY_COMMAND;
	else if (!notify_parse(name, &appearance->notify))
		return err_set(err, EINVAL, "\"%.40s\" is none of: %s command", name,
			       NOTIFY_NAMES);
	console_set_notify(console, appearance->notify, NULL);
	return true;
}

/* Call ADD with the names of the person's own themes. */
static void each_own(void (*add)(void *context, const char *name), void *context)
{
	struct buf path;
	DIR *names = NULL;

	buf_init(&path, PATH_MAX);
	if (config_file_beside(folder_name, &path))
		names = opendir(path.data);
	for (struct dirent *entry; names != NULL && (entry = readdir(names)) != NULL;) {
		const struct str name = str_of(entry->d_name);
		struct err err;

		if (!str_ends(name, STR(".json")))
			continue;
		auto_free char *own =
			memory_copy_str(str_part(name, 0, name.size - strlen(suffix)));
		if (config_check_name(own, &err))
			add(context, own);
	}
	if (names != NULL)
		(void)closedir(names);
	buf_fini(&path);
}

void appearance_each_theme(void (*add)(void *context, const char *name), void *context)
{
	struct str rest = str_of(theme_names), name;

	add(context, automatic);
	while (str_next_word(&rest, &name)) {
		auto_free char *word = memory_copy_str(name);

		add(context, word);
	}
	each_own(add, context);
}
