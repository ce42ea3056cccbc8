/* keys_store: checked values into the structs that the key table names. */
#include "policy/keys.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "policy/commands.h"
#include "policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void store_names(const struct value *value, struct policy_names *names)
{
	names->count = value_count(value);
	names->items = memory_array(names->count + 1, sizeof(*names->items));
	names->given = true;
	for (size_t i = 0; i < names->count; i++)
		names->items[i] = memory_copy(value_text(value_item(value, i)));
}

static void store_paths(const struct value *value, struct policy_paths *paths)
{
	paths->count = value_count(value);
	paths->items = memory_array(paths->count + 1, sizeof(*paths->items));
	paths->given = true;
	for (size_t i = 0; i < paths->count; i++)
		paths->items[i].text = memory_copy(value_text(value_item(value, i)));
}

static uint64_t size_of(const struct value *value)
{
	uint64_t bytes = (uint64_t)value_integer(value);

	bool fine = value_kind(value) != VALUE_STRING ||
		    text_parse_size(value_text(value), &bytes, NULL);

	assert(fine); /* keys_check let it pass */
	return fine ? bytes : 0;
}

static unsigned choice_of(const struct key *key, const struct value *value)
{
	struct str choices = str_of(key->choices), choice;

	for (unsigned index = 0; str_next_word(&choices, &choice); index++) {
		if (str_equal(value_str(value), choice))
			return index;
	}
	abort(); /* keys_check let it pass */
}

static void store_value(const struct key *key, const struct value *value,
			enum key_home home, void *place)
{
	switch (key->kind) {
	case KEY_TEXT:
	case KEY_RESOLVER:
		*(char **)place = memory_copy(value_text(value));
		break;
	case KEY_FLAG:
		*(bool *)place = value_is_true(value);
		break;
	case KEY_NAMES:
	case KEY_VARIABLES:
	case KEY_HOSTS:
		store_names(value, place);
		break;
	case KEY_PATH:
		((struct policy_path *)place)->text = memory_copy(value_text(value));
		break;
	case KEY_PATHS:
		store_paths(value, place);
		break;
	case KEY_COUNT:
		*(uint64_t *)place = (uint64_t)value_integer(value);
		break;
	case KEY_SIZE:
		*(uint64_t *)place = size_of(value);
		break;
	case KEY_SECONDS:
	case KEY_NUMBER:
		*(double *)place = value_number(value);
		break;
	case KEY_CHOICE:
		*(unsigned *)place = choice_of(key, value);
		break;
	case KEY_ROWS:
		keys_store(key->rows, value, home, place);
		break;
	case KEY_COMMANDS:
		*(struct commands **)place = commands_new(value);
		break;
	case KEY_CHECKS:
		*(struct value **)place = value_copy(value);
		break;
	case KEY_ENTRIES:
	case KEY_TEXTS:
	case KEY_LIST:
	case KEY_SOURCES:
	case KEY_VALUES:
		break;
	}
}

void keys_store(const struct key *rows, const struct value *object, enum key_home home,
		void *target)
{
	for (const struct key *key = rows; key->name; key++) {
		const struct value *value = value_member(object, key->name);

		if (value && key->home == home)
			store_value(key, value, home, (char *)target + key->offset);
	}
}
