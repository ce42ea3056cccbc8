/*
 * session_memory: the files that a session has read. Workers forget them. A call brings
 * along the marks that may matter to it, and the marks that it learnt come back with the
 * result.
 */
#include "base/path.h"
#include "files/files.h"
#include "session/session_parts.h"
#include "tool/call.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEEN_SENT_ALL = 64, /* up to this many marks go along with every call */
	/*
	 * files known to one session; when there are more, all are forgotten, and the
	 * guard asks to read again
	 */
	SEEN_MAX = 100000,
};

struct path_visit {
	struct session *session;
	struct value *marks;
};

static void mark_copy(struct path_visit *visit, const char *path)
{
	const char *mark = value_text(value_member(visit->session->seen, path));

	if (mark != NULL)
		value_set_text(visit->marks, path, mark);
}

/*
 * Add the mark of one path argument: under its own name, and under the real name to which
 * it led before.
 */
static void path_visit(void *context, const char *text)
{
	struct path_visit *visit = context;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (path_normal(session_workspace(visit->session), text, &path)) {
		const char *real =
			value_text(value_member(visit->session->aliases, path.data));
		mark_copy(visit, path.data);
		if (real != NULL)
			mark_copy(visit, real);
	}
	buf_fini(&path);
}

static void paths_visit(struct path_visit *visit, const struct tool_param *rows,
			const struct value *arguments)
{
	for (; rows != NULL && rows->name != NULL; rows++) {
		const struct value *value = value_member(arguments, rows->name);
		if (rows->kind == PARAM_PATH && value_text(value) != NULL)
			path_visit(visit, value_text(value));
		for (size_t i = 0; rows->kind == PARAM_LIST && i < value_count(value); i++)
			paths_visit(visit, rows->rows, value_item(value, i));
	}
}

struct value *session_memory_for(struct session *session, const struct running *running)
{
	struct path_visit visit = {session, NULL};

	/* A tool that only reads learns marks and does not look at any. */
	if (running->tool->effects == EFFECT_READS)
		return NULL;
	if (value_count(session->seen) <= SEEN_SENT_ALL)
		return value_ref(session->seen);
	visit.marks = value_new_object();
	paths_visit(&visit, running->tool->params, running->arguments);
	if (running->tool->visit_paths != NULL)
		running->tool->visit_paths(running->arguments, path_visit, &visit);
	return visit.marks;
}

/*
 * When one path argument led to one file of another name, the session remembers both
 * names.
 */
static void alias_learn(struct session *session, const struct running *running,
			const struct value *seen)
{
	const char *text = value_text(value_member(running->arguments, "path"));
	void *at = value_first(seen);
	struct buf path;

	if (text == NULL || value_count(seen) != 1 || strlen(value_key(at)) >= PATH_MAX ||
	    value_count(session->aliases) >= SEEN_MAX)
		return;
	buf_init(&path, PATH_MAX);
	if (path_normal(session_workspace(session), text, &path) &&
	    strcmp(path.data, value_key(at)) != 0)
		value_set_text(session->aliases, path.data, value_key(at));
	buf_fini(&path);
}

static void folder_take(struct session *session, const char *folder)
{
	/*
	 * The folder counts only inside the roots: the tool has checked that, and the
	 * next worker checks it again.
	 */
	if (folder[0] != '/')
		return;
	free(session->folder);
	session->folder = memory_copy(folder);
}

static void seen_take(struct session *session, const struct value *seen, bool moves)
{
	for (void *at = value_first(seen); at != NULL; at = value_next(seen, at)) {
		const char *mark = value_text(value_at(at));
		/* A worker that was taken over may name anything. */
		if (mark == NULL || strlen(mark) >= PATH_MAX ||
		    strlen(value_key(at)) >= PATH_MAX)
			continue;
		if (strcmp(value_key(at), CALL_FOLDER_KEY) == 0) {
			/*
			 * The folder in which a job ends does not matter to the commands
			 * that ran beside it.
			 */
			if (moves)
				folder_take(session, mark);
			continue;
		}
		if (value_count(session->seen) >= SEEN_MAX) {
			value_free(session->seen);
			session->seen = value_new_object();
		}
		if (strlen(mark) < FILES_MARK)
			value_set_text(session->seen, value_key(at), mark);
	}
}

void session_memory_take(struct session *session, struct running *running)
{
	if (running->result.seen != NULL) {
		alias_learn(session, running, running->result.seen);
		seen_take(session, running->result.seen, running->job == NULL);
	}
}

void session_recall(struct session *session, const struct value *seen)
{
	seen_take(session, seen, true);
}
