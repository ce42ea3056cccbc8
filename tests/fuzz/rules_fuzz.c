/*
 * rules_fuzz: the bytes as rules.json, and as a command. What is read is printed and read again
 * as the same, and a rule for a command lets in each part of the command.
 */
#include "policy/rules.h"

#include "base/memory.h"
#include "base/value.h"
#include "policy/command.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(struct str text)
{
	struct rules rules, again;
	struct err err = {0};
	struct buf printed;

	if (rules_parse(text, "rules.json", &rules, &err)) {
		buf_init(&printed, 8 * RULES_TEXT_MAX);
		assert(rules_print(&rules, &printed));
		assert(rules_parse(buf_str(&printed), "rules.json", &again, &err));
		assert(again.count == rules.count);
		for (size_t i = 0; i < rules.count; i++) {
			assert(rules_find(&again, &rules.items[i]) == i);
			assert(rules_check(rules.items[i].kind,
					   str_of(rules.items[i].rule), &err));
		}
		while (again.count > 0)
			rules_remove(&again, again.count / 2);
		rules_fini(&again);
		buf_fini(&printed);
	} else {
		assert(err.text[0] != '\0');
	}
	rules_fini(&rules);
}

static void check_command(struct str text)
{
	auto_value struct value *list = rules_of_text(text);
	struct policy_names always = {0};
	struct command command;

	if (list == NULL)
		return;
	assert(command_parse(&command, text) && command.count > 0);
	always.items = memory_array(value_count(list), sizeof(*always.items));
	for (size_t i = 0; i < value_count(list); i++) {
		assert(rules_check(RULE_COMMAND, value_str(value_item(list, i)), NULL));
		always.items[always.count++] =
			(char *)(uintptr_t)value_text(value_item(list, i));
	}
	for (size_t i = 0; i < command.count; i++) {
		assert(rules_let(&always, command.parts[i].argv));
		assert(!command_is_runner(command.parts[i].argv[0]));
	}
	free(always.items);
	command_fini(&command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};

	check_file(text);
	check_command(text);
	return 0;
}
