/*
 * glovebox state and state prune: prints which files glovebox keeps for its user, where
 * and for which workspaces, and removes old ones.
 */

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "cell/pending.h"
#include "front/talk.h"
#include "front/verb.h"
#include "front/wrap/profile.h"
#include "store/database.h"
#include "store/journal.h"
#include "undo/projects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DEPTH_MAX = 256, /* of nested folders; deeper ones are not measured */
	BLOCK = 512,     /* of st_blocks */
	AGE_DAYS = 30,   /* what `prune` removes unless told */
	DAY_S = 24 * 3600,
	AGE_MAX = 36500, /* days */
};

/*
 * The kept files, in the order in which they are shown. A folder with `by_workspace` has
 * a subfolder for each workspace.
 */
static const struct {
	const char *name, *what;
	bool by_workspace;
} kept_rows[] = {
	{"sessions.db", "conversations and patches", false},
	{"undo", "steps that can be undone", true},
	{"review", "layers that were not landed or dropped yet", false},
	{"homes", "private homes of cells", true},
	{"caches", "additions of cells to caches", true},
	{"plugins", "copies of plugins, and the record of those let in", false},
	{"trust", "what was let in of what workspaces bring along", false},
	{"wrap", "what profiles needed when they were accepted", false},
	{"servers", "logins at MCP servers", false},
	{"facts.db", "facts that agents share", false},
	{"schedules.db", "schedules", false},
	{"history", "lines that were typed", false},
	{"pending", "writes that sessions have begun", false},
};
enum { KEPT_COUNT = sizeof(kept_rows) / sizeof(kept_rows[0]) };

struct amount {
	uint64_t bytes;
	int64_t oldest_ms, newest_ms; /* 0: nothing is there */
};

struct project {
	char name[UNDO_PROJECT_NAME];
	char *workspace; /* NULL: not known */
	char *profile;   /* of `wrap`, whose home it is; NULL: none */
	struct amount amount;
	bool used;
};

struct survey {
	char *config, *state; /* folders */
	struct amount config_amount, kept[KEPT_COUNT], all;
	struct project *projects;
	size_t count;
};

static void amount_add_time(struct amount *amount, int64_t ms)
{
	if (ms == 0)
		return;
	if (amount->oldest_ms == 0 || ms < amount->oldest_ms)
		amount->oldest_ms = ms;
	if (ms > amount->newest_ms)
		amount->newest_ms = ms;
}

static void amount_add(struct amount *amount, const struct amount *more)
{
	amount->bytes += more->bytes;
	amount_add_time(amount, more->oldest_ms);
	amount_add_time(amount, more->newest_ms);
}

/*
 * Add the sizes of NAME in the folder AT and of all below it. The size of a file with
 * several hard links is not counted.
 */
static void measure(int at, const char *name, int depth, struct amount *amount)
{
	struct stat st;
	DIR *names;
	int fd;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		amount->bytes += st.st_nlink == 1 ? (uint64_t)st.st_blocks * BLOCK : 0;
		amount_add_time(amount, clock_ns(&st.st_mtim) / 1000000);
	}
	if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
		return;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	names = fd >= 0 ? fdopendir(fd) : NULL;
	if (names == NULL) {
		fd_close(&fd);
		return;
	}
	for (const struct dirent *inner = readdir(names); inner != NULL;
	     inner = readdir(names)) {
		if (strcmp(inner->d_name, ".") != 0 && strcmp(inner->d_name, "..") != 0)
			measure(dirfd(names), inner->d_name, depth + 1, amount);
	}
	(void)closedir(names);
}

static struct project *project_of(struct survey *survey, const char *name)
{
	for (size_t i = 0; i < survey->count; i++) {
		if (strcmp(survey->projects[i].name, name) == 0)
			return &survey->projects[i];
	}
	survey->projects =
		memory_more(survey->projects, survey->count, sizeof(*survey->projects));
	survey->projects[survey->count] = (struct project){0};
	(void)snprintf(survey->projects[survey->count].name, UNDO_PROJECT_NAME, "%s", name);
	return &survey->projects[survey->count++];
}

