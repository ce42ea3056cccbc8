/* masking: marks in the calls of a session, and the way back. */

#include "session/masking.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "policy/command.h"
#include "policy/policy.h"
#include "session/keeper.h"
#include "session/session.h"
#include "tool/call.h"
#include "tool/mask.h"
#include "tool/secret.h"
#include "tool/tool.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

struct masking {
	struct mask *mask;
	struct value *wish; /* the arguments of SECRET_TOOL */
	bool known;         /* the secrets were read since they may have changed */
	bool explained;     /* a result has said what a mark is */
	char *lost;         /* the file of the key, which holds none; NULL: it does */
	/* the sentences about the secrets that were not read, and those last told */
	struct buf missed, told;
	bool forgot, forgot_told; /* values, as there were too many; this was said */
};

/* The key of the marks, which the user's sessions have in common. */

static bool key_read(const char *path, uint8_t key[MASK_KEY])
{
	struct buf bytes;

	buf_init(&bytes, MASK_KEY);
	const bool whole =
		fd_read_file(path, MASK_KEY, &bytes, NULL) && bytes.size == MASK_KEY;
	if (whole)
		memcpy(key, bytes.data, MASK_KEY);
	if (bytes.capacity > 0)
		explicit_bzero(bytes.data, bytes.capacity);
	buf_fini(&bytes);
	return whole;
}

/* Put KEY into the new file PATH. Of two sessions that do, the first one's key counts. */
static void key_write(const char *path, const uint8_t key[MASK_KEY])
{
	auto_free char *folder = memory_copy(path);
	char *slash = strrchr(folder, '/');

	if (slash == NULL || !fd_make_folders(path, NULL))
		return;
	*slash = '\0';
	auto_close int parent = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int file =
		openat(parent, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (file >= 0 && fd_write_all(file, key, MASK_KEY, NULL))
		(void)fd_link(file, parent, slash + 1);
}

/* Without a file the key is that of this session. False: PATH holds no key. */
static bool key_take(const char *path, uint8_t key[MASK_KEY])
{
	if (path != NULL && key_read(path, key))
		return true;
	while (getrandom(key, MASK_KEY, 0) != MASK_KEY)
		;
	if (path == NULL)
		return true;
	key_write(path, key);
	return key_read(path, key);
}

static struct value *paths_of(const struct policy_paths *paths)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < paths->count; i++) {
		if (paths->items[i].path != NULL)
			value_append(list, value_new_text(paths->items[i].path));
	}
	return list;
}

enum {
	MISSED_MAX = 2 << 10, /* bytes of the sentences */
	MISSED_TOLD = 4,
	MISSED_PATH = 200,  /* bytes of a path */
	FIRST_MAX = 256,    /* files that are read first; a text may name any number */
	VISITS_MAX = 10000, /* names of them that are looked at: some 50 ms */
	PLACES_MAX = 16,    /* folders of one text */
};

struct masking *masking_new(const struct policy *policy, const char *key_file)
{
	uint8_t key[MASK_KEY];
	struct masking *masking;

	if (policy->secrets.shown)
		return NULL;
	masking = memory_alloc(sizeof(*masking));
	if (!key_take(key_file, key))
		masking->lost = memory_copy(key_file);
	masking->mask = mask_new(key);
	explicit_bzero(key, sizeof(key));
	buf_init(&masking->missed, MISSED_MAX);
	buf_init(&masking->told, MISSED_MAX);
	masking->wish = value_new_object();
	value_set(masking->wish, "files", paths_of(&policy->secrets.files));
	value_set(masking->wish, "show", paths_of(&policy->secrets.show));
	value_set(masking->wish, "folders", value_new_array());
	return masking;
}

void masking_free(struct masking *masking)
{
	if (masking == NULL)
		return;
	mask_free(masking->mask);
	value_free(masking->wish);
	buf_fini(&masking->missed);
	buf_fini(&masking->told);
	free(masking->lost);
	free(masking);
}

void masking_looks_in(struct session *session, const char *folder)
{
	if (session->masking == NULL)
		return;
	value_append(value_member(session->masking->wish, "folders"),
		     value_new_text(folder));
	masking_ages(session);
}

void masking_ages(struct session *session)
{
	if (session->masking != NULL)
		session->masking->known = false;
}

/* The paths of a call. */

struct path_visit {
	const struct session *session;
	size_t count, shown, secret;
	struct buf *all;       /* each with its NUL, or NULL */
	struct value *secrets; /* the paths of files of secrets; or NULL */
};

