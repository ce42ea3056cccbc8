/* found: chooses the addresses to ask, and writes a sentence about the answers. */

#include "front/found.h"

#include "base/str.h"
#include "base/text/text.h"
#include "model/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_there(const struct found *found, const char *url)
{
	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->servers[i].url, url) == 0)
			return true;
	return false;
}

/* Add the server of URL, unless it is there already; the path of a URL does not count. */
static bool add_server(struct found *found, const char *url, struct err *err)
{
	struct local_server server;

	if (!local_init(&server, url, err))
		return err_while(err, "%.200s", url);
	if (is_there(found, server.url)) {
		local_fini(&server);
		return true;
	}
	if (found->count == LOCAL_SERVERS_MAX) {
		local_fini(&server);
		return err_set(err, E2BIG, "at most %d servers are asked at once",
			       LOCAL_SERVERS_MAX);
	}
	found->servers[found->count++] = server;
	return true;
}

static bool choose_servers(struct found *found, const char *const *urls, struct err *err)
{
	const char *own = getenv("GLOVEBOX_BASE_URL");
	bool asked = urls && urls[0];

	for (const char *const *url = asked ? urls : local_urls; *url; url++)
		if (!add_server(found, *url, err))
			return false;
	/* A wrong GLOVEBOX_BASE_URL is skipped here; opening a model reports it. */
	if (!asked && own && http_is_here(own))
		(void)add_server(found, own, NULL);
	return true;
}

bool found_look(struct found *found, const char *const *urls, int limit_ms, struct err *err)
{
	struct http *http = NULL;

	*found = (struct found){0};
	if (!choose_servers(found, urls, err) || !http_open(&http, err))
		return false;
	local_probe(http, found->servers, found->count, NULL, limit_ms);
	http_close(http);
	return true;
}

void found_fini(struct found *found)
{
	for (size_t i = 0; i < found->count; i++)
		local_fini(&found->servers[i]);
	found->count = 0;
}

void found_advise(const struct found *found, struct buf *out)
{
	size_t answering = 0;

	for (size_t i = 0; i < found->count; i++) {
		const struct local_server *server = &found->servers[i];

		if (server->kind == LOCAL_NOTHING && !server->is_locked)
			continue;
		(void)buf_addf(out, "%s %s answers at %s/v1",
			       answering++ > 0 ? "," : "On this machine",
			       server->is_locked ? "a server that wants a key"
						 : local_kind_name(server->kind),
			       server->url);
		for (size_t m = 0; m < server->model_count && m < 3; m++) {
			(void)buf_adds(out, m == 0 ? " (" : ", ");
			text_add_name(out, str_of(server->models[m].name));
		}
		if (server->model_count > 0)
			(void)buf_adds(out, server->model_count > 3 ? ", …)" : ")");
	}
	if (answering > 0)
		(void)buf_adds(out, ".");
	else
		(void)buf_adds(out, "No model server answers on this machine.");
}
