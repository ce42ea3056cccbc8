/*
 * keys_check: does an object fit the key table? The first thing that does not is named.
 */
#include "policy/keys.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "policy/network.h"
#include "policy/policy.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum {
	POINTER_MAX = 512, /* bytes of a JSON pointer shown */
	QUOTED_MAX = 64,   /* bytes of a wrong word quoted */
	ITEMS_MAX = 1024,  /* entries of one list: a policy is written by hand */
	ENTRIES_MAX = 256, /* agents */
	/* of a variable; the kernel takes no longer one (MAX_ARG_STRLEN) */
	VARIABLE_MAX = (128 << 10) - 1,
};

/* POINTER with KEY below it (RFC 6901). */
static void pointer_key(struct buf *out, const char *pointer, const char *key)
{
	(void)buf_addf(out, "%s/", pointer);
	for (const char *at = key; *at && out->size < POINTER_MAX; at++) {
		if (*at == '~' || *at == '/')
			(void)buf_addf(out, "~%c", *at == '~' ? '0' : '1');
		else
			(void)buf_addc(out, *at);
	}
}

static bool wrong_kind(const char *pointer, const char *wanted, const struct value *value,
		       struct err *err)
{
	return err_set(err, EINVAL, "%s: must be %s, not %s", pointer, wanted,
		       value_kind_name(value_kind(value)));
}

static bool check_text(const char *pointer, const struct value *value, size_t max,
		       struct err *err)
{
	struct str text = value_str(value);

	if (value_kind(value) != VALUE_STRING)
		return wrong_kind(pointer, "text", value, err);
	if (memchr(text.data ? text.data : "", '\0', text.size))
		return err_set(err, EINVAL, "%s: may not hold a NUL character", pointer);
	if (text.size > max)
		return err_set(err, EINVAL, "%s: is %zu bytes long, at most %zu are taken",
			       pointer, text.size, max);
	return true;
}

static bool check_filled(const char *pointer, const struct value *value, size_t max,
			 struct err *err)
{
	if (!check_text(pointer, value, max, err))
		return false;
	if (value_str(value).size == 0)
		return err_set(err, EINVAL, "%s: may not be empty", pointer);
	return true;
}

static bool check_list(const char *pointer, const struct value *value, size_t max,
		       struct err *err)
{
	if (value_kind(value) != VALUE_ARRAY)
		return wrong_kind(pointer, "a list of texts", value, err);
	if (value_count(value) > ITEMS_MAX)
		return err_set(err, EINVAL, "%s: has %zu entries, at most %d are taken",
			       pointer, value_count(value), ITEMS_MAX);
	for (size_t i = 0; i < value_count(value); i++) {
		struct buf below;
		bool fine;

		buf_init(&below, 2 * POINTER_MAX);
		(void)buf_addf(&below, "%s/%zu", pointer, i);
		fine = check_filled(below.data, value_item(value, i), max, err);
		buf_fini(&below);
		if (!fine)
			return false;
	}
	return true;
}

/* An entry is never quoted: it may hold a key, even where a name was meant. */
static bool check_variables(const char *pointer, const struct value *value, struct err *err)
{
	if (!check_list(pointer, value, VARIABLE_MAX, err))
		return false;
	for (size_t i = 0; i < value_count(value); i++) {
		struct err why;

		if (!policy_check_variable(value_text(value_item(value, i)), &why))
			return err_set(err, EINVAL, "%s/%zu: %s", pointer, i, why.text);
	}
	return true;
}

/* Each entry by its grammar, and all together by what one cell can have. */
static bool check_hosts(const char *pointer, const struct value *value, struct err *err)
{
	size_t count = value_count(value);

	if (!check_list(pointer, value, NETWORK_TEXT_MAX, err))
		return false;
	if (count > NETWORK_ENTRIES_MAX)
		return err_set(err, EINVAL, "%s: has %zu entries, at most %d are taken",
			       pointer, count, NETWORK_ENTRIES_MAX);
	auto_free struct network_entry *entries = memory_array(count + 1, sizeof(*entries));
	for (size_t i = 0; i < count; i++) {
		struct str text = value_str(value_item(value, i));

		if (!network_parse_entry(text, &entries[i], err))
			return err_while(err, "%s/%zu: \"%.*s\"", pointer, i, QUOTED_MAX,
					 text.data);
	}
	return network_check_ports(entries, count, err) || err_while(err, "%s", pointer);
}