static bool is_in(const struct policy_paths *paths, const char *path, bool whole)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *entry = paths->items[i].path;

		if (entry != NULL &&
		    (whole ? strcmp(path, entry) == 0 : path_within(path, entry)))
			return true;
	}
	return false;
}

static void path_visit(void *context, const char *text)
{
	struct path_visit *visit = context;
	const struct policy_secrets *secrets = &visit->session->policy->secrets;
	struct buf path;

	buf_init(&path, PATH_MAX);
	visit->count++;
	if (visit->all != NULL)
		(void)buf_add(visit->all, text, strlen(text) + 1);
	if (policy_normal(visit->session->policy, session_workspace(visit->session), text,
			  &path)) {
		const bool secret =
			secret_file_of(path_base_name(path.data)) != SECRET_FILE_NONE ||
			is_in(&secrets->files, path.data, true);

		visit->shown += is_in(&secrets->show, path.data, false);
		visit->secret += secret;
		if (secret && visit->secrets != NULL &&
		    value_count(visit->secrets) < FIRST_MAX &&
		    !value_has_text(visit->secrets, path.data))
			value_append(visit->secrets, value_new_text(path.data));
	}
	buf_fini(&path);
}

static struct path_visit visit_all(const struct running *running)
{
	struct path_visit visit = {.session = running->session};

	tool_visit_paths(running->tool, running->arguments, path_visit, &visit);
	return visit;
}

/* Does RUNNING name only files whose content the policy shows? */
static bool is_shown(const struct running *running)
{
	if (running->session->policy->secrets.show.count == 0)
		return false;
	const struct path_visit visit = visit_all(running);
	return visit.count > 0 && visit.shown == visit.count;
}

static bool is_masked(const struct running *running)
{
	return running->session->masking != NULL && running->tool != NULL &&
	       !running->masked.off && !running->tool->plain;
}

/* Reading the secrets. */

/* The folders in which the commands of a text run. */
struct places {
	struct path_visit *visit;
	char *folders[PLACES_MAX]; /* absolute; owned */
	size_t count;
};

/* Visit WORD of a command that runs in FOLDER, if it is the name of a file of secrets. */
static void visit_word(struct path_visit *visit, const char *folder, const char *word)
{
	struct buf path;

	if (visit->count >= VISITS_MAX ||
	    secret_file_of(path_base_name(word)) == SECRET_FILE_NONE)
		return;
	buf_init(&path, PATH_MAX);
	if (path_normal(folder, word, &path))
		path_visit(visit, path.data);
	buf_fini(&path);
}

/* Visit the words of a command that can be seen, and note its folder. */
static bool visit_seen(void *context, const struct command_seen *seen)
{
	struct places *places = context;
	const char *folder = seen->folder != NULL ? seen->folder : places->folders[0];
	size_t at = 0;

	while (at < places->count && strcmp(places->folders[at], folder) != 0)
		at++;
	if (at == places->count && at < PLACES_MAX)
		places->folders[places->count++] = memory_copy(folder);
	for (size_t i = 0; i < seen->command->count; i++) {
		if (seen->command->values[i].data != NULL)
			visit_word(places->visit, folder, seen->command->values[i].data);
	}
	return true;
}

/* Visit the words of TEXT, in whichever folder their commands run: files are redirected, too. */
static void visit_words(const struct places *places, struct str text)
{
	auto_free char *values = memory_alloc(text.size + 1);
	struct shell_lexer lexer;
	struct shell_token token;

	shell_lexer_init(&lexer, text, values);
	for (shell_lexer_next(&lexer, &token); token.kind != SHELL_END;
	     shell_lexer_next(&lexer, &token)) {
		for (size_t i = 0; token.kind == SHELL_WORD && i < places->count; i++)
			visit_word(places->visit, places->folders[i], token.value.data);
	}
}

/* A command that names a file of secrets prints it as a rule, so such a file is read first. */
static void visit_command(struct path_visit *visit, const struct running *running)
{
	const struct row *rows = running->tool->params;
	struct places places = {.visit = visit, .count = 1};
	const struct command_visit seen = {visit_seen, &places};
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	session_call_folder(running, &folder);
	places.folders[0] = memory_copy(folder.data);
	for (const struct row *row = rows; row != NULL && row->name != NULL; row++) {
		const struct value *value = value_member(running->arguments, row->name);
		const char **argv;

		if (row->kind == ROW_COMMAND && value_text(value) != NULL) {
			command_seen_text(value_str(value), places.folders[0], &seen);
			visit_words(&places, value_str(value));
		} else if (row->kind == ROW_ARGV && value_count(value) > 0) {
			argv = memory_array(value_count(value) + 1, sizeof(*argv));
			for (size_t i = 0; i < value_count(value); i++)
				argv[i] = value_text(value_item(value, i));
			command_seen_argv(argv, places.folders[0], &seen);
			free(argv);
		}
	}
	while (places.count > 0)
		free(places.folders[--places.count]);
	buf_fini(&folder);
}

