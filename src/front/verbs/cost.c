/* glovebox cost: adds up what the answers of models have used, by the journal. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/verb.h"
#include "store/costs.h"
#include "store/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The ways to group answers, in the order of VERB_COST_GROUPS. */
enum by { BY_MODEL, BY_AGENT, BY_FOLDER, BY_DAY };

enum {
	NAME_COLUMNS = 32, /* a longer name only moves its own line */
};

static const struct option_row cost_options[] = {
	{"since", 0, OPTION_TEXT, "WHEN",
	 "only answers since then: 7d, 12h, 30m, 2w, or a day as 2026-11-23"},
	{"by", 0, OPTION_TEXT, "WHAT",
	 "a line for each model, agent, folder or day (default: model)", NAMES_COSTS},
	{"session", 0, OPTION_TEXT, "ID", "only this session and its delegates",
	 NAMES_SESSIONS},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object"},
	OPTION_ROW_HELP,
	{0},
};

/* One line: a sum of answers. */
struct sum {
	char *name;
	int64_t answers, input, output, cached, cache_writes, reasoning;
	double money;     /* of the answers whose price was known */
	int64_t unpriced; /* the number of the others */
};

struct sums {
	enum by by;
	struct sum *rows;
	size_t count;
	struct sum all;
};

static void add(struct sum *sum, const struct cost_answer *answer)
{
	sum->answers++;
	sum->input += answer->input;
	sum->output += answer->output;
	sum->cached += answer->cached;
	sum->cache_writes += answer->cache_writes;
	sum->reasoning += answer->reasoning;
	if (answer->money >= 0)
		sum->money += answer->money;
	else
		sum->unpriced++;
}

static struct sum *row_of(struct sums *sums, struct str name)
{
	for (size_t i = sums->count; i > 0; i--) {
		if (str_is(name, sums->rows[i - 1].name))
			return &sums->rows[i - 1];
	}
	sums->rows = memory_grow(sums->rows, sums->count + 1, sizeof(*sums->rows));
	sums->rows[sums->count] = (struct sum){.name = memory_copy_str(name)};
	return &sums->rows[sums->count++];
}

static bool take(void *context, const struct cost_answer *answer)
{
	struct sums *sums = context;
	char day[CLOCK_DAY];
	struct str name;

	switch (sums->by) {
	case BY_MODEL:
		name = answer->model;
		break;
	case BY_AGENT:
		name = answer->agent;
		break;
	case BY_FOLDER:
		name = answer->workspace;
		break;
	default:
		clock_text_day(answer->wall_ms, day);
		name = str_of(day);
		break;
	}
	add(row_of(sums, name), answer);
	add(&sums->all, answer);
	return true;
}

/* Days in their order; the rest by money, then by tokens, the largest first. */
static int compare(const void *one, const void *other, void *context)
{
	const struct sum *a = one, *b = other;
	const enum by *by = context;

	if (*by == BY_DAY)
		return strcmp(a->name, b->name);
	if (a->money != b->money)
		return a->money < b->money ? 1 : -1;
	return (a->input + a->output < b->input + b->output) -
	       (a->input + a->output > b->input + b->output);
}

static void print_row(const struct sum *sum, FILE *out)
{
	verb_print_name(sum->name, NAME_COLUMNS, out);
	(void)fprintf(out, " %7" PRId64 " %12" PRId64 " %12" PRId64 " %12" PRId64,
		      sum->answers, sum->input, sum->cached, sum->output);
	/* Money that is not known is said, and never shown as 0. */
	if (sum->unpriced == sum->answers)
		(void)fprintf(out, "  not known\n");
	else if (sum->unpriced > 0)
		(void)fprintf(out, "  $%.4f, and %" PRId64 " answer%s at an unknown price\n",
			      sum->money, sum->unpriced, sum->unpriced == 1 ? "" : "s");
	else
		(void)fprintf(out, "  $%.4f\n", sum->money);
}

