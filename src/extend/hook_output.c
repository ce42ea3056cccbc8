/* hook_output: reads exit codes and answers of hooks. */

#include "extend/hook_output.h"

#include "agent/hooks.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "extend/hooks.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

enum {
	SAID_MAX = 128 << 10, /* of a text, cleaned: a hook prints 64 KiB at most */
	COMMAND_SHOWN_MAX = 160,
	LINE_SHOWN_MAX = 400,
	CODE_REFUSES = 2,
};

void hook_said_init(struct hook_said *said)
{
	*said = (struct hook_said){0};
	buf_init(&said->reason, SAID_MAX);
	buf_init(&said->context, SAID_MAX);
	buf_init(&said->told, SAID_MAX);
}

void hook_said_fini(struct hook_said *said)
{
	buf_fini(&said->reason);
	buf_fini(&said->context);
	buf_fini(&said->told);
	value_free(said->input);
}

void hook_output_name(const struct hook *hook, struct buf *text)
{
	const struct str command = str_of(hook->command);
	const struct str shown =
		str_part(command, 0, text_character_border(command, COMMAND_SHOWN_MAX));

	(void)buf_addf(text, "%s: ", hook->source);
	text_add_exact(text, shown);
	if (shown.size < command.size)
		(void)buf_adds(text, "…");
}

/* Add the texts of a program: whole characters, and nothing that moves a cursor. */
static void add_text(struct buf *to, struct str text)
{
	struct buf clean;

	text = str_trim(text);
	if (text.size == 0)
		return;
	buf_init(&clean, 4 * SAID_MAX);
	(void)text_clean(text, &clean);
	(void)buf_end_line(to);
	(void)buf_addstr(to, str_trim(buf_str(&clean)));
	buf_fini(&clean);
}

/* The hook gave no answer: tell the person why. */
static void fail(const struct hook *hook, struct hook_said *said, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(const struct hook *hook, struct hook_said *said, const char *format, ...)
{
	va_list arguments;

	said->failed = true;
	(void)buf_addf(&said->told, "The %s hook ", hook_kind_name(hook->kind));
	hook_output_name(hook, &said->told);
	(void)buf_addc(&said->told, ' ');
	va_start(arguments, format);
	(void)buf_addv(&said->told, format, arguments);
	va_end(arguments);
}

/* The first line of a program's words that says something. */
static struct str first_line(struct str text)
{
	struct str line = STR("");

	text = str_trim(text);
	(void)str_next_line(&text, &line);
	return str_part(line, 0, text_character_border(line, LINE_SHOWN_MAX));
}

enum { SHELL_NOT_RUN = 126, SHELL_NOT_FOUND = 127 };

static void fail_by_code(const struct hook_output *output, const struct hook *hook,
			 struct hook_said *said)
{
	const struct str line = first_line(output->error);
	const char *name = output->signal != 0 ? sigabbrev_np(output->signal) : NULL;

	if (output->signal != 0)
		fail(hook, said, "was ended by signal %d (SIG%s)", output->signal,
		     name != NULL ? name : "?");
	else
		fail(hook, said, "failed with exit code %d", output->exit_code);
	(void)buf_adds(&said->told, line.size > 0 ? ": " : ".");
	text_add_exact(&said->told, line);
	/* The shell has not found the program, or may not run it. */
	if (hook->place == HOOK_IN_CELL && output->signal == 0 &&
	    (output->exit_code == SHELL_NOT_FOUND || output->exit_code == SHELL_NOT_RUN))
		(void)buf_adds(
			&said->told,
			"; a hook runs in the cell, whose home is another one: name the program "
			"by its whole path, in a folder that the agent may read (`read`)");
}

/* Is MEMBER, of the answer, missing or of KIND? Else the answer is none. */
static bool is_kind(const struct value *object, const char *name, enum value_kind kind)
{
	const struct value *member = value_member(object, name);

	return value_kind(member) == VALUE_NULL || value_kind(member) == kind;
}

static bool is_sound(const struct value *answer)
{
	static const struct {
		const char *name;
		enum value_kind kind;
	} members[] = {
		{"continue", VALUE_BOOLEAN},     {"stopReason", VALUE_STRING},
		{"decision", VALUE_STRING},      {"reason", VALUE_STRING},
		{"systemMessage", VALUE_STRING}, {"hookSpecificOutput", VALUE_OBJECT},
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (!is_kind(answer, members[i].name, members[i].kind))
			return false;
	}
	return true;
}

static bool is_sound_specific(const struct value *specific)
{
	return is_kind(specific, "hookEventName", VALUE_STRING) &&
	       is_kind(specific, "permissionDecision", VALUE_STRING) &&
	       is_kind(specific, "permissionDecisionReason", VALUE_STRING) &&
	       is_kind(specific, "additionalContext", VALUE_STRING) &&
	       is_kind(specific, "updatedInput", VALUE_OBJECT) &&
	       is_kind(specific, "decision", VALUE_OBJECT);
}

static struct str text_of(const struct value *object, const char *name)
{
	return value_str(value_member(object, name));
}

static void decide(struct hook_said *said, enum hook_decision decision, struct str reason)
{
	said->decision = decision;
	buf_clear(&said->reason);
	add_text(&said->reason, reason);
}

/*
 * The hook refuses by its exit code. Its reason stands on standard error; standard output is
 * not the reason, because a program may print anything there.
 */
static void refuse(const struct hook_output *output, const struct hook *hook,
		   struct hook_said *said)
{
	decide(said, HOOK_DENY, output->error);
	if (said->reason.size > 0 || str_trim(output->out).size == 0)
		return;
	(void)buf_addf(&said->told, "The %s hook ", hook_kind_name(hook->kind));
	hook_output_name(hook, &said->told);
	(void)buf_adds(&said->told,
		       " refused without a word on standard error, where its reason belongs; with "
		       "exit code 2 nobody reads its standard output.");
}

/* A word for a decision, in either of the forms that answers have had. */
static bool decision_of(struct str word, enum hook_decision *decision)
{
	static const struct {
		const char *word;
		enum hook_decision decision;
	} words[] = {
		{"deny", HOOK_DENY},   {"block", HOOK_DENY},    {"ask", HOOK_ASK},
		{"allow", HOOK_ALLOW}, {"approve", HOOK_ALLOW}, {"defer", HOOK_SILENT},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_is(word, words[i].word)) {
			*decision = words[i].decision;
			return true;
		}
	}
	return false;
}

