/*
 * audit_record: the guard of an audit (audit.h) on disk, for the case that the front dies. One
 * that nobody holds any more was left by a front that died: what its commands left behind was
 * never looked at.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>

struct audit_record;

/*
 * Keep GUARD in FOLDER, a file of WORKSPACE's, until audit_record_close. When an earlier
 * front of this workspace died and left one, GUARD becomes what it began with, and *DUE
 * true: the first call audits before it runs. NULL when nothing can be kept there.
 */
struct audit_record *audit_record_open(const char *folder, const char *workspace,
				       struct value *guard, bool *due);
/* While DUE the file stays when the front ends. */
void audit_record_set_due(struct audit_record *record, bool due);
void audit_record_close(struct audit_record *record); /* NULL is fine */
