/* libcurl: the one table of its functions. */

#include "base/libcurl.h"

#include "base/err.h"
#include "base/library.h"

#include <stdbool.h>
#include <stddef.h>

bool libcurl_load(struct libcurl *curl, const char *purpose, struct err *err)
{
	/* The file has this name since 2006: libcurl keeps its ABI. */
	const struct library library = {"libcurl.so.4", "7.66", "libcurl4", purpose};
	const struct library_function wanted[] = {
		{"curl_global_init", &curl->global_init},
		{"curl_easy_strerror", &curl->easy_strerror},
		{"curl_easy_init", &curl->easy_init},
		{"curl_easy_setopt", &curl->easy_setopt},
		{"curl_easy_getinfo", &curl->easy_getinfo},
		{"curl_easy_perform", &curl->easy_perform},
		{"curl_easy_reset", &curl->easy_reset},
		{"curl_easy_cleanup", &curl->easy_cleanup},
		{"curl_multi_init", &curl->multi_init},
		{"curl_multi_add_handle", &curl->multi_add_handle},
		{"curl_multi_remove_handle", &curl->multi_remove_handle},
		{"curl_multi_perform", &curl->multi_perform},
		{"curl_multi_poll", &curl->multi_poll},
		{"curl_multi_info_read", &curl->multi_info_read},
		{"curl_multi_cleanup", &curl->multi_cleanup},
		{"curl_slist_append", &curl->slist_append},
		{"curl_slist_free_all", &curl->slist_free_all},
		{"curl_url", &curl->url},
		{"curl_url_cleanup", &curl->url_cleanup},
		{"curl_url_set", &curl->url_set},
		{"curl_url_get", &curl->url_get},
		{"curl_free", &curl->free},
		{"curl_getdate", &curl->getdate},
	};

	return library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}
