export default function Home() {
  return <main><h1>Next.js</h1><p>Edit pages/index.tsx.</p></main>
}