static bool takes_input(enum hook_kind kind)
{
	return kind == HOOK_BEFORE_CALL;
}

static bool takes_context(enum hook_kind kind)
{
	return kind == HOOK_SESSION_BEGAN || kind == HOOK_PROMPT ||
	       kind == HOOK_BEFORE_CALL || kind == HOOK_AFTER_CALL ||
	       kind == HOOK_AFTER_FAILURE;
}

/* The part of the answer that is of one moment only. */
static bool read_specific(const struct value *specific, const struct hook *hook,
			  struct hook_said *said)
{
	const struct value *permission = value_member(specific, "decision");
	const struct str name = text_of(specific, "hookEventName");
	struct str word = text_of(specific, "permissionDecision");
	struct str reason = text_of(specific, "permissionDecisionReason");
	enum hook_decision decision;

	if (name.size > 0 && !str_is(name, hook_kind_name(hook->kind)))
		return false;
	if (hook->kind == HOOK_PERMISSION) {
		word = text_of(permission, "behavior");
		reason = text_of(permission, "message");
		said->ends = said->ends ||
			     value_is_true(value_member(permission, "interrupt"));
	}
	if (word.size > 0 && !decision_of(word, &decision))
		return false;
	if (word.size > 0)
		decide(said, decision, reason);
	if (takes_context(hook->kind))
		add_text(&said->context, text_of(specific, "additionalContext"));
	if (takes_input(hook->kind) && value_member(specific, "updatedInput") != NULL)
		said->input = value_copy(value_member(specific, "updatedInput"));
	return true;
}

/* False: it is no answer of this moment. */
static bool read_answer(const struct value *answer, const struct hook *hook,
			struct hook_said *said)
{
	const struct value *specific = value_member(answer, "hookSpecificOutput");
	const struct value *goes_on = value_member(answer, "continue");
	const struct str word = text_of(answer, "decision");
	enum hook_decision decision;

