/* hooks: reads the hooks of a file, and finds those that fit a moment. */

#include "extend/hooks.h"

#include "agent/hooks.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/regex.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMMAND_MAX = 16 << 10, /* as much as a person reads of a command */
	MATCHER_MAX = 4 << 10,
	PLACE_MAX = 128,
	WHY_MAX = 256,
	NOTES_MAX = 64,
};

/* Seconds: the defaults and bounds of the moments. */
static const double timeout_s = 60, timeout_max_s = 600, timeout_prompt_s = 30;
/* Nobody's question, and no end of the program, waits longer for these. */
static const double timeout_notification_s = 5, timeout_end_s = 10;

struct hooks *hooks_new(void)
{
	struct hooks *hooks = memory_alloc(sizeof(*hooks));

	arena_init(&hooks->arena);
	return hooks;
}

static void cut_back(struct hooks *hooks, size_t count, size_t note_count)
{
	for (size_t i = count; i < hooks->count; i++)
		regex_free(hooks->items[i].pattern);
	hooks->count = count;
	hooks->note_count = note_count;
}

void hooks_free(struct hooks *hooks)
{
	if (hooks == NULL)
		return;
	cut_back(hooks, 0, 0);
	free(hooks->items);
	free(hooks->notes);
	arena_fini(&hooks->arena);
	free(hooks);
}

/* The file that is being read, and the place in it. */
struct reading {
	struct hooks *hooks;
	const char *source;
	bool own;
	enum hook_kind kind;
	const char *moment, *matcher;
	size_t group, at;
};

static bool fault(const struct reading *reading, const char *why, struct err *err)
{
	return err_set(err, EINVAL, "%s: hooks.%.64s, group %zu, hook %zu: %s",
		       reading->source, reading->moment, reading->group + 1,
		       reading->at + 1, why);
}

static void add_note(struct hooks *hooks, const struct hook_note *note)
{
	if (hooks->note_count == NOTES_MAX)
		return;
	hooks->notes =
		memory_grow(hooks->notes, hooks->note_count + 1, sizeof(*hooks->notes));
	hooks->notes[hooks->note_count++] = *note;
}

/* WHY is copied. */
static void note(const struct reading *reading, const char *why, bool is_hook)
{
	struct hooks *hooks = reading->hooks;

	add_note(hooks, &(struct hook_note){
				.source = reading->source,
				.moment = arena_copy(&hooks->arena,
						     str_part(str_of(reading->moment), 0,
							      PLACE_MAX)),
				.why = arena_copy(&hooks->arena, str_of(why)),
				.is_hook = is_hook,
			});
}

void hooks_leave_out(struct hooks *hooks, const char *source, const char *why)
{
	add_note(hooks, &(struct hook_note){
				.source = arena_copy(&hooks->arena, str_of(source)),
				.moment = "",
				.why = arena_copy(&hooks->arena, str_of(why)),
			});
}

static bool is_list_of_names(const char *matcher)
{
	for (; *matcher != '\0'; matcher++) {
		const char c = *matcher;

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c >= '0' && c <= '9') || c == '_' || c == '|'))
			return false;
	}
	return true;
}

static bool is_everything(const char *matcher)
{
	return matcher[0] == '\0' || strcmp(matcher, "*") == 0;
}

/* The text NAME of OBJECT, of at most MAX bytes without NUL; *TEXT NULL: there is none. */
static bool text_of(const struct reading *reading, const struct value *object,
		    const char *name, size_t max, const char **text, struct err *err)
{
	const struct value *value = value_member(object, name);
	const struct str str = value_str(value);

	*text = NULL;
	if (value_kind(value) == VALUE_NULL)
		return true;
	if (value_kind(value) != VALUE_STRING || str.size > max ||
	    strlen(str.data) != str.size)
		return fault(reading, "a text is wanted, and a short one without NUL", err);
	*text = arena_copy(&reading->hooks->arena, str);
	return true;
}

static bool time_of(const struct reading *reading, const struct value *object,
		    double *seconds, struct err *err)
{
	const struct value *value = value_member(object, "timeout");

	*seconds = 0;
	if (value_kind(value) == VALUE_NULL)
		return true;
	if (!value_is_number(value) || value_number(value) <= 0)
		return fault(reading, "timeout is a number of seconds, more than 0", err);
	*seconds =
		value_number(value) < timeout_max_s ? value_number(value) : timeout_max_s;
	return true;
}

