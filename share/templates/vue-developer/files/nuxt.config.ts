// Nothing is sent to other hosts.
export default defineNuxtConfig({ compatibilityDate: '2025-01-01', devtools: { enabled: false }, telemetry: false, experimental: { appManifest: false } })
