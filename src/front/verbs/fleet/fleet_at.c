/* fleet_at: an option beats the configuration. */

#include "front/verbs/fleet/fleet_at.h"

#include "base/value.h"
#include "front/setup.h"

#include <errno.h>
#include <stdlib.h>

static const char *word_of(const struct options *options, const char *option,
			   const struct value *fleet, const char *key)
{
	const char *given = option != NULL ? options_text(options, option) : NULL;

	return given != NULL ? given : value_text(value_member(fleet, key));
}

bool fleet_at_read(struct fleet_at *at_fleet, const struct options *options, struct err *err)
{
	const struct value *fleet;

	*at_fleet = (struct fleet_at){0};
	if (!setup_config_load(options_text(options, "config"), &at_fleet->config, err))
		return false;
	fleet = config_value(at_fleet->config, "fleet");
	at_fleet->name = word_of(options, "fleet-name", fleet, "name");
	at_fleet->name = at_fleet->name != NULL ? at_fleet->name : "main";
	at_fleet->where = word_of(options, "store", fleet, "store");
	at_fleet->queue_options = (struct fleet_queue_options){
		.url = word_of(options, "fleet", fleet, "url"),
		.name = at_fleet->name,
		.credentials = word_of(options, "credentials", fleet, "credentials"),
		.ca_file = word_of(options, NULL, fleet, "ca_file"),
		.certificate = word_of(options, NULL, fleet, "certificate"),
		.key = word_of(options, NULL, fleet, "key"),
		.replicas = (int)value_integer(value_member(fleet, "replicas")),
		.lease_s = value_number(value_member(fleet, "lease_s")),
	};
	return true;
}

bool fleet_at_open_queue(struct fleet_at *at_fleet, struct err *err)
{
	if (at_fleet->queue_options.url == NULL)
		return err_set(err, EINVAL,
			       "which fleet? --fleet nats://HOST:4222, or `\"fleet\": {\"url\": …}` in "
			       "the configuration; one to try: glovebox fleet up");
	return fleet_queue_open(&at_fleet->queue_options, &at_fleet->queue, err);
}

bool fleet_at_open_store(struct fleet_at *at_fleet, bool writes, struct err *err)
{
	if (at_fleet->where == NULL)
		return err_set(err, EINVAL,
			       "which store? --store DIR or s3://BUCKET/PREFIX, or `\"fleet\": "
			       "{\"store\": …}` in the configuration");
	return fleet_store_open(at_fleet->where, writes, &at_fleet->store, err);
}

void fleet_at_fini(struct fleet_at *at_fleet)
{
	fleet_queue_close(at_fleet->queue);
	if (at_fleet->store != NULL)
		fleet_store_close(at_fleet->store);
	config_auto_free(&at_fleet->config);
	*at_fleet = (struct fleet_at){0};
}
