/* allowed: takes the entries apart, and compares calls with them. */

#include "extend/allowed.h"

#include "base/str.h"
#include "base/text/text.h"
#include "extend/hook_call.h"
#include "policy/command.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ENTRIES_MAX = 256 };

/* The size of the entry at the beginning of TEXT: parentheses hold blanks and commas together. */
static size_t entry_size(struct str text)
{
	size_t size = 0, depth = 0;

	for (; size < text.size; size++) {
		const char c = text.data[size];

		if (depth == 0 && strchr(", \t\n", c) != NULL)
			break;
		if (c == '(')
			depth++;
		else if (c == ')' && depth > 0)
			depth--;
	}
	return size;
}

static void take_text(struct value *names, struct str text)
{
	while (text.size > 0 && value_count(names) < ENTRIES_MAX) {
		const size_t size = entry_size(text);

		if (size > 0)
			value_append(names, value_new_str(str_part(text, 0, size)));
		text = str_part(text, size > 0 ? size : 1, SIZE_MAX);
	}
}

void allowed_take(struct allowed *allowed, const struct value *matter)
{
	const struct value *value = value_member(matter, "allowed-tools");

	*allowed = (struct allowed){0};
	if (value == NULL || value_kind(value) == VALUE_NULL)
		return;
	allowed->names = value_new_array();
	take_text(allowed->names, value_str(value));
	for (size_t i = 0; i < value_count(value); i++)
		take_text(allowed->names, value_str(value_item(value, i)));
}

void allowed_fini(struct allowed *allowed)
{
	value_free(allowed->names);
	*allowed = (struct allowed){0};
}

/* Does PATTERN, the name in an entry, mean the tool NAME? */
static bool name_fits(struct str pattern, const char *name)
{
	static const char server[] = "mcp__";
	const struct str text = str_of(name);

	if (str_ends(pattern, STR("*")))
		return str_starts(text, str_part(pattern, 0, pattern.size - 1));
	if (str_equal(pattern, text))
		return true;
	return str_starts(pattern, STR(server)) && str_starts(text, pattern) &&
	       str_starts(str_part(text, pattern.size, SIZE_MAX), STR("__"));
}

/* Do the words of PART fit WORDS? A rest of PART is fine where OPEN. */
static bool words_fit(const struct command_part *part, struct str words, bool open)
{
	struct str word;
	size_t i = 0;

	for (; str_next_word(&words, &word); i++) {
		if (i == part->argc || !str_is(word, part->argv[i]))
			return false;
	}
	return i > 0 && (open || i == part->argc);
}

/* Does RULE, the text in the parentheses of Bash, let PART run? */
static bool rule_fits(struct str rule, const struct command_part *part)
{
	static const char *const rests[] = {":*", " *"};

	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
		if (str_ends(rule, str_of(rests[i])))
			return words_fit(part,
					 str_part(rule, 0, rule.size - strlen(rests[i])),
					 true);
	}
	return words_fit(part, rule, false);
}

/* An entry: "NAME" or "NAME(RULE)". */
struct entry {
	struct str name, rule;
	bool has_rule;
};

static struct entry entry_of(const struct value *text)
{
	const struct str all = value_str(text);
	const size_t open = str_find(all, STR("("), 0);

	if (open == SIZE_MAX)
		return (struct entry){.name = all};
	return (struct entry){
		.name = str_part(all, 0, open),
		.rule = str_part(all, open + 1,
				 all.size - open - 1 - (str_ends(all, STR(")")) ? 1 : 0)),
		.has_rule = true,
	};
}

/* Is there an entry with one of the names of CALL, for PART of its commands (NULL: whole)? */
static bool is_named(const struct allowed *allowed, const struct hook_call *call,
		     const struct command_part *part)
{
	for (size_t i = 0; i < value_count(allowed->names); i++) {
		const struct entry entry = entry_of(value_item(allowed->names, i));

		if (entry.has_rule && (part == NULL || !rule_fits(entry.rule, part)))
			continue;
		for (size_t j = 0; call->names[j] != NULL; j++) {
			if (name_fits(entry.name, call->names[j]))
				return true;
		}
	}
	return false;
}

/* Does each command of CALL, one of bash, fit an entry? */
static bool commands_fit(const struct allowed *allowed, const struct hook_call *call,
			 const struct value *arguments)
{
	struct command command = {0};
	bool fits;

	fits = command_parse(&command, value_str(value_member(arguments, "command"))) &&
	       command.count > 0;
	for (size_t i = 0; fits && i < command.count; i++)
		fits = is_named(allowed, call, &command.parts[i]);
	command_fini(&command);
	return fits;
}

bool allowed_has(const struct allowed *allowed, const struct tool *tool,
		 const struct value *arguments)
{
	struct hook_calls calls = {0};
	bool has = true;

	if (allowed->names == NULL)
		return true;
	hook_calls_of(tool, arguments, "/", &calls);
	for (size_t i = 0; has && i < calls.count; i++) {
		has = is_named(allowed, &calls.items[i], NULL) ||
		      (strcmp(tool->name, "bash") == 0 &&
		       commands_fit(allowed, &calls.items[i], arguments));
	}
	has = has && calls.count > 0;
	hook_calls_fini(&calls);
	return has;
}

void allowed_print(const struct allowed *allowed, struct buf *out)
{
	for (size_t i = 0; i < value_count(allowed->names); i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		text_add_name(out, value_str(value_item(allowed->names, i)));
	}
	if (value_count(allowed->names) == 0)
		(void)buf_adds(out, "none");
}
