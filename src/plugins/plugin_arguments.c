/* plugin_arguments: the three modes; see plugin_arguments.h. */
#include "plugins/plugin_arguments.h"

#include "base/buf.h"
#include "plugins/describe.h"

#include <errno.h>
#include <string.h>

struct building {
	struct arena *arena;
	const char **argv;
	size_t max, count;
};

static bool add_word(struct building *building, const char *name, struct str word,
		     struct err *err)
{
	if (word.size > 0 && memchr(word.data, '\0', word.size))
		return err_set(err, EINVAL, "\"%s\" may not hold a NUL character", name);
	if (word.size >= PLUGIN_ARGUMENT_MAX)
		return err_set(err, E2BIG,
			       "\"%s\" is %zu bytes long, and one argument of a program is at most "
			       "%d: send less (or its author sets args_mode to \"json\", which has "
			       "no such limit)",
			       name, word.size, PLUGIN_ARGUMENT_MAX - 1);
	if (building->count >= building->max)
		return err_set(err, E2BIG, "over %zu words", building->max);
	building->argv[building->count++] = arena_copy(building->arena, word);
	return true;
}

/*
 * A text as it is, all else as compact JSON: true, 5, 0.1, [1,2]. A number without a fraction
 * has none here: 3.0 fits an integer, and scripts look for digits.
 */
static bool add_value(struct building *building, const char *name,
		      const struct value *value, struct err *err)
{
	struct buf text;
	bool ok;

	if (value_kind(value) == VALUE_STRING)
		return add_word(building, name, value_str(value), err);
	buf_init(&text, PLUGIN_ARGUMENT_MAX);
	ok = value_print(value, 0, &text) ||
	     err_set(err, E2BIG,
		     "\"%s\" is over %d bytes as JSON, more than one argument of a program can "
		     "be: send less (or its author sets args_mode to \"json\")",
		     name, PLUGIN_ARGUMENT_MAX - 1);
	if (value_kind(value) == VALUE_REAL && str_ends(buf_str(&text), STR(".0")))
		buf_truncate(&text, text.size - strlen(".0"));
	ok = ok && add_word(building, name, buf_str(&text), err);
	buf_fini(&text);
	return ok;
}

static bool add_flag(struct building *building, const char *name,
		     const struct value *value, struct err *err)
{
	struct buf flag;
	bool negative = value_kind(value) == VALUE_BOOLEAN && !value_is_true(value);
	bool ok;

	if (value == NULL || value_kind(value) == VALUE_NULL)
		return true;
	buf_init(&flag, PLUGIN_ARGUMENT_MAX);
	(void)buf_addf(&flag, "--%s%s", negative ? "no-" : "", name);
	ok = add_word(building, name, buf_str(&flag), err);
	buf_fini(&flag);
	return ok && (value_kind(value) == VALUE_BOOLEAN ||
		      add_value(building, name, value, err));
}

static bool add_flags(struct building *building, const struct value *order,
		      const struct value *arguments, struct err *err)
{
	for (size_t i = 0; i < value_count(order); i++) {
		const char *name = value_text(value_item(order, i));

		if (!add_flag(building, name, value_member(arguments, name), err))
			return false;
	}
	/*
	 * Add the arguments that the schema allows without naming them. Such a name may
	 * hold no blank: one word is one flag.
	 */
	for (void *at = value_first(arguments); at; at = value_next(arguments, at)) {
		const char *name = value_key(at);

		if (value_has_text(order, name))
			continue;
		if (name[0] == '\0' || strpbrk(name, " \t\r\n=") != NULL)
			return err_set(err, EINVAL,
				       "\"%.64s\" cannot be the name of a flag", name);
		if (!add_flag(building, name, value_at(at), err))
			return false;
	}
	return true;
}

static const struct value *position_value(const struct value *position,
					  const struct value *arguments)
{
	const struct value *given =
		value_member(arguments, value_text(value_member(position, "name")));

	return given != NULL && value_kind(given) != VALUE_NULL
		       ? given
		       : value_member(position, "default");
}

/* A gap that nothing fills is an empty word, unless nothing follows either. */
static bool add_positions(struct building *building, const struct value *positional,
			  const struct value *arguments, struct err *err)
{
	size_t last = value_count(positional);

	while (last > 0 &&
	       position_value(value_item(positional, last - 1), arguments) == NULL &&
	       !value_is_true(value_member(value_item(positional, last - 1), "required")))
		last--;
	for (size_t i = 0; i < last; i++) {
		const struct value *position = value_item(positional, i);
		const char *name = value_text(value_member(position, "name"));
		const struct value *value = position_value(position, arguments);

		if (value == NULL && value_is_true(value_member(position, "required")))
			return err_set(err, EINVAL, "\"%s\" is missing", name);
		if (value == NULL ? !add_word(building, name, STR(""), err)
				  : !add_value(building, name, value, err))
			return false;
	}
	return true;
}

bool plugin_arguments_build(const struct plugin_argument_rules *rules,
			    const struct value *arguments, struct arena *arena,
			    const char **argv, size_t max, size_t *count,
			    struct buf *input, struct err *err)
{
	struct building building = {arena, argv, max, *count};
	bool ok = false;

	switch (rules->mode) {
	case PLUGIN_FLAGS:
		ok = add_flags(&building, rules->order, arguments, err);
		break;
	case PLUGIN_POSITIONAL:
		ok = add_positions(&building, rules->positional, arguments, err);
		break;
	case PLUGIN_TOOLBOX_JSON:
		ok = value_print(arguments, 0, input) ||
		     err_set(err, E2BIG, "the arguments are too large");
		break;
	case PLUGIN_TOOLBOX_TEXT:
		ok = toolbox_lines(rules->order, arguments, input, err);
		break;
	case PLUGIN_MODES:
		break;
	case PLUGIN_JSON:
		ok = add_word(&building, "", STR("--args-json"), err) &&
		     (value_print(arguments, 0, input) ||
		      err_set(err, E2BIG, "the arguments are too large"));
		break;
	}
	*count = building.count;
	return ok;
}