	if (!is_sound(answer) || !is_sound_specific(specific))
		return false;
	if (word.size > 0 && !decision_of(word, &decision))
		return false;
	if (word.size > 0)
		decide(said, decision, text_of(answer, "reason"));
	if (specific != NULL && !read_specific(specific, hook, said))
		return false;
	if (goes_on != NULL && !value_is_true(goes_on)) {
		said->ends = true;
		buf_clear(&said->reason);
		add_text(&said->reason, text_of(answer, "stopReason"));
	}
	add_text(&said->told, text_of(answer, "systemMessage"));
	return true;
}

/* The meaning of a text on standard output at this moment. */
static void read_text(struct str text, const struct hook *hook, struct hook_said *said)
{
	if (hook->kind == HOOK_SESSION_BEGAN || hook->kind == HOOK_PROMPT)
		add_text(&said->context, text);
}

static void read_output(const struct hook_output *output, const struct hook *hook,
			struct hook_said *said)
{
	const struct str text = str_trim(output->out);
	auto_value struct value *answer = NULL;
	struct err err = {0};

	if (!str_starts(text, STR("{"))) {
		read_text(text, hook, said);
	} else if (output->cut) {
		fail(hook, said, "printed more than 64 KiB, so its answer is not read.");
	} else if (!value_parse(text, 0, &answer, &err)) {
		fail(hook, said, "printed no sound JSON: %s", err.text);
	} else if (!read_answer(answer, hook, said)) {
		hook_said_fini(said);
		hook_said_init(said);
		fail(hook, said, "printed JSON that is no answer to %s.",
		     hook_kind_name(hook->kind));
	}
}

/* A refusal without a reason is one all the same. */
static void fill_reason(const struct hook *hook, struct hook_said *said)
{
	if ((said->decision < HOOK_ASK && !said->ends) || said->reason.size > 0)
		return;
	(void)buf_adds(&said->reason, said->ends ? "A hook has ended the turn: "
						 : "No reason is given by ");
	hook_output_name(hook, &said->reason);
}

/* May the words of a moment's hook decide as DECISION says? */
static bool may_decide(enum hook_kind kind, enum hook_decision decision)
{
	switch (kind) {
	case HOOK_BEFORE_CALL:
		return true;
	case HOOK_PERMISSION:
		return decision != HOOK_ASK;
	case HOOK_PROMPT:
	case HOOK_STOP:
	case HOOK_DELEGATE_STOP:
	case HOOK_COMPACTION:
		return decision == HOOK_DENY;
	default:
		return false;
	}
}

/* Some moments are over, or are nobody's to refuse: the reason is then only words. */
static void settle(const struct hook *hook, struct hook_said *said)
{
	const enum hook_kind kind = hook->kind;
	const bool after = kind == HOOK_AFTER_CALL || kind == HOOK_AFTER_FAILURE;
	const bool denies = said->decision == HOOK_DENY;

	/* The model learns why a hook has refused in a person's place. */
	if (denies && (after || kind == HOOK_PERMISSION))
		add_text(&said->context, buf_str(&said->reason));
	else if (denies && !may_decide(kind, HOOK_DENY))
		add_text(&said->told, buf_str(&said->reason));
	if (!may_decide(kind, said->decision))
		said->decision = HOOK_SILENT;
	if (kind == HOOK_SESSION_BEGAN || kind == HOOK_SESSION_ENDED ||
	    kind == HOOK_NOTIFICATION)
		said->ends = false;
}

void hook_output_read(const struct hook_output *output, const struct hook *hook,
		      struct hook_said *said)
{
	switch (output->ending) {
	case HOOK_FAILED:
		fail(hook, said, "did not run: ");
		text_add_exact(&said->told, first_line(output->why));
		break;
	case HOOK_TIMED_OUT:
		fail(hook, said, "took longer than %g s, and was ended.",
		     hook_timeout_s(hook));
		break;
	case HOOK_CANCELLED:
		said->failed = true;
		break;
	case HOOK_ENDED:
		if (output->exit_code == CODE_REFUSES)
			refuse(output, hook, said);
		else if (output->exit_code != 0)
			fail_by_code(output, hook, said);
		else
			read_output(output, hook, said);
		break;
	}
	if (said->failed && hook->required && hook->kind == HOOK_BEFORE_CALL)
		decide(said, HOOK_DENY,
		       STR("A hook without whose answer no call may run gave none."));
	fill_reason(hook, said);
	settle(hook, said);
}
