/*
 * catalogue: facts about models by their names: how much they take in, what they cost,
 * what they can do. The shipped part is models/catalogue.json, which names the page from
 * which each entry was taken. The person's part is the configuration's key `models`.
 * Pure.
 *
 * An entry's name is a model's name, which stands for its dated forms as well ("gpt-5"
 * for "gpt-5-2025-08-07", "claude-opus-4-5" for "claude-opus-4-5@20251101"), or a
 * pattern (base/text/pattern.h: '*' does not go beyond a '/', "**" does). The part
 * before the last '/' of a model's name is the vendor, as routers write it; an entry
 * may omit this part. Of several entries that fit, the most exact counts: the name
 * itself, then a dated form, then the longest pattern.
 *
 * A model is an entry in models/catalogue.json with the page it was read from. The
 * test model-catalogue checks that it is complete.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct catalogue;
struct model_usage;

/* US dollars per million tokens; below 0: not known. */
struct catalogue_prices {
	double input, output;
	/* for parts of the input; not known: the price is `input` */
	double cached, cache_write;
};

enum catalogue_answer { CATALOGUE_NOT_SAID, CATALOGUE_NO, CATALOGUE_YES };

/* The texts belong to the catalogue. */
struct catalogue_model {
	/* the provider of the model, "anthropic"; NULL: not known */
	const char *provider;
	uint64_t context, max_output; /* tokens; 0: not known */
	struct catalogue_prices prices;
	/*
	 * A request whose input has more tokens costs LONG_PRICES; 0: there is no such
	 * rule.
	 */
	uint64_t long_prompt;
	struct catalogue_prices long_prices;
	enum catalogue_answer tools, thinking;
	enum catalogue_answer sight; /* it takes pictures */
	const char *source;          /* the page of the shipped numbers, or NULL */
};

/*
 * SHIPPED is the text of models/catalogue.json (JSON with comments). ADDITIONS, an object
 * of the same form or NULL, has the person's entries, which replace those of SHIPPED key
 * by key; a reference is kept. ERR names the entry and the key that is wrong.
 */
bool catalogue_open(struct str shipped, const struct value *additions,
		    struct catalogue **catalogue, struct err *err);
void catalogue_close(struct catalogue *catalogue); /* NULL is fine */

/*
 * The entry of the model NAME. Without an entry all members are zero and prices are below
 * 0. AT_HOME: the model is asked at its vendor's own address, where the shipped prices
 * are valid. Elsewhere (a router, a server on this machine) only the person's prices are.
 * CATALOGUE may be NULL.
 */
struct catalogue_model catalogue_find(const struct catalogue *catalogue, const char *name,
				      bool at_home);

/* Call EACH for every entry, the shipped ones first, each name once. */
void catalogue_each(const struct catalogue *catalogue,
		    void (*each)(void *context, const char *name), void *context);

/*
 * Set DOLLARS to the cost of one request with this USAGE, in US dollars. False when the
 * price of its input or output is not known.
 */
bool catalogue_cost(const struct catalogue_model *model, const struct model_usage *usage,
		    double *dollars);
