#include "front/output/policy_words.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/verb.h"
#include "policy/config.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Finds names of keys in sentences. */

enum { SENTENCE_MAX = 64 << 10, KEY_NAME_MAX = 64 };

/*
 * Size of "NAME." at the beginning of TEXT: letters, digits, '-' and '_', as in the names
 * of agents.
 */
static size_t agent_size(struct str text)
{
	size_t size = 0;

	while (size < text.size && (isalnum((unsigned char)text.data[size]) ||
				    text.data[size] == '-' || text.data[size] == '_'))
		size++;
	return size < text.size && text.data[size] == '.' ? size + 1 : 0;
}

static const struct value *member_of(const struct value *object, struct str name)
{
	char text[KEY_NAME_MAX];

	if (name.size >= sizeof(text))
		return NULL;
	memcpy(text, name.data, name.size);
	text[name.size] = '\0';
	return value_member(object, text);
}

/*
 * Size of a key ("limits.memory") at the beginning of TEXT. A full stop at its end
 * belongs to the sentence.
 */
static size_t key_size(struct str text)
{
	size_t size = 0;

	while (size < text.size && (islower((unsigned char)text.data[size]) ||
				    text.data[size] == '_' || text.data[size] == '.'))
		size++;
	while (size > 0 && text.data[size - 1] == '.')
		size--;
	return size;
}

/*
 * The last name of KEY ("limits.memory") when the option of this name set the key; else
 * empty. "read" is always empty: --read only adds folders to those of the policy, so the
 * policy counts too.
 */
static struct str option_of(const struct policy_words *words, struct str key)
{
	const struct value *found = str_is(key, "read") ? NULL : words->options;
	struct str name = key;

	for (size_t dot; found != NULL && (dot = str_find(name, STR("."), 0)) != (size_t)-1;
	     name = str_part(name, dot + 1, SIZE_MAX))
		found = member_of(found, str_part(name, 0, dot));
	return found != NULL && member_of(found, name) != NULL ? name : (struct str){"", 0};
}

/*
 * Append the key at the beginning of REST, the text behind "agents."; returns its size in
 * REST.
 */
static size_t key_add(const struct policy_words *words, struct str rest, bool is_first,
		      struct buf *out)
{
	const struct str mark = STR(POLICY_FILE_AGENT ".");
	const struct str where = STR(" in the configuration");
	struct str key = str_part(rest, agent_size(rest), SIZE_MAX);
	struct str option;
	size_t size;

	key.size = key_size(key);
	size = (size_t)(key.data - rest.data) + key.size;
	option = option_of(words, key);
	/* A profile has another word for it (front/wrap/profile.h). */
	if (words->wrapped != NULL && str_is(key, "network"))
		key = STR("hosts");
	if (option.size > 0)
		(void)buf_addf(out, "--%.*s", (int)option.size, option.data);
	else if (words->file == NULL || !str_starts(rest, mark)) {
		(void)buf_addf(out, "agents.%.*s", (int)size, rest.data);
		return size;
	} else if (is_first)
		(void)buf_addf(out, "%s: %.*s", words->file, (int)key.size, key.data);
	else
		(void)buf_addf(out, "%.*s of %s", (int)key.size, key.data, words->file);
	if (str_starts(str_part(rest, size, SIZE_MAX), where))
		size += where.size;
	return size;
}

/*
 * Append TEXT, the end of a sentence. Where `wrap` runs the program, the options of `exec`
 * become those of `wrap`, which has no --minimum-level: the offer of a lower level is left
 * out. A key of a policy becomes the word that a profile has for it.
 */
static void options_add(const struct policy_words *words, struct str text, struct buf *out)
{
	const struct str offer = STR(SHAPE_OFFERS_LEVEL);
	const struct {
		struct str from;
		size_t size; /* of what is replaced */
		const char *to, *name;
	} rows[] = {
		{STR(AUTOEXEC_OPTIONS), sizeof(AUTOEXEC_OPTIONS) - 1,
		 "glovebox wrap --write . --write NAME ", words->wrapped},
		{STR(NETWORK_REMEDY_KEY), sizeof(NETWORK_REMEDY_KEY) - 1,
		 " to hosts of the profile, or ", ""},
		{offer, offer.size + sizeof("Ln") - 1, "", ""},
	};

	for (size_t i = 0; words->wrapped != NULL && i < sizeof(rows) / sizeof(rows[0]);
	     i++) {
		const size_t at = str_find(text, rows[i].from, 0);

		if (at == (size_t)-1)
			continue;
		(void)buf_addstr(out, str_part(text, 0, at));
		(void)buf_addf(out, "%s%s", rows[i].to, rows[i].name);
		text = str_part(text, at + rows[i].size, SIZE_MAX);
	}
	(void)buf_addstr(out, text);
}

void policy_words_add(const struct policy_words *words, const char *text, struct buf *out)
{
	const struct str mark = STR("agents.");
	struct str rest = str_of(text);
	size_t at;

	while ((at = str_find(rest, mark, 0)) != (size_t)-1) {
		bool is_first = at == 0 && rest.data == text;

		(void)buf_addstr(out, str_part(rest, 0, at));
		rest = str_part(rest, at + mark.size, SIZE_MAX);
		rest = str_part(rest, key_add(words, rest, is_first, out), SIZE_MAX);
	}
	options_add(words, rest, out);
}

int policy_words_complain(int code, const struct policy_words *words, const char *text)
{
	struct buf said;

	buf_init(&said, SENTENCE_MAX);
	policy_words_add(words, text, &said);
	code = verb_complain(code, "%s", said.data);
	buf_fini(&said);
	return code;
}
