/* talk: sets up the parts of a conversation and takes them down again. */

#include "front/talk.h"
#include "front/audit/recording.h"

#include "agent/agent.h"
#include "agent/tools/model_search.h"
#include "agent/tools/present_plan.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "extend/allowed.h"
#include "extend/extension.h"
#include "extend/lsp/lsp.h"
#include "front/agents.h"
#include "front/ask/form.h"
#include "front/config_file.h"
#include "front/conversation/stopping.h"
#include "front/embedded/embedded.h"
#include "front/extend/hook_files.h"
#include "front/extend/language.h"
#include "front/extend/trusting.h"
#include "front/interrupt.h"
#include "front/login/logins.h"
#include "front/output/formats.h"
#include "front/setup.h"
#include "front/verb.h"
#include "model/catalogue.h"
#include "model/local.h"
#include "model/model.h"
#include "model/provider.h"
#include "session/approval.h"
#include "session/session.h"
#include "store/costs.h"
#include "store/journal.h"
#include "tool/event.h"
#include "tui/console.h"
#include "tui/lent/job.h"
#include "tui/line.h"
#include "tui/live.h"
#include "tui/paint.h"
#include "tui/region/choice.h"
#include "tui/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	ANSWERS_LINE_MAX = 64 << 10,
	HEARD_LINE_MAX = 32 << 20, /* a prompt, or the text of a file */
};

/*
 * Append to LINE one line in which TOOL itself says what its call would do; it is shown
 * with the question. False: there is none. ASKING NULL is fine.
 */
typedef bool asking_preview(void *context, const char *tool,
			    const struct value *arguments, struct buf *line);

/*
 * Puts the questions of approvals (docs/approvals.md) to the person at the terminal. It
 * is a sink between the record and the screen: the screen shows byte for byte what would
 * be done, then the person chooses on the console. Keys typed before the question do not
 * count. The run stands still until the choice is made.
 */

/* The console stops asking SOONER_S before the session stops waiting for the answer. */
enum { SOONER_S = 1, PREVIEW_MAX = 4 << 10 };

struct asking {
	struct console *console;
	struct screen *screen;
	struct event_sink view; /* the screen's */
	struct session *session;
	struct agent *const *agent; /* it points to NULL until the agent is there */
	asking_preview *preview;    /* or NULL */
	void *preview_context;
	struct screen_call *calls; /* under way */
	size_t asked, of;          /* of the questions that were open at the same time */
	int timer, woken;          /* WOKEN is readable when the timer or a signal is */
};

/* The last choice is also the answer when no choice is made (console_choose). */
static const struct {
	const char *word;
	enum approval_answer answer;
} choices[] = {
	{"once", APPROVAL_ONCE},
	{"session", APPROVAL_SESSION},
	{"always", APPROVAL_ALWAYS},
	{"no", APPROVAL_NO},
};
enum { CHOICES = sizeof(choices) / sizeof(choices[0]) };

static bool watch(int set, int fd, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 ||
	       err_set(err, errno, "waiting for an answer: %s", strerror(errno));
}

static void asking_close(struct asking *asking);

/*
 * All arguments are borrowed. INTERRUPT_FD becomes readable when a signal asks for the
 * end; an open question is then answered with no. NULL and ERR when the timer of
 * questions cannot be made.
 */
static struct asking *asking_open(struct console *console, struct screen *screen,
				  int interrupt_fd, struct err *err)
{
	struct asking *asking = memory_alloc(sizeof(*asking));

	asking->console = console;
	asking->screen = screen;
	asking->view = screen_sink(screen);
	asking->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	asking->woken = epoll_create1(EPOLL_CLOEXEC);
	if (asking->timer < 0 || asking->woken < 0) {
		(void)err_set(err, errno, "waiting for an answer: %s", strerror(errno));
	} else if (watch(asking->woken, asking->timer, err) &&
		   watch(asking->woken, interrupt_fd, err)) {
		return asking;
	}
	asking_close(asking);
	return NULL;
}

static void asking_close(struct asking *asking)
{
	if (asking == NULL)
		return;
	while (asking->calls != NULL)
		screen_call_free(screen_calls_take(&asking->calls, asking->calls->id));
	fd_close(&asking->timer);
	fd_close(&asking->woken);
	free(asking);
}

static void asking_set_preview(struct asking *asking, asking_preview *preview, void *context)
{
	if (asking == NULL)
		return;
	asking->preview = preview;
	asking->preview_context = context;
}

/* Answer the questions of the calls of SESSION from now on. ASKING NULL is fine. */
static void asking_set_session(struct asking *asking, struct session *session)
{
	if (asking != NULL)
		asking->session = session;
}

static void set_timer(const struct asking *asking, int64_t seconds)
{
	const struct itimerspec at = {.it_value = {.tv_sec = seconds}};

	(void)timerfd_settime(asking->timer, 0, &at, NULL);
}

/* One line of a question. */
enum { ASKED_LINE_MAX = 64 << 10 };

/* Ask EVENT's question without rows that change. The screen has shown it. */
static enum approval_answer ask_below(const struct asking *asking, bool keeps)
{
	const char *words[CHOICES + 1] = {NULL};
	enum approval_answer answers[CHOICES];
	size_t count = 0;

	for (size_t i = 0; i < CHOICES; i++) {
		if (choices[i].answer == APPROVAL_ALWAYS && !keeps)
			continue;
		words[count] = choices[i].word;
		answers[count++] = choices[i].answer;
	}
	return answers[console_choose(asking->console, "Allow it?", words, asking->woken)];
}

/* "2 of 3: coder wants to run a command" */
static void add_head(struct asking *asking, const struct value *data, struct buf *head)
{
	const size_t waiting = approval_count(asking->session);
	struct str message =
		value_str(value_member(value_member(data, "request"), "message"));
	struct str first = {0};

	/* Those that are open at the same time count as one row of questions. */
	asking->asked = waiting > 1 || asking->of > asking->asked ? asking->asked + 1 : 1;
	asking->of = asking->asked - 1 + waiting;
	if (asking->of > 1)
		(void)buf_addf(head, "%zu of %zu: ", asking->asked, asking->of);
	(void)str_next_line(&message, &first);
	(void)buf_addstr(head, first);
	if (waiting <= 1)
		asking->asked = asking->of = 0;
}

/* The text to be judged: the subject, the command that it is for, and a word of the tool on it. */
static void add_judged(struct asking *asking, const struct event *event, struct buf *text)
{
	const struct value *data = event->data;
	const struct str subject = value_str(value_member(data, "subject"));
	const struct str command = value_str(value_member(data, "command"));
	const struct screen_call *call = asking->calls;

	(void)buf_addstr(text, subject);
	(void)buf_end_line(text);
	if (!str_equal(subject, command) &&
	    !str_is(value_str(value_member(data, "effect")), "change")) {
		(void)buf_adds(text, "for: ");
		(void)buf_addstr(text, command);
		(void)buf_addc(text, '\n');
	}
	while (call != NULL && (event->call == NULL || strcmp(call->id, event->call) != 0))
		call = call->next;
	if (call == NULL || asking->preview == NULL)
		return;
	const size_t before = text->size;

	(void)buf_addf(text, "%s says of this call: ", call->tool);
	if (!asking->preview(asking->preview_context, call->tool, call->arguments, text))
		buf_truncate(text, before);
}

