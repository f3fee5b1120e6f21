/* main.c - one executable, several roles. The first argument is the role: a number is mux, which is
 * started as init is (init UID ROOT ...). */
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/guest.h"
#include "mux/guest_vm.h"
#include "mux/mux.h"
#include "mux/supervise.h"

_Noreturn void init_main(long *stack);

_Noreturn void init_main(long *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)(stack + 1);

	if (argc >= 2 && !text_compare(argv[1], "guest"))
		guest_main(argc, argv);
	if (argc >= 2 && !text_compare(argv[1], "vm"))
		guest_vm_main();
	if (argc == 4 && !text_compare(argv[1], "supervise"))
		supervise_main(argv);
	if (argc >= 3 && text_number(argv[1], 0xfffffffeu) >= 0)
		mux_main(argc, argv);
	sys_exit(70);
}
