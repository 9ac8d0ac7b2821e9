/** Different free ports of the loopback address. Another process can take one of them meanwhile. */
export function freePorts(count: number): number[] {
  const open = () => Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  // All stay open until the last is known: otherwise the system may return one twice.
  const listeners = Array.from({ length: count }, open);
  const ports = listeners.map(({ port }) => port);
  for (const listener of listeners) listener.stop(true);
  return ports;
}
