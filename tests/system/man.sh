#!/bin/sh
# man.sh - the manual and the program say the same.
set -u
page=$(dirname "$0")/../../man/atoll.1
verbs='run batch pipeline agent exec shell repl attach ps kill wait new ls show rename set env port rm prune pause resume snapshot volume
	packages cp cat put diff logs top stats runs events key serve stop upgrade doctor config api ui mcp model policy
	bench cert lang completion version help'
verbs=$(echo $verbs) # one line
n=0

# The verb's own text, with every flag on a line of its own, as --name.
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

echo "1..$(($(echo $verbs | wc -w) + 2))"
for verb in $verbs; do
	missing=
	listed=$(flags "$verb")
	[ "$listed" ] || missing="atoll $verb -h"
	for flag in $listed; do
		grep -q -e "Fl -${flag#--}\( \|$\)" "$page" || missing="$missing $flag"
	done
	grep -q "^\.It Cm $verb$" "$page" || missing="$missing $verb"
	ok "every flag of $verb is in the manual" "$missing"
done

missing=
for flag in $(sed -n 's/^\.It .*Fl -\([a-z][a-z-]*\).*/\1/p' "$page" | sort -u); do
	for verb in $verbs; do flags "$verb"; done | grep -qx -e "--$flag" || missing="$missing --$flag"
done
# The keeper is not for people and has no -h.
missing=$(echo " $missing " | sed 's/ --idle-exit / /; s/ --pool / /; s/ --ready-fd / /' | xargs)
ok "every flag of the manual exists" "$missing"

missing=
for verb in $("$ATOLL" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -vx atoll); do
	case " $verbs " in *" $verb "*) ;; *) missing="$missing $verb" ;; esac
done
ok "every verb of the overview is looked at here" "$missing"
