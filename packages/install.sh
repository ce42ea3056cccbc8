#!/bin/sh
# install.sh [--prefix DIR] [--uninstall]: put glovebox below DIR (/usr/local unless told; ~/.local needs
# no root), or take away what this version has put there.
set -eu

usage()
{
	sed -n '2,3s/^# //p' "$0"
}

complain()
{
	printf 'install.sh: %s\n' "$*" >&2
	exit 2
}

prefix=/usr/local
uninstall=no
while [ $# -gt 0 ]; do
	case $1 in
	--prefix)
		[ $# -ge 2 ] || complain '--prefix needs a folder, such as --prefix ~/.local'
		prefix=$2
		shift
		;;
	--prefix=*) prefix=${1#--prefix=} ;;
	--uninstall) uninstall=yes ;;
	--help)
		usage
		exit
		;;
	*) complain "there is no option $1; --help tells those that there are" ;;
	esac
	shift
done
case $prefix in
/*) ;;
*) complain "--prefix $prefix is no absolute path; write --prefix \"\$PWD/$prefix\"" ;;
esac

cd "$(dirname "$0")/files"
find . -type f | sort | while read -r file; do
	to=$prefix/${file#./}
	if [ "$uninstall" = yes ]; then
		rm -f "$to"
		# A folder goes when nothing is left in it. One of the system always has something.
		(cd "$prefix" 2>/dev/null && rmdir -p "$(dirname "${file#./}")" 2>/dev/null) || true
		continue
	fi
	mkdir -p "$(dirname "$to")" || complain "cannot write in $prefix; use sudo, or --prefix ~/.local"
	# A program that runs keeps its file: the new one takes the name.
	case $file in
	*.service) sed "s|@PROGRAM@|$prefix/bin/glovebox|" "$file" >"$to.new" && chmod 644 "$to.new" ;;
	*) cp -p "$file" "$to.new" ;;
	esac || complain "cannot write in $prefix; use sudo, or --prefix ~/.local"
	mv -f "$to.new" "$to"
done
[ "$uninstall" = yes ] || printf 'glovebox is in %s/bin. Try: %s/bin/glovebox doctor\n' "$prefix" "$prefix"
