// Light or dark: as the system says, unless the user says otherwise.
import { computed, effect, signal } from '@preact/signals'
import { local } from './storage'

export type Theme = 'system' | 'light' | 'dark'
const saved = local.get('theme')
export const theme = signal<Theme>(saved === 'light' || saved === 'dark' ? saved : 'system')
const system = matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(system.matches)
system.addEventListener('change', () => { systemDark.value = system.matches })
export const dark = computed(() => theme.value === 'dark' || (theme.value === 'system' && systemDark.value))

effect(() => { document.documentElement.dataset.theme = dark.value ? 'dark' : 'light' })

export function nextTheme() {
	theme.value = theme.value === 'system' ? 'light' : theme.value === 'light' ? 'dark' : 'system'
	local.set('theme', theme.value)
}