struct value *masking_asks(struct running *running)
{
	const struct session *session = running->session;
	struct masking *masking = session->masking;

	running->masked.asked = false;
	if (masking == NULL || running->due != DUE_CALL || running->tool->plain)
		return NULL;
	const bool looks_far =
		running->tool->searches || (running->tool->effects & EFFECT_RUNS) != 0;
	auto_value struct value *first = value_new_array();
	struct path_visit visit = {.session = session, .secrets = first};
	tool_visit_paths(running->tool, running->arguments, path_visit, &visit);
	visit_command(&visit, running);
	running->masked.asked = !masking->known || visit.secret > 0 ||
				(looks_far && (session->policy->secrets.files.count > 0 ||
					       !keeper_is_quiet(session->keeper)));
	if (!running->masked.asked)
		return NULL;
	struct value *wish = value_copy(masking->wish);
	value_set(wish, "first", value_ref(first));
	return wish;
}

/* Append a sentence about the secrets of PATH that were not read because of WHY. */
static void add_missed(struct buf *out, struct str path, struct str why)
{
	static const struct {
		const char *why, *before, *behind;
	} sentences[] = {
		{SECRET_MISSED_SIZE, "", " is larger than 256 KiB"},
		{SECRET_MISSED_ERROR, "", " cannot be read"},
		{SECRET_MISSED_FILES, "there are more than 64 such files: ", " is not read"},
		{SECRET_MISSED_VALUES, "there are more than 1,024 values: some of ",
		 " are not known"},
	};

	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		if (!str_is(why, sentences[i].why))
			continue;
		(void)buf_adds(out, out->size > 0 ? "; " : "");
		(void)buf_adds(out, sentences[i].before);
		text_add_name(out, str_part(path, 0, MISSED_PATH));
		(void)buf_adds(out, sentences[i].behind);
	}
}

static void take_secrets(struct masking *masking, const struct tool_result *found)
{
	const struct value *list = value_member(found->details, "secrets");
	const struct value *missed = value_member(found->details, "missed");

	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *row = value_item(list, i);

		if (!mask_learn(masking->mask, value_str(value_item(row, 0)),
				value_str(value_item(row, 1))))
			masking->forgot = true;
	}
	/* A walk that was stopped has told some of them. */
	masking->known = list != NULL && found->status == RESULT_DONE;
	if (!masking->known)
		return;
	buf_clear(&masking->missed);
	for (size_t i = 0; i < value_count(missed) && i < MISSED_TOLD; i++) {
		const struct value *row = value_item(missed, i);

		add_missed(&masking->missed, value_str(value_item(row, 0)),
			   value_str(value_item(row, 1)));
	}
}

void masking_take(struct running *running, struct str payload)
{
	struct tool_result found;

	if (running->session->masking == NULL || !running->masked.asked)
		return;
	running->masked.asked = false;
	tool_result_init(&found);
	if (tool_result_parse(payload, &found, NULL))
		take_secrets(running->session->masking, &found);
	value_wipe(found.details);
	tool_result_fini(&found);
}

/*
 * A call has marks, and nothing was read yet, as in a session that goes on after its process
 * has ended: read the secrets now.
 */
static void read_now(struct session *session)
{
	const struct tool *tool = tool_find(session->all_tools, SECRET_TOOL);
	struct running *running;

	if (tool == NULL)
		return;
	running = running_of_session(session, tool);
	running->arguments = value_ref(session->masking->wish);
	running->times.timeout_s = tool->timeout_s;
	running_step(running, HAPPENS_JUDGED);
	running_proceed(running);
	while (!running_is_done(running))
		loop_turn(session->loop, CLOCK_NEVER);
	take_secrets(session->masking, &running->result);
	running_free(running);
}

/* Turning marks back. */

struct undoing {
	struct running *running;
	bool quotes; /* in a pattern */
	bool changed;
};

