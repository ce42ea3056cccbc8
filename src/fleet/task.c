/*
 * task: reads lines of work by a table of their keys (base/text/rows.h), and whole files of
 * them in two passes: the first one checks each line and keeps where it is, the second one,
 * line by line when it is asked for, compares its bytes with those that were checked.
 */

#include "fleet/task.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "image/base.h"
#include "policy/config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BASE_MAX = PATH_MAX + 64, /* as `cell_base` of a policy */
	MODEL_MAX = 256,          /* as run/start takes it */
	ATTEMPTS_MAX = 100,
	WORD_MAX = 128 << 10, /* bytes of a word of a command line, with its end */
	SETUP_MAX = 64,       /* commands */
	LABELS_MAX = 64,      /* members */
	REF_MAX = 255,        /* as a file of a reference has it */
	READ_BYTES = 64 << 10,
	FILE_MAX = 1 << 30,  /* bytes of a file of tasks: as many as a blob may have */
	IDS_MAX = 128 << 20, /* bytes of all ids: FLEET_TASKS_MAX of the longest */
	NOTHING = UINT32_MAX,
};

/* Names. */

bool fleet_name_check(enum fleet_name what, const char *name, struct err *err)
{
	static const char *const words[] = {
		[FLEET_ID] = "an id", [FLEET_JOB] = "a job", [FLEET_LANE] = "a lane"};
	static const char *const and_dots[] = {
		[FLEET_ID] = ", and single dots within it", [FLEET_JOB] = "", [FLEET_LANE] = ""};
	const size_t size = name != NULL ? strlen(name) : 0;
	bool ok = size > 0 && size <= FLEET_NAME_MAX;

	for (size_t i = 0; i < size && ok; i++) {
		const char c = name[i];

		if (c == '.')
			ok = what == FLEET_ID && i > 0 && i + 1 < size && name[i + 1] != '.';
		else
			ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '-' || c == '_';
	}
	return ok ||
	       err_set(err, EINVAL,
		       "the name of %s has 1 to %d letters, digits, \"-\" and \"_\"%s",
		       words[what], FLEET_NAME_MAX, and_dots[what]);
}

/* Refuse VALUE, a text without NUL, where it is no name. */
static bool is_name(enum fleet_name what, const struct value *value,
		    struct rows_problem *problem)
{
	struct err err;

	return fleet_name_check(what, value_text(value), &err) ||
	       rows_refuse(problem, NULL, "%s", err.text);
}

static bool is_id(const struct row *row, const struct value *value,
		  struct rows_problem *problem)
{
	(void)row;
	return is_name(FLEET_ID, value, problem);
}

static bool is_lane(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	(void)row;
	return is_name(FLEET_LANE, value, problem);
}

/* The table of keys. */

/* How many members of VALUE are among NAMES. */
static size_t count_of(const struct value *value, const char *const *names)
{
	size_t count = 0;

	for (size_t i = 0; names[i] != NULL; i++)
		count += value_member(value, names[i]) != NULL;
	return count;
}

static bool is_filled(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	(void)row;
	return value_str(value).size > 0 || rows_refuse(problem, NULL, "may not be empty");
}

/* A word that no base has would be told for each of many tasks, after all their attempts. */
static bool is_base(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	struct base_word word;
	struct arena arena;
	struct err err;
	bool ok;

	(void)row;
	arena_init(&arena);
	ok = base_parse_word(value_text(value), &arena, &word, &err) ||
	     rows_refuse(problem, NULL, "%s", err.text);
	arena_fini(&arena);
	return ok;
}

/* A word that git could take for an option, or that is several words, is no reference. */
static bool is_ref(const struct row *row, const struct value *value,
		   struct rows_problem *problem)
{
	const struct str ref = value_str(value);
	bool ok = ref.size > 0 && ref.data[0] != '-';

	(void)row;
	for (size_t i = 0; i < ref.size && ok; i++)
		ok = (unsigned char)ref.data[i] > ' ' && ref.data[i] != 0x7f;
	return ok || rows_refuse(problem, NULL,
				 "is a commit, a tag or a branch: one word that does not "
				 "begin with \"-\"");
}

