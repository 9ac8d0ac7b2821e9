import { describe, expect, test } from "bun:test";
import { ApiError, StartupError } from "../../../src/kernel/errors.ts";
import { allowedAddresses, isPublicAddress } from "../../../src/kernel/outbound/address.ts";
import { TargetPolicy, URL_LENGTH_MAX } from "../../../src/kernel/outbound/target.ts";
import { thrown } from "../support.ts";

const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "93.184.215.14",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.0.3.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "198.51.99.255",
  "198.51.101.0",
  "203.0.112.255",
  "203.0.114.0",
  "223.255.255.255",
  "2001:200::1",
  "2001:4860:4860::8888",
  "2606:4700:4700::1111",
  "2a00:1450:4001:81b::200e",
  "2620:fe::fe",
  "::ffff:8.8.8.8",
  "::ffff:808:808",
  "64:ff9b::8.8.8.8",
  "64:ff9b::808:808",
];

const NOT_PUBLIC = [
  "0.0.0.0",
  "0.0.0.1",
  "0.255.255.255",
  "10.0.0.0",
  "10.1.2.3",
  "10.255.255.255",
  "100.64.0.0",
  "100.100.100.200",
  "100.127.255.255",
  "127.0.0.0",
  "127.0.0.1",
  "127.1.2.3",
  "127.255.255.255",
  "169.254.0.0",
  "169.254.169.254",
  "169.254.170.2",
  "169.254.255.255",
  "172.16.0.0",
  "172.20.10.1",
  "172.31.255.255",
  "192.0.0.0",
  "192.0.0.8",
  "192.0.0.170",
  "192.0.2.1",
  "192.31.196.1",
  "192.52.193.1",
  "192.88.99.1",
  "192.168.0.0",
  "192.168.1.1",
  "192.168.255.255",
  "192.175.48.1",
  "198.18.0.0",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.255",
  "224.0.0.1",
  "239.255.255.250",
  "240.0.0.1",
  "254.1.1.1",
  "255.255.255.255",
  "::",
  "::1",
  "::2",
  "::7f00:1",
  "::127.0.0.1",
  "::8.8.8.8",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:10.0.0.1",
  "::ffff:169.254.169.254",
  "::ffff:192.168.1.1",
  "::ffff:0.0.0.0",
  "::ffff:0:127.0.0.1",
  "::ffff:0:8.8.8.8",
  "0:0:0:0:0:ffff:a9fe:a9fe",
  "168.63.129.16",
  "::ffff:168.63.129.16",
  "64:ff9b::168.63.129.16",
  "64:ff9b::127.0.0.1",
  "64:ff9b::10.0.0.1",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b::192.168.0.1",
  "64:ff9b::100.64.0.1",
  "64:ff9b:1::8.8.8.8",
  "64:ff9b:1::1",
  "100::1",
  "100:0:0:1::1",
  "2001::1",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:1::1",
  "2001:2::1",
  "2001:3::1",
  "2001:4:112::1",
  "2001:10::1",
  "2001:20::1",
  "2001:30::1",
  "2001:1ff:ffff::1",
  "2001:db8::1",
  "2001:db8:ffff::1",
  "2002:7f00:1::1",
  "2002:a00:1::",
  "2002:a9fe:a9fe::1",
  "2002:c0a8:101::1",
  "2002:808:808::1",
  "2620:4f:8000::1",
  "3fff::1",
  "3fff:fff::1",
  "4000::1",
  "5f00::1",
  "8000::1",
  "fc00::1",
  "fd00::1",
  "fd00:ec2::254",
  "fdff:ffff::1",
  "fe80::1",
  "fe80::1%eth0",
  "febf::1",
  "fec0::1",
  "ff02::1",
  "ff0e::1",
  "2a00:1450::5efe:10.0.0.1",
  "2a00:1450::200:5efe:7f00:1",
  "",
  "localhost",
  "8.8.8",
  "1",
  "0x08080808",
  "8.8.8.8/32",
  "[2606:4700::1]",
];

describe("addresses", () => {
  for (const address of PUBLIC) {
    test(`${address} is public`, () => expect(isPublicAddress(address)).toBe(true));
  }
  for (const address of NOT_PUBLIC) {
    test(`${JSON.stringify(address)} is not public`, () => expect(isPublicAddress(address)).toBe(false));
  }
});

const policy = new TargetPolicy(allowedAddresses([]));

