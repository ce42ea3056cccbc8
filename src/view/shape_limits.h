/*
 * shape_limits: the limits of a policy that depend on this machine and on the file system
 * of the workspace.
 */
#pragma once
#include "policy/policy.h"

/* Put numbers where LIMITS say POLICY_BY_MACHINE. WORKSPACE_FD: any descriptor of it. */
void shape_limits(struct policy_limits *limits, int workspace_fd);