static bool is_source(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	const char *text = value_text(value);

	(void)row;
	return (text[0] != '\0' && text[0] != '-') ||
	       rows_refuse(problem, NULL, "may not be empty or begin with \"-\"");
}

static bool is_url(const char *text)
{
	return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

/* A URL has no name or key in it: results and errors quote it. */
static bool is_without_key(const char *text, struct rows_problem *problem)
{
	const char *scheme = strstr(text, "://");

	return scheme == NULL ||
	       memchr(scheme + 3, '@', strcspn(scheme + 3, "/?#")) == NULL ||
	       rows_refuse(problem, NULL,
			   "has a name or a key in it, which results would tell");
}

/* A URL, or a path. */
static bool is_repository(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	static const char file[] = "file://";
	const char *text = value_text(value);
	const char *scheme = strstr(text, "://");
	const size_t colon = strcspn(text, ":/");

	if (!is_source(row, value, problem))
		return false;
	if (strncmp(text, file, sizeof(file) - 1) != 0 && !is_url(text) &&
	    (scheme != NULL || text[colon] == ':'))
		return rows_refuse(problem, NULL,
				   "is https://…, http://…, file://… or a path");
	return is_without_key(text, problem);
}

static bool is_sha256(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	(void)row;
	return (value_str(value).size == HASH_HEX && hash_is_valid(value_text(value))) ||
	       rows_refuse(problem, NULL, "has %d lower-case hexadecimal digits", HASH_HEX);
}

static bool is_workspace(const struct row *row, const struct value *value,
			 struct rows_problem *problem)
{
	static const char *const kinds[] = {"git", "archive", "copy", NULL};
	const char *archive = value_text(value_member(value, "archive"));

	(void)row;
	if (count_of(value, kinds) != 1)
		return rows_refuse(problem, NULL,
				   "has one of \"git\", \"archive\" and \"copy\"");
	if (value_member(value, "ref") != NULL && value_member(value, "git") == NULL)
		return rows_refuse(problem, NULL, "\"ref\" goes with \"git\" only");
	if (value_member(value, "sha256") != NULL && archive == NULL)
		return rows_refuse(problem, NULL, "\"sha256\" goes with \"archive\" only");
	if (archive != NULL && is_url(archive) && value_member(value, "sha256") == NULL)
		return rows_refuse(problem, NULL,
				   "an archive of the network needs \"sha256\"");
	return true;
}

static bool is_archive(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	static const char blob[] = "blob:";
	const char *text = value_text(value);

	if (strncmp(text, blob, sizeof(blob) - 1) == 0)
		text += sizeof(blob) - 1;
	else
		return is_source(row, value, problem) && is_without_key(text, problem);
	return (strlen(text) == HASH_HEX && hash_is_valid(text)) ||
	       rows_refuse(problem, NULL,
			   "blob: is followed by the %d hexadecimal digits of a SHA-256",
			   HASH_HEX);
}

static const struct row workspace_rows[] = {
	{"git", ROW_BYTES, .max = PATH_MAX, .check = is_repository},
	{"ref", ROW_BYTES, .max = REF_MAX, .check = is_ref},
	{"archive", ROW_BYTES, .max = PATH_MAX, .check = is_archive},
	{"sha256", ROW_BYTES, .max = HASH_HEX, .check = is_sha256},
	{"copy", ROW_BYTES, .max = PATH_MAX, .check = is_filled},
	{0},
};

/* The kernel takes no longer word of a command line. */
static bool is_word(const struct value *value, struct rows_problem *problem)
{
	return value_str(value).size < WORD_MAX ||
	       rows_refuse(problem, NULL,
			   "a prompt or an argument of \"wrap\" has less than %d KiB",
			   WORD_MAX >> 10);
}

static bool is_run(const struct row *row, const struct value *value,
		   struct rows_problem *problem)
{
	static const char *const kinds[] = {"prompt", "command", NULL};
	const struct value *args = value_member(value, "args");
	const bool wraps = value_member(value, "wrap") != NULL;
	const bool prompts = value_member(value, "prompt") != NULL;
	const bool commands = value_member(value, "command") != NULL;

	(void)row;
	if (wraps && prompts && !is_word(value_member(value, "prompt"), problem))
		return false;
	for (size_t i = 0; i < value_count(args); i++) {
		if (!is_word(value_item(args, i), problem))
			return false;
	}
	if (wraps ? commands : count_of(value, kinds) != 1)
		return rows_refuse(problem, NULL,
				   "has one of \"prompt\", \"command\" and \"wrap\", which may "
				   "have a \"prompt\" as well");
	if (!wraps && value_member(value, "args") != NULL)
		return rows_refuse(problem, NULL, "\"args\" goes with \"wrap\" only");
	if ((wraps || !prompts) && value_member(value, "model") != NULL)
		return rows_refuse(problem, NULL,
				   "\"model\" goes with \"prompt\" of our own agent only");
	if ((wraps || !prompts) && value_member(value, "agent") != NULL)
		return rows_refuse(problem, NULL,
				   "\"agent\" goes with \"prompt\" of our own agent only");
	return true;
}

static const struct row run_rows[] = {
	{"prompt", ROW_BYTES, .max = FLEET_LINE_MAX, .check = is_filled},
	{"model", ROW_BYTES, .max = MODEL_MAX, .check = is_filled},
	{"agent", ROW_BYTES, .max = CONFIG_NAME_MAX, .check = is_filled},
	{"command", ROW_BYTES, .max = FLEET_LINE_MAX, .check = is_filled},
	{"wrap", ROW_BYTES, .max = CONFIG_NAME_MAX, .check = is_source},
	{"args", ROW_NAMES, .max = FLEET_LINE_MAX},
	{0},
};

static bool is_policy(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	struct err err;

	(void)row;
	return config_check_policy(value, NULL, &err) ||
	       rows_refuse(problem, NULL, "%s", err.text);
}

static bool is_setup(const struct row *row, const struct value *value,
		     struct rows_problem *problem)
{
	(void)row;
	return value_count(value) <= SETUP_MAX ||
	       rows_refuse(problem, NULL, "has at most %d commands", SETUP_MAX);
}

static bool is_collect(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	const size_t count = value_count(value);

	(void)row;
	if (count > FLEET_COLLECT_MAX)
		return rows_refuse(problem, NULL, "has at most %d entries",
				   FLEET_COLLECT_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct rows_place place = {.index = i};

		for (size_t j = 0; j < i; j++) {
			if (value_equal(value_item(value, i), value_item(value, j)))
				return rows_refuse(problem, &place, "is there twice");
		}
		if (str_is(value_str(value_item(value, i)), "patch:"))
			return rows_refuse(problem, &place,
					   "names no repository: patch:PATH");
	}
	return true;
}

static bool is_labels(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	(void)row;
	if (value_count(value) > LABELS_MAX)
		return rows_refuse(problem, NULL, "has at most %d members", LABELS_MAX);
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place place = {.key = value_key(at)};

		if (value_kind(value_at(at)) != VALUE_STRING)
			return rows_refuse(problem, &place, "must be text");
	}
	return true;
}