/* Add each workspace that has a folder in FOLDER. */
static void add_projects(struct survey *survey, const char *folder)
{
	DIR *names = opendir(folder);

	if (names == NULL)
		return;
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		struct amount amount = {0};

		if (!undo_projects_is_name(at->d_name))
			continue;
		measure(dirfd(names), at->d_name, 0, &amount);
		amount_add(&project_of(survey, at->d_name)->amount, &amount);
	}
	(void)closedir(names);
}

/*
 * Find the workspace of a store by a recorded session, since stores of earlier versions
 * do not name it.
 */
static bool name_project(void *context, const struct journal_session *session)
{
	struct survey *survey = context;
	char hex[HASH_HEX + 1];

	hash_text(session->workspace, hex);
	hex[UNDO_PROJECT_NAME - 1] = '\0';
	for (size_t i = 0; i < survey->count; i++) {
		struct project *project = &survey->projects[i];

		if (project->workspace == NULL && strcmp(project->name, hex) == 0)
			project->workspace = memory_copy_str(session->workspace);
	}
	return true;
}

static char *below(const struct survey *survey, const char *name)
{
	struct buf path;
	char *kept;

	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s", survey->state, name);
	kept = memory_copy(path.data);
	buf_fini(&path);
	return kept;
}

/*
 * Find the workspace and the profile of a home of `wrap`, by the note beside it. A note is
 * true when the home is named by the hash of its text.
 */
static void name_home(const struct survey *survey, struct project *project)
{
	static const struct str mark = STR("//wrap ");
	auto_free char *notes = below(survey, WRAP_HOME_NOTES);
	char path[PATH_MAX], hex[HASH_HEX + 1];
	struct buf text;
	size_t at;

	buf_init(&text, PATH_MAX + WRAP_NAME_MAX + sizeof(WRAP_HOME_OF));
	if (snprintf(path, sizeof(path), "%s/%s", notes, project->name) < (int)sizeof(path) &&
	    fd_read_file(path, text.max, &text, NULL)) {
		hash_text(buf_str(&text), hex);
		hex[UNDO_PROJECT_NAME - 1] = '\0';
		at = str_find(buf_str(&text), mark, 0);
		if (at != (size_t)-1 && strcmp(hex, project->name) == 0) {
			project->workspace =
				memory_copy_str(str_part(buf_str(&text), 0, at));
			project->profile = memory_copy(text.data + at + mark.size);
		}
	}
	buf_fini(&text);
}

static void name_projects(struct survey *survey)
{
	auto_free char *undo = below(survey, "undo"), *pending = below(survey, "pending");
	auto_free char *database = below(survey, "sessions.db");
	struct undo_projects stores;
	struct journal *journal = NULL;

	if (undo_projects_list(undo, &stores, NULL)) {
		for (size_t i = 0; i < stores.count; i++) {
			struct project *project = project_of(survey, stores.items[i].name);

			project->used = stores.items[i].used;
			project->workspace = stores.items[i].workspace;
			stores.items[i].workspace = NULL;
		}
	}
	undo_projects_fini(&stores);
	if (access(database, F_OK) == 0 && journal_open(database, &journal, NULL))
		(void)journal_list(journal, SIZE_MAX, name_project, survey, NULL);
	journal_close(journal);
	for (size_t i = 0; i < survey->count; i++) {
		struct project *project = &survey->projects[i];

		if (project->workspace == NULL)
			name_home(survey, project);
		project->used |= pending_is_held(pending, project->name);
	}
}

static int by_size(const void *a, const void *b)
{
	const struct project *left = a, *right = b;

	return (left->amount.bytes < right->amount.bytes) -
	       (left->amount.bytes > right->amount.bytes);
}

