#!/bin/bash
# bash.sh - runs cells of bash, one after the other, in one shell. The channel is descriptor 3 and its
# lines are those of docs/languages.md. A cell has no value; `end` carries its exit status.
#
# The cells and this file share a shell, hence the long names. Three things are not obvious:
#
# - Cells must be evaluated outside of any function, or `declare` would make locals, and on the first
#   line of a program, or the line numbers in bash's messages would be ours. So this file starts a
#   second bash whose whole program is the line in __atoll_loop; the functions come by descriptor 98.
# - Bash has no command that closes a descriptor at exec. But bash does so with those that it has put
#   aside for a redirection: the loop runs under `3>&-`, and the copy put aside is our channel.
# - An `exit`, a failure under `set -e` and an interrupt end the shell, and nothing can stop that. The
#   trap of EXIT sends the end of the cell, writes down all variables, functions, options and traps, and
#   executes bash again with them: the same process, its children, its folder, its open files.
__atoll_loop='builtin eval "$(</dev/fd/98)"; { __atoll_begin; while { __atoll_next; } 2>/dev/null; do builtin eval "$__atoll_code"; { __atoll_status=$?; __atoll_end; } 2>/dev/null; done; } 3>&-'

if [[ -z ${__atoll_main+x} ]]; then
	__atoll_text=$(<"${BASH_SOURCE[0]}")
	exec "$BASH" -c "__atoll_main=1; $__atoll_loop" bash 98<<<"$__atoll_text"$'\n__atoll_text=$(</dev/fd/99)' 99<<<"$__atoll_text"
fi

__atoll_count=0
__atoll_id='""'
__atoll_busy=0  # a cell is running
__atoll_hit=0   # and was interrupted
__atoll_env=()  # what restores the variables of its `env`
__atoll_max=$((1 << 20)) # of a message: bash reads from a socket byte by byte

__atoll_begin() {
	local fd
	exec 98<&- 99<&-
	for ((fd = 10; fd < 64; fd++)); do
		if [[ -S /dev/fd/$fd ]]; then
			__atoll_channel=$fd
		fi
	done
	exec {__atoll_out}>&1 {__atoll_err}>&2
	trap __atoll_interrupt INT
	trap __atoll_exit EXIT
	# Or, the second time, how the cell ended that has ended the shell.
	__atoll_say "${__atoll_last:-{\"ev\":\"ready\",\"language\":\"bash\",\"version\":\"${BASH_VERSION%%(*}\"\}}"
}

__atoll_say() {
	builtin printf '%s\n' "$1" >&"$__atoll_channel"
}

