/** Stands around the name of a variable within a text. */
export const MARK = "\u0001";

/** A request of an example, as its curl command says it. */
export interface ExampleCall {
  readonly method: string;
  /** From `/v1`, with the query; variables are between marks. */
  readonly path: string;
  /** Parsed JSON, whose texts may contain variables; undefined without a body. */
  readonly body: unknown;
}

/** A value within a response, such as `.keys[0].id`. */
export type Path = readonly (string | number)[];

/** A command of an example. */
export type ExampleStep =
  /** Address and key are set: the client is created. */
  | { readonly kind: "setup" }
  /** A request whose response, or a value in it, is printed or stored in a variable. */
  | {
      readonly kind: "call";
      readonly call: ExampleCall;
      readonly path: Path;
      readonly variable: string | null;
    }
  /** A value of a stored response, which is printed or stored. */
  | { readonly kind: "read"; readonly from: string; readonly path: Path; readonly variable: string | null };

/** Commands that set the address and the key. */
const SETUP = /^(?:URL=http:\/\/127\.0\.0\.1:9909|AUTH='Authorization: Bearer sm_…')$/;
const CAPTURE = /^([A-Z_]+)=\$\((.*)\)$/s;
/** `jq` with a plain path. */
const JQ = /^(.*?) \| jq (?:-[a-z]+ )?(?:'(\.[^']*)'|(\.\S*))$/s;
const ECHO = /^echo (?:"\$([A-Z_]+)"|\$([A-Z_]+))$/;

/** The step of a command; null for one that is not a request to the API in a form that every language has. */
export function stepOf(command: string): ExampleStep | null {
  if (SETUP.test(command)) return { kind: "setup" };
  const [, variable = null, captured = command] = CAPTURE.exec(command) ?? [];
  const [, piped = captured, quoted, plain] = JQ.exec(captured) ?? [];
  const path = pathOf(quoted ?? plain ?? ".");
  if (path === null) return null;
  const [, echoed, bare] = ECHO.exec(piped) ?? [];
  const from = echoed ?? bare;
  if (from !== undefined) return { kind: "read", from, path, variable };
  const call = callOf(piped);
  return call === null ? null : { kind: "call", call, path, variable };
}

function pathOf(text: string): Path | null {
  if (text === ".") return [];
  if (!/^(?:\.[a-z_]+(?:\[\d+\])*)+$/.test(text)) return null;
  return [...text.matchAll(/\.([a-z_]+)|\[(\d+)\]/g)].map(([, name, at]) => name ?? Number(at));
}

function callOf(command: string): ExampleCall | null {
  const words = wordsOf(command);
  if (words?.shift() !== "curl") return null;
  const options: { "-X"?: string | undefined; "-d"?: string | undefined; url?: string } = {};
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === "-s") continue;
    if (word === "-X" || word === "-d") options[word] = words.shift();
    else if (word === "-H" && words[0] === `${MARK}AUTH${MARK}`) words.shift();
    else if (options.url === undefined && isAddress(word))
      options.url = word.slice(`${MARK}URL${MARK}`.length);
    else return null;
  }
  const { "-X": method, "-d": data, url } = options;
  if (url === undefined) return null;
  const body = data === undefined ? undefined : parsed(data);
  if (body === null) return null;
  return { method: method ?? (data === undefined ? "GET" : "POST"), path: url, body };
}

/** Pages and feeds are for browsers. */
function isAddress(word: string): boolean {
  return word.startsWith(`${MARK}URL${MARK}/v1/`) || word.startsWith(`${MARK}URL${MARK}/ofrep/`);
}

/** Null for a text that is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replaceAll(MARK, "\\u0001"));
  } catch {
    return null;
  }
}

/** The words of a command, with marks around the names of variables; null for syntax beyond quotes and variables. */
function wordsOf(command: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  const token = /'([^']*)'|"((?:[^"\\]|\\.)*)"|(\s+)|([^\s'"|<>;&]+)|(.)/gsy;
  for (const [, single, double, space, plain, other] of command.matchAll(token)) {
    if (other !== undefined) return null;
    if (space !== undefined) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    const text = single ?? marked(double?.replace(/\\(.)/g, "$1") ?? plain ?? "");
    if (text === null) return null;
    word = (word ?? "") + text;
  }
  return word === null ? words : [...words, word];
}

/** A text outside of single quotes. */
function marked(text: string): string | null {
  const found = text.replace(/\$([A-Z_]+)/g, `${MARK}$1${MARK}`);
  return /[$`]/.test(found) ? null : found;
}
