import { type ClientScheme, createClientScheme } from "./addresses.ts";

/** What says where browsers find the server. */
export interface OriginSettings {
  /** Where they reach it; null: where their requests say. */
  readonly publicUrl: string | null;
  readonly trustProxy: readonly string[];
  readonly tls: object | null;
  readonly host: string;
  readonly port: number;
}

/** The origin of this server's own pages. */
export class OwnOrigin {
  /** The address at the other end of a request's socket. Known once there is a server. */
  socketAddress: (request: Request) => string | null = () => null;
  private readonly schemeOf: ClientScheme;

  constructor(private readonly settings: OriginSettings) {
    this.schemeOf = createClientScheme(settings.trustProxy);
  }

  /** As a request shows it: by its `Host`, and the scheme that it came by. A trusted proxy says by which it got it. */
  of(request: Request): string {
    const { publicUrl, host, port, tls } = this.settings;
    if (publicUrl !== null) return new URL(publicUrl).origin;
    const scheme = this.schemeOf(request, this.socketAddress(request)) ?? (tls === null ? "http" : "https");
    const asked = request.headers.get("host") ?? `${host}:${port}`;
    // As browsers write it: without the scheme's own port.
    return URL.parse(`${scheme}://${asked}`)?.origin ?? "null";
  }
}