static bool is_label_part(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		const char c = text.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return text.size > 0;
}

bool fleet_task_check_label(struct str label, struct err *err)
{
	const char *equals = memchr(label.data, '=', label.size);
	const size_t name = equals != NULL ? (size_t)(equals - label.data) : 0;

	return (equals != NULL && label.size <= FLEET_NEEDS_BYTES &&
		is_label_part(str_part(label, 0, name)) &&
		is_label_part(str_part(label, name + 1, label.size))) ||
	       err_set(err, EINVAL,
		       "\"%.*s\" is no label: NAME=VALUE, of letters, digits, \"-\" and \"_\", at "
		       "most %d characters",
		       (int)(label.size < FLEET_NEEDS_BYTES ? label.size : FLEET_NEEDS_BYTES),
		       label.data, FLEET_NEEDS_BYTES);
}

static bool is_needs(const struct row *row, const struct value *value,
		     struct rows_problem *problem)
{
	size_t bytes = 0;

	(void)row;
	if (value_count(value) == 0 || value_count(value) > FLEET_NEEDS_MAX)
		return rows_refuse(problem, NULL, "has 1 to %d members", FLEET_NEEDS_MAX);
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct rows_place place = {.key = value_key(at)};
		const struct str text = value_str(value_at(at));

		if (value_kind(value_at(at)) != VALUE_STRING)
			return rows_refuse(problem, &place, "must be text");
		if (!is_label_part(str_of(value_key(at))) || !is_label_part(text))
			return rows_refuse(problem, &place,
					   "a label is of letters, digits, \"-\" and \"_\"");
		bytes += strlen(value_key(at)) + text.size + 2;
	}
	return bytes <= FLEET_NEEDS_BYTES ||
	       rows_refuse(problem, NULL, "is longer than %d characters", FLEET_NEEDS_BYTES);
}

