/** What the first lines tell. */
export interface BannerFacts {
  readonly version: string;
  readonly url: string;
  /** Null for an ephemeral server. */
  readonly folder: string | null;
  /** The operator's key, at the start that made it. */
  readonly key: string | null;
}

/** The lines that a person reads when the server is ready. The command in them works as it stands. */
export function banner({ version, url, folder, key }: BannerFacts): string {
  const lines = [
    `Ninefold ${version} is ready.`,
    "",
    `  URL    ${url}`,
    `  Data   ${folder ?? "temporary, deleted at exit"}`,
  ];
  if (key === null) return `${lines.join("\n")}\n`;
  const auth = `-H 'Authorization: Bearer ${key}'`;
  lines.push(
    `  Key    ${key}`,
    "",
    "This is the operator's API key. It is shown this once: keep it. Try it:",
    "",
    `  curl ${auth} -d '{"amount": 100}' ${url}/v1/meter/my-first-meter/refill && curl ${auth} -d '{"amount": 1}' ${url}/v1/meter/my-first-meter/deduct`,
    "",
  );
  return `${lines.join("\n")}\n`;
}

/** The one line for programs: the operator's user id, and its key when this start tells it. */
export function readyLine(url: string, userId: string, key: string | null): string {
  const line = { url, ...(key === null ? {} : { api_key: key }), user_id: userId, pid: process.pid };
  return `${JSON.stringify(line)}\n`;
}
