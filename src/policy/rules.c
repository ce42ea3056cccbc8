/* rules: the text of rules.json, and what a rule lets in. */

#include "policy/rules.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/command.h"
#include "policy/config.h"
#include "policy/network.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	SINCE_MAX = 10, /* of a day: 2026-11-29 */
	PLACE_MAX = 64,
};

static const char *const kinds[RULE_KINDS] = {
	[RULE_COMMAND] = "command",
	[RULE_HOST] = "host",
	[RULE_READ] = "read",
	[RULE_WRITE] = "write",
};

static const struct row rule_rows[] = {
	{"agent", ROW_BYTES, true, "The agent.", .min = 1, .max = CONFIG_NAME_MAX},
	{"folder", ROW_BYTES, true, "The workspace.", .min = 1, .max = PATH_MAX - 1},
	{"kind", ROW_CHOICE, true, "What is let in.", .choices = "command host read write"},
	{"rule", ROW_BYTES, true, "Which one.", .min = 1, .max = PATH_MAX - 1},
	{"since", ROW_BYTES, false, "The day of the answer.", .max = SINCE_MAX},
	{0},
};

static const struct row file_rows[] = {
	{"rules", ROW_LIST, true, "The rules.", .max = RULES_MAX, .rows = rule_rows},
	{0},
};

/*
 * First words by which a program runs what the words behind it say: scripts of a project,
 * packages, a text.
 */
static const char runs_words[] = "exec x dlx run run-script eval shell repl script sh";

const char *rules_kind_name(enum rule_kind kind)
{
	return kinds[kind];
}

bool rules_kind_of(struct str effect, enum rule_kind *kind)
{
	/* The question has another word for a host. */
	if (str_is(effect, "network"))
		effect = STR("host");
	for (int i = 0; i < RULE_KINDS; i++) {
		if (str_is(effect, kinds[i])) {
			*kind = (enum rule_kind)i;
			return true;
		}
	}
	return false;
}

/* Are these words of a command that rules_add_words would make? */
static bool check_words(struct str text, struct err *err)
{
	auto_free char *copy = memory_copy_str(text);
	char *blank = strchr(copy, ' ');
	const char *argv[] = {copy, blank != NULL ? blank + 1 : NULL, NULL};
	struct buf words;

	if (blank != NULL)
		*blank = '\0';
	buf_init(&words, PATH_MAX);
	const bool fine = rules_add_words(argv, &words);
	buf_fini(&words);
	return fine ||
	       err_set(err, EINVAL,
		       "\"%.*s\": a rule for commands is a program and its first word, "
		       "as in \"git push\", and no program that runs what it is told",
		       (int)text.size, text.data);
}

static bool check_host(struct str text, struct err *err)
{
	struct network_host host;
	uint16_t port;

	return network_parse_authority(text, 0, &host, &port, err) && port != 0
		       ? true
		       : err_set(err, EINVAL,
				 "\"%.*s\": a rule for hosts is one host and its port",
				 (int)text.size, text.data);
}

static bool check_folder(struct str text, struct err *err)
{
	auto_free char *path = memory_copy_str(text);
	struct buf normal;

	buf_init(&normal, PATH_MAX - 1);
	const bool fine = path[0] == '/' && strlen(path) == text.size &&
			  path_normal("/", path, &normal) &&
			  strcmp(normal.data, path) == 0 && path[1] != '\0';
	buf_fini(&normal);
	return fine ||
	       err_set(err, EINVAL,
		       "\"%.*s\": a rule for folders is an absolute path without . and ..",
		       (int)text.size, text.data);
}

bool rules_check(enum rule_kind kind, struct str text, struct err *err)
{
	switch (kind) {
	case RULE_COMMAND:
		return check_words(text, err);
	case RULE_HOST:
		return check_host(text, err);
	case RULE_READ:
	case RULE_WRITE:
		break;
	}
	return check_folder(text, err);
}

static bool take_rule(const struct value *item, struct rules *rules, struct err *err)
{
	struct rule rule = {
		.agent = (char *)(uintptr_t)value_text(value_member(item, "agent")),
		.folder = (char *)(uintptr_t)value_text(value_member(item, "folder")),
		.rule = (char *)(uintptr_t)value_text(value_member(item, "rule")),
		.since = (char *)(uintptr_t)value_text(value_member(item, "since")),
	};

	(void)rules_kind_of(value_str(value_member(item, "kind")), &rule.kind);
	if (!rules_check(rule.kind, str_of(rule.rule), err))
		return false;
	return rules_add(rules, &rule) ||
	       err_set(err, E2BIG, "at most %d rules are kept", RULES_MAX);
}