static bool survey_make(struct survey *survey, struct err *err)
{
	struct buf path;

	*survey = (struct survey){0};
	buf_init(&path, PATH_MAX);
	if (!database_state_path("", &path, err)) {
		buf_fini(&path);
		return false;
	}
	while (path.size > 1 && path.data[path.size - 1] == '/')
		buf_truncate(&path, path.size - 1);
	survey->state = memory_copy(path.data);
	buf_clear(&path);
	if (path_xdg(getenv("XDG_CONFIG_HOME"), getenv("HOME"), ".config", "glovebox", &path))
		survey->config = memory_copy(path.data);
	buf_fini(&path);
	if (survey->config != NULL)
		measure(AT_FDCWD, survey->config, 0, &survey->config_amount);
	measure(AT_FDCWD, survey->state, 0, &survey->all);
	for (size_t i = 0; i < KEPT_COUNT; i++) {
		auto_free char *place = below(survey, kept_rows[i].name);
		static const char *const endings[] = {"-wal", "-shm", ".lock"};

		measure(AT_FDCWD, place, 0, &survey->kept[i]);
		for (size_t j = 0; j < sizeof(endings) / sizeof(endings[0]); j++) {
			char beside[PATH_MAX];

			if (snprintf(beside, sizeof(beside), "%s%s", place, endings[j]) <
			    (int)sizeof(beside))
				measure(AT_FDCWD, beside, 0, &survey->kept[i]);
		}
		if (kept_rows[i].by_workspace)
			add_projects(survey, place);
	}
	name_projects(survey);
	if (survey->count > 0)
		qsort(survey->projects, survey->count, sizeof(*survey->projects), by_size);
	return true;
}

static void project_fini(struct project *project)
{
	free(project->workspace);
	free(project->profile);
}

static void survey_fini(struct survey *survey)
{
	for (size_t i = 0; i < survey->count; i++)
		project_fini(&survey->projects[i]);
	free(survey->projects);
	free(survey->config);
	free(survey->state);
}

static void print_row(const char *name, const struct amount *amount, const char *what,
		      FILE *out)
{
	char size[32], since[CLOCK_TEXT] = "";
	struct buf line;

	clock_text_local(amount->oldest_ms, since);
	buf_init(&line, 8 << 10);
	(void)buf_addf(&line, "  %10s  %.10s  ", text_size(amount->bytes, size),
		       amount->oldest_ms != 0 ? since : "          ");
	text_add_name(&line, str_of(name));
	(void)buf_adds(&line, what);
	(void)fprintf(out, "%s\n", line.data);
	buf_fini(&line);
}

static const char *name_of(const struct project *project)
{
	return project->workspace != NULL ? project->workspace : project->name;
}

static int print_survey(const struct survey *survey, FILE *out)
{
	(void)fprintf(out, "Configuration\n");
	print_row(survey->config != NULL ? survey->config : "nowhere",
		  &survey->config_amount, "", out);
	(void)fprintf(out, "State (size, the oldest of it, where)\n");
	print_row(survey->state, &survey->all, "", out);
	for (size_t i = 0; i < KEPT_COUNT; i++) {
		char what[128];

		if (survey->kept[i].oldest_ms == 0)
			continue;
		(void)snprintf(what, sizeof(what), ": %s", kept_rows[i].what);
		print_row(kept_rows[i].name, &survey->kept[i], what, out);
	}
	if (survey->count > 0)
		(void)fprintf(out, "Workspaces (undo, homes and caches)\n");
	for (size_t i = 0; i < survey->count; i++) {
		const struct project *project = &survey->projects[i];
		char what[2 * WRAP_NAME_MAX + 64];

		(void)snprintf(what, sizeof(what), "%s%.*s%s%s",
			       project->profile != NULL ? ": the home of " : "",
			       WRAP_NAME_MAX,
			       project->profile != NULL ? project->profile : "",
			       project->profile != NULL ? " there" : "",
			       project->used ? " (in use)"
			       : project->workspace == NULL
				       ? " (nothing says which folder it is)"
			       : access(project->workspace, F_OK) < 0 ? " (gone)"
								      : "");
		print_row(name_of(project), &project->amount, what, out);
	}
	(void)fprintf(out, "Nothing is kept in the folder of data (XDG_DATA_HOME), and in that of "
			   "caches only images: glovebox base list.\n");
	return CODE_DONE;
}

