/*
 * command_code: the table of words that name code, and the comparison of words with it.
 */
#include "policy/command_code.h"

#include "base/text/shell.h"

#include <ctype.h>
#include <string.h>

static const struct command_code rows[] = {
#define ROW(kind, programs, subcommand, name, reason) \
	{kind, programs, subcommand, name, reason},
#include "policy/command_code.def"
#undef ROW
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/*
 * Is a word of the list LIST ("a,b") in the list TEXT, compared by the last part of
 * their paths?
 */
static bool has_common(const char *list, struct str text)
{
	struct str given;

	while (commands_next_choice(&text, &given)) {
		struct str rest = str_of(list), one;

		while (commands_next_choice(&rest, &one)) {
			if (str_equal(one, shell_words_program(given)))
				return true;
		}
	}
	return false;
}

static struct str last_word(struct str text)
{
	struct str word = STR(""), next;

	while (str_next_word(&text, &next))
		word = next;
	return word;
}

/* The program and the subcommand that a rule is about. */
struct subject {
	struct str programs, subcommand;
};

static bool has_rows(struct str programs)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (has_common(rows[i].programs, programs))
			return true;
	}
	return false;
}

/*
 * In `php vendor/bin/phpunit`, `python -m pytest` and `npx jest` the subject is the
 * started program, when the table knows it.
 */
static struct subject subject_of(const struct command_rule *rule)
{
	static const char launchers[] = "php,python,python3,npx,bunx";
	struct subject subject = {.programs = rule->programs};
	struct str rest = rule->subcommand, last = last_word(rule->subcommand);

	if (last.size > 0 && has_common(launchers, rule->programs) && has_rows(last))
		subject.programs = last;
	else
		(void)str_next_word(&rest, &subject.subcommand);
	return subject;
}

static bool is_of(const struct command_code *row, const struct subject *subject)
{
	return has_common(row->programs, subject->programs) &&
	       (row->subcommand[0] == '\0' ||
		has_common(row->subcommand, subject->subcommand));
}

/*
 * Is NAME like "-x", not like "-delete"? Then its letter may follow others, and a value
 * may be attached.
 */
static bool is_letter(struct str name)
{
	return name.size == 2 && name.data[0] == '-' && name.data[1] != '-';
}

/*
 * How near WORD is to NAME: not at all, by one of its letters, by its beginning, or
 * exactly.
 */
static int nearness(struct str name, struct str word)
{
	enum { NOT, BY_LETTER, BY_BEGINNING, EXACTLY };
	const char *equals = word.size ? memchr(word.data, '=', word.size) : NULL;
	struct str bare = equals ? str_part(word, 0, (size_t)(equals - word.data)) : word;

	/* Programs with "-exec" accept "--exec" as well. */
	if (str_equal(bare, name) ||
	    (name.size > 2 && name.data[1] != '-' && bare.size == name.size + 1 &&
	     bare.data[0] == '-' && str_ends(bare, name)))
		return EXACTLY;
	if (str_starts(name, STR("--")))
		return bare.size > 2 && str_starts(name, bare) ? BY_BEGINNING : NOT;
	if (!is_letter(name) || word.size < 2 || word.data[0] != '-' || word.data[1] == '-')
		return NOT;
	for (size_t i = 1; i < word.size && isalnum((unsigned char)word.data[i]); i++) {
		if (word.data[i] == name.data[1])
			return BY_LETTER;
	}
	return NOT;
}

const struct command_code *command_code_option(const struct command_rule *rule,
					       const char *word, bool global)
{
	const struct subject subject = subject_of(rule);
	const struct command_code *found = NULL;
	int nearest = 0;

	for (size_t i = 0; i < ROWS; i++) {
		const struct command_code *row = &rows[i];
		int near;

		if (row->name[0] != '-' ||
		    (row->kind != CODE_HARMLESS && (row->kind == CODE_GLOBAL) != global) ||
		    !is_of(row, &subject))
			continue;
		near = nearness(str_of(row->name), str_of(word));
		if (near > nearest) {
			nearest = near;
			found = row;
		}
	}
	return found != NULL && found->kind != CODE_HARMLESS ? found : NULL;
}