/* The rules that `always` keeps, in a line. */
static void add_rules(const struct value *data, struct buf *line)
{
	const struct value *rules = value_member(data, "always");

	(void)buf_adds(line, "a rule for ");
	(void)buf_addstr(line, value_str(value_member(data, "agent")));
	(void)buf_adds(line, " in ");
	(void)buf_addstr(line, value_str(value_member(data, "workspace")));
	for (size_t i = 0; i < value_count(rules); i++) {
		(void)buf_adds(line, i == 0 ? ": " : ", ");
		(void)buf_addstr(line, value_str(value_item(rules, i)));
	}
}

struct asked_texts {
	struct buf head, judged, tail, scope, rules;
};

/* The answers to EVENT's question. Returns how many there are. */
static size_t options_of(const struct value *data, const struct asked_texts *texts,
			 struct choice_option *options, enum approval_answer *answers)
{
	const struct choice_option all[] = {
		{"once", "this call", CHOICE_AT_ONCE},
		{"session", texts->scope.data, CHOICE_AT_ONCE},
		{"always", texts->rules.data, CHOICE_TWICE},
		{"no", NULL, CHOICE_AT_ONCE},
		{"tell", "no, and a sentence for the model", CHOICE_WITH_WORDS},
	};
	static const enum approval_answer given[] = {
		APPROVAL_ONCE, APPROVAL_SESSION, APPROVAL_ALWAYS,
		APPROVAL_NO,   APPROVAL_NO,
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (given[i] == APPROVAL_ALWAYS && value_member(data, "always") == NULL)
			continue;
		/* Words do not reach the model of another session. */
		if (all[i].way == CHOICE_WITH_WORDS &&
		    value_member(data, "delegates") != NULL)
			continue;
		options[count] = all[i];
		answers[count++] = given[i];
	}
	return count;
}

/* Tell the screen what was asked and answered, in a line, because the question is gone. */
static void tell_answer(struct asking *asking, const struct asked_texts *texts,
			const char *word)
{
	struct event notice = {.kind = EVENT_NOTICE};
	struct str judged = buf_str(&texts->judged), first = {0};
	struct buf line;

	buf_init(&line, ASKED_LINE_MAX);
	(void)buf_addstr(&line, buf_str(&texts->head));
	(void)buf_addc(&line, ' ');
	(void)str_next_line(&judged, &first);
	(void)buf_addstr(&line, first);
	(void)buf_addf(&line, "%s - %s", judged.size > 0 ? " ..." : "", word);
	notice.text = buf_str(&line);
	(void)asking->view.event(asking->view.context, &notice, NULL);
	buf_fini(&line);
}

/* Show the whole question CHOICE in the person's pager, and each byte of it. */
static void view_question(struct asking *asking, const struct choice *choice)
{
	struct event notice = {.kind = EVENT_NOTICE};
	struct err err = {0};
	struct buf text;
	int fd = -1;

	buf_init(&text, 4 * EVENT_JSON_MAX);
	paint_exact(str_of(choice->head), &text);
	(void)buf_adds(&text, "\n\n");
	paint_exact(choice->text, &text);
	(void)buf_end_line(&text);
	paint_exact(str_of(choice->tail), &text);
	(void)buf_addc(&text, '\n');
	live_hide(console_live(asking->console));
	if (!fd_memory_file("question", buf_str(&text), &fd, &err) ||
	    !lent_job_show(asking->console, fd, 1, asking->woken, &err)) {
		notice.text = str_of(err.text);
		(void)asking->view.event(asking->view.context, &notice, NULL);
	}
	live_show(console_live(asking->console));
	fd_close(&fd);
	buf_fini(&text);
}

/* Ask EVENT's question in the place of the line. */
static enum approval_answer ask_in_place(struct asking *asking, const struct event *event,
					 struct buf *words)
{
	const struct value *data = event->data;
	struct choice_option options[CHOICES + 1];
	enum approval_answer answers[CHOICES + 1];
	struct asked_texts texts;
	struct choice choice = {.options = options};
	size_t chosen;

	buf_init(&texts.head, ASKED_LINE_MAX);
	buf_init(&texts.judged, EVENT_JSON_MAX);
	buf_init(&texts.tail, ASKED_LINE_MAX);
	buf_init(&texts.scope, ASKED_LINE_MAX);
	buf_init(&texts.rules, ASKED_LINE_MAX);
	add_head(asking, data, &texts.head);
	add_judged(asking, event, &texts.judged);
	(void)buf_addf(&texts.tail, "in %s", value_text(value_member(data, "folder")));
	(void)buf_adds(&texts.scope, "until the session ends: ");
	(void)buf_addstr(&texts.scope, value_str(value_member(data, "scope")));
	add_rules(data, &texts.rules);
	choice.head = texts.head.data;
	choice.text = buf_str(&texts.judged);
	choice.is_diff = str_is(value_str(value_member(data, "effect")), "change");
	choice.tail = texts.tail.data;
	choice.count = options_of(data, &texts, options, answers);
	while (answers[choice.safe] != APPROVAL_NO)
		choice.safe++;
	choice.views = true;
	while ((chosen = console_decide(asking->console, &choice, asking->woken, words)) ==
	       CHOICE_VIEW)
		view_question(asking, &choice);
	tell_answer(asking, &texts, options[chosen].word);
	buf_fini(&texts.head);
	buf_fini(&texts.judged);
	buf_fini(&texts.tail);
	buf_fini(&texts.scope);
	buf_fini(&texts.rules);
	return answers[chosen];
}

static void ask(struct asking *asking, const struct event *event)
{
	const int64_t wait_s = value_integer(value_member(event->data, "wait_s"));
	enum approval_answer given;
	struct buf words;

	buf_init(&words, LINE_BYTES_MAX);
	screen_rest(asking->screen);
	set_timer(asking, wait_s > SOONER_S ? wait_s - SOONER_S : SOONER_S);
	given = console_shows(asking->console)
			? ask_in_place(asking, event, &words)
			: ask_below(asking, value_member(event->data, "always") != NULL);
	set_timer(asking, 0);
	auto_value struct value *answer =
		approval_reply(given, APPROVAL_BY_PERSON,
			       value_text(value_member(event->data, "hash")));
	if (given == APPROVAL_NO && words.size > 0)
		value_set_str(value_member(answer, "content"), "words", buf_str(&words));
	buf_fini(&words);
	/* This fails when the call has ended meanwhile: it needs no answer then. */
	(void)session_answer(asking->session, event->call,
			     value_integer(value_member(event->data, "id")), answer, NULL);
}

/* The question of present_plan, which the screen has shown. *MODE: what the person wants. */
static void choose_mode(const struct asking *asking, enum policy_mode *mode,
			struct buf *words)
{
	static const struct choice_option options[] = {
		[MODE_AUTO] = {"work", "carry it out", CHOICE_AT_ONCE},
		[MODE_ASK] = {"ask", "carry it out, and ask before each write and command",
			      CHOICE_AT_ONCE},
		[MODE_PLAN] = {"plan",
			       "go on planning: you say next what should be different",
			       CHOICE_AT_ONCE},
		{"tell", "go on planning, with a sentence for the model", CHOICE_WITH_WORDS},
	};
	const struct choice choice = {
		.head = "The plan is above.",
		.options = options,
		.count = sizeof(options) / sizeof(options[0]),
		.safe = MODE_PLAN,
	};
	static const char *const below[] = {"work", "ask", "plan", NULL};
	const size_t chosen =
		console_shows(asking->console)
			? console_decide(asking->console, &choice, asking->woken, words)
			: console_choose(asking->console, "Carry it out?", below,
					 asking->woken);