static bool check_resolver(const char *pointer, const struct value *value, struct err *err)
{
	struct network_host host;
	uint16_t port;

	if (!check_filled(pointer, value, NETWORK_TEXT_MAX, err))
		return false;
	if (!network_parse_authority(value_str(value), NETWORK_PORT_DNS, &host, &port, err))
		return err_while(err, "%s", pointer);
	return host.kind != NETWORK_NAME ||
	       err_set(err, EINVAL, "%s: must be an address, with or without :port",
		       pointer);
}

static bool check_number(const struct key *key, const char *pointer,
			 const struct value *value, struct err *err)
{
	bool whole = key->kind == KEY_COUNT;
	double number = value_number(value);

	if (!value_is_number(value))
		return wrong_kind(pointer, whole ? "a whole number" : "a number", value,
				  err);
	if (whole && value_kind(value) != VALUE_INTEGER)
		return err_set(err, EINVAL, "%s: must be a whole number, not %.15g",
			       pointer, number);
	if (!(number >= key->min && number <= key->max))
		return err_set(err, ERANGE, "%s: must be %.15g to %.15g, not %.15g",
			       pointer, key->min, key->max, number);
	return true;
}

static bool check_size(const struct key *key, const char *pointer,
		       const struct value *value, struct err *err)
{
	uint64_t bytes = 0;
	struct err why;

	if (value_kind(value) == VALUE_INTEGER) {
		bytes = (uint64_t)value_integer(value); /* one below 0 is too large as well */
	} else if (value_kind(value) != VALUE_STRING) {
		return wrong_kind(pointer, "a size (bytes, or text like \"512M\")", value,
				  err);
	} else if (!check_filled(pointer, value, QUOTED_MAX, err)) {
		return false;
	} else if (!text_parse_size(value_text(value), &bytes, &why)) {
		return err_set(err, EINVAL, "%s: %s", pointer, why.text);
	}
	if ((double)bytes >= key->min && (double)bytes <= key->max)
		return true;
	struct buf range;
	buf_init(&range, QUOTED_MAX);
	keys_print_size(key->min, &range);
	(void)buf_adds(&range, " to ");
	keys_print_size(key->max, &range);
	err_set(err, ERANGE, "%s: must be %s", pointer, range.data);
	buf_fini(&range);
	return false;
}

static bool check_choice(const struct key *key, const char *pointer,
			 const struct value *value, struct err *err)
{
	if (value_kind(value) != VALUE_STRING)
		return wrong_kind(pointer, "text", value, err);
	return str_among(key->choices, value_str(value)) ||
	       err_set(err, EINVAL, "%s: must be one of: %s", pointer, key->choices);
}

static bool check_entry_name(const struct key *key, const char *name, struct err *err)
{
	size_t size = strlen(name);

	if (key->max == 0)
		return config_check_name(name, err);
	return (size > 0 && size <= (size_t)key->max) ||
	       err_set(err, EINVAL, "a name has 1 to %.0f bytes, not %zu", key->max, size);
}

static bool check_entries(const struct key *key, const char *pointer,
			  const struct value *value, struct err *err)
{
	if (value_kind(value) != VALUE_OBJECT)
		return wrong_kind(pointer, "an object", value, err);
	if (value_count(value) > ENTRIES_MAX)
		return err_set(err, EINVAL, "%s: has %zu entries, at most %d are taken",
			       pointer, value_count(value), ENTRIES_MAX);
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		struct buf below;
		bool fine;

		if (!check_entry_name(key, value_key(at), err))
			return err_while(err, "%s", pointer);
		buf_init(&below, 2 * POINTER_MAX);
		pointer_key(&below, pointer, value_key(at));
		fine = keys_check(key->rows, value_at(at), below.data, err);
		buf_fini(&below);
		if (!fine)
			return false;
	}
	return true;
}

