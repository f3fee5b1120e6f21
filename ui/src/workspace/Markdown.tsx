// Markdown as elements of this page. The text may be hostile: no HTML of it becomes markup, links lead to http(s) pages in a new
// tab or to files of the box, and pictures come from the box only.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { markdownLanguage } from '@codemirror/lang-markdown'
import { t } from '../texts'
import { Frame } from './Frame'

interface Node { name: string, from: number, to: number, firstChild: Node | null, nextSibling: Node | null }
export interface MarkdownProps { text: string, onFile?: (path: string) => void, image?: (path: string) => Promise<string> }

const marks = new Set(['HeaderMark', 'QuoteMark', 'ListMark', 'EmphasisMark', 'CodeMark', 'LinkMark', 'LinkTitle', 'LinkLabel', 'StrikethroughMark', 'TableDelimiter', 'LinkReference', 'CodeInfo', 'Comment', 'CommentBlock', 'ProcessingInstruction', 'ProcessingInstructionBlock'])
const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\u00a0', copy: '©', mdash: '—', ndash: '–', hellip: '…', rarr: '→', larr: '←', times: '×', deg: '°' }

function children(n: Node): Node[] {
	const out = []
	for (let c = n.firstChild; c; c = c.nextSibling) out.push(c)
	return out
}

