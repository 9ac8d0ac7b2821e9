import { StartupError } from "../kernel/errors.ts";
import { extraAuthorities } from "../kernel/outbound/authorities.ts";
import { OutboundClient } from "../kernel/outbound/client.ts";
import type { ArchivePlace } from "./store.ts";

/** The options of an archive. */
export interface ArchiveSettings {
  /** `s3://bucket/prefix`. */
  readonly url: string;
  /** URL of the object store; null for Amazon S3 in the region. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Shortest time between two objects. */
  readonly intervalMs: number;
  /** How long the archive can restore any time. */
  readonly keepMs: number;
}

/** A bucket, and a prefix that needs no escaping anywhere. */
const URL_FORM = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[A-Za-z0-9._-]{1,100}){0,5})\/?$/;

/** Whether a text is the URL of an archive. */
export function isArchiveUrl(text: string): boolean {
  return text.startsWith("s3://");
}

/** Reads the URL of an archive. @throws StartupError */
export function archivePlace(settings: Omit<ArchiveSettings, "intervalMs" | "keepMs">): ArchivePlace {
  const [, bucket, path] = URL_FORM.exec(settings.url) ?? [];
  if (bucket === undefined || path === undefined) {
    throw new StartupError(
      `archive: "${settings.url}" is not a URL such as s3://bucket/prefix, with a prefix of letters, digits, ".", "_" and "-".`,
    );
  }
  const endpoint = settings.endpoint ?? `https://s3.${settings.region}.amazonaws.com`;
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ""))
    throw new StartupError(`archive_endpoint: "${endpoint}" is not a URL such as https://s3.example.com.`);
  const { region, accessKeyId, secretAccessKey } = settings;
  return {
    bucket: { account: null, endpoint, bucket, region, accessKeyId, secretAccessKey, allowsHttp: true },
    prefix: path === "" ? "" : `${path.slice(1)}/`,
  };
}

/** Sends the requests of an archive. The operator has named the endpoint: it may be anywhere. */
export function archiveClient(extraCaPath: string | null): OutboundClient {
  return new OutboundClient(["all"], extraAuthorities(extraCaPath));
}
