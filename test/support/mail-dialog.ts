import { createServer, type Server } from "node:net";
import tls from "node:tls";
import type { Certificate } from "./certificates.ts";

/** A server whose connections begin with a greeting, and that replies line by line; after the reply to `startsTls` it begins TLS. */
export function mailDialog(
  { cert, key }: Certificate,
  greeting: string,
  replies: Readonly<Record<string, string>>,
  startsTls: string,
): Server {
  return createServer((socket) => {
    socket.on("error", () => {});
    socket.write(greeting);
    const onData = (bytes: Buffer): void => {
      const line = bytes.toString().trim();
      const command = line.split(" ").at(line.startsWith("a1") ? 1 : 0) ?? "";
      socket.write(replies[command] ?? "500 what?\r\n");
      if (command !== startsTls) return;
      socket.off("data", onData);
      const secure = new tls.TLSSocket(socket, { isServer: true, cert, key });
      secure.on("error", () => {});
    };
    socket.on("data", onData);
  });
}
