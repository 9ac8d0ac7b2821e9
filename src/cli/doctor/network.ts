import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { ask } from "../../api/http-api.ts";
import { urlOf } from "../../kernel/data/addresses.ts";
import { errorText } from "../../kernel/errors.ts";
import { verifySmtp } from "../../kernel/mail/smtp.ts";
import { createSystemResolver } from "../../kernel/outbound/lookups.ts";
import { createSystemClock, realTimeout } from "../../kernel/time/clock.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { type Check, type Finding, failed, ok, skipped, warning } from "./finding.ts";

const DNS_TIMEOUT_MS = 5_000;
const PING_TIMEOUT_MS = 3_000;
/** Days before a certificate ends when it should have been renewed. */
const RENEWAL_DAYS = 14;

/** The port: free, or held by a Ninefold that runs. */
export const portCheck: Check = {
  name: "port",
  cure: "Set another address or port with --host and --port.",
  async run({ config }) {
    const { host, port } = config;
    if (port === 0) return skipped("any free one is taken");
    const trouble = await listenProblem(host, port);
    if (trouble === null) return ok(`${host} port ${port} is free`);
    if (trouble === "EADDRINUSE") return heldBy(urlOf(config), `${host} port ${port}`);
    if (trouble === "EACCES") {
      return failed(`${host} port ${port} requires root privileges`, "Use a port from 1024 on, with --port.");
    }
    if (trouble === "EADDRNOTAVAIL" || trouble === "ENOTFOUND") {
      return failed(
        `${host} is not an address of this machine`,
        "Set one with --host; 0.0.0.0 means all of them.",
      );
    }
    return failed(
      `${host} port ${port} is not available (${trouble})`,
      "Set another address or port with --host and --port.",
    );
  },
};

/** Code of the error of listening; null if it succeeds. */
function listenProblem(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: Error & { code?: string }) => resolve(error.code ?? errorText(error)));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

async function heldBy(url: string, place: string): Promise<Finding> {
  const other = failed(
    `${place} is in use by another program`,
    "Stop that program, or set another port with --port.",
  );
  try {
    const { status, body } = await ask({ url, key: null, timeoutMs: PING_TIMEOUT_MS }, "GET", "/v1/ping");
    return status === 200 && body?.["pong"] === true ? ok(`${place} is in use by a running Ninefold`) : other;
  } catch {
    return other;
  }
}

/** The certificate and its key, where HTTPS is served. */
export const tlsCheck: Check = {
  name: "TLS",
  cure: "Set a certificate and its key (PEM) with --tls-cert and --tls-key.",
  run({ config: { tls } }) {
    if (tls === null) return skipped("not configured: HTTP is served");
    const certificate = new X509Certificate(readFileSync(tls.certPath));
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(tls.keyPath)))) {
      return failed(
        `${tls.keyPath} does not match the certificate ${tls.certPath}`,
        "Set a matching certificate and key.",
      );
    }
    const now = createSystemClock().now();
    if (Date.parse(certificate.validFrom) > now) {
      return failed(
        `the certificate is valid only from ${certificate.validFrom}`,
        "Use a certificate that is valid now.",
      );
    }
    const days = Math.floor((Date.parse(certificate.validTo) - now) / DAY_MS);
    if (days < 0) return failed(`the certificate expired ${certificate.validTo}`, "Renew it.");
    const detail = `the certificate is valid for ${days} more days`;
    return days < RENEWAL_DAYS ? warning(detail, "Renew it.") : ok(detail);
  },
};

/** Whether names can be looked up: monitors and webhooks to names need it, and nothing else does. */
export const dnsCheck: Check = {
  name: "DNS",
  cure: "Check the machine's name servers (/etc/resolv.conf).",
  async run({ dnsName }) {
    const cure = "Check the machine's name servers (/etc/resolv.conf); --dns-name NAME checks another name.";
    const late = new Promise<null>((resolve) => {
      realTimeout(DNS_TIMEOUT_MS, () => resolve(null));
    });
    try {
      const found = await Promise.race([createSystemResolver().resolve(dnsName), late]);
      if (found === null)
        return warning(`no response about ${dnsName} within ${DNS_TIMEOUT_MS / 1000} s`, cure);
      return ok(`${dnsName} is ${found.slice(0, 2).join(", ")}`);
    } catch {
      return warning(`${dnsName} cannot be resolved`, cure);
    }
  },
};

/** Whether the mail server responds, supports TLS and accepts the login. */
export const smtpCheck: Check = {
  name: "SMTP",
  cure: "Look at smtp_url.",
  async run({ config: { smtp, publicUrl } }) {
    if (smtp === null)
      return skipped("no option sets a mail server; one that is set in the console is tested there");
    const host = URL.parse(smtp.url)?.host ?? "";
    try {
      await verifySmtp({ ...smtp, publicUrl });
      return ok(`${host} accepts the login`);
    } catch (error) {
      const reason = error instanceof Error ? firstLine(error.message) : String(error);
      return failed(
        `${host}: ${reason}`,
        "Check smtp_url (host, port, user, password) and the connection to that server.",
      );
    }
  },
};

/** A mail server's own words can have several. */
function firstLine(text: string): string {
  return text.split(/[\r\n]/)[0] ?? "";
}
