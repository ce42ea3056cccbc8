/*
 * steer: the socket between a bridge and the front: lines of JSON. Both ends are ours, but
 * the bridge reads what strangers send, so the front takes its lines as foreign text.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"

struct steer {
	int fd; /* borrowed */
	struct buf line;
};

/* The longest line. */
enum { STEER_LINE_MAX = 1 << 20 };

void steer_init(struct steer *steer, int fd);
void steer_fini(struct steer *steer);
/* Send TAKE_VALUE as one line, and wait until it is out. False: the other end has gone. */
bool steer_tell(struct steer *steer, struct value *take_value);
/* Wait for the next line, an object. NULL: the other end has gone, or speaks otherwise. */
struct value *steer_hear(struct steer *steer);
