// javascript.js - what programs find beside the language in the module `javascript`: console, timers, process, and files as
// readFile(path), writeFile(path, text), readInput(). Returns the function that executes the next timer.
(function (host) {
  const DEPTH = 3, ITEMS = 100
  const quote = (s) => "'" + s.replace(/\\/g, '\\\\').replace(/'/g, "\\'").replace(/\n/g, '\\n') + "'"
  const key = (k) => typeof k === 'symbol' ? '[' + String(k) + ']' : /^[A-Za-z_$][\w$]*$/.test(k) ? k : quote(k)

  function items(list, show, total) {
    const shown = list.slice(0, ITEMS).map(show)
    if (total > shown.length) shown.push(`... ${total - shown.length} more`)
    return shown
  }

  function enclose(open, shown, close) {
    const line = shown.join(', ')
    if (!shown.length) return open + close
    return line.length > 72 || line.includes('\n') ? `${open}\n  ${shown.join(',\n').replace(/\n/g, '\n  ')}\n${close}` : `${open} ${line} ${close}`
  }

  function inspect(value, depth = 0, above = []) {
    const show = (v) => inspect(v, depth + 1, [...above, value])
    if (typeof value === 'string') return depth ? quote(value) : value
    if (typeof value === 'bigint') return value + 'n'
    if (Object.is(value, -0)) return '-0'
    if (typeof value === 'function') return /^class\b/.test(value) ? `[class ${value.name}]` : `[Function: ${value.name || '(anonymous)'}]`
    if (typeof value !== 'object' || value === null) return String(value)
    if (above.includes(value)) return '[Circular]'
    if (value instanceof Error) return `${value}\n${value.stack || ''}`.trimEnd()
    if (value instanceof Date) return isNaN(value) ? 'Invalid Date' : value.toISOString()
    if (value instanceof RegExp) return String(value)
    const name = Object.getPrototypeOf(value)?.constructor?.name ?? '[Object: null prototype]'
    if (depth >= DEPTH) return Array.isArray(value) ? '[Array]' : `[${name}]`
    if (Array.isArray(value)) return enclose('[', items(value, show, value.length), ']')
    if (ArrayBuffer.isView(value) && value.length !== undefined)
      return enclose(`${name}(${value.length}) [`, items(Array.from(value.subarray(0, ITEMS)), show, value.length), ']')
    if (value instanceof Map)
      return enclose(`Map(${value.size}) {`, items([...value], ([k, v]) => `${show(k)} => ${show(v)}`, value.size), '}')
    if (value instanceof Set) return enclose(`Set(${value.size}) {`, items([...value], show, value.size), '}')
    const keys = Reflect.ownKeys(value).filter((k) => Object.prototype.propertyIsEnumerable.call(value, k))
    return enclose((name === 'Object' ? '' : name + ' ') + '{', items(keys, (k) => `${key(k)}: ${show(value[k])}`, keys.length), '}')
  }

  function format(words) {
    let rest = words
    if (typeof words[0] === 'string' && words.length > 1) {
      rest = words.slice(1)
      const text = words[0].replace(/%[sdifjoO%]/g, (mark) => {
        if (mark === '%%') return '%'
        if (!rest.length) return mark
        const word = rest.shift()
        return mark === '%s' ? String(word) : mark === '%j' ? JSON.stringify(word) : mark === '%i' ? String(parseInt(word))
          : mark === '%d' || mark === '%f' ? String(Number(word)) : inspect(word, 1)
      })
      rest = [text, ...rest]
    }
    return rest.map((w) => inspect(w)).join(' ') + '\n'
  }

  const out = (...words) => host.write(1, format(words)), err = (...words) => host.write(2, format(words))
  const timers = new Map()
  let last = 0

  function add(f, ms, words, again) {
    if (typeof f !== 'function') throw new TypeError('a timer needs a function')
    ms = Math.max(1, Number(ms) || 0)
    timers.set(++last, { f, words, at: Date.now() + ms, every: again ? ms : 0 })
    return last
  }

  function nextTimer() {
    let next
    for (const [id, t] of timers) if (!next || t.at < next[1].at) next = [id, t]
    if (!next) return false
    const [id, t] = next, wait = t.at - Date.now()
    if (wait > 0) host.sleep(wait)
    if (t.every) t.at = Date.now() + t.every
    else timers.delete(id)
    t.f(...t.words)
    return true
  }

  const own = {
    console: { log: out, info: out, debug: out, error: err, warn: err, assert: (ok, ...words) => { if (!ok) err('Assertion failed', ...words) } },
    print: (...words) => host.write(1, words.join(' ') + '\n'),
    process: { argv: host.argv, exit: (status = 0) => host.exit(status), stdout: { write: (s) => host.write(1, String(s)) },
               stderr: { write: (s) => host.write(2, String(s)) } },
    scriptArgs: host.argv.slice(1),
    readFile: host.readFile, writeFile: host.writeFile, readInput: host.readInput,
    setTimeout: (f, ms, ...words) => add(f, ms, words, false),
    setInterval: (f, ms, ...words) => add(f, ms, words, true),
    clearTimeout: (id) => { timers.delete(id) },
    clearInterval: (id) => { timers.delete(id) },
    queueMicrotask: (f) => { Promise.resolve().then(f) }
  }
  for (const name of Object.keys(own)) Object.defineProperty(globalThis, name, { value: own[name], writable: true, configurable: true })
  return nextTimer
})