static void print_table(const struct sums *sums, FILE *out)
{
	static const char *const heads[] = {"model", "agent", "folder", "day"};

	if (sums->all.answers == 0) {
		(void)fprintf(out, "No answer of a model is recorded.\n");
		return;
	}
	(void)fprintf(out,
		      "%-*s answers       tokens  from a cache          out  US dollars\n",
		      NAME_COLUMNS - 1, heads[sums->by]);
	for (size_t i = 0; i < sums->count; i++)
		print_row(&sums->rows[i], out);
	if (sums->count > 1)
		print_row(&sums->all, out);
	if (sums->all.unpriced > 0)
		(void)fprintf(out,
			      "\nA price that was not known when an answer came is no 0: give prices "
			      "in the configuration (models), for answers to come.\n");
}

static struct value *sum_value(const struct sum *sum)
{
	struct value *value = value_new_object();

	value_set_text(value, "name", sum->name);
	value_set_integer(value, "answers", sum->answers);
	value_set_integer(value, "input", sum->input);
	value_set_integer(value, "output", sum->output);
	value_set_integer(value, "cached", sum->cached);
	value_set_integer(value, "cache_writes", sum->cache_writes);
	value_set_integer(value, "reasoning", sum->reasoning);
	value_set(value, "money",
		  sum->unpriced < sum->answers || sum->answers == 0
			  ? value_new_real(sum->money)
			  : value_new_null());
	value_set_integer(value, "unpriced", sum->unpriced);
	return value;
}

static int print_json(const struct sums *sums, const char *by, int64_t since_ms, FILE *out)
{
	auto_value struct value *object = value_new_object();
	struct value *rows = value_new_array();

	value_set_text(object, "by", by);
	if (since_ms > 0)
		value_set_integer(object, "since_ms", since_ms);
	for (size_t i = 0; i < sums->count; i++)
		value_append(rows, sum_value(&sums->rows[i]));
	value_set(object, "rows", rows);
	value_set(object, "total", sum_value(&sums->all));
	return verb_print_json(object, VALUE_PRETTY, out);
}

static bool read_by(const char *text, enum by *by, struct err *err)
{
	struct str rest = STR(VERB_COST_GROUPS), name;

	for (int i = 0; str_next_word(&rest, &name); i++) {
		if (str_is(name, text)) {
			*by = (enum by)i;
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "--by: there is no \"%.40s\": model, agent, folder or day", text);
}

static bool collect(const char *name, int64_t since_ms, struct sums *sums, struct err *err)
{
	struct journal *journal = NULL;
	struct journal_found found = {0};
	char *here = getcwd(NULL, 0);
	bool read = journal_open_default(&journal, err) &&
		    (name == NULL ||
		     journal_find(journal, name, here != NULL ? here : "", &found, err)) &&
		    costs_read(journal, since_ms, name != NULL ? found.id : NULL, take,
			       sums, err);

	free(here);
	journal_found_fini(&found);
	journal_close(journal);
	return read;
}

static void sums_fini(struct sums *sums)
{
	for (size_t i = 0; i < sums->count; i++)
		free(sums->rows[i].name);
	free(sums->rows);
	free(sums->all.name);
}

static int cost_run(const struct options *options, FILE *out)
{
	const char *since = options_text(options, "since"),
		   *by = options_text(options, "by");
	struct sums sums = {.all = {.name = memory_copy("total")}};
	struct err err = {0};
	int64_t since_ms = 0;
	int code = CODE_DONE;

	if ((since != NULL && !verb_read_since(since, &since_ms, &err)) ||
	    (by != NULL && !read_by(by, &sums.by, &err))) {
		code = verb_complain(CODE_USAGE, "%s", err.text);
	} else if (!collect(options_text(options, "session"), since_ms, &sums, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		if (sums.count > 0)
			qsort_r(sums.rows, sums.count, sizeof(*sums.rows), compare,
				&sums.by);
		if (options_given(options, "json"))
			code = print_json(&sums, by != NULL ? by : "model", since_ms, out);
		else
			print_table(&sums, out);
	}
	sums_fini(&sums);
	return code;
}

static const char cost_help[] =
	"Add up what the answers of models have used, as the record has it: tokens, and US\n"
	"dollars where the price was known when the answer came. An answer at a price that\n"
	"is not known is said to be one, and counts as no money at all. What a delegate used\n"
	"counts for its own agent and model.";

const struct verb verb_cost = {
	.name = "cost",
	.summary = "add up what models have cost",
	.arguments = "",
	.help = cost_help,
	.example = "  glovebox cost --since 7d --by folder",
	.options = cost_options,
	.folds = true,
	.run = cost_run,
};
