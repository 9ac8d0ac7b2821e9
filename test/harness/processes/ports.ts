/**
 * Where ports are looked for: below those that systems assign by themselves (from 32,768 on Linux, from 49,152 elsewhere).
 * Another process would otherwise be given one of them before the program that it is for listens.
 */
const FIRST_PORT = 10_000;
const END_PORT = 32_768;
/** Attempts for each port: hardly any is taken. */
const ATTEMPTS_MAX = 100;

/** Different free ports of the loopback address. */
export function freePorts(count: number): number[] {
  // All stay open until the last is known: otherwise one could be found twice.
  const listeners = Array.from({ length: count }, listenAnywhere);
  const ports = listeners.map(({ port }) => port);
  for (const listener of listeners) listener.stop(true);
  return ports;
}

/** The same for one. */
export function freePort(): number {
  const [port = 0] = freePorts(1);
  return port;
}

function listenAnywhere() {
  for (let attempt = 1; ; attempt += 1) {
    const port = FIRST_PORT + Math.floor(Math.random() * (END_PORT - FIRST_PORT));
    try {
      return Bun.listen({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
    } catch (error) {
      if (attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