static struct value *amount_value(const struct amount *amount)
{
	struct value *value = value_new_object();

	value_set_integer(value, "bytes", (int64_t)amount->bytes);
	if (amount->oldest_ms != 0) {
		value_set_integer(value, "oldest_ms", amount->oldest_ms);
		value_set_integer(value, "newest_ms", amount->newest_ms);
	}
	return value;
}

static int print_survey_json(const struct survey *survey, FILE *out)
{
	auto_value struct value *all = value_new_object();
	struct value *kept = value_new_object(), *projects = value_new_array();
	struct value *config = amount_value(&survey->config_amount);
	struct value *state = amount_value(&survey->all);

	value_set_text(config, "path", survey->config != NULL ? survey->config : "");
	value_set_text(state, "path", survey->state);
	for (size_t i = 0; i < KEPT_COUNT; i++)
		value_set(kept, kept_rows[i].name, amount_value(&survey->kept[i]));
	for (size_t i = 0; i < survey->count; i++) {
		const struct project *project = &survey->projects[i];
		struct value *row = amount_value(&project->amount);

		value_set_text(row, "name", project->name);
		if (project->workspace != NULL)
			value_set_text(row, "workspace", project->workspace);
		if (project->profile != NULL)
			value_set_text(row, "profile", project->profile);
		value_set_boolean(row, "used", project->used);
		value_append(projects, row);
	}
	value_set(state, "kept", kept);
	value_set(all, "config", config);
	value_set(all, "state", state);
	value_set(all, "workspaces", projects);
	return verb_print_json(all, 0, out);
}

