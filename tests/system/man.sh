#!/bin/sh
# man.sh - the manual has every command and flag of the program, and no other.
set -u
page=$(dirname "$0")/../../man/atoll.1
commands='run batch pipeline schedule agent exec shell repl attach ps kill wait new ls show rename set env link db port open forward rm prune pause resume checkpoint checkpoints rollback fork promote merge race snapshot volume secret net
	packages template cp cat put diff logs top stats usage runs receipt events webhook alerts key serve stop upgrade backup restore support-bundle doctor prove tier config cluster node api ui mcp model policy
	bench cert lang completion version help'
commands=$(echo $commands) # one line
n=0

# Prints the flags of a command from its help text, one --name per line.
flags() { "$ATOLL" "$1" -h | grep -oE -e '--[a-z][a-z-]+' | sort -u; }

ok() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "# missing: $(echo $2)"
	fi
}

echo "1..$(($(echo $commands | wc -w) + 2))"
for command in $commands; do
	missing=
	listed=$(flags "$command")
	[ "$listed" ] || missing="atoll $command -h"
	for flag in $listed; do
		grep -q -e "Fl -${flag#--}\( \|$\)" "$page" || missing="$missing $flag"
	done
	grep -q "^\.It Cm $command$" "$page" || missing="$missing $command"
	ok "every flag of $command is in the manual" "$missing"
done

missing= every=$(for command in $commands; do flags "$command"; done)
for flag in $(sed -n 's/^\.It .*Fl -\([a-z][a-z-]*\).*/\1/p' "$page" | sort -u); do
	echo "$every" | grep -qx -e "--$flag" || missing="$missing --$flag"
done
# The keeper is not for people and has no -h.
missing=$(echo " $missing " | sed 's/ --idle-exit / /; s/ --pool / /; s/ --ready-fd / /' | xargs)
ok "every flag of the manual exists" "$missing"

missing=
for command in $("$ATOLL" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -vx atoll); do
	case " $commands " in *" $command "*) ;; *) missing="$missing $command" ;; esac
done
ok "every command of the overview is checked by this test" "$missing"