/* The mark of a secret stands in TEXT, which ROW takes and does not turn back. */
static bool undo_refuses(const struct undoing *undoing, const struct row *row)
{
	struct tool_result *result = &undoing->running->result;
	const char *tool = undoing->running->tool->name;

	if (undoing->running->masked.off)
		(void)tool_fail(result,
				"Files here are shown as they are, so no mark becomes a value in "
				"them: nothing was done. Write the value itself, or a text without "
				"the mark.");
	else if (row != NULL && row->kind >= ROW_PATH && row->kind <= ROW_FOLDER)
		(void)tool_fail(result,
				"A path takes no mark of a secret. Nothing was done.");
	else
		(void)tool_fail(result,
				"%s does not turn the mark of a secret back. In a command use the "
				"variable, or the file that holds the value; write_file, edit_file and "
				"apply_patch put it into a file.",
				tool);
	return false;
}

/* Is a mark in the text of ROW left as it is, so that nothing knows a file by that name? */
static bool is_left(const struct undoing *undoing, struct str text)
{
	const struct tool *tool = undoing->running->tool;
	const struct mask *mask = undoing->running->session->masking->mask;

	if (undoing->running->masked.off)
		return !mask_is_named(mask, text);
	return tool->plain || tool->where == IN_FRONT ||
	       (tool->effects == EFFECT_READS && tool->where == IN_CELL &&
		!mask_is_named(mask, text));
}

static void tell_unknown(struct tool_result *result, const char *name)
{
	if (name == NULL || name[0] == '\0')
		(void)tool_fail(result,
				"The mark of a secret has no end, or no name: nothing was done. "
				"Write it as you saw it: " MASK_BEGIN "NAME-TAG" MASK_END
				"; a text of its own that begins like a mark has ‹ twice.");
	else
		(void)tool_fail(
			result,
			"There is no secret \"%.80s\" in this session, or its value is "
			"another one by now, so nothing was done. Read the file again, and "
			"use the mark that you see there; a text of its own that begins like "
			"a mark has ‹ twice.",
			name);
}

/* False: the call is refused. */
static bool undo_text(struct undoing *undoing, const struct row *row, struct str text,
		      struct value **made)
{
	struct running *running = undoing->running;
	struct masking *masking = running->session->masking;
	struct buf bytes;

	if (str_find(text, STR(MASK_BEGIN), 0) == (size_t)-1 &&
	    str_find(text, STR(MASK_ESCAPE), 0) == (size_t)-1)
		return true;
	if (!masking->known)
		read_now(running->session);
	if (running->masked.off || row == NULL || row->unmasks == UNMASKS_NOT)
		return str_find(text, STR(MASK_BEGIN), 0) == (size_t)-1 ||
		       is_left(undoing, text) || undo_refuses(undoing, row);
	buf_init(&bytes, RESULT_TEXT_MAX);
	const enum mask_undone undone =
		mask_undo(masking->mask, text,
			  row->unmasks == UNMASKS_PATTERN && undoing->quotes, &bytes);
	if (undone == MASK_UNDONE)
		*made = value_new_str(buf_str(&bytes));
	else if (undone == MASK_UNKNOWN)
		(void)tell_unknown(&running->result, bytes.data);
	else if (undone == MASK_ESCAPED)
		(void)tool_fail(&running->result,
				"Of the mark of \"%.80s\" the brackets are escaped (\\u2039), so it "
				"would be written as it is: nothing was done. Write ‹ and › "
				"themselves.",
				bytes.data);
	else if (undone == MASK_FULL)
		(void)tool_fail(&running->result,
				"With its secrets the text is over %d bytes; send less.",
				RESULT_TEXT_MAX);
	if (bytes.data != NULL && bytes.capacity > 0)
		explicit_bzero(bytes.data, bytes.capacity);
	buf_fini(&bytes);
	return undone == MASK_PLAIN || undone == MASK_UNDONE;
}

static bool undo_value(struct undoing *undoing, const struct row *row,
		       struct value *value, struct value **made);

/* Of an object, each member has its row; of a foreign schema, none has. */
static bool undo_object(struct undoing *undoing, const struct row *rows, struct value *object)
{
	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		const struct row *row =
			rows != NULL ? rows_find(rows, value_key(at)) : NULL;
		struct value *made = NULL;

		if (!undo_value(undoing, row, value_at(at), &made))
			return false;
		if (made != NULL) {
			value_set(object, value_key(at), made);
			undoing->changed = true;
		}
	}
	return true;
}

static bool undo_value(struct undoing *undoing, const struct row *row,
		       struct value *value, struct value **made)
{
	bool fine = true;