/* NAME: a command, or an object that has exactly one of `command` and `run_tests`. */
static bool check_one(const struct key *key, const char *pointer,
		      const struct value *value, struct err *err)
{
	bool command = value_member(value, "command") != NULL;

	if (value_kind(value) == VALUE_STRING)
		return check_filled(pointer, value, (size_t)key->max, err);
	if (!keys_check(key->rows, value, pointer, err))
		return false;
	if (command == (value_member(value, "run_tests") != NULL))
		return err_set(err, EINVAL,
			       "%s: must have one of \"command\" and \"run_tests\"",
			       pointer);
	if (command && value_str(value_member(value, "command")).size == 0)
		return err_set(err, EINVAL, "%s/command: may not be empty", pointer);
	return true;
}

static bool check_checks(const struct key *key, const char *pointer,
			 const struct value *value, struct err *err)
{
	if (value_kind(value) != VALUE_OBJECT)
		return wrong_kind(pointer, "an object", value, err);
	if (value_count(value) > CONFIG_CHECKS_MAX)
		return err_set(err, EINVAL, "%s: has %zu entries, at most %d are taken",
			       pointer, value_count(value), CONFIG_CHECKS_MAX);
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		struct buf below;
		bool fine;

		buf_init(&below, 2 * POINTER_MAX);
		pointer_key(&below, pointer, value_key(at));
		fine = (value_key(at)[0] != '\0' &&
			strlen(value_key(at)) <= CONFIG_NAME_MAX) ||
		       err_set(err, EINVAL, "%s: the name of a check has 1 to %d bytes",
			       pointer, CONFIG_NAME_MAX);
		fine = fine && check_one(key, below.data, value_at(at), err);
		buf_fini(&below);
		if (!fine)
			return false;
	}
	return true;
}

static bool check_objects(const struct key *key, const char *pointer,
			  const struct value *value, struct err *err)
{
	bool fine = true;

	if (value_kind(value) != VALUE_ARRAY)
		return wrong_kind(pointer, "a list of objects", value, err);
	if (value_count(value) > ITEMS_MAX)
		return err_set(err, EINVAL, "%s: has %zu entries, at most %d are taken",
			       pointer, value_count(value), ITEMS_MAX);
	for (size_t i = 0; fine && i < value_count(value); i++) {
		struct buf below;

		buf_init(&below, 2 * POINTER_MAX);
		(void)buf_addf(&below, "%s/%zu", pointer, i);
		fine = keys_check(key->rows, value_item(value, i), below.data, err);
		buf_fini(&below);
	}
	return fine;
}

/* Texts stand for objects whose reader knows what is in them. */
static bool check_sources(const struct key *key, const char *pointer,
			  const struct value *value, struct err *err)
{
	bool fine = true;

	if (value_kind(value) != VALUE_ARRAY)
		return wrong_kind(pointer, "a list of texts or objects", value, err);
	if (value_count(value) > ITEMS_MAX)
		return err_set(err, EINVAL, "%s: has %zu entries, at most %d are taken",
			       pointer, value_count(value), ITEMS_MAX);
	for (size_t i = 0; fine && i < value_count(value); i++) {
		const struct value *item = value_item(value, i);
		struct buf below;

		buf_init(&below, 2 * POINTER_MAX);
		(void)buf_addf(&below, "%s/%zu", pointer, i);
		fine = value_kind(item) == VALUE_STRING
			       ? check_filled(below.data, item, (size_t)key->max, err)
			       : keys_check(key->rows, item, below.data, err);
		buf_fini(&below);
	}
	return fine;
}

static bool check_commands(const struct key *key, const char *pointer,
			   const struct value *value, struct err *err)
{
	if (value_kind(value) == VALUE_OBJECT)
		return keys_check(key->rows, value, pointer, err) &&
		       commands_check(value, pointer, err);
	if (value_kind(value) != VALUE_STRING)
		return wrong_kind(pointer, "text or an object", value, err);
	return check_choice(key, pointer, value, err);
}

/* Each of a list. */
static bool check_choices(const struct key *key, const char *pointer,
			  const struct value *list, struct err *err)
{
	for (size_t i = 0; i < value_count(list); i++) {
		if (!check_choice(key, pointer, value_item(list, i), err))
			return false;
	}
	return true;
}