/*
 * Does the row name the operand WORD? "SHELL=" matches "SHELL=x", "=" matches any
 * assignment, and any other name matches only itself.
 */
static bool names_operand(const struct command_code *row, const char *word)
{
	size_t size = strlen(row->name);

	if (strcmp(row->name, "=") == 0)
		return strchr(word, '=') != NULL;
	if (size > 1 && row->name[size - 1] == '=')
		return strncmp(word, row->name, size) == 0;
	return strcmp(word, row->name) == 0;
}

/* Does a script of sed have only commands that edit the printed text? */
static bool is_plain_sed(const char *script)
{
	for (const char *at = script; *at != '\0';) {
		/* Skip addresses, and the characters between commands. */
		at += strspn(at, " \t\n;{}!,$+~0123456789I");
		if (*at == '\0')
			break;
		if (*at == '/') {
			for (at++; *at != '\0' && *at != '/'; at++)
				at += *at == '\\' && at[1] != '\0';
			at += *at == '/';
			continue;
		}
		if (*at == 's' || *at == 'y') {
			const char mark = at[1];
			int marks = 0;

			for (at++; *at != '\0' && marks < 3; at++) {
				if (*at == '\\' && at[1] != '\0')
					at++;
				else if (*at == mark)
					marks++;
			}
			if (marks < 3)
				return false;
			at += strspn(at, "gipIM0123456789");
			if (*at != '\0' && strchr(" \t\n;}", *at) == NULL)
				return false;
			continue;
		}
		if (strchr("dDgGhHnNpPqQxz=l", *at) == NULL)
			return false;
		at++;
	}
	return true;
}

/* Does a program of awk neither start programs nor open files? */
static bool is_plain_awk(const char *script)
{
	static const char *const words[] = {"system",   "getline", "|",      "@load",
					    "@include", "close",   "fflush", NULL};
	bool quoted = false;

	for (const char *const *word = words; *word != NULL; word++) {
		const char *at = strstr(script, *word);

		/* "||" is another operator. */
		while (at != NULL && strcmp(*word, "|") == 0 && at[1] == '|')
			at = strstr(at + 2, *word);
		if (at != NULL)
			return false;
	}
	/* Look for print > FILE. A comparison behind print is taken for it as well. */
	for (const char *at = script; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (!quoted && *at == '>' && strstr(script, "print") != NULL &&
			 strstr(script, "print") < at)
			return false;
	}
	return true;
}

static bool is_plain_script(const struct command_code *row, const char *script)
{
	return strcmp(row->name, "sed") == 0 ? is_plain_sed(script) : is_plain_awk(script);
}

const struct command_code *command_code_operand(const struct command_rule *rule,
						const char *word)
{
	const struct subject subject = subject_of(rule);
	const struct command_code *found = NULL;

	for (size_t i = 0; i < ROWS; i++) {
		const struct command_code *row = &rows[i];

		if (!is_of(row, &subject))
			continue;
		if (row->kind == CODE_EXPRESSION && strcmp(row->name, word) == 0)
			return row;
		if (row->kind == CODE_SCRIPT && !rule->runs_code &&
		    !is_plain_script(row, word))
			return row;
		if ((row->kind != CODE_EXECUTES && row->kind != CODE_HARMLESS) ||
		    row->name[0] == '-' || !names_operand(row, word))
			continue;
		if (row->kind == CODE_HARMLESS)
			return NULL;
		found = row;
	}
	return found;
}

const struct command_code *command_code_operands(const struct command_rule *rule)
{
	const struct subject subject = subject_of(rule);

	for (size_t i = 0; i < ROWS; i++) {
		const struct command_code *row = &rows[i];

		if (row->kind == CODE_OPERANDS &&
		    (row->subcommand[0] != '\0' || rule->subcommand.size == 0) &&
		    is_of(row, &subject))
			return row;
	}
	return NULL;
}

void command_code_word(const struct command_code *code, struct buf *out)
{
	if (code->kind == CODE_SCRIPT || code->kind == CODE_OPERANDS)
		(void)buf_adds(out, "\"runs_code\": true");
	else if (strcmp(code->name, "=") == 0)
		(void)buf_adds(out, "\"NAME=\" in \"executes\"");
	else
		(void)buf_addf(out, "\"%s\" in \"executes\"", code->name);
}
