// The time, once a second, for "3 min ago"; paused while the page is hidden.
import { signal } from '@preact/signals'
export const clock = signal(Date.now())
setInterval(() => { if (!document.hidden) clock.value = Date.now() }, 1000)