static bool check_value(const struct key *key, const char *pointer,
			const struct value *value, struct err *err)
{
	switch (key->kind) {
	case KEY_TEXT:
		return check_text(pointer, value, (size_t)key->max, err);
	case KEY_NAMES:
		return check_list(pointer, value, CONFIG_NAME_MAX, err) &&
		       (!key->choices || check_choices(key, pointer, value, err));
	case KEY_VARIABLES:
		return check_variables(pointer, value, err);
	case KEY_FLAG:
		return value_kind(value) == VALUE_BOOLEAN ||
		       wrong_kind(pointer, "true or false", value, err);
	case KEY_HOSTS:
		return check_hosts(pointer, value, err);
	case KEY_RESOLVER:
		return check_resolver(pointer, value, err);
	case KEY_PATH:
		return check_filled(pointer, value, PATH_MAX - 1, err);
	case KEY_PATHS:
		return check_list(pointer, value, PATH_MAX - 1, err);
	case KEY_COUNT:
	case KEY_SECONDS:
	case KEY_NUMBER:
		return check_number(key, pointer, value, err);
	case KEY_SIZE:
		return check_size(key, pointer, value, err);
	case KEY_CHOICE:
		return check_choice(key, pointer, value, err);
	case KEY_ROWS:
		return keys_check(key->rows, value, pointer, err);
	case KEY_ENTRIES:
		return check_entries(key, pointer, value, err);
	case KEY_TEXTS:
		return check_list(pointer, value, (size_t)key->max, err);
	case KEY_LIST:
		return check_objects(key, pointer, value, err);
	case KEY_SOURCES:
		return check_sources(key, pointer, value, err);
	case KEY_VALUES:
		return value_kind(value) == VALUE_OBJECT ||
		       wrong_kind(pointer, "an object", value, err);
	case KEY_CHECKS:
		return check_checks(key, pointer, value, err);
	case KEY_COMMANDS:
		return check_commands(key, pointer, value, err);
	}
	return false;
}

static bool refuse_unknown(const struct key *rows, const char *name, const char *pointer,
			   struct err *err)
{
	struct buf list, word;
	size_t count = 0;
	const char *nearest;

	while (rows[count].name)
		count++;
	auto_free const char **names = memory_array(count + 1, sizeof(*names));

	buf_init(&list, ERR_TEXT_MAX);
	buf_init(&word, 4 * QUOTED_MAX);
	for (size_t i = 0; i < count; i++) {
		names[i] = rows[i].name;
		(void)buf_addf(&list, "%s%s", i ? ", " : "", rows[i].name);
	}
	nearest = text_nearest(name, names);
	(void)text_clean(str_part(str_of(name), 0,
				  text_character_border(str_of(name), QUOTED_MAX)),
			 &word);
	(void)err_set(err, EINVAL, "%s: there is no key \"%s\"%s%s%s; the keys are %s",
		      pointer[0] ? pointer : "/", word.data,
		      nearest ? " (did you mean \"" : "", nearest ? nearest : "",
		      nearest ? "\"?)" : "", list.data);
	buf_fini(&word);
	buf_fini(&list);
	return false;
}

const struct key *keys_find(const struct key *rows, const char *name)
{
	for (const struct key *key = rows; key->name; key++) {
		if (strcmp(key->name, name) == 0)
			return key;
	}
	return NULL;
}

bool keys_check(const struct key *rows, const struct value *object, const char *pointer,
		struct err *err)
{
	if (value_kind(object) != VALUE_OBJECT)
		return wrong_kind(pointer[0] ? pointer : "/", "an object", object, err);
	for (void *at = value_first(object); at; at = value_next(object, at)) {
		const struct key *key = keys_find(rows, value_key(at));
		struct buf below;
		bool fine;

		if (!key)
			return refuse_unknown(rows, value_key(at), pointer, err);
		buf_init(&below, 2 * POINTER_MAX);
		pointer_key(&below, pointer, key->name);
		fine = check_value(key, below.data, value_at(at), err);
		buf_fini(&below);
		if (!fine)
			return false;
	}
	return true;
}