static const struct row task_rows[] = {
	{"id", ROW_BYTES, true, .max = FLEET_NAME_MAX, .check = is_id},
	{"base", ROW_BYTES, .max = BASE_MAX, .check = is_base},
	{"workspace", ROW_OBJECT, .rows = workspace_rows, .check = is_workspace},
	{"setup", ROW_NAMES, .max = FLEET_LINE_MAX, .check = is_setup},
	{"run", ROW_OBJECT, true, .rows = run_rows, .check = is_run},
	{"cwd", ROW_BYTES, .max = PATH_MAX, .check = is_filled},
	{"check", ROW_BYTES, .max = FLEET_LINE_MAX, .check = is_filled},
	{"policy", ROW_VALUES, .check = is_policy},
	{"limits", ROW_OBJECT, .rows = config_limit_rows},
	{"collect", ROW_NAMES, .max = PATH_MAX, .check = is_collect},
	{"lane", ROW_BYTES, .max = FLEET_NAME_MAX, .check = is_lane},
	{"priority", ROW_COUNT, .min = FLEET_LOW, .max = FLEET_HIGH},
	{"attempts", ROW_COUNT, .min = 1, .max = ATTEMPTS_MAX},
	{"needs", ROW_VALUES, .check = is_needs},
	{"labels", ROW_VALUES, .check = is_labels},
	{0},
};

/* One line. */

static void take_workspace(struct fleet_task *task, const struct value *value)
{
	static const char *const kinds[] = {
		[FLEET_GIT] = "git", [FLEET_ARCHIVE] = "archive", [FLEET_COPY] = "copy"};

	for (enum fleet_source kind = FLEET_GIT; kind <= FLEET_COPY; kind++) {
		const char *from = value_text(value_member(value, kinds[kind]));

		if (from == NULL)
			continue;
		task->workspace.kind = kind;
		task->workspace.from = from;
	}
	task->workspace.ref = value_text(value_member(value, "ref"));
	task->workspace.sha256 = value_text(value_member(value, "sha256"));
}

static void take_run(struct fleet_task *task, const struct value *value)
{
	task->run.prompt = value_text(value_member(value, "prompt"));
	task->run.model = value_text(value_member(value, "model"));
	task->run.agent = value_text(value_member(value, "agent"));
	task->run.command = value_text(value_member(value, "command"));
	task->run.profile = value_text(value_member(value, "wrap"));
	task->run.args = value_member(value, "args");
	task->run.kind = task->run.profile != NULL   ? FLEET_WRAP
			 : task->run.command != NULL ? FLEET_COMMAND
						     : FLEET_PROMPT;
}

bool fleet_task_read(struct str line, struct fleet_task *task, struct err *err)
{
	auto_value struct value *value = NULL;
	const struct value *lane, *priority, *attempts;
	struct err why = {0};

	if (line.size > FLEET_LINE_MAX)
		return err_set(err, EFBIG, "a line has at most %d bytes, not %zu",
			       FLEET_LINE_MAX, line.size);
	/* The caller says which line of its file this one is. */
	if (!value_parse(line, 0, &value, &why))
		return err_set(err, why.code, "%s",
			       why.text + (strncmp(why.text, "line 1, ", 8) == 0 ? 8 : 0));
	if (value_kind(value) != VALUE_OBJECT)
		return err_set(err, EINVAL, "a task is a JSON object, not %s",
			       value_kind_name(value_kind(value)));
	if (!config_check_rows(task_rows, value, err))
		return false;
	lane = value_member(value, "lane");
	priority = value_member(value, "priority");
	attempts = value_member(value, "attempts");
	*task = (struct fleet_task){
		.id = value_text(value_member(value, "id")),
		.base = value_text(value_member(value, "base")),
		.setup = value_member(value, "setup"),
		.cwd = value_text(value_member(value, "cwd")),
		.check = value_text(value_member(value, "check")),
		.policy = value_member(value, "policy"),
		.limits = value_member(value, "limits"),
		.collect = value_member(value, "collect"),
		.needs = value_member(value, "needs"),
		.lane = lane != NULL ? value_text(lane) : "default",
		.priority = priority != NULL ? (enum fleet_priority)value_integer(priority)
					     : FLEET_NORMAL,
		.attempts = attempts != NULL ? (int)value_integer(attempts) : FLEET_ATTEMPTS,
	};
	take_workspace(task, value_member(value, "workspace"));
	take_run(task, value_member(value, "run"));
	task->line = value;
	value = NULL;
	return true;
}