	*mode = chosen < MODES ? (enum policy_mode)chosen : MODE_PLAN;
}

/* Answer a question of a call; by AGENT, whose model may have to be asked, if there is one. */
static bool give_answer(struct agent *agent, struct session *session, const char *call,
			int64_t question, const struct value *answer, struct err *err)
{
	return agent != NULL ? agent_answer(agent, call, question, answer, err)
			     : session_answer(session, call, question, answer, err);
}

/* A question of a server or a plugin. */
static void ask_form(const struct asking *asking, const struct event *event)
{
	auto_value struct value *answer = NULL;

	screen_rest(asking->screen);
	answer = form_ask(asking->console, asking->woken,
			  value_text(value_member(event->data, "kind")),
			  value_member(event->data, "request"));
	(void)give_answer(*asking->agent, asking->session, event->call,
			  value_integer(value_member(event->data, "id")), answer, NULL);
}

static void ask_plan(const struct asking *asking, const struct event *event)
{
	auto_value struct value *answer = value_new_object();
	struct value *content = value_new_object();
	enum policy_mode mode;
	struct buf words;

	buf_init(&words, LINE_BYTES_MAX);
	screen_rest(asking->screen);
	choose_mode(asking, &mode, &words);
	value_set_text(content, PRESENT_PLAN_MODE, policy_modes[mode].name);
	if (words.size > 0)
		value_set_str(content, PRESENT_PLAN_WORDS, buf_str(&words));
	buf_fini(&words);
	value_set_text(answer, "action", "accept");
	value_set(answer, "content", content);
	(void)session_answer(asking->session, event->call,
			     value_integer(value_member(event->data, "id")), answer, NULL);
}

/*
 * Show what the script of a plugin says about this call of it. The screen has shown the
 * call's arguments before.
 */
static bool show_preview(struct asking *asking, const struct event *event, struct err *err)
{
	struct screen_call *call = screen_calls_take(&asking->calls, event->call);
	struct event notice = {.kind = EVENT_NOTICE};
	struct buf line;
	bool ok = true;

	if (call == NULL)
		return true;
	buf_init(&line, PREVIEW_MAX);
	(void)buf_addf(&line, "%s says of this call: ", call->tool);
	if (asking->preview != NULL &&
	    asking->preview(asking->preview_context, call->tool, call->arguments, &line)) {
		notice.text = buf_str(&line);
		ok = asking->view.event(asking->view.context, &notice, err);
	}
	buf_fini(&line);
	call->next = asking->calls;
	asking->calls = call;
	return ok;
}

static bool take(void *context, const struct event *event, struct err *err)
{
	struct asking *asking = context;
	/* Then the question itself shows all of it. */
	const bool in_place = event->kind == EVENT_APPROVAL_WANTED &&
			      value_member(event->data, "decided") == NULL &&
			      asking->session != NULL && event->call != NULL &&
			      console_shows(asking->console);

	if (!in_place && !asking->view.event(asking->view.context, event, err))
		return false;
	if (event->call == NULL)
		return true;
	if (event->kind == EVENT_TOOL_BEGAN) {
		screen_calls_add(&asking->calls, event, NULL);
	} else if (event->kind == EVENT_TOOL_ENDED) {
		struct screen_call *call = screen_calls_take(&asking->calls, event->call);

		if (call != NULL)
			screen_call_free(call);
	} else if (event->kind == EVENT_QUESTION && asking->session != NULL) {
		if (event->tool != NULL && strcmp(event->tool, present_plan_tool.name) == 0)
			ask_plan(asking, event);
		else
			ask_form(asking, event);
	} else if (event->kind == EVENT_APPROVAL_WANTED && asking->session != NULL &&
		   value_member(event->data, "decided") == NULL) {
		if (!in_place && !show_preview(asking, event, err))
			return false;
		ask(asking, event);
	}
	return true;
}

static struct event_sink asking_sink(struct asking *asking)
{
	return (struct event_sink){.event = take, .context = asking};
}

/*
 * A program that reads `--json` answers the questions of approvals on standard input,
 * each answer on a line of its own: {"call": "c3", "id": -1, "action": "accept",
 * "content": {"answer": "once", "hash": "…"}}. A line that is no such answer, or that
 * answers no open question, is skipped with a complaint on standard error.
 */

struct answers {
	struct session *session;
	struct agent *const *agent; /* as in struct asking */
	struct watch watch;
	struct buf line; /* the part of a line that has come so far */
	/* as in talk_options */
	bool (*heard)(void *context, const struct value *line);
	void *context;
};

static void complain(const char *why)
{
	(void)verb_complain(CODE_FAILED, "an answer on standard input is none: %s", why);
}

static void take_line(struct answers *answers, struct str line)
{
	auto_value struct value *answer = NULL;
	struct err err = {0};
	const char *call;

	if (str_trim(line).size == 0)
		return;
	if (!value_parse(line, 0, &answer, &err)) {
		complain(err.text);
		return;
	}
	if (answers->heard != NULL && answers->heard(answers->context, answer))
		return;
	call = value_text(value_member(answer, "call"));
	if (call == NULL || value_kind(value_member(answer, "id")) != VALUE_INTEGER)
		complain("it needs \"call\" and \"id\", as the question had them");
	else if (!give_answer(*answers->agent, answers->session, call,
			      value_integer(value_member(answer, "id")), answer, &err))
		complain(err.text);
}

static void take_bytes(struct answers *answers, struct str bytes)
{
	while (buf_take_line(&answers->line, &bytes)) {
		if (answers->line.overflowed)
			complain("the line is too long");
		else
			take_line(answers, buf_str(&answers->line));
		buf_clear(&answers->line);
	}
}

static void input_ready(struct watch *watch, short events)
{
	struct answers *answers = watch->context;
	char bytes[4096];
	ssize_t n = read(watch->fd, bytes, sizeof(bytes));

	(void)events;
	if (n > 0)
		take_bytes(answers, (struct str){bytes, (size_t)n});
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	/* The last line may lack its end. */
	take_bytes(answers, STR("\n"));
	loop_remove(watch);
	approval_hear_nobody(answers->session);
	if (answers->heard != NULL)
		(void)answers->heard(answers->context, NULL);
}

/*
 * Read FD, which stays the caller's, in the loop of SESSION. When FD ends, open questions
 * are refused, and nobody is asked any more.
 */
static struct answers *answers_open(int fd, struct session *session,
				    struct agent *const *agent,
				    const struct talk_options *options)
{
	struct answers *answers = memory_alloc(sizeof(*answers));

	answers->session = session;
	answers->agent = agent;
	answers->heard = options->heard;
	answers->context = options->context;
	buf_init(&answers->line, options->heard != NULL ? HEARD_LINE_MAX : ANSWERS_LINE_MAX);
	answers->watch = (struct watch){.fd = fd,
					.events = POLLIN,
					.ready = input_ready,
					.context = answers};
	loop_add(session_loop(session), &answers->watch);
	return answers;
}