static bool place_of(const struct reading *reading, const struct value *object,
		     enum hook_place *place, struct err *err)
{
	const char *where;

	*place = HOOK_IN_CELL;
	if (!text_of(reading, object, "where", PLACE_MAX, &where, err))
		return false;
	if (where == NULL || strcmp(where, "cell") == 0)
		return true;
	*place = HOOK_ON_HOST;
	return strcmp(where, "host") == 0 ||
	       fault(reading, "where is \"cell\" or \"host\"", err);
}

/* Write to WHY that hooks of TYPE, which somebody else may have chosen, are not run. */
static void tell_type(const char *type, char why[WHY_MAX])
{
	struct buf shown;

	buf_init(&shown, 4 * PLACE_MAX + 1); /* \xHH for every byte */
	text_add_name(&shown, str_of(type));
	(void)snprintf(why, WHY_MAX,
		       "hooks of another type than \"command\" are not run, as this one of "
		       "\"%.*s\"",
		       PLACE_MAX, shown.data);
	buf_fini(&shown);
}

/* Write to WHY the reason why the hook OBJECT is not run; false: it is run. */
static bool left_out(const struct reading *reading, const struct value *object,
		     const char *type, enum hook_place place, char why[WHY_MAX])
{
	if (strcmp(type, "command") != 0)
		tell_type(type, why);
	else if (value_member(object, "args") != NULL)
		(void)snprintf(why, WHY_MAX,
			       "a hook with \"args\" is not run: write one command");
	else if (place == HOOK_ON_HOST && !reading->own)
		(void)snprintf(why, WHY_MAX,
			       "\"where\": \"host\" is for hooks of your own configuration");
	else
		return false;
	return true;
}

/*
 * Note that the hook is left out for the reason WHY. Of one's own guard that must not be missing
 * this is an error.
 */
static bool leave_out(const struct reading *reading, const struct hook *hook,
		      const char *why, struct err *err)
{
	if (reading->own && hook->required)
		return fault(reading, why, err);
	note(reading, why, true);
	return true;
}

/* Say what is not done of a hook that is run. */
static void note_members(const struct reading *reading, const struct value *object)
{
	if (value_member(object, "if") != NULL)
		note(reading,
		     "\"if\" is not read: the hook runs for all that its matcher fits",
		     false);
	if (value_is_true(value_member(object, "async")))
		note(reading, "\"async\" is not read: the hook is waited for", false);
}

static bool take_hook(const struct reading *reading, const struct value *object,
		      struct err *err)
{
	struct hooks *hooks = reading->hooks;
	struct hook hook = {
		.kind = reading->kind,
		.matcher = reading->matcher,
		.own = reading->own,
		.source = reading->source,
		.required = value_is_true(value_member(object, "required")),
	};
	char why[WHY_MAX];
	const char *type;

	if (value_kind(object) != VALUE_OBJECT)
		return fault(reading, "an object is wanted", err);
	if (!text_of(reading, object, "type", PLACE_MAX, &type, err) ||
	    !text_of(reading, object, "command", COMMAND_MAX, &hook.command, err) ||
	    !time_of(reading, object, &hook.timeout_s, err) ||
	    !place_of(reading, object, &hook.place, err))
		return false;
	if (type == NULL)
		return fault(reading, "\"type\": \"command\" is missing", err);
	if (left_out(reading, object, type, hook.place, why))
		return leave_out(reading, &hook, why, err);
	if (hook.command == NULL || hook.command[0] == '\0')
		return fault(reading, "\"command\" is missing", err);
	if (hooks->count == HOOKS_MAX)
		return fault(reading, "there are too many hooks", err);
	note_members(reading, object);
	if (!is_everything(hook.matcher) && !is_list_of_names(hook.matcher) &&
	    !regex_compile(str_of(hook.matcher), 0, &hook.pattern, err))
		return err_while(err, "%s", reading->source);
	hooks->items = memory_grow(hooks->items, hooks->count + 1, sizeof(*hooks->items));
	hooks->items[hooks->count++] = hook;
	return true;
}

static bool take_group(struct reading *reading, const struct value *group, struct err *err)
{
	const struct value *list = value_member(group, "hooks");

	reading->at = 0;
	if (value_kind(group) != VALUE_OBJECT || value_kind(list) != VALUE_ARRAY)
		return fault(reading, "an object with a list \"hooks\" is wanted", err);
	if (!text_of(reading, group, "matcher", MATCHER_MAX, &reading->matcher, err))
		return false;
	if (reading->matcher == NULL)
		reading->matcher = "";
	for (; reading->at < value_count(list); reading->at++) {
		if (!take_hook(reading, value_item(list, reading->at), err))
			return false;
	}
	return true;
}

