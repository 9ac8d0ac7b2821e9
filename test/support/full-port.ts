import { dlopen, ptr } from "bun:ffi";
import { connect, type Socket } from "node:net";

const AF_INET = 2;
const SOCK_STREAM = 1;

const libc = dlopen("libc.so.6", {
  socket: { args: ["int", "int", "int"], returns: "int" },
  bind: { args: ["int", "ptr", "u32"], returns: "int" },
  listen: { args: ["int", "int"], returns: "int" },
  close: { args: ["int"], returns: "int" },
});

/** A port that swallows packets, as firewalls do: its queue is full, so the system answers no further connection. */
export class FullPort {
  private constructor(
    private readonly descriptor: number,
    private readonly queued: Socket,
  ) {}

  static async at(address: string, port: number): Promise<FullPort> {
    const { symbols } = libc;
    const descriptor = symbols.socket(AF_INET, SOCK_STREAM, 0);
    const place = Buffer.alloc(16);
    place.writeUInt16LE(AF_INET, 0);
    place.writeUInt16BE(port, 2);
    place.set(address.split(".").map(Number), 4);
    if (symbols.bind(descriptor, ptr(place), place.length) !== 0) throw new Error("the port is taken");
    if (symbols.listen(descriptor, 0) !== 0) throw new Error("the port cannot listen");
    const queued = await new Promise<Socket>((resolve, reject) => {
      const socket = connect({ host: address, port }, () => resolve(socket));
      socket.on("error", reject);
    });
    return new FullPort(descriptor, queued);
  }

  stop(): void {
    this.queued.destroy();
    libc.symbols.close(this.descriptor);
  }
}
