/** Ports of the loopback address that were free a moment ago, all different. */
export function freePorts(count: number): number[] {
  const open = () => Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  // All are held until the last is known: otherwise the system may give one twice.
  const listeners = Array.from({ length: count }, open);
  const ports = listeners.map(({ port }) => port);
  for (const listener of listeners) listener.stop(true);
  return ports;
}