const REFUSED_URLS: readonly (readonly [url: string, because: string])[] = [
  ["http://127.0.0.1/", "public address"],
  ["http://127.0.0.1:9909/v1/admin/accounts", "public address"],
  ["https://127.0.0.1/", "public address"],
  ["http://127.1/", "public address"],
  ["http://127.0.1/", "public address"],
  ["http://2130706433/", "public address"],
  ["http://017700000001/", "public address"],
  ["http://0x7f000001/", "public address"],
  ["http://0X7F.0.0.1/", "public address"],
  ["http://0177.0.0.1/", "public address"],
  ["http://0x7f.1/", "public address"],
  ["http://127.0.0.1./", "public address"],
  ["http://%31%32%37.0.0.1/", "public address"],
  ["http://１２７.0.0.1/", "public address"],
  ["http://127。0。0。1/", "public address"],
  ["http://①②⑦.0.0.1/", "public address"],
  ["http://0/", "public address"],
  ["http://0.0.0.0/", "public address"],
  ["http://10.0.0.1/", "public address"],
  ["http://167772161/", "public address"],
  ["http://172.16.0.1:8080/", "public address"],
  ["http://192.168.0.1/", "public address"],
  ["http://0xc0a80001/", "public address"],
  ["http://169.254.169.254/latest/meta-data/", "public address"],
  ["http://168.63.129.16/machine?comp=goalstate", "public address"],
  ["http://2822734096/", "public address"],
  ["http://2852039166/", "public address"],
  ["http://0251.0376.0251.0376/", "public address"],
  ["http://100.100.100.200/", "public address"],
  ["http://255.255.255.255/", "public address"],
  ["http://224.0.0.1/", "public address"],
  ["http://[::1]/", "public address"],
  ["http://[::]/", "public address"],
  ["http://[0:0:0:0:0:0:0:1]:80/", "public address"],
  ["http://[::ffff:127.0.0.1]/", "public address"],
  ["http://[::ffff:7f00:1]/", "public address"],
  ["http://[::ffff:a9fe:a9fe]/", "public address"],
  ["http://[64:ff9b::127.0.0.1]/", "public address"],
  ["http://[2002:7f00:1::]/", "public address"],
  ["http://[fd00::1]/", "public address"],
  ["http://[fe80::1]/", "public address"],
  ["http://[ff02::1]/", "public address"],
  ["http://localhost/", "public address"],
  ["http://localhost./", "public address"],
  ["http://LOCALHOST:3000/", "public address"],
  ["http://app.localhost/", "public address"],
  ["http://loc\u00ADalhost/", "public address"],
  ["http://ⓛocalhost/", "public address"],
  ["http://user@example.com/", "user name or password"],
  ["http://user:secret@example.com/", "user name or password"],
  ["http://:secret@example.com/", "user name or password"],
  ["http://example.com%40127.0.0.1/", "http or https URL"],
  ["http://user@127.0.0.1/", "user name or password"],
  ["http://127.0.0.1@example.com/", "user name or password"],
  ["https://example.com:0/", "port from 1"],
  ["https://example.com:65536/", "http or https URL"],
  ["https://example.com:http/", "http or https URL"],
  ["http://256.1.1.1/", "http or https URL"],
  ["http://1.2.3.4.5/", "http or https URL"],
  ["http://0x100000000/", "http or https URL"],
  ["http://[::1/", "http or https URL"],
  ["http://[::1%25eth0]/", "http or https URL"],
  ["http://exa mple.com/", "http or https URL"],
  [" http://example.com/", "http or https URL"],
  ["http://example.com/\n", "http or https URL"],
  ["ht\ttp://example.com/", "http or https URL"],
  ["http://exam\u0000ple.com/", "http or https URL"],
  ["http://example.com\u3000/", "http or https URL"],
  ["ftp://example.com/", "http or https URL"],
  ["file:///etc/passwd", "http or https URL"],
  ["gopher://example.com/", "http or https URL"],
  ["data:text/plain,hello", "http or https URL"],
  ["javascript:alert(1)", "http or https URL"],
  ["ws://example.com/", "http or https URL"],
  ["unix:/run/docker.sock", "http or https URL"],
  ["//example.com/", "http or https URL"],
  ["example.com", "http or https URL"],
  ["http:example.com", "http or https URL"],
  ["http:/example.com", "http or https URL"],
  ["http://", "http or https URL"],
  ["http://.example.com/", "name a host"],
  ["http://example..com/", "name a host"],
  ["http://./", "name a host"],
  ["", "http or https URL"],
  [`https://example.com/${"a".repeat(URL_LENGTH_MAX)}`, "2048 characters"],
];

