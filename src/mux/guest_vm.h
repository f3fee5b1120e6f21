/* guest_vm.h - the first process of a virtual machine: modules, ports, file systems; then the guest
 * stub. */
#pragma once

_Noreturn void guest_vm_main(void); /* /mux vm */