# The value of a JSON string. Its \\ and \" are the bytes 1 and 2 by now, which JSON does not have.
__atoll_decode() {
	local text=$1 LC_ALL=C high low
	text=${text//\\\//\/}
	while [[ $text =~ \\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2}) ]]; do
		high=$((16#${BASH_REMATCH[1]})) low=$((16#${BASH_REMATCH[2]}))
		builtin printf -v high '\\U%08x' $((((high - 0xd800) << 10) + low - 0xdc00 + 0x10000))
		text=${text//"${BASH_REMATCH[0]}"/"$high"}
	done
	LC_ALL=C.UTF-8
	builtin printf -v text '%b' "$text"
	LC_ALL=C
	text=${text//$'\1'/\\}
	__atoll_value=${text//$'\2'/\"}
}

# Cuts a message into __atoll_op, __atoll_id (as it was written), __atoll_code and __atoll_vars.
__atoll_parse() {
	local line=$1 LC_ALL=C IFS='"' depth=0 key= i
	local -a parts
	line=${line//\\\\/$'\1'}
	line=${line//\\\"/$'\2'}
	[[ $line == *\\u0000* ]] && return 1
	parts=($line)
	__atoll_op= __atoll_id= __atoll_code= __atoll_vars=() __atoll_nocode=1
	for ((i = 1; i < ${#parts[@]}; i += 2)); do
		[[ ${parts[i - 1]} == *'{'* ]] && ((++depth))
		[[ ${parts[i - 1]} == *'}'* ]] && ((--depth))
		if [[ ${parts[i + 1]-} =~ ^[[:space:]]*: ]]; then
			key=${parts[i]}
			continue
		fi
		case $depth:$key in
		1:op) __atoll_op=${parts[i]} ;;
		1:id)
			__atoll_id=${parts[i]//$'\1'/\\\\}
			__atoll_id='"'${__atoll_id//$'\2'/\\\"}'"'
			;;
		1:code)
			__atoll_decode "${parts[i]}"
			__atoll_code=$__atoll_value __atoll_nocode=
			;;
		2:*)
			__atoll_decode "${parts[i]}"
			__atoll_vars+=("$key" "$__atoll_value")
			;;
		esac
	done
	[[ $__atoll_op ]]
}

__atoll_set_env() {
	local i name
	__atoll_env=()
	for ((i = 0; i < ${#__atoll_vars[@]}; i += 2)); do
		name=${__atoll_vars[i]}
		[[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
		__atoll_env+=("$name=|$(declare -p "$name")")
		[[ ${__atoll_env[-1]} == *'|declare '* ]] || __atoll_env[-1]="unset $name"
		declare -gx "$name=${__atoll_vars[i + 1]}"
	done
}

__atoll_unset_env() {
	local line
	for line in "${__atoll_env[@]}"; do
		case $line in
		unset*) unset "${line#unset }" ;;
		*)
			unset "${line%%=*}" # with its attributes
			builtin eval "declare -g ${line#*|declare }"
			;;
		esac
	done
	__atoll_env=()
}

# The next cell is in __atoll_code; fails at the end of the channel.
__atoll_next() {
	local - line status
	set +exuvf -f
	__atoll_busy=0
	while :; do
		line=
		LC_ALL=C IFS= builtin read -r -n "$__atoll_max" -u "$__atoll_channel" line || {
			status=$?
			((status > 128)) && continue # a signal
			__atoll_leave
			return 1
		}
		if ((${#line} >= __atoll_max)); then
			__atoll_refuse "$line"
			continue
		fi
		__atoll_parse "$line" || { builtin echo 'driver: not a message' >&"$__atoll_err"; continue; }
		[[ $__atoll_op == run ]] || continue
		if [[ $__atoll_nocode ]]; then
			__atoll_fail BadMessage 'code is a string, env an object'
			__atoll_say '{"ev":"end","id":'"$__atoll_id"',"status":"error","count":'"$__atoll_count"'}'
			continue
		fi
		break
	done
	((++__atoll_count))
	__atoll_hit=0 __atoll_busy=1
	__atoll_set_env
	trap __atoll_interrupt INT
	trap __atoll_exit EXIT
	[[ -e /dev/fd/1 ]] || exec 1>&"$__atoll_out"
	return 0
}

__atoll_refuse() {
	local piece LC_ALL=C
	while IFS= builtin read -r -n "$__atoll_max" -u "$__atoll_channel" piece && ((${#piece} >= __atoll_max)); do
		:
	done
	[[ ${1:0:4096} =~ \"id\":\ ?(\"[^\"\\]*\") ]] && __atoll_id=${BASH_REMATCH[1]} || __atoll_id='""'
	__atoll_fail CellTooLarge "the message has more than $((__atoll_max >> 20)) MiB"
	__atoll_say '{"ev":"end","id":'"$__atoll_id"',"status":"error","count":'"$__atoll_count"'}'
}

__atoll_fail() {
	__atoll_say '{"ev":"error","id":'"$__atoll_id"',"name":"'"$1"'","value":"'"$2"'","frames":[],"text":"'"$1: $2"'"}'
}

__atoll_end() {
	local -
	set +exuvf
	__atoll_busy=0
	__atoll_unset_env
	__atoll_report ExitStatus
	__atoll_say "$__atoll_last"
}

__atoll_report() {
	local kind=ok name=$1 value=$__atoll_status
	((__atoll_status)) && kind=error
	[[ $1 == ExitStatus ]] || kind=error # also an exit with 0
	((__atoll_hit)) && kind=interrupted name=Interrupted value='the cell was interrupted'
	__atoll_last=
	[[ $kind == ok ]] || __atoll_last='{"ev":"error","id":'"$__atoll_id"',"name":"'"$name"'","value":"'"$value"'","frames":[],"text":"'"$name: $value"'"}'$'\n'
	__atoll_last+='{"ev":"end","id":'"$__atoll_id"',"status":"'"$kind"'","count":'"$__atoll_count"',"code":'"$__atoll_status"'}'
}

# A cell that runs is left by way of EXIT; between cells there is nothing to interrupt.
__atoll_interrupt() {
	((__atoll_busy)) || return 0
	__atoll_hit=1
	exit 130
}

__atoll_leave() {
	__atoll_busy=-1
	trap - INT EXIT
}

# All that a shell knows, as a program that says it again.
__atoll_state() {
	local __atoll_name
	for __atoll_name in $(compgen -v); do
		case $__atoll_name in
		BASH* | COMP_* | DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HISTCMD | LINENO | PIPESTATUS | PPID | \
			RANDOM | SECONDS | SHELLOPTS | SRANDOM | UID | _ | __atoll_name | __atoll_busy | __atoll_text | __atoll_channel) ;;
		*) declare -p "$__atoll_name" ;;
		esac
	done
	declare -f
	declare -Fx
	alias -p
	shopt -p
	trap -p | grep -v __atoll_
	builtin printf '%s\n' "$__atoll_options"
	[[ $__atoll_flags != *e* ]] || builtin echo 'set -e' # which $(...) does not have
}

__atoll_exit() {
	__atoll_status=$?
	__atoll_flags=$-
	__atoll_options=$(set +o)
	{
		set +exuvf
		if ((BASHPID != $$)) || ((__atoll_busy != 1)); then
			return
		fi
		IFS=$' \t\n'
		# By now bash may have ended the redirection, and put the channel back.
		[[ -S /dev/fd/$__atoll_channel ]] || __atoll_channel=3
		__atoll_unset_env
		__atoll_report SystemExit
		__atoll_saved=$(__atoll_state)
		# A copy of a descriptor that exec closes is closed, too, unless it is one of the first three.
		exec {__atoll_in}<&0 0<&"$__atoll_channel" 3<&0 0<&"$__atoll_in" {__atoll_in}<&-
	} 2>/dev/null
	exec "$BASH" -c "__atoll_main=1; $__atoll_loop" bash \
		98<<<"$__atoll_text"$'\n__atoll_text=$(</dev/fd/99)\n'"$__atoll_saved" 99<<<"$__atoll_text"
}
