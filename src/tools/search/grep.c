/*
 * grep: search file contents by a regular expression, line by line. Totals are stated,
 * results are in one order (newest file, path, line), and a search that was stopped never
 * says "none".
 */
#include "tools/search/grep.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/pattern.h"
#include "files/files.h"
#include "tools/search/search.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <string.h>

#define GREP_LIMIT       100
#define GREP_LIMIT_MAX   2000
#define GREP_CONTEXT_MAX 20     /* what needs more is for read_file */
#define GREP_OFFSET_MAX  100000 /* beyond it the pattern is too wide to be read through */
#define GREP_PATTERN_MAX 4096

enum { GREP_GLOB_FLAGS = PATTERN_BRACES | PATTERN_BASENAME };

static const struct tool_param grep_params[] = {
	{"pattern", PARAM_TEXT, true,
	 "Regular expression (PCRE2), matched within single lines",
	 .aliases = "regex query", .min = 1, .max = GREP_PATTERN_MAX},
	{"path", PARAM_PATH, false, "Folder or file to search; the workspace unless told",
	 .aliases = "file file_path folder dir directory", .initial = "\".\""},
	{"glob", PARAM_TEXT, false,
	 "Only files that fit, like *.c or src/**/*.{h,c}; !*.min.js leaves out",
	 .aliases = "include", .min = 1, .max = PATTERN_MAX},
	{"file_type", PARAM_TEXT, false, "Only files of a kind, like c, py, js, rust, md",
	 .aliases = "type", .min = 1, .max = 32},
	{"mode", PARAM_CHOICE, false,
	 "lines; files: only names; count: lines per file; auto: lines, then counts of the "
	 "files that did not fit in",
	 .aliases = "output_mode", .choices = "auto lines files count",
	 .initial = "\"auto\""},
	{"ignore_case", PARAM_BOOLEAN, false, "Upper and lower case are the same",
	 .aliases = "case_insensitive -i", .initial = "false"},
	{"literal", PARAM_BOOLEAN, false, "The pattern is plain text",
	 .aliases = "fixed_strings fixed", .initial = "false"},
	{"context", PARAM_COUNT, false, "Lines shown before and after each match",
	 .aliases = "-C", .initial = "0", .min = 0, .max = GREP_CONTEXT_MAX},
	{"limit", PARAM_COUNT, false, "Most lines or files shown",
	 .aliases = "max_results head_limit", .initial = SHOWN_NUMBER(GREP_LIMIT),
	 .min = 1, .max = GREP_LIMIT_MAX},
	{"offset", PARAM_COUNT, false, "Lines or files passed over first, to go on",
	 .initial = "0", .min = 0, .max = GREP_OFFSET_MAX},
	{0},
};

static enum grep_mode grep_mode_of(const char *name)
{
	if (!name || strcmp(name, "auto") == 0)
		return GREP_AUTO;
	if (strcmp(name, "lines") == 0)
		return GREP_LINES;
	return strcmp(name, "files") == 0 ? GREP_FILES : GREP_COUNT;
}

/* Append TEXT as an argument: the sentence then holds the call that works. */
static void add_argument(struct buf *out, const char *name, struct str text)
{
	(void)buf_addf(out, "%s=", name);
	(void)value_quote(text, out);
}

static bool grep_read_pattern(struct grep *grep, struct tool_result *result)
{
	struct str pattern = call_str(grep->call, "pattern");
	bool literal = call_flag(grep->call, "literal");
	struct err err;

	if (grep_pattern_init(&grep->pattern, pattern, literal,
			      call_flag(grep->call, "ignore_case"), &err)) {
		if (!grep->pattern.line_end)
			return true;
		(void)tool_fail(result,
				"The search goes line by line, so a pattern with a line "
				"end finds nothing. Search for one of its lines, and "
				"use context to see those around it.");
		return false;
	}
	(void)tool_fail(result, "pattern is not valid: %s. To search for it as plain text: ",
			err.text);
	add_argument(&result->text, "pattern", pattern);
	(void)buf_adds(&result->text, ", literal=true.");
	if (pattern_is_one(pattern) && (pattern.data[0] == '*' || pattern.data[0] == '?')) {
		(void)buf_adds(&result->text, " To find files by name: the tool glob with ");
		add_argument(&result->text, "pattern", pattern);
		(void)buf_addc(&result->text, '.');
	}
	return false;
}

