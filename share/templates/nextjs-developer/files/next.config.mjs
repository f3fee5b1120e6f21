// The dev server is reached under the address of a preview. Nothing is sent to other hosts.
export default { reactStrictMode: true }
