import { html, type Markup } from "./markup.ts";

/** A public page without scripts and third-party content. Addresses are relative, so they work behind a path prefix. */
export interface PublicDocument {
  readonly title: string;
  /** Address of the stylesheet. */
  readonly style: string;
  /** Address of the icon; null for none. */
  readonly icon: string | null;
  /** Whether search engines may index it. */
  readonly index: boolean;
  /** Further elements of the head. */
  readonly head?: Markup;
  readonly body: Markup;
}

/** Renders a whole HTML document. */
export function documentOf({ title, style, icon, index, head, body }: PublicDocument): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${index ? null : html`<meta name="robots" content="noindex">\n`}${icon === null ? null : html`<link rel="icon" href="${icon}">\n`}<link rel="stylesheet" href="${style}">
${head ?? null}</head>
<body>
${body}</body>
</html>
`.text;
}

/** The header of a page: its icon, its heading and what follows. */
export function headerOf(icon: string, heading: string, more: Markup | null = null): Markup {
  return html`<header>
<img class="icon" src="${icon}" alt="" width="32" height="32">
<h1>${heading}</h1>
${more}</header>
`;
}
