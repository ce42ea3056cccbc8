/* http_ask: several short questions at once, on the handles of http.c. */
#include "model/http_parts.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

/* A question while it is under way. */
struct asking {
	struct http *http;
	struct http_question *question;
	CURL *easy;
	struct curl_slist *headers;
};

static size_t on_answer(char *data, size_t unit, size_t count, void *context)
{
	struct asking *asking = context;
	size_t size = unit * count;

	return buf_add(&asking->question->answer, data, size) ? size : size + 1;
}

static bool ask_begin(struct asking *asking, int64_t left_ms)
{
	struct http *http = asking->http;
	const struct http_question *question = asking->question;
	bool ok;

	asking->easy = http->curl.easy_init();
	ok = asking->easy &&
	     http_set_common(http, asking->easy, question->url, on_answer, asking) &&
	     http->curl.easy_setopt(asking->easy, CURLOPT_TIMEOUT_MS, (long)left_ms) ==
		     CURLE_OK;
	if (ok && question->body.size > 0) {
		asking->headers =
			http->curl.slist_append(NULL, "Content-Type: application/json");
		ok = asking->headers &&
		     http_set_body(http, asking->easy, question->body, asking->headers);
	}
	return ok && http->curl.multi_add_handle(http->multi, asking->easy) == CURLM_OK;
}

/* Which of ASKED have ended, and how. */
static void ask_collect(struct http *http, struct asking *asked, size_t count)
{
	const struct curl_functions *curl = &http->curl;
	CURLMsg *message;
	int left;

	while ((message = curl->multi_info_read(http->multi, &left)) != NULL) {
		for (size_t i = 0; i < count; i++)
			if (message->msg == CURLMSG_DONE &&
			    message->easy_handle == asked[i].easy &&
			    message->data.result == CURLE_OK)
				(void)curl->easy_getinfo(asked[i].easy,
							 CURLINFO_RESPONSE_CODE,
							 &asked[i].question->status);
	}
}

void http_ask_all(struct http *http, struct http_question *questions, size_t count,
		  int64_t deadline_ms)
{
	const struct curl_functions *curl = &http->curl;
	struct asking *asked = memory_array(count + 1, sizeof(*asked));
	int running = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t left = deadline_ms - clock_now_ms();

		asked[i] = (struct asking){.http = http, .question = &questions[i]};
		questions[i].status = 0;
		/* To libcurl 0 is for ever. */
		(void)ask_begin(&asked[i], left > 0 ? left : 1);
	}
	for (;;) {
		int wait_ms = clock_poll_timeout(deadline_ms);

		if (curl->multi_perform(http->multi, &running) != CURLM_OK)
			break;
		ask_collect(http, asked, count);
		if (running == 0 || wait_ms <= 0 ||
		    curl->multi_poll(http->multi, NULL, 0, wait_ms, NULL) != CURLM_OK)
			break;
	}
	for (size_t i = 0; i < count; i++) {
		if (!asked[i].easy)
			continue;
		(void)curl->multi_remove_handle(http->multi, asked[i].easy);
		curl->easy_cleanup(asked[i].easy);
		curl->slist_free_all(asked[i].headers);
	}
	free(asked);
}