	if (value_kind(value) == VALUE_STRING)
		return undo_text(undoing, row, value_str(value), made);
	if (value_kind(value) == VALUE_OBJECT)
		return undo_object(undoing, row != NULL ? row->rows : NULL, value);
	for (size_t i = 0; fine && i < value_count(value); i++) {
		struct value *none = NULL;

		fine = undo_value(undoing, row, value_item(value, i), &none);
		value_free(none);
	}
	return fine;
}

/* Each path that TOOL finds in ARGUMENTS by itself. */
static void paths_print(const struct running *running, const struct value *arguments,
			struct buf *out)
{
	struct path_visit visit = {.session = running->session, .all = out};

	buf_init(out, RESULT_TEXT_MAX);
	running->tool->visit_paths(arguments, path_visit, &visit);
}

/*
 * The policy judges the arguments with their marks, so no byte of a secret may lead to
 * another file.
 */
static bool paths_stay(struct running *running)
{
	struct buf shown, real;

	if (running->tool->visit_paths == NULL)
		return true;
	paths_print(running, running->arguments, &shown);
	paths_print(running, running->masked.arguments, &real);
	const bool same = str_equal(buf_str(&shown), buf_str(&real));
	buf_fini(&shown);
	buf_fini(&real);
	if (!same)
		(void)tool_fail(&running->result,
				"The mark of a secret may stand in the lines of a file, and not "
				"where a file is named. Nothing was done.");
	return same;
}

bool masking_arguments(struct running *running)
{
	struct undoing undoing = {.running = running};

	if (running->session->masking == NULL)
		return true;
	running->masked.off = is_shown(running);
	undoing.quotes = !value_is_true(value_member(running->arguments, "literal"));
	auto_value struct value *real = value_copy(running->arguments);
	if (!undo_object(&undoing, running->tool->params, real))
		return false;
	if (!undoing.changed)
		return true;
	running->masked.arguments = value_ref(real);
	return paths_stay(running);
}

/* Masking. */

/* Append TEXT with marks to OUT; the number of marks. */
static size_t mask_whole(struct masking *masking, struct str text, struct buf *out)
{
	struct mask_stream stream;

	mask_stream_init(&stream, masking->mask);
	if (!mask_add(&stream, text, true, out))
		(void)buf_adds(out, "\n[the rest is left out: with its marks the text is too "
				    "long]\n");
	mask_stream_fini(&stream);
	return stream.count;
}

/* Is VALUE, the member KEY of OBJECT, the Base64 of a picture or a file? */
static bool is_encoded(const struct value *object, const char *key, const struct value *value)
{
	const struct str text = value_str(value);

	if ((strcmp(key, "data") != 0 && strcmp(key, "blob") != 0) ||
	    value_kind(value) != VALUE_STRING || value_member(object, "mimeType") == NULL)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (!isalnum((unsigned char)text.data[i]) &&
		    (text.data[i] == '\0' || strchr("+/=\r\n", text.data[i]) == NULL))
			return false;
	}
	return true;
}

/* A value with marks, or NULL when VALUE has no secrets. COUNT counts the marks. */
static struct value *mask_value(struct masking *masking, const struct value *value,
				size_t *count)
{
	struct value *made = NULL, *part;

	if (value_kind(value) == VALUE_STRING) {
		struct buf out;

		if (mask_is_clean(masking->mask, value_str(value)))
			return NULL;
		buf_init(&out, EVENT_JSON_MAX);
		*count += mask_whole(masking, value_str(value), &out);
		made = value_new_str(buf_str(&out));
		buf_fini(&out);
	}
	if (value_kind(value) == VALUE_OBJECT) {
		for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
			if (is_encoded(value, value_key(at), value_at(at)))
				continue;
			part = mask_value(masking, value_at(at), count);
			if (part == NULL)
				continue;
			if (made == NULL) {
				made = value_new_object();
				for (void *all = value_first(value); all != NULL;
				     all = value_next(value, all))
					value_set(made, value_key(all),
						  value_ref(value_at(all)));
			}
			value_set(made, value_key(at), part);
		}
	}
	if (value_kind(value) == VALUE_ARRAY) {
		struct value *all = value_new_array();
		bool changed = false;

		for (size_t i = 0; i < value_count(value); i++) {
			part = mask_value(masking, value_item(value, i), count);
			changed = changed || part != NULL;
			value_append(all, part != NULL ? part
						       : value_ref(value_item(value, i)));
		}
		if (changed)
			made = all;
		else
			value_free(all);
	}
	return made;
}