static bool grep_read_type(struct grep *grep, struct tool_result *result)
{
	const char *name = call_text(grep->call, "file_type");
	const struct file_type *near;

	grep->type = name ? file_type_find(name) : NULL;
	if (!name || grep->type)
		return true;
	near = file_type_nearest(name);
	(void)tool_fail(result, "file_type %s is not known.", name);
	if (near) {
		(void)buf_adds(&result->text, " Did you mean ");
		file_type_add_name(near, &result->text);
		(void)buf_addc(&result->text, '?');
	}
	(void)buf_addf(&result->text,
		       " By name: glob=\"*.%s\". Known: ", name[0] == '.' ? name + 1 : name);
	file_type_add_all(&result->text);
	(void)buf_addc(&result->text, '.');
	return false;
}

static bool grep_read_glob(struct grep *grep, struct tool_result *result)
{
	const char *glob = call_text(grep->call, "glob");
	const char *workspace = files_workspace(grep->call->files);
	size_t size = strlen(workspace);
	struct err err;

	if (!glob)
		return true;
	grep->glob_excludes = glob[0] == '!';
	glob += grep->glob_excludes;
	while (strncmp(glob, "./", 2) == 0)
		glob += 2;
	if (strncmp(glob, workspace, size) == 0 && glob[size] == '/')
		glob += size + 1;
	if (glob[0] == '/') {
		(void)tool_fail(result, "glob is matched below path: write it without the "
					"leading slash, or name its folder as path.");
		return false;
	}
	if (!pattern_check(str_of(glob), GREP_GLOB_FLAGS, &err)) {
		(void)tool_fail(result, "glob is not well-formed: %s", err.text);
		return false;
	}
	grep->glob = pattern_set_new(str_of(glob), GREP_GLOB_FLAGS);
	return true;
}

/* The folder, or the one file, to be searched. */
static bool grep_read_path(struct grep *grep, struct tool_result *result)
{
	struct files *files = grep->call->files;
	const char *path = call_text(grep->call, "path");
	struct file file;
	struct err err;

	if (walk_start_open(&grep->start, grep->call, path, &err))
		return true;
	if (err.code != ENOTDIR) {
		(void)shown_fail(grep->call, result, path, &err);
		return false;
	}
	file_init(&file);
	if (!files_reach(files, path, FILES_READ, &file, &err)) {
		file_fini(&file);
		(void)shown_fail(grep->call, result, path, &err);
		return false;
	}
	grep->file_fd = fd_take(&file.fd);
	(void)buf_adds(&grep->start.shown, files_shown(files, file.path.data));
	file_fini(&file);
	/* A caller that names a file wants it searched, whatever it is called. */
	pattern_set_free(grep->glob);
	grep->glob = NULL;
	grep->type = NULL;
	return true;
}

static enum result_status grep_execute(struct call *call, struct tool_result *result)
{
	struct grep *grep = memory_alloc(sizeof(*grep));

	grep->call = call;
	grep->mode = grep_mode_of(call_text(call, "mode"));
	grep->offset = (uint64_t)call_count(call, "offset", 0);
	grep->limit = (uint64_t)call_count(call, "limit", GREP_LIMIT);
	grep->context = (size_t)call_count(call, "context", 0);
	grep->keep = (size_t)(grep->offset + grep->limit) + GREP_AUTO_FILES;
	grep->first_only = grep->mode == GREP_FILES;
	grep->start.fd = grep->file_fd = -1;
	walk_summary_init(&grep->summary);
	if (grep_read_pattern(grep, result) && grep_read_type(grep, result) &&
	    grep_read_glob(grep, result) && grep_read_path(grep, result)) {
		grep_run(grep);
		grep_answer(grep, result);
		(void)search_end(call, result, &grep->summary);
	}
	grep_forget(grep);
	pattern_set_free(grep->glob);
	grep_pattern_fini(&grep->pattern);
	walk_start_fini(&grep->start);
	walk_summary_fini(&grep->summary);
	fd_close(&grep->file_fd);
	free(grep);
	return result->status;
}

const struct tool grep_tool = {
	.name = "grep",
	.description = "Search file contents by regular expression, newest files first, with "
		       "totals. Ignored (.gitignore) and binary files are left out.",
	.example = "{\"pattern\": \"struct \\\\w+ \\\\{\", \"path\": \"src\", \"glob\": \"*.h\"}",
	.aliases = "grep_codebase search ripgrep rg",
	.params = grep_params,
	.effects = EFFECT_READS,
	.searches = true,
	.timeout_s = 30,
	.execute = grep_execute,
};
