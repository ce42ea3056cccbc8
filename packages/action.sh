#!/bin/bash
# action.sh: what action.yml does on a runner. PACKAGE is a .deb, as a path or an https address with its
# SHA256; empty: the .deb is built from the source beside this script. Ends only when a cell can be made.
set -euo pipefail

fail()
{
	printf '::error::%s\n' "$1"
	exit 1
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

source=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

package=${PACKAGE:-}
case $package in
'')
	(cd "$source" && make && dev/package --output "$folder" deb) || fail "the package could not be built"
	package=$(echo "$folder"/*.deb)
	;;
https://*)
	[ -n "${SHA256:-}" ] || fail "sha256 must be given with an address: nothing is installed unchecked"
	curl -fsSL --proto '=https' --max-time 300 -o "$folder/glovebox.deb" "$package" ||
		fail "$package could not be fetched"
	package=$folder/glovebox.deb
	;;
*://*) fail "$package is no https address" ;;
esac
[ -f "$package" ] || fail "there is no file $package"
if [ -n "${SHA256:-}" ]; then
	printf '%s  %s\n' "$SHA256" "$package" | sha256sum --check --status 2>/dev/null ||
		fail "the package is another one than sha256 says: $(sha256sum <"$package" | cut -d ' ' -f 1)"
fi
as_root dpkg -i "$package"
glovebox --version
mkdir "$folder/work"
glovebox exec -C "$folder/work" true || fail "no cell can be made on this runner: glovebox doctor says what is missing"
