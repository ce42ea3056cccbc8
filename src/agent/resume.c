/* resume: from a session's events to the agent that goes on with it. */
#include "agent/turn.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char resume_remark[] =
	"(The program has been started anew since. The files are as they were left; the cell is "
	"a new one: /tmp is empty, nothing runs in the background any more.)";
static const char resume_lost[] =
	"No result: the program ended while this call was under way. It may have run as a whole, "
	"in part, or not at all: look what is there before you call it again.";
static const char resume_not_run[] =
	"Not run: the program ended before this call began. Call it again if it is still wanted.";

/* Bytes of the lines that say which calls of one answer began: its arguments, escaped. */
enum { RESUME_BEGAN_MAX = 4 * EVENT_JSON_MAX };

struct resuming {
	struct agent *agent;
	/*
	 * Since the last answer: only then can a call have begun and not ended. Lines of
	 * EVENT_TOOL_BEGAN, not read before it is known that they matter; ids that ended.
	 */
	struct buf began;
	struct value *ended;
	struct value *open; /* calls that began and did not end: id -> tool */
	struct value *seen; /* what was read of files: path -> mark */
	char *run;          /* the steps' name (session_run), or NULL */
	enum event_kind last;
};

/* New ids of our own calls continue after the highest id in the record. */
static void resume_note_id(struct agent *agent, const char *call)
{
	uint64_t number = call ? agent_id_number(call) : 0;

	if (number > agent->last_id && number < UINT32_MAX)
		agent->last_id = number;
}

static void resume_note(struct resuming *resuming, const struct event *event)
{
	const struct value *seen = value_member(event->data, "seen");
	const char *run = value_text(value_member(event->data, "run"));

	resume_note_id(resuming->agent, event->call);
	resuming->last = event->kind;
	if (event->kind == EVENT_SESSION_BEGAN && run) {
		free(resuming->run);
		resuming->run = memory_copy(run);
	}
	if (event->kind == EVENT_MESSAGE) {
		buf_clear(&resuming->began);
		value_free(resuming->ended);
		resuming->ended = value_new_object();
	}
	if (event->kind != EVENT_TOOL_ENDED)
		return;
	if (event->call)
		value_set_boolean(resuming->ended, event->call, true);
	for (void *at = value_first(seen); at; at = value_next(seen, at))
		value_set(resuming->seen, value_key(at), value_ref(value_at(at)));
}

static bool resume_line(void *context, const char *kind, struct str json, struct err *err)
{
	struct resuming *resuming = context;
	auto_value struct value *line = NULL;
	struct event event;

	if (strcmp(kind, event_kind_name(EVENT_TOOL_BEGAN)) == 0) {
		resuming->last = EVENT_TOOL_BEGAN;
		return (buf_addstr(&resuming->began, json) &&
			buf_addc(&resuming->began, '\n')) ||
		       err_set(err, EFBIG, "one answer with too many calls");
	}
	if (!event_parse(json, &line, &event, err))
		return false;
	resume_note(resuming, &event);
	return history_event(&resuming->agent->history, &event, err) ||
	       err_while(err, "event %lld", (long long)event.number);
}

static bool resume_find_open(struct resuming *resuming, struct err *err)
{
	struct str rest = buf_str(&resuming->began);
	struct str json;

	while (str_next_line(&rest, &json)) {
		auto_value struct value *line = NULL;
		struct event event;

		if (!event_parse(json, &line, &event, err))
			return false;
		resume_note_id(resuming->agent, event.call);
		if (event.call && !value_member(resuming->ended, event.call))
			value_set_text(resuming->open, event.call,
				       event.tool ? event.tool : "");
	}
	return true;
}

/* One after the other: the record and the conversation have no call without an answer. */
static bool resume_answer(struct resuming *resuming, struct err *err)
{
	struct agent *agent = resuming->agent;
	const struct part *call;

	for (size_t i = 0; (call = history_call(&agent->history, i)) != NULL; i++) {
		bool began = value_member(resuming->open, call->call_id) != NULL;

		if (history_is_answered(&agent->history, call->call_id))
			continue;
		if (!calls_answer(agent, call->call_id, call->tool, RESULT_FAILED,
				  began ? resume_lost : resume_not_run, err))
			return false;
		value_remove(resuming->open, call->call_id);
	}
	/* The calls that are left were made by the front itself: the hand-over. */
	for (void *at = value_first(resuming->open); at;
	     at = value_next(resuming->open, at)) {
		if (!calls_answer(agent, value_key(at), value_text(value_at(at)),
				  RESULT_FAILED, resume_lost, err))
			return false;
	}
	return true;
}

static bool resume_read(struct resuming *resuming, struct err *err)
{
	const struct agent_options *options = &resuming->agent->options;

	if (!recorder_resume(options->recorder, options->resume, resume_line, resuming, err) ||
	    !resume_find_open(resuming, err))
		return false;
	session_recall(options->session, resuming->seen);
	/* The end of a turn has handed over. */
	if (resuming->run)
		session_adopt(options->session, resuming->run,
			      resuming->last == EVENT_TURN_ENDED);
	return true;
}

bool resume_session(struct agent *agent, struct err *err)
{
	struct resuming resuming = {
		.agent = agent,
		.ended = value_new_object(),
		.open = value_new_object(),
		.seen = value_new_object(),
	};
	bool resumed;

	buf_init(&resuming.began, RESUME_BEGAN_MAX);
	resumed = resume_read(&resuming, err) &&
		  agent_record_begin(agent, EVENT_SESSION_RESUMED, resume_remark, err) &&
		  resume_answer(&resuming, err);
	buf_fini(&resuming.began);
	value_free(resuming.ended);
	value_free(resuming.open);
	value_free(resuming.seen);
	free(resuming.run);
	return resumed;
}
