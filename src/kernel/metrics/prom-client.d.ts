/**
 * The one file of prom-client that is used. Its entry also loads what measures Node.js and talks to gateways, which
 * holds up the first scrape for 40 ms; the registry alone takes 2.
 */
declare module "prom-client/lib/registry.js" {
  import { Registry } from "prom-client";
  export = Registry;
}
