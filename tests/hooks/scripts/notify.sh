#!/bin/bash
# Tell a person that somebody waits; here, in a file.
jq -r '"\(.notification_type): \(.message)"' >notified