void fleet_task_fini(struct fleet_task *task)
{
	value_free(task->line);
	*task = (struct fleet_task){0};
}

/* Files. */

/* A line that was checked. */
struct place {
	uint64_t offset;
	uint64_t mark; /* of its bytes */
	uint32_t size;
	uint32_t id;     /* offset in the ids */
	uint32_t number; /* of the line, from 1 */
	uint32_t kind;
};

struct fleet_tasks {
	int fd;
	char *name; /* for sentences */
	struct buf ids;
	struct place *places;
	size_t count, room;
	char *kinds[FLEET_TASK_KINDS]; /* the texts of kind_of, owned */
	uint32_t kind_count;
	char hash[HASH_HEX + 1];
	/* While the file is read: the numbers of places by their ids, and a power of two of them. */
	uint32_t *slots;
	size_t slot_count;
};

enum {
	FIRST_PLACES = 256,
	MARK_HEX = 16, /* digits of a mark that make 64 bits */
	/* FNV-1a, 32 bits (draft-eastlake-fnv): spreads ids; equal ones are compared anyway. */
	FNV_PRIME = 16777619,
};
#define FNV_BASIS 2166136261U

static uint64_t mark_of(struct str line)
{
	char hex[HASH_MARK_HEX + 1];

	hash_mark(line, hex);
	hex[MARK_HEX] = '\0';
	return strtoull(hex, NULL, 16);
}

const char *fleet_tasks_id(const struct fleet_tasks *tasks, size_t nth)
{
	return tasks->ids.data + tasks->places[nth].id;
}

/* The slot of ID: the one that has it, or the free one where it belongs. */
static uint32_t *slot_of(const struct fleet_tasks *tasks, const char *id)
{
	uint32_t hash = FNV_BASIS;
	size_t at;

	for (const char *c = id; *c != '\0'; c++)
		hash = (hash ^ (uint8_t)*c) * FNV_PRIME;
	at = hash & (tasks->slot_count - 1);
	while (tasks->slots[at] != NOTHING &&
	       strcmp(fleet_tasks_id(tasks, tasks->slots[at]), id) != 0)
		at = (at + 1) & (tasks->slot_count - 1);
	return &tasks->slots[at];
}

/* Make room for one more place, and twice as many slots as there are places. */
static void grow(struct fleet_tasks *tasks)
{
	if (tasks->count < tasks->room)
		return;
	tasks->room = tasks->room == 0 ? FIRST_PLACES : 2 * tasks->room;
	tasks->places = memory_grow(tasks->places, tasks->room, sizeof(*tasks->places));
	free(tasks->slots);
	tasks->slot_count = 2 * tasks->room;
	tasks->slots = memory_array(tasks->slot_count, sizeof(*tasks->slots));
	memset(tasks->slots, UINT8_MAX, tasks->slot_count * sizeof(*tasks->slots));
	for (size_t i = 0; i < tasks->count; i++)
		*slot_of(tasks, fleet_tasks_id(tasks, i)) = (uint32_t)i;
}

