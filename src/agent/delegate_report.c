/* delegate_report: lines, events, and what of them is kept. */
#include "agent/delegate_report.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tool/event.h"

#include <errno.h>
#include <string.h>

enum { NOTICE_MAX = 1024 };

void delegate_report_init(struct delegate_report *report)
{
	*report = (struct delegate_report){0};
	buf_init(&report->line, DELEGATE_LINE_MAX);
	buf_init(&report->said, DELEGATE_SAID_MAX);
	buf_init(&report->notice, NOTICE_MAX);
}

void delegate_report_fini(struct delegate_report *report)
{
	buf_fini(&report->line);
	buf_fini(&report->said);
	buf_fini(&report->notice);
	value_free(report->ended);
	free(report->agent);
}

static uint64_t count_of(const struct value *usage, const char *name)
{
	const int64_t count = value_integer(value_member(usage, name));

	return count > 0 ? (uint64_t)count : 0;
}

static struct model_usage usage_of(const struct value *event)
{
	const struct value *usage = value_member(event, "usage");

	return (struct model_usage){
		.input = count_of(usage, "input"),
		.output = count_of(usage, "output"),
		.cached = count_of(usage, "cached"),
		.cache_writes = count_of(usage, "cache_writes"),
		.reasoning = count_of(usage, "reasoning"),
		.money = value_is_true(value_member(usage, "money_known"))
				 ? value_number(value_member(usage, "money"))
				 : -1,
	};
}

static void tell_used(struct delegate_report *report, const struct model_usage *usage)
{
	report->usage.input += usage->input;
	report->usage.output += usage->output;
	report->usage.cached += usage->cached;
	report->usage.cache_writes += usage->cache_writes;
	report->usage.reasoning += usage->reasoning;
	report->usage.money = report->usage.money < 0 || usage->money < 0
				      ? -1
				      : report->usage.money + usage->money;
	if (report->used)
		report->used(report->context, usage);
}

static void note_answer(struct delegate_report *report, const struct value *message)
{
	const struct model_usage usage = usage_of(message);

	report->answers++;
	tell_used(report, &usage);
}

/* The words of MESSAGE, when it has any, are the last. */
static void note_words(struct delegate_report *report, const struct value *message)
{
	const struct value *parts = value_member(message, "parts");

	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		struct str text = str_trim(value_str(value_member(part, "text")));

		if (!str_is(value_str(value_member(part, "kind")), "text") || text.size == 0)
			continue;
		buf_clear(&report->said);
		text.size = text_character_border(text, DELEGATE_SAID_MAX);
		(void)buf_addstr(&report->said, text);
	}
}

/* A hand-over ends the run: its summary becomes the last words of the delegate. */
static void note_handover(struct delegate_report *report, const struct value *event)
{
	struct str summary =
		value_str(value_member(value_member(event, "arguments"), "summary"));

	if (!str_is(value_str(value_member(event, "tool")), "generate_patch") ||
	    summary.size == 0)
		return;
	summary.size = text_character_border(summary, DELEGATE_SAID_MAX);
	buf_clear(&report->said);
	(void)buf_addstr(&report->said, summary);
}

static bool note_began(struct delegate_report *report, const struct value *event,
		       struct err *err)
{
	const struct str session = value_str(value_member(event, "session"));

	if (report->session[0] != '\0' || session.size != JOURNAL_ID ||
	    strspn(session.data, "0123456789abcdef") < JOURNAL_ID)
		return err_set(err, EPROTO, "it began a session in a way that is not ours");
	memcpy(report->session, session.data, JOURNAL_ID);
	report->agent = memory_copy_str(value_str(value_member(event, "agent")));
	return true;
}

