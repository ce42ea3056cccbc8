#!/bin/sh
# Note when a session ended.
jq -r '"\(.session_id) \(.reason)"' >>sessions.log
