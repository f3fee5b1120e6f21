// Programs in the reader's own browser: what the pages, the frame and its worker send each other. No box is created.
export const OUTPUT_MOST = 1 << 20 // bytes of output that are shown; the rest is counted

export type PlayLanguage = 'python' | 'javascript'
export interface PlayProgram { language: PlayLanguage, code: string, stdin: string, files: string } // files: address of the interpreters
export interface PlayEnd { ok: boolean, error?: string, dropped: number, ms: number }
export type PlayMessage = { type: 'ready' | 'loading' | 'running' } | { type: 'out', stream: 0 | 1, text: string } | ({ type: 'end' } & PlayEnd)

/** The interpreter for a language of the server, if there is one for browsers. */
export const playLanguage = (name: string): PlayLanguage | null => name === 'python' ? 'python' : name === 'node' || name === 'javascript' ? 'javascript' : null
