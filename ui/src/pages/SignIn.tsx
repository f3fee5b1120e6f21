// Signing in: over an empty page, or over the page whose key has expired, which stays as it was.
import { useSignal } from '@preact/signals'
import { Icon } from '../icons'
import * as session from '../session'
import { t } from '../texts'
import { Line } from '../parts/basics'

export function SignIn() {
	const key = useSignal(''), busy = useSignal(false)
	const submit = async (e: Event) => {
		e.preventDefault()
		const k = key.value.trim()
		if (!/^e2b_[0-9a-f]{40}$/.test(k) && !k.includes('.')) {
			session.problem.value = t.signIn.wrongForm
			return
		}
		busy.value = true
		await session.signIn(k)
		busy.value = false
	}
	return <main class="signin" id="main">
		<form onSubmit={submit}>
			<span class="brand big"><Icon name="atoll" size={36} /></span>
			<h1>{t.signIn.title}</h1>
			<p class="lead">{t.signIn.lead}</p>
			<Line text="sudo atoll ui" />
			<p class="or"><span>{t.signIn.or}</span></p>
			<label for="key">{t.signIn.field}</label>
			<input id="key" type="password" autocomplete="current-password" spellcheck={false} placeholder={t.signIn.placeholder} value={key.value} autofocus
				aria-describedby="key-problem" aria-invalid={session.problem.value ? true : undefined} onInput={(e) => { key.value = e.currentTarget.value }} />
			<p id="key-problem" class="problem" role="alert">{session.problem.value}</p>
			<button class="primary" type="submit" disabled={busy.value || !key.value.trim()}>{busy.value ? t.signIn.checking : t.signIn.button}</button>
		</form>
	</main>
}
