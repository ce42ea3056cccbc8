#!/bin/bash
# No summary by hand while a plan is open.
[[ $(jq -r .trigger) == manual && -e plan.md ]] && { echo "plan.md is open" >&2; exit 2; }
exit 0