function Picture({ path, alt, image }: { path: string, alt: string, image?: (path: string) => Promise<string> }) {
	const [address, setAddress] = useState(/^data:image\//i.test(path) ? path : '')
	useEffect(() => {
		if (address || !image || /^(?!attachment:)[a-z]+:/i.test(path)) return
		let made = '', gone = false
		image(path).then((a) => { made = a; if (gone) URL.revokeObjectURL(a); else setAddress(a) }, () => {})
		return () => { gone = true; if (made) URL.revokeObjectURL(made) }
	}, [path])
	return address ? <img src={address} alt={alt} /> : <span class="no-picture">{/^https?:/i.test(path) ? <a href={path} target="_blank" rel="noopener noreferrer">{alt || path}</a> : alt || path}</span>
}

class Renderer {
	private references = new Map<string, string>()
	constructor(private text: string, private o: MarkdownProps) {}

	private slice(n: Node) { return this.text.slice(n.from, n.to) }
	private child(n: Node, name: string) { return children(n).find((c) => c.name === name) }

	document(root: Node): ComponentChildren {
		for (const n of children(root))
			if (n.name === 'LinkReference') {
				const label = this.child(n, 'LinkLabel'), url = this.child(n, 'URL')
				if (label && url) this.references.set(this.slice(label).slice(1, -1).toLowerCase(), this.slice(url))
			}
		return this.blocks(root)
	}
	private blocks(n: Node) { return children(n).map((c, i) => this.block(c, i)) }

	private block(n: Node, key: number): ComponentChildren {
		const heading = n.name.match(/^(?:ATX|Setext)Heading(\d)$/)
		if (heading) { const H = `h${Math.min(6, Number(heading[1]) + 1)}` as 'h2'; return <H key={key} class={`md-h${heading[1]}`}>{this.inline(n, true)}</H> }
		switch (n.name) {
		case 'Paragraph': return <p key={key}>{this.inline(n)}</p>
		case 'Blockquote': return <blockquote key={key}>{this.blocks(n)}</blockquote>
		case 'BulletList': return <ul key={key}>{this.blocks(n)}</ul>
		case 'OrderedList': return <ol key={key} start={parseInt(this.text.slice(n.from, n.from + 9)) || 1}>{this.blocks(n)}</ol>
		case 'ListItem': return <li key={key}>{children(n).map((c, i) => c.name === 'Paragraph' ? <span class="item" key={i}>{this.inline(c)}</span> : this.block(c, i))}</li>
		case 'Task': { const mark = this.child(n, 'TaskMarker'); return <span class="item" key={key}><span aria-hidden="true">{mark && /x/i.test(this.slice(mark)) ? '☑' : '☐'}</span><span class="hidden">{mark && /x/i.test(this.slice(mark)) ? t.view.done : t.view.open}</span> {this.inline(n)}</span> }
		case 'FencedCode': case 'CodeBlock': return <pre key={key} tabIndex={0}><code>{children(n).filter((c) => c.name === 'CodeText').map((c) => this.slice(c)).join('').replace(n.name === 'CodeBlock' ? /^(?: {4}|\t)/gm : /$^/, '')}</code></pre>
		case 'HorizontalRule': return <hr key={key} />
		case 'HTMLBlock': return <Frame key={key} html={this.slice(n)} title={t.view.html} />
		case 'Table': return this.table(n, key)
		default: return marks.has(n.name) ? null : <p key={key}>{this.inline(n)}</p>
		}
	}

	private table(n: Node, key: number) {
		const cells = (row: Node) => children(row).filter((c) => c.name === 'TableCell')
		const head = this.child(n, 'TableHeader'), rows = children(n).filter((c) => c.name === 'TableRow')
		const rule = children(n).find((c) => c.name === 'TableDelimiter' && this.slice(c).includes('-')), sides = rule ? this.slice(rule).replace(/^\s*\||\|\s*$/g, '').split('|').map((s) => /^\s*:.*:\s*$/.test(s) ? 'center' : /:\s*$/.test(s) ? 'right' : undefined) : []
		return <div class="scroll-x" key={key} tabIndex={0} role="group" aria-label={t.view.table}><table><thead><tr>{head && cells(head).map((c, i) => <th scope="col" key={i} style={{ textAlign: sides[i] }}>{this.inline(c)}</th>)}</tr></thead>
			<tbody>{rows.map((r, j) => <tr key={j}>{cells(r).map((c, i) => <td key={i} style={{ textAlign: sides[i] }}>{this.inline(c)}</td>)}</tr>)}</tbody></table></div>
	}

	private inline(n: Node, trim = false): ComponentChildren[] {
		const out: ComponentChildren[] = []
		let at = n.from
		const plain = (to: number) => { if (to > at) out.push(this.text.slice(at, to).replace(/\n[ \t]*(?:>[ \t]?)*/g, '\n')) }
		for (const [i, c] of children(n).entries()) {
			plain(c.from)
			at = c.to
			if (marks.has(c.name) || c.name === 'TaskMarker' || (c.name === 'URL' && n.name === 'Link')) { if (c.name === 'HeaderMark' && this.text[at] === ' ') at++; continue }
			out.push(this.span(c, i))
		}
		plain(n.to)
		return trim && typeof out[out.length - 1] === 'string' ? [...out.slice(0, -1), (out[out.length - 1] as string).trimEnd()] : out
	}

	private span(n: Node, key: number): ComponentChildren {
		switch (n.name) {
		case 'Emphasis': return <em key={key}>{this.inline(n)}</em>
		case 'StrongEmphasis': return <strong key={key}>{this.inline(n)}</strong>
		case 'Strikethrough': return <s key={key}>{this.inline(n)}</s>
		case 'InlineCode': return <code key={key}>{this.slice(n).replace(/^`+ ?| ?`+$/g, '')}</code>
		case 'HardBreak': return <br key={key} />
		case 'Escape': return this.slice(n).slice(1)
		case 'Entity': { const name = this.slice(n).slice(1, -1), code = name.match(/^#(?:x([0-9a-f]+)|(\d+))$/i); return code ? String.fromCodePoint(Math.min(0x10ffff, parseInt(code[1] ?? code[2]!, code[1] ? 16 : 10))) : entities[name] ?? this.slice(n) }
		case 'Image': return <Picture key={key} path={this.target(n)} alt={this.label(n)} image={this.o.image} />
		case 'Link': return this.link(key, this.target(n), this.inline(n))
		case 'Autolink': case 'URL': { const url = this.slice(n).replace(/^<|>$/g, ''); return this.link(key, /^[^:/]+@/.test(url) ? `mailto:${url}` : /^www\./i.test(url) ? `https://${url}` : url, url) }
		case 'HTMLTag': return /^<br\s*\/?>$/i.test(this.slice(n)) ? <br key={key} /> : <code key={key}>{this.slice(n)}</code>
		default: return n.firstChild ? <span key={key}>{this.inline(n)}</span> : this.slice(n)
		}
	}
	/** The text of a link in its brackets. */
	private label(n: Node) { const m = this.slice(n).match(/^!?\[([^\]]*)\]/); return m?.[1] ?? '' }
	private target(n: Node): string {
		const url = this.child(n, 'URL'), label = this.child(n, 'LinkLabel')
		if (url) return this.slice(url).replace(/^<|>$/g, '')
		return this.references.get((label && label.to - label.from > 2 ? this.slice(label).slice(1, -1) : this.label(n)).toLowerCase()) ?? ''
	}
	private link(key: number, to: string, content: ComponentChildren) {
		if (WEB.test(to)) return <a key={key} href={to} target="_blank" rel="noopener noreferrer">{content}</a>
		if (to && !/^[a-z][a-z0-9+.-]*:/i.test(to) && !to.startsWith('#') && this.o.onFile) return <button key={key} class="place" onClick={() => this.o.onFile!(to.replace(/[#?].*$/, ''))}>{content}</button>
		return <span key={key}>{content}</span>
	}
}
const WEB = /^(https?:\/\/|mailto:)/i

export default function Markdown(props: MarkdownProps) {
	const tree = markdownLanguage.parser.parse(props.text)
	return <div class="markdown">{new Renderer(props.text, props).document(tree.topNode as unknown as Node)}</div>
}