/* SESSION takes the place of the one that was answered. ANSWERS NULL is fine. */
static void answers_set_session(struct answers *answers, struct session *session)
{
	if (answers == NULL || answers->session == session)
		return;
	answers->session = session;
	if (answers->watch.loop != NULL) {
		loop_remove(&answers->watch);
		loop_add(session_loop(session), &answers->watch);
	}
}

static void answers_close(struct answers *answers)
{
	if (answers == NULL)
		return;
	loop_remove(&answers->watch);
	buf_fini(&answers->line);
	free(answers);
}

/*
 * The output of `--json`: one event per line on a descriptor, each with one write, in the
 * order of the record. When a write fails, because the reader has gone, no more is
 * written and the run goes on. A caller that wants to stop the run sends a signal.
 */

struct json_events {
	int fd;
	int gone; /* errno of the write that failed; nothing is written after it. Or 0 */
	struct buf line;
};

static struct json_events *json_events_new(int fd)
{
	struct json_events *events = memory_alloc(sizeof(*events));

	events->fd = fd;
	buf_init(&events->line, EVENT_JSON_MAX);
	return events;
}

static void json_events_free(struct json_events *events)
{
	if (!events)
		return;
	buf_fini(&events->line);
	free(events);
}

static bool json_events_take(void *context, const struct event *event, struct err *err)
{
	struct json_events *events = context;
	struct err gone;

	if (events->gone != 0)
		return true;
	buf_clear(&events->line);
	if (!event_print(event, &events->line) || !buf_addc(&events->line, '\n'))
		return err_set(err, 0, "an event is too large to be printed");
	if (!fd_write_all(events->fd, events->line.data, events->line.size, &gone))
		events->gone = gone.code;
	return true;
}

static int json_events_gone(const struct json_events *events)
{
	return events->gone;
}

static struct event_sink json_events_sink(struct json_events *events)
{
	return (struct event_sink){.event = json_events_take, .context = events};
}

/* One worker works while the next one is being made. */
enum { READY_WORKERS = 2 };

static const char default_replay[] = "examples/replays/default.json";

struct talk {
	struct talk *self; /* also in a copy that is not in use yet */
	struct interrupt *interrupt;
	bool interrupt_is_lent; /* by the options */
	struct catalogue *catalogue;
	struct model *model;
	struct journal *journal;
	struct console *console; /* of the options */
	struct screen *screen;
	struct json_events *json;
	struct answers *answers;
	struct asking *asking;
	struct recorder *recorder;
	struct session *session;
	struct agent *agent;
	struct orchestrate *orchestrate; /* NULL: the agent has none of its tools */
	struct setup *setup;
	char *asked; /* the model, as the person named it; NULL: the embedded replay */
	const char *parent; /* the caller's session, from the request that started us */
	bool counts_answers, answering, answers_forms; /* as the options said */
	bool answered;                                 /* questions get an answer */
	bool relays;        /* the answers come from the caller that started this run */
	bool broken;        /* an event could not be recorded */
	bool tools_are_new; /* the agent is to be told its tools again, at the next turn */
	struct hook_files *hooks;      /* of the configuration, and behind them … */
	struct agent_hooks behind;     /* … those of the options; `ask` NULL: none */
	const struct allowed *allowed; /* of talk_narrow; NULL: nothing is narrowed */
	const char *narrower;          /* the name of the skill or command */
	void (*joins)(void *context, struct str text); /* as in talk_options */
	struct setup *(*remake)(void *context, const char *agent, enum policy_mode mode);
	void (*taken)(void *context, struct setup *setup, bool used);
	void (*pauses)(void *context);
	bool one_turn;
	void *context;
	struct stopping *stopping; /* of the options */
	double money;              /* of the turns that are over; below 0: not known */
};

/* Refuse MODEL: its service needs a key, and there is none. */
static bool refuse_keyless(const char *model, const char *key_variable, struct err *err)
{
	struct local_found found;
	struct buf advice;

	buf_init(&advice, ERR_TEXT_MAX);
	if (local_look(&found, NULL, LOCAL_PROBE_MS, NULL))
		local_advise(&found, &advice);
	(void)err_set(err, EINVAL,
		      "the model %.200s is asked with a key in %s, or at the server that "
		      "GLOVEBOX_BASE_URL names, and neither is set. %s glovebox login keeps a key. "
		      "All that can be asked: glovebox models",
		      model, key_variable, advice.data);
	local_found_fini(&found);
	buf_fini(&advice);
	return false;
}

/*
 * Refuse to guess when no model is named but a key is set. The key says that the person
 * uses a model, so playing the recording would be strange, and a model of our choice
 * would cost the person's money.
 */
static bool refuse_nameless(struct err *err)
{
	for (size_t i = 0; providers[i] != NULL; i++) {
		const char *name = providers[i]->key_name;
		const bool is_set = config_file_variable(name) != NULL;

		if (!is_set && !logins_have(providers[i]->base_url))
			continue;
		return err_set(err, EINVAL,
			       "%s is set, but no model is named: give --model %s:NAME, or set "
			       "GLOVEBOX_MODEL (glovebox models names some); --model replay plays "
			       "the built-in recording",
			       is_set ? name : "A key of glovebox login",
			       providers[i]->name);
	}
	return true;
}

bool talk_model(const char *name, const struct config_role *role,
		struct model_options *model, struct err *err)
{
	const char *key_variable, *url;
	bool kept;

	*model = (struct model_options){
		.name = name,
		.base_url = config_file_variable("GLOVEBOX_BASE_URL"),
		.embedded = embedded_text(default_replay),
		.temperature = role->temperature,
		.thinking_budget = role->thinking_budget,
		.kept_key = logins_find,
		.retries = MODEL_RETRIES,
	};
	if (model->name == NULL)
		model->name = config_file_variable("GLOVEBOX_MODEL");
	if (model->name == NULL)
		model->name = role->model;
	if (model->name == NULL && model->base_url != NULL)
		return err_set(err, EINVAL,
			       "GLOVEBOX_BASE_URL names a server, but no model of it: "
			       "set GLOVEBOX_MODEL, or give --model NAME");
	if (model->name == NULL && !refuse_nameless(err))
		return false;
	key_variable = model_key_variable(model->name);
	model->key = config_file_variable(key_variable);
	url = model->base_url != NULL ? model->base_url : model_home(model->name);
	kept = model->key == NULL && url != NULL && logins_have(url);
	if (model->key == NULL && !kept && model->base_url == NULL &&
	    model_needs_key(model->name))
		return refuse_keyless(model->name, key_variable, err);
	return true;
}

bool talk_model_is_named(const struct model_options *model, struct err *err)
{
	return model->name != NULL ||
	       err_set(err, ENOENT,
		       "no model is configured: run glovebox login, set GLOVEBOX_MODEL, give "
		       "--model NAME, or name one in the configuration; glovebox models lists "
		       "what can be asked");
}

static bool preview(void *context, const char *tool, const struct value *arguments,
		    struct buf *line)
{
	return front_plugins_preview(context, tool, arguments, line);
}

