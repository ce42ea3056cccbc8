/*
 * listen: who hears of changes: streams opened by subscriptions/listen in the modern era, each
 * peer's own way in the legacy one; and the watch over the folder of prompts.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "mcp/server/mcp_parts.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	LISTENERS_MAX = 64,
	URIS_MAX = 256,
};

static const struct {
	const char *wish;   /* of subscriptions/listen */
	const char *notice; /* what is sent */
} lists[] = {
	[MCP_LIST_TOOLS] = {"toolsListChanged", "notifications/tools/list_changed"},
	[MCP_LIST_PROMPTS] = {"promptsListChanged", "notifications/prompts/list_changed"},
	[MCP_LIST_RESOURCES] = {"resourcesListChanged",
				"notifications/resources/list_changed"},
};

static struct value *meta_of(const struct mcp_request *request)
{
	struct value *params = value_new_object(), *meta = value_new_object();

	value_set(meta, MCP_META_SUBSCRIPTION, value_ref(request->id));
	value_set(params, "_meta", meta);
	return params;
}

void mcp_list_changed(struct mcp *mcp, enum mcp_list list)
{
	for (struct mcp_request *at = mcp->first; at != NULL; at = at->next) {
		if (at->listens_to != NULL &&
		    value_is_true(value_member(at->listens_to, lists[list].wish)))
			mcp_tell(mcp, at->way, NULL, lists[list].notice, meta_of(at));
	}
	for (struct mcp_peer *at = mcp->first_peer; at != NULL; at = at->next) {
		if (at->known)
			mcp_tell(mcp, at->way, NULL, lists[list].notice, NULL);
	}
}

static size_t count_listeners(const struct mcp *mcp)
{
	size_t count = 0;

	for (const struct mcp_request *at = mcp->first; at != NULL; at = at->next)
		count += at->listens_to != NULL;
	return count;
}

void mcp_tools_changed(struct mcp *mcp)
{
	mcp_list_changed(mcp, MCP_LIST_TOOLS);
}

/* The part of WISHED that this server can send. */
static struct value *agree(const struct mcp *mcp, const struct value *wished)
{
	const struct value *uris = value_member(wished, "resourceSubscriptions");
	struct value *agreed = value_new_object(), *list;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *wish = lists[i].wish;

		if (i == MCP_LIST_TOOLS && !mcp->options.tools_change)
			continue;
		if (value_is_true(value_member(wished, wish)))
			value_set_boolean(agreed, wish, true);
	}
	if (value_kind(uris) == VALUE_ARRAY && value_count(uris) > 0) {
		list = value_new_array();
		for (size_t i = 0; i < value_count(uris) && i < URIS_MAX; i++) {
			if (value_text(value_item(uris, i)) != NULL)
				value_append(list, value_copy(value_item(uris, i)));
		}
		value_set(agreed, "resourceSubscriptions", list);
	}
	return agreed;
}

void mcp_listen(struct mcp_request *request)
{
	const struct value *wished = value_member(request->params, "notifications");
	struct value *params;

	if (value_kind(wished) != VALUE_OBJECT) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "subscriptions/listen needs notifications (an object).");
		return;
	}
	if (count_listeners(request->mcp) >= LISTENERS_MAX) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL,
			 "%d subscriptions are open; close one first.", LISTENERS_MAX);
		return;
	}
	request->listens_to = agree(request->mcp, wished);
	request->mcp->busy--;
	params = meta_of(request);
	value_set(params, "notifications", value_ref(request->listens_to));
	mcp_tell(request->mcp, request->way, NULL,
		 "notifications/subscriptions/acknowledged", params);
}

void mcp_goodbye(struct mcp *mcp)
{
	struct mcp_request *next;

	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->listens_to != NULL)
			mcp_answer_text(at, STR(""));
	}
}

struct mcp_watch {
	struct mcp *mcp;
	int fd;
	struct watch watch;
};

static void folder_changed(struct watch *watch, short events)
{
	struct mcp_watch *own = watch->context;
	union {
		struct inotify_event event; /* for its alignment */
		char bytes[4096];
	} taken;

	(void)events;
	/* All of them at once: what changed is found when it is asked for. */
	while (read(own->fd, &taken, sizeof(taken)) > 0)
		;
	mcp_list_changed(own->mcp, MCP_LIST_PROMPTS);
}

void mcp_watch_open(struct mcp *mcp)
{
	struct mcp_watch *own;
	auto_close int fd = -1;

	if (mcp->prompts == NULL)
		return;
	fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/* A folder that is not there is not watched: prompts are read anew all the same. */
	if (fd < 0 || inotify_add_watch(fd, mcp->prompts,
					IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_TO |
						IN_MOVED_FROM | IN_ONLYDIR) < 0)
		return;
	own = memory_alloc(sizeof(*own));
	own->mcp = mcp;
	own->fd = fd_take(&fd);
	own->watch = (struct watch){.fd = own->fd,
				    .events = POLLIN,
				    .ready = folder_changed,
				    .context = own};
	loop_add(mcp->options.loop, &own->watch);
	mcp->watch = own;
}

void mcp_watch_close(struct mcp *mcp)
{
	if (mcp->watch == NULL)
		return;
	loop_remove(&mcp->watch->watch);
	fd_close(&mcp->watch->fd);
	free(mcp->watch);
	mcp->watch = NULL;
}
