import { expect, test } from "bun:test";
import { isPlainAndPublic } from "../../src/cluster/settings.ts";

test.each([
  ["https://n1.example.com", false],
  ["http://n1.example.com:9909", true],
  ["http://203.0.113.7:9909", false],
  ["http://93.184.216.34:9909", true],
  ["http://[2606:2800:220:1::1]:9909", true],
  ["http://10.0.0.7:9909", false],
  ["http://192.168.1.2", false],
  ["http://[fd00::1]:9909", false],
  ["http://127.0.0.1:9909", false],
  ["http://localhost:9909", false],
  ["http://n1:9909", false],
  ["http://n1.internal:9909", false],
  ["http://ninefold-0.ninefold.default.svc.cluster.local", false],
])("%s is unencrypted and public: %p", (url, expected) => {
  expect(isPlainAndPublic(url)).toBe(expected);
});
