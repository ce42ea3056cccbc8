/* glovebox agents new: writes the shipped template of a role under a new name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "front/agents.h"
#include "front/setup.h"
#include "front/verb.h"

#define TEMPLATE       "examples/agents/template.md"
#define TEMPLATE_NAME  "template"
#define TEMPLATE_WRITE "[src, tests]"

enum { FILE_MAX = 64 << 10 };

static const struct option_row new_options[] = {
	OPTION_ROW_HELP,
	{0},
};

static struct str template_text(void)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (strcmp(file->name, TEMPLATE) == 0)
			return (struct str){file->data, file->size};
	}
	return STR("");
}

/* Folders that usually hold code and its tests. */
static const char *const usual_folders[] = {"src",  "lib",      "app", "include",
					    "cmd",  "internal", "pkg", "tests",
					    "test", "spec"};

/*
 * Append the usual folders that exist here ("[src, tests]"), since a missing folder would
 * be an error; without any, append the whole workspace.
 */
static void add_folders(struct buf *out)
{
	const size_t begin = out->size;
	struct stat st;

	for (size_t i = 0; i < sizeof(usual_folders) / sizeof(usual_folders[0]); i++) {
		if (lstat(usual_folders[i], &st) == 0 && S_ISDIR(st.st_mode))
			(void)buf_addf(out, "%s%s", out->size == begin ? "[" : ", ",
				       usual_folders[i]);
	}
	(void)buf_adds(out, out->size == begin ? "[\".\"]" : "]");
}

/* Append REST up to LINE, and leave LINE out. */
static void add_until(struct str *rest, struct str line, struct buf *out)
{
	const size_t at = str_find(*rest, line, 0);

	(void)buf_addstr(out, str_part(*rest, 0, at));
	*rest = str_part(*rest, at + line.size, rest->size);
}

/* Append the template as role NAME, which may write the folders that exist here. */
static void add_template(const char *name, struct buf *out)
{
	struct str rest = template_text();

	add_until(&rest, STR("\nname: " TEMPLATE_NAME "\n"), out);
	(void)buf_addf(out, "\nname: %s\n", name);
	add_until(&rest, STR("\nwrite: " TEMPLATE_WRITE "\n"), out);
	(void)buf_adds(out, "\nwrite: ");
	add_folders(out);
	(void)buf_addc(out, '\n');
	(void)buf_addstr(out, rest);
}

static bool file_make(const char *path, const char *name, struct err *err)
{
	struct buf text;
	bool ok;

	if (!fd_make_folders(path, err))
		return false;
	/* An existing file stays: no file of the user is overwritten. */
	auto_close int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path,
			       errno == EEXIST ? "is there already, and stays as it is"
					       : strerror(errno));
	buf_init(&text, FILE_MAX);
	add_template(name, &text);
	ok = fd_write_all(fd, text.data, text.size, err);
	buf_fini(&text);
	return ok;
}

static bool is_shipped(const char *name)
{
	char **names = agent_files_shipped();
	bool found = false;

	for (char **at = names; *at != NULL; at++)
		found = found || strcmp(*at, name) == 0;
	agent_files_names_free(names);
	return found;
}

static int new_run(const struct options *options, FILE *out)
{
	const char *name = options->words[0];
	struct err err = {0};
	struct buf path;
	int code = CODE_DONE;

	if (!config_check_name(name, &err))
		return verb_complain(CODE_USAGE, "agents new: %s", err.text);
	buf_init(&path, PATH_MAX);
	if (!agent_files_place(name, &path))
		code = verb_complain(CODE_FAILED,
				     "there is no folder for it: HOME is not set");
	else if (!file_make(path.data, name, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		(void)fprintf(out,
			      "%s\n%s\nNext:\n  glovebox agents show %s\n"
			      "  glovebox run --agent %s \"…\"\n",
			      path.data,
			      is_shipped(name)
				      ? "It lies over the shipped role, key by key: take "
					"out what shall stay as shipped.\n"
				      : "",
			      name, name);
	buf_fini(&path);
	return code;
}

static const char new_help[] =
	"Write a role of your own, with every key explained, to glovebox/agents/NAME.md in\n"
	"your configuration's folder. It may write the folders with code and tests that are\n"
	"here (src, lib, tests ...), or all of the workspace where there are none. A file that\n"
	"is there is left alone. Called after a shipped role it lies over that one, key by\n"
	"key: take out what shall stay.";

const struct verb verb_agents_new = {
	.name = "agents new",
	.summary = "begin a role of your own",
	.arguments = "NAME",
	.help = new_help,
	.example = "  glovebox agents new migrations",
	.options = new_options,
	.words_least = 1,
	.words_most = 1,
	.run = new_run,
};
