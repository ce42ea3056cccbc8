/* glovebox plugin new: writes the shipped template under a new name. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "front/setup.h"
#include "front/verb.h"
#include "plugins/describe.h"

#define TEMPLATE_FOLDER "examples/plugins/template-bash-tool/"
#define TEMPLATE_NAME   "template_bash_echo"
#define TEST_ENDING     "_test.bash"

enum { FILE_MAX = 64 << 10 };

static const struct option_row new_options[] = {
	{"folder", 'd', OPTION_TEXT, "DIR", "make it there (default: ./NAME)"},
	{"test", 0, OPTION_FLAG, NULL, "and a test beside the script, for plugin check"},
	OPTION_ROW_HELP,
	{0},
};

/* Is NAME a plain name? It becomes the name of a file and of a tool. */
static bool is_name(const char *name)
{
	size_t size = strlen(name);
	bool fine = size > 0 && size <= PLUGIN_ID_MAX && isalpha((unsigned char)name[0]);

	for (size_t i = 0; fine && i < size; i++)
		fine = isalnum((unsigned char)name[i]) || name[i] == '_';
	return fine;
}

/* Append TEXT with the template's name replaced by NAME. */
static void add_renamed(struct str text, const char *name, struct buf *out)
{
	const struct str old = STR(TEMPLATE_NAME);
	size_t at = 0;

	for (;;) {
		size_t found = str_find(text, old, at);
		size_t end = found == (size_t)-1 ? text.size : found;

		(void)buf_addstr(out, str_part(text, at, end - at));
		if (found == (size_t)-1)
			return;
		(void)buf_adds(out, name);
		at = found + old.size;
	}
}

static bool file_make(const struct embedded_file *file, const char *folder,
		      const char *name, struct err *err, FILE *out)
{
	const mode_t mode = str_ends(str_of(file->name), STR(".bash")) ? 0755 : 0644;
	struct buf path, text;
	bool ok;

	buf_init(&path, PATH_MAX);
	buf_init(&text, FILE_MAX);
	(void)buf_addf(&path, "%s/", folder);
	add_renamed(str_of(file->name + strlen(TEMPLATE_FOLDER)), name, &path);
	add_renamed((struct str){file->data, file->size}, name, &text);
	auto_close int fd =
		open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	ok = fd >= 0 ? fd_write_all(fd, text.data, text.size, err)
		     : err_set(err, errno, "%s: %s", path.data, strerror(errno));
	if (ok)
		(void)fprintf(out, "%s\n", path.data);
	buf_fini(&path);
	buf_fini(&text);
	return ok;
}

static bool is_wanted(const struct embedded_file *file, bool with_test)
{
	const struct str path = str_of(file->name);

	return str_starts(path, STR(TEMPLATE_FOLDER)) &&
	       (with_test || !str_ends(path, STR(TEST_ENDING)));
}

static int new_run(const struct options *options, FILE *out)
{
	const char *name = options->words[0];
	const char *folder = options_text(options, "folder");
	struct err err = {0};

	if (!is_name(name))
		return verb_complain(CODE_USAGE,
				     "plugin new: a name begins with a letter and is made of at "
				     "most %d letters, digits and _",
				     PLUGIN_ID_MAX);
	auto_free const struct tool **tools = front_tools_new();

	if (tool_find(tools, name) != NULL)
		return verb_complain(CODE_USAGE,
				     "plugin new: %s is the name of a built-in tool: give it "
				     "another",
				     name);
	folder = folder != NULL ? folder : name;
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return verb_complain(CODE_FAILED, "%s: %s", folder, strerror(errno));
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (is_wanted(file, options_given(options, "test")) &&
		    !file_make(file, folder, name, &err, out))
			return verb_complain(CODE_FAILED, "%s", err.text);
	}
	(void)fprintf(out,
		      "\nNext:\n  glovebox plugin check %s\n  glovebox plugin call %s/%s.bash "
		      "'{\"value\": \"hello\"}'\n",
		      folder, folder, name);
	return CODE_DONE;
}

static const char new_help[] =
	"Make a folder with a working tool in it: one script and the file that names it,\n"
	"after the shipped template. With --test there is a test in bash beside the\n"
	"script, that runs by itself and by glovebox plugin check. Nothing that is there\n"
	"is changed.";

const struct verb verb_plugin_new = {
	.name = "plugin new",
	.summary = "begin a script that is a tool",
	.arguments = "NAME",
	.help = new_help,
	.example = "  glovebox plugin new word_count",
	.options = new_options,
	.words_least = 1,
	.words_most = 1,
	.run = new_run,
};