static void replace(struct masking *masking, struct value **value, size_t *count)
{
	struct value *made = mask_value(masking, *value, count);

	if (made == NULL)
		return;
	value_free(*value);
	*value = made;
}

static void explain(struct masking *masking, struct tool_result *result)
{
	if (masking->explained)
		return;
	masking->explained = true;
	(void)buf_end_line(&result->text);
	(void)buf_adds(&result->text,
		       "[" MASK_BEGIN "NAME-TAG" MASK_END
		       " stands for a value that is kept out of this conversation. write_file, "
		       "edit_file and apply_patch put the value back; in a command use the "
		       "variable, or the file that holds it.]\n");
	if (masking->lost == NULL)
		return;
	(void)buf_adds(&result->text, "[");
	text_add_name(&result->text, str_of(masking->lost));
	(void)buf_adds(&result->text,
		       " holds no key for these marks, and none can be put there: another session "
		       "takes none of them for its value. A person removes that file, and the next "
		       "session makes a new one.]\n");
}

/* Say once which secrets of the workspace have no marks. */
static void tell_missed(struct masking *masking, struct tool_result *result)
{
	if (masking->forgot && !masking->forgot_told) {
		masking->forgot_told = true;
		(void)buf_end_line(&result->text);
		(void)buf_addf(&result->text,
			       "[The session knows %d values of secrets, so the oldest are forgotten. "
			       "Such a value is shown as it is.]\n",
			       MASK_VALUES_MAX);
	}
	if (str_equal(buf_str(&masking->missed), buf_str(&masking->told)))
		return;
	buf_clear(&masking->told);
	(void)buf_addstr(&masking->told, buf_str(&masking->missed));
	if (masking->missed.size == 0)
		return;
	(void)buf_end_line(&result->text);
	(void)buf_addf(&result->text,
		       "[Not every secret of the workspace has a mark: %s. Such a value is shown "
		       "as it is.]\n",
		       masking->missed.data);
}

/* After RUNNING the files of secrets may be others. */
static void note_change(struct running *running)
{
	const unsigned effects = running->tool->effects;

	if (((effects & EFFECT_WRITES) != 0 && visit_all(running).secret > 0) ||
	    ((effects & EFFECT_RUNS) != 0 && !keeper_is_quiet(running->session->keeper)))
		masking_ages(running->session);
}

void masking_result(struct running *running, struct tool_result *result)
{
	struct masking *masking = running->session->masking;
	size_t count = 0;

	if (masking == NULL || running->tool == NULL)
		return;
	note_change(running);
	if (!is_masked(running))
		return;
	if (!mask_is_clean(masking->mask, buf_str(&result->text))) {
		struct buf text;

		buf_init(&text, RESULT_TEXT_MAX);
		count += mask_whole(masking, buf_str(&result->text), &text);
		explicit_bzero(result->text.data, result->text.size);
		buf_fini(&result->text);
		result->text = text;
	}
	replace(masking, &result->details, &count);
	replace(masking, &result->content, &count);
	/* The front's own tools have no room for it in what they answer. */
	if (running->tool->internal)
		return;
	tell_missed(masking, result);
	if (count == 0)
		return;
	value_set_integer(tool_details(result), "masked", (int64_t)count);
	explain(masking, result);
}

struct str masking_text(struct running *running, struct str text, struct buf *made)
{
	if (!is_masked(running) || mask_is_clean(running->session->masking->mask, text))
		return text;
	(void)mask_whole(running->session->masking, text, made);
	return buf_str(made);
}

struct value *masking_value(struct running *running, const struct value *value)
{
	size_t count = 0;

	return is_masked(running) ? mask_value(running->session->masking, value, &count)
				  : NULL;
}

struct str masking_output(struct running *running, int stream, struct str bytes,
			  bool last, struct buf *made)
{
	struct mask_stream *at = &running->masked.streams[stream];

	if (!is_masked(running))
		return last ? STR("") : bytes;
	if (at->mask == NULL && last)
		return STR("");
	if (at->mask == NULL)
		mask_stream_init(at, running->session->masking->mask);
	(void)mask_add(at, bytes, last, made);
	return buf_str(made);
}

void masking_end(struct running *running)
{
	for (size_t i = 0; i < 2; i++) {
		if (running->masked.streams[i].mask != NULL)
			mask_stream_fini(&running->masked.streams[i]);
	}
	value_wipe(running->masked.arguments);
	value_free(running->masked.arguments);
}
