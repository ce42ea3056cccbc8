/* running_network: a call's way to the network (outlet.h): granted, refused, taken back. */
#include "runtime/denial.h"
#include "runtime/outlet.h"
#include "runtime/session_parts.h"

#include <stdlib.h>

/* More of them are counted by the result itself. */
enum { REFUSED_MAX = 2 * DENIALS_MAX };

void running_refused(void *context, uint64_t number, const char *target, const char *remedy)
{
	struct session *session = context;

	for (struct running *at = session->first; at != NULL; at = at->next) {
		bool meant = number != 0 ? at->number == number
					 : at->state == RUNNING_BUSY && at->tool != NULL &&
						   (at->tool->effects & EFFECT_RUNS) != 0;
		if (!meant || value_count(at->refused) >= REFUSED_MAX)
			continue;
		struct value *item = value_new_object();
		value_set_text(item, "target", target);
		value_set_text(item, "remedy", remedy);
		if (at->refused == NULL)
			at->refused = value_new_array();
		value_append(at->refused, item);
	}
}

void running_end_network(struct running *running)
{
	struct cell *cell = running->session->cell;
	struct outlet *outlet = cell != NULL ? cell_outlet(cell) : NULL;

	if (outlet == NULL || !running->asks)
		return;
	running->asks = false;
	outlet_revoke(outlet, running->number);
	outlet_hear(outlet);
	for (size_t i = 0; i < value_count(running->refused); i++) {
		const struct value *item = value_item(running->refused, i);

		denial_add(&running->result,
			   &(struct denial){
				   .kind = DENIAL_NET,
				   .target = value_text(value_member(item, "target")),
				   .rule = cell_spec(cell)->network_rule,
				   .remedy = value_text(value_member(item, "remedy")),
			   });
	}
	if (outlet_broken(outlet) != NULL)
		denial_add(&running->result,
			   &(struct denial){.kind = DENIAL_NET,
					    .target = "every host",
					    .rule = outlet_broken(outlet),
					    .remedy = "begin a new session"});
}

struct value *running_begin_network(struct running *running)
{
	struct outlet *outlet = cell_outlet(running->session->cell);
	struct value *list;

	if (outlet == NULL || (running->tool->effects & EFFECT_RUNS) == 0)
		return NULL;
	running->asks = true;
	list = value_new_array();
	outlet_grant(outlet, running->number, list);
	return list;
}