const TAKEN_URLS = [
  "http://example.com",
  "https://example.com/",
  "HTTPS://EXAMPLE.COM/",
  "https://example.com./",
  "https://example.com:1/",
  "https://example.com:65535/path?query=1#fragment",
  "https://bücher.example/",
  "https://xn--bcher-kva.example/",
  "https://8.8.8.8/",
  "http://134744072/",
  "https://[2606:4700:4700::1111]:8443/",
  "https://[::ffff:8.8.8.8]/",
  "https://localhost.example.com/",
  "https://127.0.0.1.nip.io/",
  "https://a_b.example.com/",
  `https://example.com/${"a".repeat(URL_LENGTH_MAX - "https://example.com/".length)}`,
];

describe("URLs", () => {
  for (const [url, because] of REFUSED_URLS) {
    test(`${JSON.stringify(url).slice(0, 80)} is rejected`, () => {
      const error = thrown(() => policy.assertUrl("target_url", url)) as ApiError;
      expect(error).toBeInstanceOf(ApiError);
      expect(error.code).toBe("validation_error");
      expect(error.details.fields?.["target_url"]?.[0]).toContain(because);
    });
  }
  for (const url of TAKEN_URLS) {
    test(`${url.slice(0, 80)} is accepted`, () => {
      expect(policy.assertUrl("target_url", url).port).toBeGreaterThan(0);
    });
  }
  test("at least 150 forms of addresses are tested", () => {
    const forms = [...PUBLIC, ...NOT_PUBLIC, ...REFUSED_URLS, ...TAKEN_URLS].length;
    expect(forms).toBeGreaterThanOrEqual(150);
  });
});

describe("addresses that the operator permits", () => {
  const allows = (entries: string[], url: string, requireHttps = false): boolean =>
    !("refused" in new TargetPolicy(allowedAddresses(entries)).examine(url, { requireHttps }));

  test("permits exactly a range or a single address", () => {
    expect(allows(["10.0.0.0/8"], "http://10.1.2.3/")).toBe(true);
    expect(allows(["10.0.0.0/8"], "http://11.1.2.3/")).toBe(true);
    expect(allows(["10.0.0.0/8"], "http://192.168.0.1/")).toBe(false);
    expect(allows(["192.168.0.1"], "http://192.168.0.1/")).toBe(true);
    expect(allows(["192.168.0.1"], "http://192.168.0.2/")).toBe(false);
    expect(allows(["fd00::/8"], "http://[fd12::1]/")).toBe(true);
    expect(allows(["fd00::/8"], "http://[fe80::1]/")).toBe(false);
  });

  test("an IPv4 range covers the mapped form of its addresses", () => {
    expect(allows(["127.0.0.0/8"], "http://[::ffff:127.0.0.1]/")).toBe(true);
  });

  test("localhost means both loopback addresses, and requires both", () => {
    expect(allows(["127.0.0.0/8", "::1"], "http://localhost/")).toBe(true);
    expect(allows(["127.0.0.0/8"], "http://localhost/")).toBe(false);
  });

  test("all permits every address", () => {
    expect(allows(["all"], "http://169.254.169.254/")).toBe(true);
    expect(allows(["all"], "http://user@169.254.169.254/")).toBe(false);
  });

  test("plain HTTP instead of HTTPS is accepted only for permitted addresses", () => {
    expect(allows([], "https://example.com/", true)).toBe(true);
    expect(allows([], "http://example.com/", true)).toBe(false);
    expect(allows([], "http://8.8.8.8/", true)).toBe(false);
    expect(allows(["127.0.0.0/8"], "http://127.0.0.1/", true)).toBe(true);
    expect(allows(["127.0.0.0/8"], "http://8.8.8.8/", true)).toBe(false);
    // The address of the name is known only after it is resolved.
    expect(allows(["10.0.0.0/8"], "http://storage.example/", true)).toBe(true);
  });

  test("an invalid entry fails the start", () => {
    const error = thrown(() => allowedAddresses(["example.com"]));
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toContain('"example.com" is not loopback, private, all, an address');
    expect(thrown(() => allowedAddresses(["Loopback"]))).toBeInstanceOf(StartupError);
    expect(thrown(() => allowedAddresses(["10.0.0.0/33"]))).toBeInstanceOf(StartupError);
  });
});
