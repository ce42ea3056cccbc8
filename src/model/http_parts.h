/* http_parts: what the files of http share of libcurl; not for others. */
#pragma once
#include "base/str.h"
#include "model/http.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/*
 * The few functions used. Setting options goes through the one that takes any argument.
 */
struct curl_functions {
	CURLcode (*global_init)(long flags);
	CURL *(*easy_init)(void);
	CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
	const char *(*easy_strerror)(CURLcode code);
	void (*easy_cleanup)(CURL *easy);
	CURLM *(*multi_init)(void);
	CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_perform)(CURLM *multi, int *running);
	CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned count,
				int timeout_ms, int *ready);
	CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
	CURLMcode (*multi_cleanup)(CURLM *multi);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
	time_t (*getdate)(const char *text, const time_t *unused);
};

struct http {
	struct curl_functions curl;
	CURLM *multi;
	bool trimmed; /* library_trim, once */
};

/*
 * Set the options that every request has; bytes that come go to WRITE, with CONTEXT. False:
 * libcurl does not take one.
 */
bool http_set_common(const struct http *http, CURL *easy, const char *url,
		     size_t (*write)(char *, size_t, size_t, void *), void *context);
/* POST BODY with HEADERS. */
bool http_set_body(const struct http *http, CURL *easy, struct str body,
		   const struct curl_slist *headers);
