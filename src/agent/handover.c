/* handover: what a turn changed, as a patch, however the turn ended. */
#include "agent/checks.h"
#include "base/text/text.h"
#include "store/patches.h"

#include <string.h>

/* A title is a line one can read in a list. */
enum { HANDOVER_TITLE_MAX = 72, HANDOVER_TEXT_MAX = 2048 };

/* Files of delegates that are told of: more than any review reads. */
enum { HANDOVER_DELEGATED_MAX = 10000 };

/* The last words of the model are the best summary there is. */
static void handover_summary(const struct agent *agent, const struct turn *turn,
			     struct buf *summary)
{
	const struct conversation *conversation = &agent->history.conversation;
	const struct message *last = NULL;

	for (size_t i = 0; i < conversation->message_count; i++) {
		if (conversation->messages[i].speaker == SPEAKER_MODEL)
			last = &conversation->messages[i];
	}
	for (size_t i = 0; last && i < last->part_count; i++) {
		struct str text = str_trim(str_of(last->parts[i].text));

		if (last->parts[i].kind != PART_TEXT || text.size == 0)
			continue;
		text = str_part(text, 0, text_character_border(text, HANDOVER_TEXT_MAX / 2));
		text_add_paragraph(summary, text);
		buf_addc(summary, '\n');
	}
	checks_tell(turn, summary);
	buf_adds(summary, turn->outcome->sentence);
	if (summary->size == 0)
		buf_adds(summary, "The change made in this run.");
}

static struct value *handover_arguments(const struct agent *agent, const struct turn *turn)
{
	struct value *arguments = value_new_object();
	struct str rest = str_trim(str_of(turn->text));
	struct str title = STR("Changes");
	struct str line;
	struct buf heading, summary;
	size_t fits;

	buf_init(&heading, 4 * (HANDOVER_TITLE_MAX + 1) + sizeof("…"));
	buf_init(&summary, HANDOVER_TEXT_MAX);
	handover_summary(agent, turn, &summary);
	if (str_next_line(&rest, &line) && str_trim(line).size > 0)
		title = str_trim(line);
	/* A pasted prompt may hold any bytes, control characters too. */
	text_add_name(&heading, str_part(title, 0, HANDOVER_TITLE_MAX + 1));
	fits = text_character_border(buf_str(&heading), HANDOVER_TITLE_MAX);
	if (fits < heading.size) {
		buf_truncate(&heading, fits);
		buf_adds(&heading, "…");
	}
	value_set_str(arguments, "title", buf_str(&heading));
	value_set_str(arguments, "summary", str_trim(buf_str(&summary)));
	buf_fini(&summary);
	buf_fini(&heading);
	return arguments;
}

void handover_take(struct turn *turn, const struct tool_result *result)
{
	value_free(turn->patch);
	turn->patch = value_ref(result->details);
}

void handover_take_delegated(struct turn *turn, const struct value *details)
{
	/* Its own, and those of the delegates below it. */
	static const char *const keys[] = {"changed", "delegated"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct value *files = value_member(details, keys[i]);

		for (size_t j = 0; j < value_count(files); j++) {
			struct value *file = value_item(files, j);
			const char *path = value_text(value_member(file, "path"));

			if (turn->delegated == NULL)
				turn->delegated = value_new_object();
			if (path != NULL &&
			    value_count(turn->delegated) < HANDOVER_DELEGATED_MAX)
				value_set(turn->delegated, path, value_ref(file));
		}
	}
}

bool handover_make(struct agent *agent, struct turn *turn, struct err *err)
{
	struct session *session = agent->options.session;
	auto_value struct value *arguments = NULL;
	struct request request = {.tool = turn_patch_tool, .by_front = true};
	struct tool_result result;
	char id[AGENT_ID];
	bool recorded = true;

	/* A patch that the model made says nothing of checks that stayed red. */
	if (!session_has_news(session) &&
	    !(turn->patch && turn->outcome->reason == AGENT_CHECKS))
		return true;
	arguments = handover_arguments(agent, turn);
	agent_new_id(agent, id);
	request.id = id;
	request.arguments = arguments;
	tool_result_init(&result);
	session_call(session, &request, &result);
	if (recorder_failed(agent->options.recorder, err)) {
		recorded = false;
	} else if (result.status == RESULT_DONE) {
		handover_take(turn, &result);
	} else {
		struct buf sentence;

		buf_init(&sentence, HANDOVER_TEXT_MAX);
		buf_adds(&sentence, "The change could not be made a patch: ");
		buf_addstr(&sentence,
			   str_part(buf_str(&result.text), 0, HANDOVER_TEXT_MAX / 2));
		recorded = agent_notice(agent, sentence.data, false, err);
		buf_fini(&sentence);
	}
	tool_result_fini(&result);
	return recorded;
}

/* Without a patch the names alone. */
static struct value *handover_names(struct session *session)
{
	const char *const *paths = session_changed(session);
	struct value *files = value_new_array();

	for (size_t i = 0; paths && paths[i]; i++) {
		struct value *file = value_new_object();

		value_set_text(file, "path", paths[i]);
		value_append(files, file);
	}
	return files;
}

/* The name that `glovebox patch` takes, where it is kept. */
static void handover_name(const struct agent *agent, struct value *data)
{
	struct journal *journal = recorder_journal(agent->options.recorder);
	const char *session = recorder_session_id(agent->options.recorder);
	char id[PATCH_ID + 1];

	if (journal != NULL && session[0] != '\0' &&
	    patches_newest(journal, session, id, NULL))
		value_set_str(data, "patch_id", (struct str){id, PATCH_ID_SHOWN});
}

static void handover_delegated(const struct turn *turn, struct value *data)
{
	struct value *files;

	if (turn->delegated == NULL)
		return;
	files = value_new_array();
	for (void *at = value_first(turn->delegated); at != NULL;
	     at = value_next(turn->delegated, at))
		value_append(files, value_ref(value_at(at)));
	value_set(data, "delegated", files);
}

void handover_describe(struct agent *agent, struct turn *turn, struct value *data)
{
	struct value *files = value_member(turn->patch, "files");
	const char *patch = value_text(value_member(turn->patch, "patch"));

	if (files)
		files = value_ref(files);
	else if (session_has_news(agent->options.session))
		files = handover_names(agent->options.session);
	else
		files = value_new_array();
	turn->outcome->changed = value_count(files);
	value_set(data, "changed", files);
	if (patch && *patch)
		value_set_text(data, "patch", patch);
	if (turn->patch != NULL && value_count(files) > 0)
		handover_name(agent, data);
	handover_delegated(turn, data);
}
