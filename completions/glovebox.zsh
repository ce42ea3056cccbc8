#compdef glovebox
# zsh completion of glovebox: the program itself knows its verbs, options and names.
_glovebox()
{
	local line
	local -a told

	for line in ${(f)"$(${(Q)words[1]} complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"}; do
		told+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	if (( $#told )); then
		_describe 'glovebox' told
	else
		_files
	fi
}
# Found in a folder of fpath this file is the function; read by source it tells of it.
if [[ $funcstack[1] == _glovebox ]]; then
	_glovebox "$@"
else
	compdef _glovebox glovebox
fi
