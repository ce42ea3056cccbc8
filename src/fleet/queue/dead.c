/*
 * dead: the keys "dead.JOB.ID" of the queue, each an object {why, worker, at_ms}. Keys that are
 * no such thing are passed over.
 */

#include "fleet/queue/dead.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <stdio.h>
#include <string.h>

enum { DEAD_MOST = 1000 }; /* notes: messages may be anybody's */

#define DEAD "dead."

enum fleet_dead fleet_dead_note(struct fleet_queue *queue, const char *job,
				const char *id, const char *worker, const char *why)
{
	auto_value struct value *about = value_new_object();
	auto_value struct value *dead = NULL;
	char key[FLEET_NAME_BYTES];
	struct err err;
	struct buf text;
	bool ok;

	if (!fleet_dead_list(queue, NULL, &dead, &err))
		return FLEET_DEAD_AWAY;
	if (value_count(dead) >= DEAD_MOST)
		return FLEET_DEAD_FULL;
	value_set_text(about, "why", why);
	value_set_text(about, "worker", worker);
	value_set_integer(about, "at_ms", clock_wall_ms());
	(void)snprintf(key, sizeof(key), DEAD "%s.%s", job, id);
	buf_init(&text, FLEET_LINE_MAX);
	ok = value_print(about, 0, &text) &&
	     fleet_queue_set(queue, FLEET_STATE, key, buf_str(&text), &err);
	buf_fini(&text);
	return ok ? FLEET_DEAD_NOTED : FLEET_DEAD_AWAY;
}

static bool add_dead(void *context, const char *key, struct str text)
{
	struct value *dead = context, *item;
	auto_value struct value *about = NULL;
	const char *name = key + strlen(DEAD), *dot = strchr(name, '.');
	auto_free char *job = NULL;

	if (dot == NULL || !value_parse(text, 0, &about, NULL))
		return true;
	job = memory_copy_str((struct str){name, (size_t)(dot - name)});
	if (!fleet_name_check(FLEET_JOB, job, NULL) ||
	    !fleet_name_check(FLEET_ID, dot + 1, NULL))
		return true;
	item = value_new_object();
	value_set_text(item, "job", job);
	value_set_text(item, "id", dot + 1);
	value_set_text(item, "why", value_text(value_member(about, "why")));
	value_set_text(item, "worker", value_text(value_member(about, "worker")));
	value_set_integer(item, "at_ms", value_integer(value_member(about, "at_ms")));
	value_append(dead, item);
	return value_count(dead) < DEAD_MOST;
}

bool fleet_dead_list(struct fleet_queue *queue, const char *job, struct value **dead,
		     struct err *err)
{
	char prefix[FLEET_NAME_BYTES];

	*dead = value_new_array();
	(void)snprintf(prefix, sizeof(prefix), DEAD "%s%s", job != NULL ? job : "",
		       job != NULL ? "." : "");
	return fleet_queue_keys(queue, FLEET_STATE, prefix, add_dead, *dead, err);
}

static bool forget(struct fleet_queue *queue, const char *job, const char *id,
		   struct err *err)
{
	char key[FLEET_NAME_BYTES];

	(void)snprintf(key, sizeof(key), DEAD "%s.%s", job, id);
	return fleet_queue_unset(queue, FLEET_STATE, key, err);
}

bool fleet_dead_forget(struct fleet_queue *queue, const char *job, const char *id,
		       size_t *forgotten, struct err *err)
{
	auto_value struct value *dead = NULL;
	bool ok;

	*forgotten = 0;
	if (id != NULL) {
		ok = forget(queue, job, id, err);
		*forgotten += ok ? 1 : 0;
		return ok;
	}
	if (!fleet_dead_list(queue, job, &dead, err))
		return false;
	for (size_t i = 0; i < value_count(dead); i++) {
		if (!forget(queue, job,
			    value_text(value_member(value_item(dead, i), "id")), err))
			return false;
		(*forgotten)++;
	}
	return true;
}