static bool note_event(struct delegate_report *report, enum event_kind kind,
		       const struct value *event, struct err *err)
{
	if (kind == EVENT_SESSION_BEGAN)
		return note_began(report, event, err);
	if (report->session[0] == '\0' && event_is_kept(kind))
		return err_set(err, EPROTO, "it told of things before it began");
	if (kind == EVENT_MESSAGE) {
		note_answer(report, event);
		note_words(report, event);
	} else if (kind == EVENT_TOOL_BEGAN) {
		note_handover(report, event);
	} else if (kind == EVENT_NOTICE) {
		struct str text = value_str(value_member(event, "text"));

		buf_clear(&report->notice);
		text.size = text_character_border(text, NOTICE_MAX);
		(void)buf_addstr(&report->notice, text);
	} else if (kind == EVENT_TURN_ENDED && !report->ended) {
		report->ended = value_copy(event);
	}
	return true;
}

static void show(struct delegate_report *report, enum event_kind kind, struct value *event)
{
	auto_value struct value *child = value_new_object();

	if (!report->show)
		return;
	if (kind == EVENT_CHILD) {
		/* One of a delegate of its own: it goes on as it came. */
		static const char *const members[] = {"session", "agent", "parent",
						      "event_of"};

		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			struct value *member = value_member(event, members[i]);

			if (member)
				value_set(child, members[i], value_ref(member));
		}
	} else {
		value_set_text(child, "session", report->session);
		value_set_text(child, "agent", report->agent ? report->agent : "");
		value_set(child, "event_of", value_ref(event));
	}
	report->show(report->context, child);
}

static bool take_line(struct delegate_report *report, struct str line, struct err *err)
{
	auto_value struct value *event = NULL;
	enum event_kind kind;
	const char *name;
	struct err why = {0};

	if (!value_parse(line, 0, &event, &why))
		return err_set(err, EPROTO, "it printed what is no event: %.200s", why.text);
	name = value_text(value_member(event, "event"));
	if (!name || !event_kind_parse(name, &kind))
		return err_set(err, EPROTO, "it printed an event of no kind that there is");
	if (kind == EVENT_CHILD) {
		const struct value *inner = value_member(event, "event_of");

		if (str_is(value_str(value_member(inner, "event")), "message"))
			note_answer(report, inner);
	} else if (!note_event(report, kind, event, err)) {
		return false;
	}
	show(report, kind, event);
	return true;
}

bool delegate_report_take(struct delegate_report *report, struct str bytes, struct err *err)
{
	report->bytes += bytes.size;
	if (report->bytes > DELEGATE_BYTES_MAX)
		return err_set(err, E2BIG, "it printed more than %d MiB",
			       DELEGATE_BYTES_MAX >> 20);
	while (bytes.size > 0) {
		const size_t end = str_find(bytes, STR("\n"), 0);
		struct str piece = str_part(bytes, 0, end);

		if (!buf_addstr(&report->line, piece))
			return err_set(err, E2BIG, "it printed a line of more than %d MiB",
				       DELEGATE_LINE_MAX >> 20);
		if (end == (size_t)-1)
			return true;
		if (!take_line(report, buf_str(&report->line), err))
			return false;
		buf_clear(&report->line);
		bytes = str_part(bytes, end + 1, bytes.size);
	}
	return true;
}

static uint64_t rest_of(uint64_t all, uint64_t told)
{
	return all > told ? all - told : 0;
}

void delegate_report_end(struct delegate_report *report)
{
	const struct model_usage all = usage_of(report->ended);
	const struct model_usage rest = {
		.input = rest_of(all.input, report->usage.input),
		.output = rest_of(all.output, report->usage.output),
		.cached = rest_of(all.cached, report->usage.cached),
		.cache_writes = rest_of(all.cache_writes, report->usage.cache_writes),
		.reasoning = rest_of(all.reasoning, report->usage.reasoning),
		.money = all.money < 0 || report->usage.money < 0
				 ? -1
				 : (all.money > report->usage.money
					    ? all.money - report->usage.money
					    : 0),
	};

	if (rest.input + rest.output > 0)
		tell_used(report, &rest);
}
