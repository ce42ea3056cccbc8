/* model_name: what a model's name and base URL mean. */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct provider;

struct model_name {
	const struct provider *provider; /* NULL: a replay */
	struct str rest;  /* the model's name there, or the replay's file; in the name */
	struct str shown; /* for people and records; parsed again it means the same */
	bool is_plain;    /* no provider was named: openai-chat */
};

/* NAME NULL or empty is the embedded replay. */
bool model_name_parse(const char *name, struct model_name *parsed, struct err *err);

/*
 * The URL to ask and its host (with port) for messages, both malloc'ed. BASE_URL NULL or
 * empty is the provider's. One with a user, a query or a fragment is refused: keys would
 * be in it.
 */
bool model_name_url(const struct provider *provider, const char *base_url, char **url,
		    char **host, struct err *err);

/* Scheme, host and port of such a URL, malloc'ed: "http://127.0.0.1:8080". */
bool model_name_origin(const char *base_url, char **origin, struct err *err);

/* Is URL Ollama's usual port on this machine? */
bool model_name_is_ollama(const char *base_url);
