import type { Connection } from "./connection.ts";
import type { Deadline } from "./outcome.ts";

/** Bytes that are read of what a server sends first: eight times a greeting of SMTP (RFC 5321, section 4.5.3.1). */
export const FIRST_BYTES_MAX = 4_096;

/** Searches a text in what a server sends first. */
export class FirstBytes {
  private readonly expected: Buffer;
  private readonly received = Buffer.alloc(FIRST_BYTES_MAX);
  private length = 0;

  constructor(expected: string) {
    this.expected = Buffer.from(expected);
  }

  /**
   * Whether the text occurs in the first {@link FIRST_BYTES_MAX} bytes, or before the other end closes the connection.
   * @throws OutboundFailure `timeout`
   */
  readFrom(connection: Connection, deadline: Deadline): Promise<boolean> {
    return deadline.within<boolean>((settle) => {
      connection.listener = {
        onBytes: (bytes) => {
          if (this.push(bytes)) settle.resolve(true);
          else if (this.length === FIRST_BYTES_MAX) settle.resolve(false);
        },
        onEnd: () => settle.resolve(false),
      };
      if (!connection.isOpen) settle.resolve(false);
    });
  }

  private push(bytes: Buffer): boolean {
    // Only where the text can end in the new bytes: many small pieces must not be searched again and again.
    const from = Math.max(0, this.length - this.expected.length + 1);
    this.length += bytes.copy(this.received, this.length);
    return this.received.subarray(from, this.length).includes(this.expected);
  }
}