static struct event_sink open_view(struct talk *talk, const struct talk_options *options)
{
	if (options->json) {
		talk->json = json_events_new(STDOUT_FILENO);
		return json_events_sink(talk->json);
	}
	if (options->formats != NULL)
		return formats_sink(options->formats);
	talk->screen = screen_new(STDOUT_FILENO, options->screen);
	if (options->console == NULL)
		return screen_sink(talk->screen);
	talk->console = options->console;
	screen_set_live(talk->screen, console_live(options->console));
	talk->asking = asking_open(options->console, talk->screen,
				   interrupt_fd(talk->interrupt), NULL);
	asking_set_preview(talk->asking, preview, &talk->setup->plugins);
	if (talk->asking != NULL)
		talk->asking->agent = &talk->self->agent;
	/* Without an `asking` no question is put to anybody. */
	return talk->asking != NULL ? asking_sink(talk->asking) : screen_sink(talk->screen);
}

/* The next text that the person has sent to the turn under way. */
static bool steers(void *context, struct buf *text)
{
	struct talk *talk = context;
	struct value *pictures;
	const bool taken = console_take_waiting(talk->console, true, text, &pictures);

	value_free(pictures);
	if (taken && talk->joins != NULL)
		talk->joins(talk->context, buf_str(text));
	return taken;
}

/* For the agent: no call is under way. */
static bool between(void *context, const enum policy_mode *agreed, struct err *err)
{
	struct talk *talk = context;

	if (agreed != NULL)
		(void)talk_set_mode(talk, *agreed);
	if (talk->pauses != NULL)
		talk->pauses(talk->context);
	stopping_set_session(talk->stopping, talk->session);
	return !talk->broken || err_set(err, 0, "the mode could not be recorded");
}

/* Is a plan carried out in the same conversation? */
static bool goes_on(const struct talk *talk)
{
	return talk->remake != NULL && !talk->one_turn;
}

/* Refuse a call that what began the turn does not allow. */
static void ask_narrowed(const struct talk *talk, const struct hook_moment *moment,
			 struct hook_answer *answer)
{
	if (moment->kind != HOOK_BEFORE_CALL || talk->allowed == NULL ||
	    allowed_has(talk->allowed, moment->tool, moment->arguments))
		return;
	answer->decision = HOOK_DENY;
	(void)buf_addf(&answer->reason,
		       "%s narrows the tools of this turn to: ", talk->narrower);
	allowed_print(talk->allowed, &answer->reason);
	(void)buf_adds(&answer->reason,
		       ". Do without this call, or tell the person what it was for.");
}

/* For the agent: the hooks of the program itself. */
static void ask_own(void *context, const struct hook_moment *moment,
		    struct hook_answer *answer)
{
	const struct talk *talk = context;

	ask_narrowed(talk, moment, answer);
	if (answer->decision != HOOK_DENY && talk->behind.ask != NULL)
		talk->behind.ask(talk->behind.context, moment, answer);
}

void talk_narrow(struct talk *talk, const struct allowed *allowed, const char *who)
{
	talk->allowed = allowed;
	talk->narrower = who;
}

static struct agent_options agent_options_of(const struct talk *talk)
{
	const struct lsp *lsp = language_lsp(talk->setup);

	return (struct agent_options){
		.session = talk->session,
		.model = talk->model,
		.recorder = talk->recorder,
		.name = talk->setup->agent,
		.prompt = extension_prompt(talk->setup->extension,
					   orchestrate_prompt(talk->orchestrate,
							      talk->setup->role.prompt)),
		.parent = talk->parent,
		.checks = talk->setup->role.checks,
		.cancel_fd = interrupt_fd(talk->interrupt),
		.steers = talk->console != NULL ? steers : NULL,
		.steers_context = talk->self,
		.hooks = hook_files_asks(talk->hooks),
		.diagnoses = lsp != NULL ? lsp_diagnoses(lsp) : NULL,
		.answered = talk->answering || talk->asking != NULL,
		.between = goes_on(talk) ? between : NULL,
		.between_context = talk->self,
	};
}

static double sum_money(double sum, double more)
{
	return sum < 0 || more < 0 ? -1 : sum + more;
}

static bool add_recorded(void *context, const struct cost_answer *answer)
{
	double *money = context;

	*money = sum_money(*money, answer->money);
	return *money >= 0;
}

/* The tools of the front work for the agent and the session from now on. */
static void join_tools(struct talk *talk)
{
	orchestrate_set_agent(talk->orchestrate, talk->agent, talk->session, talk->recorder);
	if (talk->setup->searches_by_model)
		model_search_serve(talk->setup->search, talk->agent);
}