/* Is a hook of GROUPS one that must not be missing? */
static bool has_required(const struct value *groups)
{
	for (size_t i = 0; i < value_count(groups); i++) {
		const struct value *list = value_member(value_item(groups, i), "hooks");

		for (size_t j = 0; j < value_count(list); j++) {
			if (value_is_true(value_member(value_item(list, j), "required")))
				return true;
		}
	}
	return false;
}

static bool take_moment(struct reading *reading, const struct value *groups, struct err *err)
{
	reading->group = reading->at = 0;
	if (!hook_kind_parse(reading->moment, &reading->kind)) {
		if (reading->own && has_required(groups))
			return fault(reading, "unknown moment of a required hook", err);
		note(reading, "unknown moment", false);
		return true;
	}
	if (value_kind(groups) != VALUE_ARRAY)
		return fault(reading, "a list is wanted", err);
	for (; reading->group < value_count(groups); reading->group++) {
		if (!take_group(reading, value_item(groups, reading->group), err))
			return false;
	}
	return true;
}

bool hooks_add(struct hooks *hooks, const struct value *map, const char *source, bool own,
	       struct err *err)
{
	const size_t count = hooks->count, note_count = hooks->note_count;
	struct reading reading = {
		.hooks = hooks,
		.source = arena_copy(&hooks->arena, str_of(source)),
		.own = own,
	};

	if (map != NULL && value_kind(map) != VALUE_OBJECT)
		return err_set(err, EINVAL, "%s: \"hooks\" is an object", source);
	for (void *at = value_first(map); at != NULL; at = value_next(map, at)) {
		reading.moment = value_key(at);
		if (!take_moment(&reading, value_at(at), err)) {
			cut_back(hooks, count, note_count);
			return false;
		}
	}
	return true;
}

bool hooks_parse(struct hooks *hooks, struct str text, const char *source, bool own,
		 struct err *err)
{
	auto_value struct value *root = NULL;

	if (text.size > HOOKS_TEXT_MAX)
		return err_set(err, EFBIG, "%s: over %d bytes", source, HOOKS_TEXT_MAX);
	return value_parse(text, VALUE_COMMENTS, &root, err)
		       ? hooks_add(hooks, value_member(root, "hooks"), source, own, err)
		       : err_while(err, "%s", source);
}

bool hooks_has(const struct hooks *hooks, enum hook_kind kind)
{
	for (size_t i = 0; hooks != NULL && i < hooks->count; i++) {
		if (hooks->items[i].kind == kind)
			return true;
	}
	return false;
}

/* Is NAME one of LIST, "A|B"? */
static bool is_named(const char *list, const char *name)
{
	const size_t size = strlen(name);

	for (;;) {
		const size_t length = strcspn(list, "|");

		if (length == size && strncmp(list, name, size) == 0)
			return true;
		if (list[length] == '\0')
			return false;
		list += length + 1;
	}
}

static bool is_found(const struct regex *pattern, const char *name)
{
	struct regex_scratch *scratch = regex_scratch_new(pattern);
	struct regex_span span;
	/* A pattern that needs too much is one that fits: a guard must not fall away. */
	const bool found =
		regex_find(pattern, scratch, str_of(name), 0, &span) != REGEX_NONE;

	regex_scratch_free(scratch);
	return found;
}

bool hook_fits(const struct hook *hook, const char *const *names)
{
	if (is_everything(hook->matcher) || names[0] == NULL)
		return true;
	for (; *names != NULL; names++) {
		if (hook->pattern != NULL ? is_found(hook->pattern, *names)
					  : is_named(hook->matcher, *names))
			return true;
	}
	return false;
}

double hook_timeout_s(const struct hook *hook)
{
	const double asked = hook->timeout_s;

	switch (hook->kind) {
	case HOOK_PROMPT:
		return asked > 0 ? asked : timeout_prompt_s;
	case HOOK_NOTIFICATION:
		return asked > 0 && asked < timeout_notification_s
			       ? asked
			       : timeout_notification_s;
	case HOOK_SESSION_ENDED:
		return asked > 0 && asked < timeout_end_s ? asked : timeout_end_s;
	default:
		return asked > 0 ? asked : timeout_s;
	}
}