/* The number of the kind of TASK, which is a new one where there is room for it. */
static uint32_t kind_of(struct fleet_tasks *tasks, const struct fleet_task *task)
{
	uint32_t kind = 0;
	struct buf text;

	buf_init(&text, FLEET_LINE_MAX);
	if (!buf_addf(&text, "%s.%d.", task->lane, (int)task->priority) ||
	    (task->needs != NULL && !value_print(task->needs, 0, &text)))
		kind = FLEET_TASK_KINDS;
	while (kind < tasks->kind_count && strcmp(tasks->kinds[kind], text.data) != 0)
		kind++;
	if (kind == tasks->kind_count && kind < FLEET_TASK_KINDS)
		tasks->kinds[tasks->kind_count++] = memory_copy(text.data);
	buf_fini(&text);
	return kind;
}

/* Check LINE, and keep PLACE, where it is. */
static bool add_line(struct fleet_tasks *tasks, struct str line, struct place place,
		     struct err *err)
{
	struct fleet_task task = {0};
	uint32_t *slot;
	bool ok;

	if (tasks->count >= FLEET_TASKS_MAX)
		return err_set(err, EFBIG, "a file has at most %d tasks: make two of it",
			       FLEET_TASKS_MAX);
	if (!fleet_task_read(line, &task, err))
		return false;
	grow(tasks);
	slot = slot_of(tasks, task.id);
	if (*slot == NOTHING) {
		place.size = (uint32_t)line.size;
		place.mark = mark_of(line);
		place.id = (uint32_t)tasks->ids.size;
		place.kind = kind_of(tasks, &task);
		*slot = (uint32_t)tasks->count;
		tasks->places[tasks->count++] = place;
		ok = buf_add(&tasks->ids, task.id, strlen(task.id) + 1) ||
		     err_set(err, EFBIG, "the ids have more than %d bytes", IDS_MAX);
	} else {
		ok = err_set(err, EEXIST, "/id: \"%s\" is that of line %" PRIu32 " as well",
			     task.id, tasks->places[*slot].number);
	}
	fleet_task_fini(&task);
	return ok;
}

/* Read the file of TASKS to its end. */
static bool read_lines(struct fleet_tasks *tasks, struct err *err)
{
	static const struct str byte_order_mark = STR("\xef\xbb\xbf");
	auto_free char *room = memory_alloc(READ_BYTES);
	struct hash *hash = hash_new();
	struct place place = {.number = 1};
	uint64_t offset = 0;
	struct buf line;
	bool ok = true, ended = false;

	buf_init(&line, FLEET_LINE_MAX);
	while (ok && !ended) {
		const ssize_t n = pread(tasks->fd, room, READ_BYTES, (off_t)offset);
		struct str rest = {room, n > 0 ? (size_t)n : 0};

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ok = err_set(err, errno, "%s: %s", tasks->name, strerror(errno));
			break;
		}
		hash_add(hash, rest);
		ended = n == 0;
		/* Editors of other systems put a byte order mark there, which is no part of JSON. */
		if (offset == 0 && str_starts(rest, byte_order_mark)) {
			rest = str_part(rest, byte_order_mark.size, rest.size);
			place.offset = byte_order_mark.size;
		}
		while (ok && (rest.size > 0 || (ended && line.size > 0))) {
			const bool whole = buf_take_line(&line, &rest) || ended;
			const struct str text = str_trim(buf_str(&line));

			if (line.overflowed)
				ok = err_set(err, EFBIG,
					     "%s:%" PRIu32 ": a line has at most %d bytes",
					     tasks->name, place.number, FLEET_LINE_MAX);
			if (!ok || !whole)
				break;
			if (text.size > 0 && line.data[0] != '#' &&
			    !add_line(tasks, buf_str(&line), place, err))
				ok = err_while(err, "%s:%" PRIu32, tasks->name,
					       place.number);
			place.offset = offset + (uint64_t)(n - (ssize_t)rest.size);
			place.number++;
			buf_clear(&line);
		}
		offset += (uint64_t)n;
		if (ok && offset > FILE_MAX)
			ok = err_set(err, EFBIG, "%s: a file of tasks has at most %d bytes",
				     tasks->name, FILE_MAX);
	}
	buf_fini(&line);
	if (ok)
		hash_digest_text(hash, tasks->hash);
	hash_free(hash);
	return ok && (tasks->count > 0 ||
		      err_set(err, EINVAL, "%s: there is no task in it", tasks->name));
}

