#!/bin/sh
echo 1..3
echo ok 1 - first
echo not ok 2 - second
echo "# tests/lines.sh:5: seen 1, wanted 2"
echo ok 3 - third '# SKIP not on this machine'
