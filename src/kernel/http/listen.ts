import { readFileSync } from "node:fs";
import { errorText, StartupError } from "../errors.ts";
import type { Http } from "./http.ts";

/** A server that accepts requests. */
export interface Listening {
  /** Its base URL, with the port that it really got. */
  readonly url: string;
  /** Stops accepting and waits for the requests under way, at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Where and how to listen. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  /** {@link IDLE_TIMEOUT_SECONDS} unless said otherwise. */
  readonly idleTimeoutSeconds?: number;
}

/** Seconds without traffic after which a connection is closed; requests that wait longer lift it for themselves. */
const IDLE_TIMEOUT_SECONDS = 60;
/**
 * Bun's own limit answers 413 without our error body, so it is the largest there is; ours (see body.ts) is checked before
 * a byte of the body is kept.
 */
const BODY_BYTES_HARD_MAX = Number.MAX_SAFE_INTEGER;

/** Starts to accept requests. @throws StartupError when the port is taken or a TLS file cannot be read. */
export function listen(http: Http, options: ListenOptions): Listening {
  const { host, port, tls, idleTimeoutSeconds = IDLE_TIMEOUT_SECONDS } = options;
  const app = http.app;
  try {
    app.listen({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      idleTimeout: idleTimeoutSeconds,
      maxRequestBodySize: BODY_BYTES_HARD_MAX,
      ...(tls === null ? {} : { tls: { cert: readFileSync(tls.certPath), key: readFileSync(tls.keyPath) } }),
    });
  } catch (error) {
    throw new StartupError(`Cannot listen on ${host} port ${port} (${errorText(error)}).`);
  }
  const server = app.server;
  if (server === null) throw new StartupError(`Cannot listen on ${host} port ${port}.`);
  http.attach(server);
  const scheme = tls === null ? "http" : "https";
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `${scheme}://${name}:${server.port}`,
    stop: (graceMs) => http.drain(server, graceMs),
  };
}
