/* options: parses the command line by rows. */
#include "front/options.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/text.h"
#include "sandbox/probe.h"

/* A larger count is a slip. This one still fits every counter of ours. */
static const uint64_t count_max = 1000000000;

/* Is WORD an option at all? "-" alone is a word: it stands for standard input. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

/* The row of WORD. *VALUE is the begin of the value in WORD (NULL: WORD has no value). */
static const struct option_row *find_row(const struct option_row *rows, const char *word,
					 const char **value)
{
	size_t length;

	*value = NULL;
	if (!is_option(word))
		return NULL;
	if (word[1] != '-') {
		for (; rows->name != NULL; rows++) {
			if (rows->letter != word[1])
				continue;
			if (word[2] != '\0')
				*value = word + 2 + (word[2] == '=');
			return rows;
		}
		return NULL;
	}
	length = strcspn(word + 2, "=");
	for (; rows->name != NULL; rows++) {
		if (strlen(rows->name) != length ||
		    memcmp(rows->name, word + 2, length) != 0)
			continue;
		if (word[2 + length] == '=')
			*value = word + 2 + length + 1;
		return rows;
	}
	return NULL;
}

const struct option_row *options_find(const struct option_row *rows, const char *word,
				      bool *apart)
{
	const char *value;
	const struct option_row *row = find_row(rows, word, &value);

	*apart = row != NULL && row->kind != OPTION_FLAG && value == NULL;
	return row;
}

static bool refuse_unknown(const struct option_row *rows, const char *word, struct err *err)
{
	const char *names[OPTIONS_MAX + 1];
	auto_free char *given = NULL;
	const char *nearest = NULL;
	size_t count = 0;

	if (word[1] == '-') {
		for (const struct option_row *row = rows; row->name != NULL; row++)
			names[count++] = row->name;
		names[count] = NULL;
		given = memory_copy(word + 2);
		given[strcspn(given, "=")] = '\0';
		nearest = text_nearest(given, names);
	}
	if (nearest != NULL)
		return err_set(err, EINVAL, "no option %.100s; did you mean --%s?", word,
			       nearest);
	return err_set(err, EINVAL,
		       "no option %.100s; --help lists them, and words that begin with a dash "
		       "stand behind --",
		       word);
}

static bool parse_level(const char *text, uint64_t *level)
{
	for (int i = SANDBOX_NONE; i <= SANDBOX_SEALED; i++) {
		if (strcmp(probe_level_row((enum sandbox_level)i)->name, text) == 0) {
			*level = (uint64_t)i;
			return true;
		}
	}
	return false;
}

/*
 * Parse a plain decimal number. Other texts that strtod takes ("inf", "0x1p3") are no
 * amounts.
 */
static bool parse_amount(const char *text, double *amount)
{
	char *end;

	if (text[0] == '\0' || text[strspn(text, "0123456789.")] != '\0')
		return false;
	*amount = strtod(text, &end);
	return *end == '\0' && *amount > 0;
}

static bool parse_value(const struct option_row *row, struct option_value *value,
			const char *text, struct err *err)
{
	value->given = true;
	value->text = text;
	if ((row->kind == OPTION_TEXT || row->kind == OPTION_TEXTS) && text[0] == '\0')
		return err_set(err, EINVAL, "--%s: its value is empty: --%s %s",
			       row->name, row->name, row->value);
	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_TEXT:
	case OPTION_WORDS:
		return true;
	case OPTION_TEXTS:
		value->texts = memory_grow(value->texts, value->text_count + 2,
					   sizeof(*value->texts));
		value->texts[value->text_count++] = text;
		value->texts[value->text_count] = NULL;
		return true;
	case OPTION_COUNT:
		if (!text_parse_count(text, count_max, &value->count, err))
			return err_while(err, "--%s", row->name);
		if (value->count == 0)
			return err_set(err, EINVAL,
				       "--%s: 0 is too small, 1 is the least", row->name);
		return true;
	case OPTION_SECONDS:
		if (!text_parse_seconds(text, &value->seconds, err))
			return err_while(err, "--%s", row->name);
		return true;
	case OPTION_AMOUNT:
		return parse_amount(text, &value->amount) ||
		       err_set(err, EINVAL, "--%s: \"%.20s\" is no number above 0, as 0.5",
			       row->name, text);
	case OPTION_LEVEL:
		return parse_level(text, &value->count) ||
		       err_set(err, EINVAL, "--%s: no level \"%.20s\": L3, L2, L1 or L0",
			       row->name, text);
	}
	return true;
}

/* Take the option at WORDS[*AT], and the word of its value. */
static bool take_option(struct options *options, const char *const *words, size_t *at,
			struct err *err)
{
	const char *word = words[*at];
	const char *text;
	const struct option_row *row = find_row(options->rows, word, &text);

	if (row == NULL)
		return refuse_unknown(options->rows, word, err);
	if (row->kind == OPTION_FLAG) {
		if (text != NULL)
			return err_set(err, EINVAL, "%.100s: --%s takes no value", word,
				       row->name);
	} else if (text == NULL) {
		text = words[*at + 1];
		if (text == NULL)
			return err_set(err, EINVAL, "%s needs a value: --%s %s", word,
				       row->name, row->value);
		++*at;
	}
	return parse_value(row, &options->values[row - options->rows], text, err);
}

bool options_parse(struct options *options, const struct option_row *rows,
		   const char *const *words, bool words_end_it, struct err *err)
{
	size_t count = 0;
	bool ended = false;

	memset(options, 0, sizeof(*options));
	options->rows = rows;
	while (rows[count].name != NULL)
		count++;
	assert(count < OPTIONS_MAX);
	for (count = 0; words[count] != NULL; count++)
		;
	options->words = memory_array(count + 1, sizeof(*options->words));

	for (size_t i = 0; i < count; i++) {
		if (!ended && strcmp(words[i], "--") == 0) {
			ended = true;
		} else if (!ended && is_option(words[i])) {
			if (!take_option(options, words, &i, err))
				return false;
		} else {
			options->words[options->word_count++] = words[i];
			ended = ended || words_end_it;
		}
	}
	return true;
}

void options_fini(struct options *options)
{
	for (size_t i = 0; i < OPTIONS_MAX; i++) {
		free(options->values[i].texts);
		options->values[i].texts = NULL;
	}
	free(options->words);
	options->words = NULL;
	options->word_count = 0;
}

static const struct option_value *value_of(const struct options *options, const char *name)
{
	const struct option_row *row = options->rows;

	while (row->name != NULL && strcmp(row->name, name) != 0)
		row++;
	assert(row->name != NULL);
	return &options->values[row - options->rows];
}

bool options_given(const struct options *options, const char *name)
{
	return value_of(options, name)->given;
}

void options_replace(struct options *options, const char *name, const char *text)
{
	options->values[value_of(options, name) - options->values].text = text;
}

void options_fill(struct options *options, const char *name, const char *text)
{
	struct option_value *value =
		&options->values[value_of(options, name) - options->values];

	if (value->given)
		return;
	value->given = true;
	value->text = text;
}

const char *options_text(const struct options *options, const char *name)
{
	return value_of(options, name)->text;
}

const char *const *options_texts(const struct options *options, const char *name)
{
	static const char *const none[] = {NULL};
	const struct option_value *value = value_of(options, name);

	return value->texts != NULL ? value->texts : none;
}

uint64_t options_count(const struct options *options, const char *name, uint64_t absent)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->count : absent;
}

double options_seconds(const struct options *options, const char *name, double absent)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->seconds : absent;
}

double options_amount(const struct options *options, const char *name, double absent)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->amount : absent;
}
