/*
 * libcurl: the functions of libcurl that the program uses, found when they are first needed (linking it
 * costs every start 3 ms; library.h). An option is set by the function that takes any argument, so that
 * libcurl's own header checks nothing there: a number is a `long`, a size a `curl_off_t`.
 */
#pragma once

#include "base/err.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <time.h>

struct libcurl {
	CURLcode (*global_init)(long flags);
	const char *(*easy_strerror)(CURLcode code);
	CURL *(*easy_init)(void);
	CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
	CURLcode (*easy_perform)(CURL *easy);
	void (*easy_reset)(CURL *easy);
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
	CURLU *(*url)(void);
	void (*url_cleanup)(CURLU *url);
	CURLUcode (*url_set)(CURLU *url, CURLUPart part, const char *text, unsigned flags);
	CURLUcode (*url_get)(const CURLU *url, CURLUPart part, char **text, unsigned flags);
	void (*free)(void *text);
	time_t (*getdate)(const char *text, const time_t *unused);
};

/*
 * Load libcurl and find its functions. False: ERR says that it is missing (ENOENT) or too old (ENOSYS),
 * and what it was needed for, PURPOSE ("asking a model"). Nothing is begun (global_init).
 */
bool libcurl_load(struct libcurl *curl, const char *purpose, struct err *err);