static int open_agent(struct talk *talk, const char *resume)
{
	struct agent_options options = agent_options_of(talk);
	struct err err = {0};

	options.resume = resume;
	talk->money = 0;
	if (talk->console != NULL && resume != NULL &&
	    !costs_read(talk->journal, 0, resume, add_recorded, &talk->money, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (!agent_open(&options, &talk->agent, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	join_tools(talk);
	return CODE_DONE;
}

/* For session_options: the person has answered `always`. */
static bool keep_rule(void *context, enum rule_kind kind, const char *rule, struct err *err)
{
	const struct setup *setup = context;

	return config_file_rules_keep(setup->role_name, setup->workspace, kind, rule, err);
}

static int open_session(struct talk *talk, struct setup *setup,
			void (*meanwhile)(void *context), void *context,
			struct session **session)
{
	struct session_options options = {
		.ready_workers = READY_WORKERS,
		.sink = recorder_sink(talk->recorder),
		.answers_approvals =
			talk->answering || talk->asking != NULL ||
			hooks_has(hook_files_hooks(talk->hooks), HOOK_BEFORE_CALL) ||
			hooks_has(hook_files_hooks(talk->hooks), HOOK_PERMISSION),
		.answers_questions =
			(talk->asking != NULL || talk->answers_forms) && !talk->relays,
		.answers_plans = goes_on(talk) && (talk->answering || talk->asking != NULL),
		.relays_approvals = talk->relays,
		.keep_rule = setup->keeps_rules && !talk->relays ? keep_rule : NULL,
		.keep_rule_context = setup,
		.cancel_fd = interrupt_fd(talk->interrupt),
		.rests = true,
		.meanwhile = meanwhile,
		.meanwhile_context = context,
	};

	struct lsp *lsp = language_lsp(setup);
	int code;

	if (lsp != NULL)
		lsp_serve(lsp);
	code = setup_session(setup, &options, session);
	if (code == CODE_DONE && lsp != NULL)
		lsp_begin(lsp, *session);
	return code;
}

/*
 * A server that was late has listed its tools, or one has changed its list. The session has the
 * new ones at once; the model is told of them when the next turn begins.
 */
static bool tools_changed(void *context)
{
	struct talk *talk = context;

	talk->tools_are_new =
		session_set_tools(talk->session, setup_tools(talk->setup), NULL);
	return talk->tools_are_new;
}

/* Hear of changes of the servers' tools, or (TALK NULL) no more, because the session ends. */
static void hear_servers(struct setup *setup, struct talk *talk)
{
	setup->servers.told_later = talk != NULL && talk->console != NULL;
	setup->servers.changed = talk != NULL ? tools_changed : NULL;
	setup->servers.context = talk;
	if (talk == NULL)
		return;
	talk->tools_are_new = false;
	if (setup->servers.remotes != NULL)
		remotes_offer(setup->servers.remotes);
}

/* Close SESSION of SETUP, after the language servers that work on its loop. */
static void close_session(struct session *session, struct setup *setup)
{
	if (session == NULL)
		return;
	hear_servers(setup, NULL);
	lsp_end(language_lsp(setup));
	session_close(session);
}

/*
 * Open the orchestra for TALK's setup and model; the tools of the setup are then
 * complete.
 */
static bool open_orchestrate(struct talk *talk, const struct value *request, struct err *err)
{
	const struct orchestrate_options options = {
		.setup = talk->setup,
		.request = request,
		.model = talk->asked,
		.answered = talk->answered,
		.counts_answers = talk->counts_answers,
	};

	return orchestrate_open(&options, &talk->orchestrate, err);
}

/* Open the hooks for runs of SETUP, before its session: they borrow from it. */
static bool open_hooks(struct talk *talk, const struct setup *setup, struct err *err)
{
	const struct lsp *lsp = language_lsp(setup);
	const struct agent_hooks own = {
		.ask = ask_own,
		.context = talk->self,
		.next = lsp != NULL ? lsp_hooks(lsp) : NULL,
	};

	return hook_files_open(setup, interrupt_fd(talk->interrupt), &own, false,
			       &talk->hooks, err);
}

static bool open_model(struct talk *talk, const struct model_options *options,
		       struct model **model, struct err *err)
{
	struct model_options with = *options;

	if (talk->catalogue == NULL &&
	    !catalogue_open(embedded_text(EMBEDDED_CATALOGUE), talk->setup->models,
			    &talk->catalogue, err))
		return false;
	with.catalogue = talk->catalogue;
	if (!model_open(&with, model, err))
		return false;
	if (!talk->setup->searches_by_model || model_searches(*model))
		return true;
	(void)err_set(err, EINVAL,
		      "\"search\" is {\"provider\": \"model\"}, and %.200s has no search of its "
		      "own that is known here (models of anthropic: and openai: have): name the "
		      "provider brave, tavily or exa, give the \"url\" of a SearXNG server, or "
		      "leave \"search\" out",
		      model_name(*model));
	model_close(*model);
	*model = NULL;
	return false;
}

/*
 * The part of the opening that does not need the cell, and that the cell does not need.
 */
struct opening {
	struct talk *talk;
	const struct talk_options *options;
	bool failed;
	struct err err;
};

/* Can the model do what --thinking says? */
static bool has_its_level(const struct talk *talk, struct err *err)
{
	const struct model_level *level = talk->setup->thinking;

	return level == NULL || level->budget == 0 || model_has_levels(talk->model) ||
	       err_set(err, EINVAL,
		       "%.200s is not known to take a level of thinking: leave --thinking out, "
		       "or say \"thinking\": true for it in \"models\" of the configuration "
		       "when it is asked as anthropic: or openai:",
		       model_name(talk->model));
}

/* Runs while the cell is being made. */
static void open_meanwhile(void *context)
{
	struct opening *opening = context;
	const struct talk_options *options = opening->options;
	struct talk *talk = opening->talk;

	opening->failed =
		!open_model(talk, &options->model, &talk->model, &opening->err) ||
		!has_its_level(talk, &opening->err) ||
		(options->kept && !journal_open_default(&talk->journal, &opening->err));
	if (opening->failed)
		return;
	recorder_set_journal(talk->recorder, talk->journal);
	model_prepare(talk->model);
}

/* CODE_DONE, or that of the signal that ends the opening. */
static int code_so_far(const struct talk *talk)
{
	const int number = interrupt_signal(talk->interrupt);

	return number != 0 ? CODE_SIGNAL + number : CODE_DONE;
}

int talk_open(const struct talk_options *options, struct setup *setup, struct talk **opened)
{
	struct talk *talk = memory_alloc(sizeof(*talk));
	struct opening opening = {.talk = talk, .options = options};
	struct err err = {0};
	int code;

	*opened = talk;
	talk->self = talk;
	talk->setup = setup;
	talk->asked = memory_copy(options->model.name);
	talk->parent = value_text(value_member(options->request, "parent"));
	talk->counts_answers = options->counts_answers;
	talk->answering = options->answers;
	talk->answers_forms = options->answers_forms;
	talk->answered = options->answers || options->console != NULL;
	talk->joins = options->joins;
	talk->remake = options->remake;
	talk->taken = options->taken;
	talk->pauses = options->pauses;
	talk->one_turn = options->one_turn;
	talk->stopping = options->stopping;
	talk->context = options->context;
	talk->relays = options->answers && options->request != NULL;
	setup_hide_memory();
	talk->interrupt = options->interrupt;
	talk->interrupt_is_lent = options->interrupt != NULL;
	if ((!talk->interrupt_is_lent && !interrupt_open(&talk->interrupt, &err)) ||
	    !trusting_open(setup, options->console, interrupt_fd(talk->interrupt),
			   options->request != NULL, &err) ||
	    !open_orchestrate(talk, options->request, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (options->hooks != NULL)
		talk->behind = *options->hooks;
	if (!open_hooks(talk, setup, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	/* The person has been told by the run that gives a delegate its task. */
	if (options->request == NULL)
		hook_files_tell_left_out(talk->hooks);
	if (!recording_settle(setup, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	talk->recorder = recorder_new(NULL, recording_agent(setup->recording,
							    open_view(talk, options)));
	code = code_so_far(talk);
	if (code == CODE_DONE)
		code = open_session(talk, setup, open_meanwhile, &opening, &talk->session);
	if (code == CODE_DONE && opening.failed)
		code = verb_complain(CODE_FAILED, "%s", opening.err.text);
	if (code == CODE_DONE && options->answers)
		talk->answers = answers_open(STDIN_FILENO, talk->session,
					     &talk->self->agent, options);
	asking_set_session(talk->asking, talk->session);
	if (code == CODE_DONE && !talk->interrupt_is_lent &&
	    !interrupt_start(talk->interrupt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE)
		code = code_so_far(talk);
	if (code == CODE_DONE)
		code = open_agent(talk, options->resume);
	if (code == CODE_DONE)
		hear_servers(setup, talk);
	return code;
}

/* Close what belongs to one conversation only. */
static void close_parts(struct talk *talk)
{
	agent_close(talk->agent);
	close_session(talk->session, talk->setup);
	orchestrate_close(talk->orchestrate);
	hook_files_close(talk->hooks);
	recorder_free(talk->recorder);
	journal_close(talk->journal);
	free(talk->asked);
	model_close(talk->model);
}

void talk_close(struct talk *talk)
{
	if (talk == NULL)
		return;
	agent_close(talk->agent);
	talk->agent = NULL;
	answers_close(talk->answers);
	close_parts(talk);
	asking_close(talk->asking);
	screen_free(talk->screen);
	json_events_free(talk->json);
	catalogue_close(talk->catalogue);
	if (!talk->interrupt_is_lent)
		interrupt_close(talk->interrupt);
	free(talk);
}

static int code_of(enum agent_reason reason)
{
	switch (reason) {
	case AGENT_STOPPED:
	case AGENT_PATCH:
	case AGENT_PLAN:
		return CODE_DONE;
	case AGENT_ITERATIONS:
	case AGENT_TOKENS:
	case AGENT_MONEY:
	case AGENT_WALL:
	case AGENT_SHELL:
	case AGENT_REPEATS:
	case AGENT_TIMEOUTS:
		return CODE_LIMIT;
	case AGENT_HOOK:
		return CODE_DENIED;
	case AGENT_CANCELLED:
		return CODE_CANCELLED;
	case AGENT_MODEL_FAILED:
	case AGENT_CHECKS:
		break;
	}
	return CODE_FAILED;
}

/* The exit code of OUTCOME. Not RECORDED: the complaint in ERR is printed. */
static int code_of_turn(struct talk *talk, bool recorded,
			const struct agent_outcome *outcome, const struct err *err)
{
	int code;

	if (!recorded) {
		talk->broken = true;
		if (talk->screen != NULL)
			screen_rest(talk->screen);
		/* The complaint stays on the terminal. */
		if (talk->console != NULL)
			console_rest(talk->console);
		return verb_complain(CODE_FAILED, "%s", err->text);
	}
	talk->money = sum_money(talk->money, outcome->usage.money);
	code = code_of(outcome->reason);
	if (code == CODE_CANCELLED && interrupt_signal(talk->interrupt) != 0)
		code = CODE_SIGNAL + interrupt_signal(talk->interrupt);
	interrupt_settle(talk->interrupt);
	return code;
}

/* Tell the agent of the tools that have joined since the last turn. */
static bool take_new_tools(struct talk *talk, struct err *err)
{
	struct agent_options options;

	front_servers_hear(&talk->setup->servers);
	if (!talk->tools_are_new)
		return true;
	talk->tools_are_new = false;
	options = agent_options_of(talk);
	return agent_change(talk->agent, &options, err);
}

int talk_turn(struct talk *talk, const char *prompt, const struct value *pictures,
	      struct agent_outcome *outcome)
{
	struct err err = {0};

	*outcome = (struct agent_outcome){0};
	if (!take_new_tools(talk, &err))
		return code_of_turn(talk, false, outcome, &err);
	stopping_set_session(talk->stopping, talk->session);
	const bool recorded = agent_submit(talk->agent, prompt, pictures, outcome, &err);

	stopping_set_session(talk->stopping, NULL);
	return code_of_turn(talk, recorded, outcome, &err);
}

int talk_compact(struct talk *talk, const char *matters)
{
	struct agent_outcome outcome = {0};
	struct err err = {0};

	return code_of_turn(talk, agent_compact(talk->agent, matters, &outcome, &err),
			    &outcome, &err);
}

int talk_told(const struct talk *talk, int code)
{
	int gone = talk->json != NULL     ? json_events_gone(talk->json)
		   : talk->screen != NULL ? screen_gone(talk->screen)
					  : 0;

	if (code != CODE_DONE || gone == 0 || gone == EPIPE)
		return code;
	return verb_complain(CODE_FAILED,
			     "the work is done, but not all of it was printed: %s%s",
			     strerror(gone),
			     talk->journal != NULL
				     ? "; glovebox sessions export last prints it"
				     : "");
}

bool talk_is_over(const struct talk *talk)
{
	return talk->broken || talk->one_turn || interrupt_signal(talk->interrupt) != 0;
}

/* Give WITH, a copy of the conversation, a session made of SETUP. */
static int change_hands(struct talk *with, struct setup *setup)
{
	struct err err = {0};

	with->setup = setup;
	with->session = NULL;
	with->orchestrate = NULL;
	with->hooks = NULL;
	if (!trusting_open(setup, with->console, interrupt_fd(with->interrupt), true, &err) ||
	    !open_orchestrate(with, NULL, &err) || !open_hooks(with, setup, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return open_session(with, setup, NULL, NULL, &with->session);
}

int talk_change(struct talk *talk, struct setup *setup, const struct model_options *model)
{
	struct talk with = *talk, unused;
	struct agent_options options;
	struct err err = {0};
	char *run = memory_copy(session_run(talk->session));
	const bool handed = !session_has_news(talk->session);
	int code = CODE_DONE;

	if (model != NULL) {
		if (!open_model(talk, model, &with.model, &err)) {
			free(run);
			return verb_complain(CODE_FAILED, "%s", err.text);
		}
		with.asked = memory_copy(model->name);
	}
	if (setup != NULL)
		code = change_hands(&with, setup);
	options = agent_options_of(&with);
	if (code == CODE_DONE && !agent_change(talk->agent, &options, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	unused = code == CODE_DONE ? *talk : with;
	/* The loop of the old session ends with it. */
	if (code == CODE_DONE)
		answers_set_session(with.answers, with.session);
	if (code == CODE_DONE && setup != NULL)
		stopping_set_session(talk->stopping, NULL);
	if (setup != NULL) {
		close_session(unused.session, unused.setup);
		orchestrate_close(unused.orchestrate);
		hook_files_close(unused.hooks);
	}
	if (model != NULL) {
		model_close(unused.model);
		free(unused.asked);
	}
	if (code != CODE_DONE) {
		free(run);
		return code;
	}
	*talk = with;
	/*
	 * Adopt only now: the last changes of the old session are recorded when it is
	 * closed.
	 */
	if (setup != NULL) {
		session_adopt(talk->session, run, handed);
		hear_servers(setup, talk);
	}
	free(run);
	join_tools(talk);
	asking_set_session(talk->asking, talk->session);
	asking_set_preview(talk->asking, preview, &talk->setup->plugins);
	return CODE_DONE;
}

int talk_begin_again(struct talk *talk, struct setup *setup,
		     const struct model_options *model, const char *resume)
{
	struct talk with = *talk, unused;
	struct err err = {0};
	int code = CODE_DONE;

	with.agent = NULL;
	with.session = NULL;
	with.orchestrate = NULL;
	with.hooks = NULL;
	with.recorder = NULL;
	with.journal = NULL;
	with.model = NULL;
	with.asked = memory_copy(model->name);
	if (!recording_settle(setup, &err) || !open_model(&with, model, &with.model, &err) ||
	    !journal_open_default(&with.journal, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE) {
		with.recorder =
			recorder_new(with.journal,
				     recording_agent(setup->recording,
						     talk->asking != NULL
							     ? asking_sink(talk->asking)
							     : screen_sink(talk->screen)));
		code = change_hands(&with, setup);
	}
	asking_set_session(talk->asking, with.session);
	if (code == CODE_DONE)
		code = open_agent(&with, resume);
	unused = code == CODE_DONE ? *talk : with;
	if (code == CODE_DONE) {
		*talk = with;
		asking_set_preview(talk->asking, preview, &setup->plugins);
		hear_servers(setup, talk);
		join_tools(talk);
	}
	asking_set_session(talk->asking, talk->session);
	/* Its last events belong to its own record. */
	close_parts(&unused);
	return code;
}

const struct recorder *talk_recorder(const struct talk *talk)
{
	return talk->recorder;
}

/* TALK works in MODE, which needs no other cell. */
static void change_verdicts(struct talk *talk, enum policy_mode mode)
{
	session_set_mode(talk->session, mode);
	talk->setup->mode = mode;
	orchestrate_set_mode(talk->orchestrate, mode);
}

/* Go on with new hands, of AGENT or (NULL) of the present agent. */
static int change_setup(struct talk *talk, const char *agent, enum policy_mode mode)
{
	struct setup *setup = talk->remake(talk->context, agent, mode);
	const int code = setup != NULL ? talk_change(talk, setup, NULL) : CODE_FAILED;

	if (setup != NULL)
		talk->taken(talk->context, setup, code == CODE_DONE);
	return code;
}

int talk_set_agent(struct talk *talk, const char *agent, enum policy_mode mode)
{
	const enum policy_mode before = talk->setup->mode;
	const int code = change_setup(talk, agent, mode);
	struct buf sentence;
	struct err err = {0};
	bool told = true;

	if (code == CODE_DONE) {
		buf_init(&sentence, ERR_TEXT_MAX);
		(void)buf_adds(&sentence, "From here on the agent ");
		text_add_name(&sentence, str_of(talk->setup->agent));
		(void)buf_adds(&sentence,
			       " goes on, with its tools and its rights, in a new cell; what ran "
			       "in the old one has ended.");
		told = agent_notice(talk->agent, sentence.data, true, &err) &&
		       (mode == before || agent_tell_mode(talk->agent, &err));
		buf_fini(&sentence);
	}
	if (told)
		return code;
	talk->broken = true;
	return verb_complain(CODE_FAILED, "%s", err.text);
}

int talk_set_model(struct talk *talk, const char *name)
{
	struct model_options model;
	struct err err = {0};

	if (!talk_model(name, &talk->setup->role, &model, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return talk_change(talk, NULL, &model);
}

const char *talk_asked_model(const struct talk *talk)
{
	return talk->asked;
}

int talk_set_mode(struct talk *talk, enum policy_mode mode)
{
	const enum policy_mode now = talk->setup->mode;
	struct err err = {0};

	if (mode == now)
		return CODE_DONE;
	if (mode == MODE_PLAN || now == MODE_PLAN) {
		/* The page that was read in this turn is as well known to the new cell. */
		auto_free char *host = memory_copy(session_has_read(talk->session));
		const int code = change_setup(talk, NULL, mode);

		if (code != CODE_DONE)
			return code;
		session_note_host(talk->session, host);
	} else {
		change_verdicts(talk, mode);
	}
	if (agent_tell_mode(talk->agent, &err))
		return CODE_DONE;
	talk->broken = true;
	return verb_complain(CODE_FAILED, "%s", err.text);
}

const char *talk_id(const struct talk *talk)
{
	return recorder_session_id(talk->recorder);
}

double talk_money(const struct talk *talk)
{
	struct model_usage now;

	agent_used(talk->agent, &now);
	return sum_money(talk->money, now.money);
}

uint64_t talk_context(const struct talk *talk)
{
	return model_context(talk->model);
}

struct agent *talk_agent(const struct talk *talk)
{
	return talk->agent;
}

const struct setup *talk_setup(const struct talk *talk)
{
	return talk->setup;
}

struct session *talk_session(const struct talk *talk)
{
	return talk->session;
}

const char *talk_session_id(const struct talk *talk)
{
	return recorder_session_id(talk->recorder);
}

bool talk_has_levels(const struct talk *talk)
{
	return model_has_levels(talk->model);
}

const char *talk_model_name(const struct talk *talk)
{
	return model_name(talk->model);
}

/* A patch has both; the person sees only the patch. */
#define TITLE   "The change so far"
#define SUMMARY "What this conversation changed."
#define HEADING TITLE "\n\n" SUMMARY "\n\n"

bool talk_diff(struct talk *talk, struct buf *text)
{
	auto_value struct value *arguments = value_new_object();
	const struct request request = {
		.tool = "generate_patch",
		.arguments = arguments,
		.id = "diff",
		.by_front = true,
		.quiet = true,
	};
	struct tool_result result;

	if (session_changed(talk->session)[0] == NULL) {
		(void)buf_adds(text, "Nothing has been changed.");
		return false;
	}
	value_set_text(arguments, "title", TITLE);
	value_set_text(arguments, "summary", SUMMARY);
	tool_result_init(&result);
	session_call(talk->session, &request, &result);
	const struct str patch = value_str(value_member(result.details, "patch"));
	const bool made = result.status == RESULT_DONE && patch.size > 0;
	struct str said = str_trim(buf_str(&result.text));
	/* A heading over a sentence tells nobody anything. */
	if (str_starts(said, STR(HEADING)))
		said = str_part(said, sizeof(HEADING) - 1, SIZE_MAX);
	(void)buf_addstr(text, made ? patch : said);
	tool_result_fini(&result);
	return made;
}

bool talk_tell_undone(struct talk *talk, const struct tool_result *result, struct err *err)
{
	enum { TOLD_MAX = 2048 };
	const struct str undone = STR("Undone: "), advice = STR(" To take that back: ");
	struct str said = buf_str(&result->text);
	struct buf sentence;

	buf_init(&sentence, 2 * TOLD_MAX);
	(void)buf_adds(&sentence, "The person has undone a step of yours: ");
	if (str_starts(said, undone))
		said = str_part(said, undone.size, SIZE_MAX);
	said = str_part(said, 0, text_character_border(said, TOLD_MAX));
	/* The advice is a command for the shell: the model has none, and the person /undo. */
	const size_t at = str_find(said, advice, 0);
	const size_t end = at != SIZE_MAX ? str_find(said, STR("\n"), at) : SIZE_MAX;

	(void)buf_addstr(&sentence, str_part(said, 0, at));
	if (end != SIZE_MAX)
		(void)buf_addstr(&sentence, str_part(said, end, SIZE_MAX));
	const bool recorded = agent_notice(talk->agent, sentence.data, true, err);
	buf_fini(&sentence);
	return recorded;
}

void talk_rest(struct talk *talk)
{
	if (talk->screen != NULL)
		screen_rest(talk->screen);
}

struct screen *talk_screen(const struct talk *talk)
{
	return talk->screen;
}

void talk_break(struct talk *talk)
{
	if (talk->screen != NULL)
		screen_break(talk->screen);
}

int talk_interrupt_fd(const struct talk *talk)
{
	return interrupt_fd(talk->interrupt);
}

bool talk_is_interrupted(const struct talk *talk)
{
	struct pollfd interrupt = {.fd = interrupt_fd(talk->interrupt), .events = POLLIN};

	return poll(&interrupt, 1, 0) > 0;
}

void talk_calm(struct talk *talk)
{
	interrupt_settle(talk->interrupt);
}

int talk_signal(const struct talk *talk)
{
	return interrupt_signal(talk->interrupt);
}

/* Prints the question and reads the answer. */

enum { QUESTION_MAX = 8 << 10 };

bool talk_confirm(FILE *to, const char *format, ...)
{
	char answer[16] = "";
	struct buf text, lines;
	va_list arguments;

	buf_init(&text, QUESTION_MAX);
	buf_init(&lines, 4 * QUESTION_MAX);
	va_start(arguments, format);
	(void)buf_addv(&text, format, arguments);
	va_end(arguments);
	(void)buf_adds(&text, " [y/N] ");
	paint_fold_for(fileno(to), buf_str(&text), &lines);
	(void)fputs(lines.data, to);
	(void)fflush(to);
	buf_fini(&lines);
	buf_fini(&text);
	if (fgets(answer, sizeof(answer), stdin) == NULL)
		(void)fputc('\n', to);
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
