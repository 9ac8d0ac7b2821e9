/**
 * The path of an operation with its ids.
 * @throws Error for an id that is empty or consists of dots: it would address another operation
 */
export function filledPath(template: string, params: Readonly<Record<string, string>>): string {
  return template
    .split("/")
    .map((part) => (part.startsWith("{") ? segment(params[part.slice(1, -1)]) : part))
    .join("/");
}

function segment(id = ""): string {
  if (/^\.{0,2}$/.test(id)) throw new Error(`"${id}" is not a valid id.`);
  return encodeURIComponent(id);
}
