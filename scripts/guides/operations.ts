import { decoded } from "./code-blocks.ts";

/** An operation of the API, as `codegen` lists it. */
export interface OperationEntry {
  readonly id: string;
  readonly area: string;
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  readonly summary: string;
}

/** The address of a request in a shell block. */
const ADDRESS = /\$\{?URL\}?(\/[^\s"'`)?]*)/;
const METHOD = /-X ?(GET|POST|PUT|PATCH|DELETE)\b/;
const BODY = /\s(?:-d|--data|--data-raw|--data-binary|--json)\b/;
/** A request in the text: a method with a path. */
const MENTION = /^(GET|POST|PUT|PATCH|DELETE) (\/[^\s?]*)/;

/** Finds operations by method and path. */
export class Operations {
  private readonly entries: readonly OperationEntry[];

  constructor(entries: readonly OperationEntry[]) {
    this.entries = entries;
  }

  /** All operations, in the document's order. */
  get all(): readonly OperationEntry[] {
    return this.entries;
  }

  /** The operation that a request reaches; variables of a shell and parameters in braces match every parameter. */
  find(method: string, path: string): OperationEntry | undefined {
    const given = path.replace(/\/$/, "").split("/");
    const matches = this.entries.filter((entry) => {
      const own = entry.path.split("/");
      return (
        entry.method === method &&
        own.length === given.length &&
        own.every((part, at) => isMet(part, given[at]))
      );
    });
    // A fixed segment is closer than a parameter.
    return matches.sort((a, b) => parametersOf(a.path) - parametersOf(b.path))[0];
  }

  /** The operation of an inline code such as `GET /v1/pulse`. */
  mentioned(code: string): OperationEntry | undefined {
    const [, method, path] = MENTION.exec(code) ?? [];
    return method === undefined || path === undefined ? undefined : this.find(method, path);
  }

  /** The operations that a shell block requests. */
  requested(block: string): OperationEntry[] {
    return block
      .split(/\bcurl\b/)
      .slice(1)
      .flatMap((request) => {
        const path = ADDRESS.exec(request)?.[1];
        const method = METHOD.exec(request)?.[1] ?? (BODY.test(request) ? "POST" : "GET");
        return path === undefined ? [] : (this.find(method, path) ?? []);
      });
  }

  /** The operations that a rendered page requests or mentions, each once. */
  ofPage(html: string): OperationEntry[] {
    const found = new Set<OperationEntry>();
    for (const [, code = ""] of html.matchAll(/<code(?: class="language-sh")?>(.*?)<\/code>/gs)) {
      const text = decoded(code.replaceAll(/<[^>]*>/g, ""));
      const mentioned = this.mentioned(text);
      if (mentioned !== undefined) found.add(mentioned);
      for (const entry of this.requested(text)) found.add(entry);
    }
    return [...found];
  }
}

/** The address of an operation in the API reference, relative to the server's root. */
export function referenceOf({ area, id }: OperationEntry): string {
  return `docs#/${encodeURIComponent(area)}/${id}`;
}

function isMet(part: string, given: string | undefined): boolean {
  return part === given || (part.startsWith("{") && given !== undefined && given !== "");
}

function parametersOf(path: string): number {
  return path.split("{").length;
}
