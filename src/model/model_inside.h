/*
 * model_inside: what the files of a model share: model.c asks, model_known.c knows what it
 * takes in and costs. Not for others.
 */
#pragma once
#include "model/catalogue.h"
#include "model/model.h"
#include "model/model_name.h"
#include "model/provider.h"

#include <stdbool.h>

struct http;
struct replay;

struct model {
	char *shown;
	struct replay *replay;           /* either this … */
	const struct provider *provider; /* … or all below */
	struct http *http;               /* NULL until the first question */
	char *name, *url, *host, *key;
	struct provider_settings settings;
	double idle_timeout_s;
	int retries;
	struct catalogue_model known;
	bool contacted; /* a question went out */
	bool asked;     /* the server was asked for its context … */
	uint64_t room;  /* … which is so many tokens; 0: not said */
};

/*
 * The entry of NAME in the catalogue of OPTIONS. Its prices are those of the vendor: they
 * do not hold for a server that somebody named.
 */
struct catalogue_model model_known_by(const struct model_options *options,
				      const struct model_name *name);

/*
 * Did an answer of this USAGE, which its service called complete, end because there was no
 * more room: in the context, or in what was asked for? Only of providers that may hide it.
 */
bool model_ran_out(struct model *model, const struct model_usage *usage);

/*
 * Set the money of USAGE, which one answer of MODEL took. A service that counts nothing
 * has not said that it costs nothing.
 */
void model_add_money(const struct model *model, struct model_usage *usage);
