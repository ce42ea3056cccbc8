/* cores: how many processors this process may use. */
#pragma once

/* At least 1; a program that was bound to some (taskset, a container) has only those. */
unsigned cores_usable(void);