static int state_run(const struct options *options, FILE *out)
{
	struct survey survey;
	struct err err = {0};
	int code;

	if (!survey_make(&survey, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	code = options_given(options, "json") ? print_survey_json(&survey, out)
					      : print_survey(&survey, out);
	survey_fini(&survey);
	return code;
}

static const struct option_row state_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print one object"},
	OPTION_ROW_HELP,
	{0},
};

static const char state_help[] =
	"Show the data that glovebox keeps for you: where they lie, their size, how old the\n"
	"oldest are, and the share of each workspace. `state prune` removes old data.";

const struct verb verb_state = {
	.name = "state",
	.summary = "show the data that glovebox keeps, where, and of which workspaces",
	.arguments = "",
	.help = state_help,
	.example = "  glovebox state\n  glovebox state --json\n  glovebox state prune --older 60d",
	.options = state_options,
	.folds = true,
	.run = state_run,
};

/* The part that is to be removed. */
struct pruning {
	const char *workspace; /* of one, and the homes of agents in it; NULL: of all */
	char name[UNDO_PROJECT_NAME]; /* of its project */
	int64_t oldest_ms; /* files used since then stay; INT64_MAX: none stay */
	const struct survey *survey;
	size_t whole, part; /* workspaces that lose everything, or only old steps */
	size_t used;        /* workspaces that a session uses */
	uint64_t bytes;     /* bytes of the workspaces that lose everything */
};

/* Parse an age: "30d", "12h", "2w", or a number of days. */
static bool parse_age(const char *text, int64_t *seconds)
{
	const size_t digits = strspn(text, "0123456789");
	const char *unit = text + digits;
	uint64_t count = 0;
	struct err err;
	char number[16];

	if (digits == 0 || digits >= sizeof(number) || strlen(unit) > 1)
		return false;
	(void)snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	if (!text_parse_count(number, AGE_MAX, &count, &err))
		return false;
	switch (*unit) {
	case '\0':
	case 'd':
		*seconds = (int64_t)count * DAY_S;
		return true;
	case 'h':
		*seconds = (int64_t)count * 3600;
		return true;
	case 'w':
		*seconds = (int64_t)count * 7 * DAY_S;
		return true;
	default:
		return false;
	}
}

enum fate { FATE_STAYS, FATE_USED, FATE_PART, FATE_WHOLE };

static enum fate fate_of(const struct pruning *pruning, const struct project *project)
{
	if (pruning->workspace != NULL && strcmp(pruning->name, project->name) != 0 &&
	    (project->workspace == NULL ||
	     strcmp(pruning->workspace, project->workspace) != 0))
		return FATE_STAYS;
	if (project->amount.oldest_ms >= pruning->oldest_ms)
		return FATE_STAYS;
	if (project->used)
		return FATE_USED;
	return project->amount.newest_ms < pruning->oldest_ms ? FATE_WHOLE : FATE_PART;
}

static void pruning_count(struct pruning *pruning)
{
	for (size_t i = 0; i < pruning->survey->count; i++) {
		const struct project *project = &pruning->survey->projects[i];
		const enum fate fate = fate_of(pruning, project);

		pruning->used += fate == FATE_USED;
		pruning->part += fate == FATE_PART;
		pruning->whole += fate == FATE_WHOLE;
		pruning->bytes += fate == FATE_WHOLE ? project->amount.bytes : 0;
	}
}

/*
 * Prune the undo store first: it is locked against sessions that begin now. A private
 * home stays when a session has begun to use it meanwhile.
 */
static bool prune_one(const struct pruning *pruning, const struct project *project,
		      enum fate fate)
{
	static const char *const folders[] = {"homes", "caches"};
	auto_free char *undo = below(pruning->survey, "undo");
	auto_free char *pending = below(pruning->survey, "pending");
	struct buf path;
	bool done;

	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s", undo, project->name);
	done = access(path.data, F_OK) < 0 ||
	       undo_projects_prune(undo, project->name,
				   fate == FATE_WHOLE ? INT64_MAX : pruning->oldest_ms);
	for (size_t i = 0;
	     done && fate == FATE_WHOLE && i < sizeof(folders) / sizeof(folders[0]); i++) {
		auto_free char *folder = below(pruning->survey, folders[i]);

		if (pending_is_held(pending, project->name)) {
			done = false;
			break;
		}
		buf_clear(&path);
		(void)buf_addf(&path, "%s/%s", folder, project->name);
		/* A cell locks its home and its caches as long as it lives. */
		auto_close int held =
			open(path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (held >= 0 && flock(held, LOCK_EX | LOCK_NB) < 0)
			done = false;
		else
			fd_folder_remove(path.data);
	}
	if (done && project->profile != NULL && fate == FATE_WHOLE) {
		auto_free char *notes = below(pruning->survey, WRAP_HOME_NOTES);

		buf_clear(&path);
		(void)buf_addf(&path, "%s/%s", notes, project->name);
		(void)unlink(path.data);
	}
	buf_fini(&path);
	return done;
}

static void say_counts(const struct pruning *pruning, struct buf *text)
{
	char size[32];

	if (pruning->whole > 0) {
		(void)buf_adds(text, "all that is kept of ");
		(void)text_add_count(text, pruning->whole, "workspace");
		(void)buf_addf(text, " (%s)", text_size(pruning->bytes, size));
	}
	if (pruning->part > 0) {
		(void)buf_adds(text, pruning->whole > 0 ? ", and the old steps of "
							: "the old steps of ");
		(void)text_add_count(text, pruning->part, "workspace");
	}
}

static int prune(const struct pruning *pruning, FILE *out)
{
	size_t left = 0;

	for (size_t i = 0; i < pruning->survey->count; i++) {
		const struct project *project = &pruning->survey->projects[i];
		const enum fate fate = fate_of(pruning, project);

		if (fate == FATE_WHOLE || fate == FATE_PART)
			left += !prune_one(pruning, project, fate);
	}
	left += pruning->used;
	if (left > 0)
		(void)fprintf(out, "Left alone, because sessions use them: %zu\n", left);
	return CODE_DONE;
}

static int ask_and_prune(const struct pruning *pruning, bool yes, FILE *out)
{
	struct buf text;
	int code = CODE_DONE;

	buf_init(&text, 1 << 10);
	say_counts(pruning, &text);
	if (pruning->whole + pruning->part == 0) {
		(void)fprintf(out, "Nothing is old enough%s.\n",
			      pruning->used > 0 ? ", except for data that running sessions use"
						: "");
	} else if (!yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO))) {
		code = verb_complain(CODE_USAGE,
				     "state prune: this would remove %s. There is no terminal to "
				     "ask on: say --yes",
				     text.data);
	} else if (!yes && !talk_confirm(stderr, "Remove %s?", text.data)) {
		(void)fprintf(out, "Nothing was removed.\n");
	} else {
		(void)fprintf(out, "Removed: %s.\n", text.data);
		code = prune(pruning, out);
	}
	buf_fini(&text);
	return code;
}

