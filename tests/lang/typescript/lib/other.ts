const name: string = "Größe 漢字";
export function greeting(): string {
  return `from the other file: ${name}`;
}