/* Copy FD, which cannot be read twice, into a file without a name. */
static int copy_of(int fd, const char *name, struct err *err)
{
	const char *folder = getenv("TMPDIR");
	auto_close int copy = open(folder != NULL && folder[0] == '/' ? folder : "/tmp",
				   O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	auto_free char *room = memory_alloc(READ_BYTES);
	uint64_t size = 0;
	ssize_t n;

	/* Some file systems have no such files; then it is kept in memory. */
	if (copy < 0)
		copy = memfd_create("tasks", MFD_CLOEXEC);
	if (copy < 0) {
		(void)err_set(err, errno, "%s: it cannot be copied: %s", name,
			      strerror(errno));
		return -1;
	}
	while ((n = read(fd, room, READ_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		size += n > 0 ? (uint64_t)n : 0;
		if (n < 0)
			(void)err_set(err, errno, "%s: %s", name, strerror(errno));
		else if (size > FILE_MAX)
			(void)err_set(err, EFBIG, "%s: a file of tasks has at most %d bytes",
				      name, FILE_MAX);
		else if (fd_write_all(copy, room, (size_t)n, err))
			continue;
		return -1;
	}
	return fd_take(&copy);
}

/* Open PATH for reading at any place. */
static int open_file(const char *path, const char *name, struct err *err)
{
	const bool standard = strcmp(path, "-") == 0;
	auto_close int opened = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const int fd = standard ? STDIN_FILENO : opened;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_set(err, errno, "%s: %s", name, strerror(errno));
		return -1;
	}
	if (S_ISDIR(st.st_mode)) {
		(void)err_set(err, EISDIR, "%s: a folder is no file of tasks", name);
		return -1;
	}
	if (!standard && S_ISREG(st.st_mode))
		return fd_take(&opened);
	return copy_of(fd, name, err);
}

bool fleet_tasks_open(const char *path, struct fleet_tasks **tasks, struct err *err)
{
	struct fleet_tasks *made = memory_alloc(sizeof(*made));
	bool ok;

	made->name = memory_copy(strcmp(path, "-") == 0 ? "standard input" : path);
	buf_init(&made->ids, IDS_MAX);
	made->fd = open_file(path, made->name, err);
	ok = made->fd >= 0 && read_lines(made, err);
	free(made->slots);
	made->slots = NULL;
	if (ok)
		*tasks = made;
	else
		fleet_tasks_free(made);
	return ok;
}

size_t fleet_tasks_count(const struct fleet_tasks *tasks)
{
	return tasks->count;
}

bool fleet_tasks_get(const struct fleet_tasks *tasks, size_t nth, struct fleet_task *task,
		     struct err *err)
{
	const struct place *place = &tasks->places[nth];
	auto_free char *line = memory_alloc(place->size + 1);
	size_t got = 0;

	while (got < place->size) {
		const ssize_t n = pread(tasks->fd, line + got, place->size - got,
					(off_t)(place->offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (got < place->size || mark_of((struct str){line, place->size}) != place->mark)
		return err_set(err, ESTALE,
			       "%s:%" PRIu32 ": the file has been changed since it was read; "
			       "begin again with the file as it is now",
			       tasks->name, place->number);
	if (!fleet_task_read((struct str){line, place->size}, task, err))
		return err_while(err, "%s:%" PRIu32, tasks->name, place->number);
	return true;
}

size_t fleet_tasks_kind(const struct fleet_tasks *tasks, size_t nth)
{
	return tasks->places[nth].kind;
}

const char *fleet_tasks_hash(const struct fleet_tasks *tasks)
{
	return tasks->hash;
}

int fleet_tasks_fd(const struct fleet_tasks *tasks)
{
	return tasks->fd;
}

void fleet_tasks_free(struct fleet_tasks *tasks)
{
	if (tasks == NULL)
		return;
	fd_close(&tasks->fd);
	free(tasks->name);
	buf_fini(&tasks->ids);
	free(tasks->places);
	free(tasks->slots);
	for (uint32_t i = 0; i < tasks->kind_count; i++)
		free(tasks->kinds[i]);
	free(tasks);
}
