. ./other.sh
mode=$1
shift
case $mode in
talk)
	greeting
	for a; do echo "arg: $a"; done
	while read -r line; do echo "stdin: $line"; done
	exit 7
	;;
fault) no-such-command-ä ;;
big) head -c 10485760 /dev/zero | tr '\0' x ;;
loop) while :; do :; done ;;
memory)
	x=xxxxxxxxxxxxxxxx
	while :; do x=$x$x; done
	;;
esac
