/*
 * remote_list: lists a server's tools, page by page. The start of a server waits for the
 * list; when the server says that its tools have changed, they are listed again while
 * calls go on.
 */
#include "mcp/client/remote_parts.h"

#include "base/clock.h"

enum {
	PAGES_MAX = 64,
	/* Between two lists: what changes faster is not worth more. */
	RELIST_MS = 1000,
	/* Of what a server says about changes before its next list: more is a flood. */
	CHANGES_MAX = 1000,
};

static void ask_page(struct remote *remote)
{
	struct value *params = value_new_object();

	if (remote->list.cursor)
		value_set(params, "cursor", value_ref(remote->list.cursor));
	remote->list.request = remote_request(remote, "tools/list", params);
}

static void forget(struct remote_list *list)
{
	value_free(list->tools);
	value_free(list->cursor);
	*list = (struct remote_list){0};
}

void remote_list_begin(struct remote *remote)
{
	forget(&remote->list);
	remote->list.tools = value_new_array();
	remote->list_again = false;
	remote->changes = 0;
	ask_page(remote);
}

static void relist_due(struct timer *timer)
{
	struct remote *remote = timer->context;

	loop_remove_timer(timer);
	if (remote->state == REMOTE_READY)
		remote_list_begin(remote);
}

void remote_list_init(struct remote *remote)
{
	remote->tools = value_new_array();
	remote->tells_changes = false;
	remote->listens = 0;
	remote->relist =
		(struct timer){.due_ms = CLOCK_NEVER, .due = relist_due, .context = remote};
}

void remote_list_fini(struct remote *remote)
{
	loop_remove_timer(&remote->relist);
	forget(&remote->list);
	value_free(remote->tools);
	remote->tools = NULL;
}

/* False: there is too much, or it is no list. */
static bool take_tools(struct remote_list *list, const struct value *tools)
{
	struct buf text;

	for (size_t i = 0; i < value_count(tools); i++) {
		const struct value *tool = value_item(tools, i);

		buf_init(&text, REMOTE_LIST_BYTES);
		if (value_print(tool, 0, &text))
			list->bytes += text.size;
		else
			list->bytes = REMOTE_LIST_BYTES + 1;
		buf_fini(&text);
		if (list->bytes > REMOTE_LIST_BYTES ||
		    value_count(list->tools) == REMOTE_TOOLS_MAX)
			return false;
		if (value_str(value_member(tool, "name")).size)
			value_append(list->tools, value_copy(tool));
	}
	return value_kind(tools) == VALUE_ARRAY;
}

/* The first list is what it is there for; without a later one the last that came holds. */
static void list_fails(struct remote *remote, const char *what, struct str words)
{
	forget(&remote->list);
	if (remote->state == REMOTE_LISTS)
		remote_give_up(remote, what, words);
	else
		remote_fault(remote);
}

/* In the newer era changes are told to who asks for that. */
static void listen(struct remote *remote)
{
	struct value *params, *wishes;

	if (!remote->modern || !remote->tells_changes || remote->listens)
		return;
	params = value_new_object();
	wishes = value_new_object();
	value_set_boolean(wishes, "toolsListChanged", true);
	value_set(params, "notifications", wishes);
	remote->listens = remote_request(remote, "subscriptions/listen", params);
}

static void list_is_whole(struct remote *remote)
{
	bool first = remote->state == REMOTE_LISTS;

	value_free(remote->tools);
	remote->tools = remote->list.tools;
	remote->list.tools = NULL;
	forget(&remote->list);
	if (first) {
		listen(remote);
		remote_settle(remote);
	} else {
		remote->options.settled(remote->options.context, NULL);
	}
	if (remote->list_again && remote->state == REMOTE_READY)
		remote_list_changed(remote);
}

void remote_listed(struct remote *remote, const struct mcp_message *message)
{
	struct remote_list *list = &remote->list;
	struct value *next = value_member(message->result, "nextCursor");

	list->request = 0;
	if (message->error) {
		list_fails(remote, "refuses",
			   value_str(value_member(message->error, "message")));
		return;
	}
	if (!take_tools(list, value_member(message->result, "tools"))) {
		list_fails(remote, "lists too many tools, or none in a way that is known",
			   (struct str){0});
		return;
	}
	if (value_kind(next) != VALUE_STRING) {
		list_is_whole(remote);
		return;
	}
	if (++list->pages == PAGES_MAX || value_equal(next, list->cursor)) {
		list_fails(remote, "lists its tools without an end", (struct str){0});
		return;
	}
	next = value_ref(next);
	value_free(list->cursor);
	list->cursor = next;
	ask_page(remote);
}

void remote_list_changed(struct remote *remote)
{
	if (++remote->changes > CHANGES_MAX) {
		remote_give_up(remote, "says without an end that its tools have changed",
			       (struct str){0});
		return;
	}
	/* The list that is on its way may be of before. */
	if (remote->list.request || remote->state != REMOTE_READY) {
		remote->list_again = true;
		return;
	}
	if (remote->relist.loop)
		return;
	remote->relist.due_ms = clock_now_ms() + RELIST_MS;
	loop_add_timer(remote->options.loop, &remote->relist);
}