static int prune_run(const struct options *options, FILE *out)
{
	const char *folder = options_text(options, "workspace");
	const char *age = options_text(options, "older");
	auto_free char *real = folder != NULL ? realpath(folder, NULL) : NULL;
	char hex[HASH_HEX + 1];
	int64_t seconds = folder != NULL ? 0 : (int64_t)AGE_DAYS * DAY_S;
	struct survey survey;
	struct pruning pruning = {.survey = &survey};
	struct err err = {0};
	int code;

	if (age != NULL && !parse_age(age, &seconds))
		return verb_complain(CODE_USAGE,
				     "state prune: \"%.40s\" is no age; 30d, 12h or 2w, at most %d",
				     age, AGE_MAX);
	/* A folder that no longer exists is named by its old absolute path. */
	if (folder != NULL) {
		if (real == NULL && folder[0] != '/')
			return verb_complain(CODE_FAILED,
					     "workspace %s: %s; name a folder that is gone by its "
					     "whole path",
					     folder, strerror(errno));
	}
	if (folder != NULL) {
		pruning.workspace = real != NULL ? real : folder;
		hash_text(str_of(pruning.workspace), hex);
		(void)snprintf(pruning.name, sizeof(pruning.name), "%.*s",
			       UNDO_PROJECT_NAME - 1, hex);
	}
	pruning.oldest_ms = folder != NULL && age == NULL
				    ? INT64_MAX
				    : clock_wall_ms() - seconds * 1000;
	if (survey_make(&survey, &err)) {
		pruning_count(&pruning);
		code = ask_and_prune(&pruning, options_given(options, "yes"), out);
		survey_fini(&survey);
	} else {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	}
	return code;
}

static const struct option_row prune_options[] = {
	{"older", 'o', OPTION_TEXT, "AGE",
	 "data that nothing used for this time: 30d, 12h, 2w (default: 30d)"},
	{"workspace", 'C', OPTION_TEXT, "DIR",
	 "only the data of this folder; of any age unless --older is given"},
	{"yes", 'y', OPTION_FLAG, NULL, "do not ask"},
	OPTION_ROW_HELP,
	{0},
};

static const char prune_help[] =
	"Remove the data of workspaces that were not used for some time: the steps that can\n"
	"be undone there, the private home of its cells and their additions to caches. Of\n"
	"workspaces that were used since, only the older steps go. Data that a running\n"
	"session uses stay. Conversations, patches, plugins and the configuration stay\n"
	"too; to remove everything, remove the two folders that `state` names.";

const struct verb verb_state_prune = {
	.name = "state prune",
	.summary = "remove the data of workspaces that are no longer used",
	.arguments = "",
	.help = prune_help,
	.example = "  glovebox state prune --older 60d\n"
		   "  glovebox state prune --workspace ~/src/old --yes",
	.options = prune_options,
	.run = prune_run,
};
