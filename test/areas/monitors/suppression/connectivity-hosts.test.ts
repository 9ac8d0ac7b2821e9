import { expect, test } from "bun:test";
import type { MonitorRow } from "../../../../src/areas/monitors/store.ts";
import {
  ACCOUNTS_MAX,
  ConnectivityHosts,
  HOSTS_PER_ACCOUNT_MAX,
  interleaved,
  type MonitoredHost,
} from "../../../../src/areas/monitors/suppression/connectivity-hosts.ts";
import type { OutboundOutcome } from "../../../../src/kernel/outbound/outcome.ts";

function see(hosts: ConnectivityHosts, account: number, host: string, address: string): void {
  const monitor = {
    accountRef: account,
    settings: { type: "http", url: `https://${host}/`, interval: 60_000 },
  };
  hosts.recordOutcome(monitor as MonitorRow, { answered: true, address } as OutboundOutcome, 1);
}

function seen(account: number, network: string): MonitoredHost {
  return { url: "", account, isPublic: true, network, proved: true, at: 0, intervalMs: 60_000 };
}

test("the most recently checked hosts are remembered, up to a limit per account and in total", () => {
  const hosts = new ConnectivityHosts();
  for (let n = 0; n <= HOSTS_PER_ACCOUNT_MAX; n += 1) see(hosts, 1, `h${n}.example`, "9.9.9.9");
  expect(hosts.publicHosts.map(({ url }) => url)).toEqual(
    Array.from({ length: HOSTS_PER_ACCOUNT_MAX }, (_, n) => `https://h${n + 1}.example/`),
  );
  for (let account = 2; account <= ACCOUNTS_MAX; account += 1) see(hosts, account, "a.example", "9.9.9.9");
  expect(hosts.publicHosts.length).toBe(HOSTS_PER_ACCOUNT_MAX + ACCOUNTS_MAX - 1);
  see(hosts, ACCOUNTS_MAX + 1, "a.example", "9.9.9.9");
  expect(hosts.publicHosts.length).toBe(ACCOUNTS_MAX);
});

test("a host's network is its /24 or IPv6 /48, or without an address the end of its name", () => {
  const hosts = new ConnectivityHosts();
  const network = (host: string, address: string | null) => {
    const monitor = { accountRef: 1, settings: { type: "http", url: `https://${host}/`, interval: 60_000 } };
    const addresses = address === null ? [] : [address];
    const outcome = { answered: false, addresses, failure: { kind: "dns", message: "" } };
    hosts.recordOutcome(monitor as MonitorRow, outcome as unknown as OutboundOutcome, 1);
    return hosts.publicHosts.at(-1)?.network;
  };
  expect(network("a.example", "9.9.9.1")).toBe(network("b.example", "9.9.9.200") ?? "");
  expect(network("a.example", "9.9.9.1")).not.toBe(network("b.example", "9.9.8.1") ?? "");
  expect(network("c.example", "2620:fe:1::1")).toBe(network("d.example", "2620:fe:1:2::1") ?? "");
  expect(network("c.example", "2620:fe:1::1")).not.toBe(network("d.example", "2620:fe:2::1") ?? "");
  expect(network("x1.some.example", null)).toBe(network("x2.some.example", null) ?? "");
  // The last known address, while the name cannot be resolved.
  expect(network("a.example", null)).toBe(network("a.example", "9.9.9.1") ?? "");
});

test("probes alternate between accounts and use two hosts of a network", () => {
  const hosts = [seen(1, "a"), seen(1, "b"), seen(1, "c"), seen(2, "a"), seen(3, "a")];
  expect(interleaved(hosts).map(({ account, network }) => `${account}${network}`)).toEqual([
    "3a",
    "2a",
    "1c",
    "1b",
  ]);
});

test("a port is probed like a URL; a name server that responds proves nothing, one that does not is a failure", () => {
  const hosts = new ConnectivityHosts();
  const sign = (type: string, url: string, outcome: object) => {
    const monitor = { accountRef: 1, settings: { type, url, interval: 60_000 } };
    return hosts.recordOutcome(monitor as MonitorRow, outcome as OutboundOutcome, 1);
  };
  expect(sign("dns", "dns:a.example?type=A", { answered: true, address: null })).toBe("open");
  const lost = { answered: false, addresses: [], failure: { kind: "dns", message: "" } };
  expect(sign("dns", "dns:a.example?type=A", lost)).toBe("failed");
  expect(hosts.publicHosts).toEqual([]);
  expect(sign("tcp", "tcp://b.example:25", { answered: true, address: "9.9.9.9" })).toBe("proved");
  expect(hosts.publicHosts.map(({ url }) => url)).toEqual(["http://b.example:25"]);
});