bool rules_parse(struct str text, const char *source, struct rules *rules, struct err *err)
{
	auto_value struct value *object = NULL;
	const struct value *list;
	bool fine = true;

	*rules = (struct rules){0};
	if (str_trim(text).size == 0)
		return true;
	if (!value_parse(text, VALUE_COMMENTS, &object, err) ||
	    !config_check_rows(file_rows, object, err))
		return err_while(err, "%s", source);
	list = value_member(object, "rules");
	for (size_t i = 0; fine && i < value_count(list); i++)
		fine = take_rule(value_item(list, i), rules, err) ||
		       err_while(err, "%s: /rules/%zu", source, i);
	return fine;
}

static void rule_fini(struct rule *rule)
{
	free(rule->agent);
	free(rule->folder);
	free(rule->rule);
	free(rule->since);
}

void rules_fini(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		rule_fini(&rules->items[i]);
	free(rules->items);
	*rules = (struct rules){0};
}

bool rules_print(const struct rules *rules, struct buf *out)
{
	auto_value struct value *object = value_new_object();
	struct value *list = value_new_array();

	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];
		struct value *item = value_new_object();

		value_set_text(item, "agent", rule->agent);
		value_set_text(item, "folder", rule->folder);
		value_set_text(item, "kind", kinds[rule->kind]);
		value_set_text(item, "rule", rule->rule);
		if (rule->since != NULL)
			value_set_text(item, "since", rule->since);
		value_append(list, item);
	}
	value_set(object, "rules", list);
	return value_print(object, VALUE_PRETTY, out) && buf_addc(out, '\n');
}

size_t rules_find(const struct rules *rules, const struct rule *rule)
{
	size_t at = 0;

	while (at < rules->count && (rules->items[at].kind != rule->kind ||
				     strcmp(rules->items[at].agent, rule->agent) != 0 ||
				     strcmp(rules->items[at].folder, rule->folder) != 0 ||
				     strcmp(rules->items[at].rule, rule->rule) != 0))
		at++;
	return at;
}

bool rules_add(struct rules *rules, const struct rule *rule)
{
	if (rules_find(rules, rule) < rules->count)
		return true;
	if (rules->count == RULES_MAX)
		return false;
	rules->items = memory_grow(rules->items, rules->count + 1, sizeof(*rules->items));
	rules->items[rules->count++] = (struct rule){
		.agent = memory_copy(rule->agent),
		.folder = memory_copy(rule->folder),
		.rule = memory_copy(rule->rule),
		.since = rule->since != NULL ? memory_copy(rule->since) : NULL,
		.kind = rule->kind,
	};
	return true;
}

void rules_remove(struct rules *rules, size_t at)
{
	rule_fini(&rules->items[at]);
	memmove(rules->items + at, rules->items + at + 1,
		(rules->count - at - 1) * sizeof(*rules->items));
	rules->count--;
}

/* Does a word of ARGV behind the first two name code, as far as tables of command.h know? */
static bool names_code(const char *const *argv)
{
	const struct command_program program = {.programs = str_of(argv[0]),
						.subcommand = str_of(argv[1])};
	const struct command_program bare = {.programs = str_of(argv[0])};

	if (command_code_operands(&program) != NULL || command_code_operands(&bare) != NULL)
		return true;
	for (size_t i = 2; argv[i] != NULL; i++) {
		if (command_code_option(&program, argv[i], false) != NULL ||
		    command_code_option(&bare, argv[i], true) != NULL ||
		    command_code_operand(&program, argv[i]) != NULL)
			return true;
	}
	return false;
}

bool rules_add_words(const char *const *argv, struct buf *words)
{
	if (argv[0] == NULL || argv[1] == NULL || !command_is_plain_word(argv[0]) ||
	    !command_is_plain_word(argv[1]) || strchr(argv[0], '/') != NULL ||
	    command_is_runner(argv[0]) || str_among(runs_words, str_of(argv[1])) ||
	    names_code(argv))
		return false;
	return buf_addf(words, "%s %s", argv[0], argv[1]);
}

bool rules_let(const struct policy_names *always, const char *const *argv)
{
	struct buf words;
	bool let = false;

	if (always->count == 0)
		return false;
	buf_init(&words, PATH_MAX);
	if (rules_add_words(argv, &words)) {
		for (size_t i = 0; i < always->count && !let; i++)
			let = strcmp(always->items[i], words.data) == 0;
	}
	buf_fini(&words);
	return let;
}

struct value *rules_of_text(struct str text)
{
	struct value *list = value_new_array();
	struct command command;
	bool told = command_parse(&command, text) && command.count > 0;

	for (size_t i = 0; told && i < command.count; i++) {
		struct buf words;

		buf_init(&words, PATH_MAX);
		told = rules_add_words(command.parts[i].argv, &words);
		if (told && !value_has_text(list, words.data))
			value_append(list, value_new_str(buf_str(&words)));
		buf_fini(&words);
	}
	command_fini(&command);
	if (told)
		return list;
	value_free(list);
	return NULL;
}
