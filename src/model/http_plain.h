/*
 * http_plain: HTTP/1.1 without TLS to a server on this machine, by its address or as localhost.
 * It saves who has his model there libcurl, whose twenty libraries take 5 ms to load and 6 MiB.
 * No proxy, no redirect; one connection is kept between requests.
 */
#pragma once
#include "model/http.h"

struct http_plain;

struct http_plain *http_plain_new(void);
void http_plain_free(struct http_plain *plain); /* NULL is fine */

/* Is URL one for here? All others are libcurl's. */
bool http_plain_takes(const char *url);

/* As http_post. */
bool http_plain_post(struct http_plain *plain, const struct http_request *request,
		     struct http_answer *answer,
		     enum http_more (*bytes)(void *context, const struct http_answer *answer,
					     struct str bytes, struct err *err),
		     void *context, struct err *err);

/* As http_ask_all, of those QUESTIONS that are for here; the others are not touched. */
void http_plain_ask_all(struct http_question *questions, size_t count, int64_t deadline_ms);
