// The time, once a second, for "3 min ago"; it stands still while nobody looks.
import { signal } from '@preact/signals'
export const clock = signal(Date.now())
setInterval(() => { if (!document.hidden) clock.value = Date.now() }, 1000)
