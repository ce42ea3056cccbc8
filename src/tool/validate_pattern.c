/*
 * validate_pattern: the regular expressions of a schema, each made once for a value, all
 * together within a bound of time.
 */
#include "tool/validate_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text/regex.h"

enum {
	MATCH_STEPS = 200,         /* what making an expression costs, in steps */
	BYTES_PER_STEP = 64,       /* text looked through in the time of one step */
	MATCHING_MAX_US = 1000000, /* of one value, in all: as long as the steps may take */
};

struct validate_pattern {
	struct str text;
	struct regex *regex;
	struct regex_scratch *scratch;
};

static void forget(struct validate_pattern *pattern)
{
	regex_scratch_free(pattern->scratch);
	regex_free(pattern->regex);
	*pattern = (struct validate_pattern){0};
}

void validate_patterns_fini(struct validate_patterns *patterns)
{
	for (size_t i = 0; patterns->made && i < VALIDATE_PATTERNS; i++)
		forget(&patterns->made[i]);
	free(patterns->made);
}

/* The same place in the same schema is the same pattern: texts are not compared. */
static struct validate_pattern *find(struct validate_patterns *patterns, struct str text)
{
	struct validate_pattern *oldest;

	if (!patterns->made)
		patterns->made = memory_array(VALIDATE_PATTERNS, sizeof(*patterns->made));
	for (size_t i = 0; i < VALIDATE_PATTERNS; i++) {
		if (patterns->made[i].regex && patterns->made[i].text.data == text.data)
			return &patterns->made[i];
	}
	oldest = &patterns->made[patterns->next++ % VALIDATE_PATTERNS];
	forget(oldest);
	oldest->text = text;
	return oldest;
}

static enum regex_answer match(struct validate_check *check,
			       struct validate_pattern *pattern, struct str text)
{
	int64_t start = clock_now_us();
	struct regex_span span;
	enum regex_answer answer =
		regex_find(pattern->regex, pattern->scratch, text, 0, &span);

	check->patterns.spent_us += clock_now_us() - start;
	return check->patterns.spent_us > MATCHING_MAX_US ? REGEX_LIMIT : answer;
}

enum validate_match validate_match(struct validate_check *check, struct str pattern,
				   struct str text, const struct validate_place *at)
{
	struct validate_pattern *made = find(&check->patterns, pattern);
	struct err err;

	if (!validate_spend(check,
			    (made->regex ? 1 : MATCH_STEPS) + text.size / BYTES_PER_STEP))
		return MATCH_BROKEN;
	if (!made->regex) {
		if (!regex_compile(pattern, REGEX_ECMASCRIPT, &made->regex, &err)) {
			(void)validate_give_up(
				check, at, "pattern",
				"cannot be checked: the schema's pattern is wrong: %s",
				err.text);
			return MATCH_BROKEN;
		}
		made->scratch = regex_scratch_new(made->regex);
	}
	switch (match(check, made, text)) {
	case REGEX_FOUND:
		return MATCH_YES;
	case REGEX_NONE:
		return MATCH_NO;
	case REGEX_LIMIT:
		break;
	}
	(void)validate_give_up(check, at, "pattern",
			       "takes too long to compare with the schema's pattern");
	return MATCH_BROKEN;
}
