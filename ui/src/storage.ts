// Browser storage that may be full, disabled or in the way: reading gives null, writing says whether it worked.
function safe<T>(f: () => T, otherwise: T): T {
	try { return f() } catch { return otherwise }
}
const of = (store: () => Storage) => ({
	get: (name: string) => safe(() => store().getItem(`atoll.${name}`), null),
	set: (name: string, value: string) => safe(() => { store().setItem(`atoll.${name}`, value); return true }, false),
	remove: (name: string) => safe(() => { store().removeItem(`atoll.${name}`); return true }, false),
})
export const local = of(() => localStorage)
export const tab = of(() => sessionStorage)
